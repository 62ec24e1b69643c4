"""The pages of the documentation that are written from records, and the README's tables.

A page is a template in this folder. It takes tables, pictures and claims from studies; no number in it is typed
that a study records. Where records of an older version are shown, the page says so, and a claim that its records
no longer support stops the rendering.
"""

import re
from pathlib import Path
from typing import Any

import jinja2

from invariantnet._system.files import write_text
from studies.framework.drawing import draw, is_current
from studies.framework.records import RESULTS, ROOT, AnyStudy, Piece, current_version, read, records, select
from studies.framework.registry import NAMES, load

TEMPLATES = Path(__file__).parent
"""Where the templates are."""
PAGES = (
    "reproduction", "figures", "naming", "honesty", "examples", "uncertainty", "second-opinion", "mixture",
    "corrected", "truth", "ranges", "discovered", "backbones", "speed", "reliability",
)  # fmt: skip
"""Names of the templates, and of the pages in `docs/`."""

MOST_ROWS = 5
"""Rows of a table that are shown at once; unfolding the table shows all of them."""

PANEL_OF_README = ["Connect-4", "poker hands", "spirals as clouds", "digits", "textures"]
"""Sets of the panel that the README shows: a board, cards, points, digits, and textures, whose verdict is open."""

README_TABLES = {"panel": {"data": PANEL_OF_README}}
"""Studies whose tables the README shows, and which of their records."""

README_CLAIMS = {
    "unscrambled": (("unscrambled", "found"),),
    "verdicts": (("panel", "verdicts"), ("panel", "scores")),
    "random functions": (("null_and_power", "data sets"), ("null_and_power", "met")),
    "turned digits": (("rotated_mnist", "error"),),
}
"""Marks in the README, and the studies and claims that are said there."""


class Page:
    """Renders one page.

    Args:
        folder: Where the records are.
        unfolds: Whether long tables are there in full too.
    """

    def __init__(self, folder: Path = RESULTS, *, unfolds: bool = True) -> None:
        self.folder, self.unfolds = folder, unfolds
        self.marked: set[str] = set()

    def table(self, name: str, **fields: Any) -> str:
        """Show the table of a study, or of those records whose fields have the given values."""
        study, pieces = self.shown(name)
        assert study.table is not None
        mark = self.mark(name)
        table = shortened(study.table(select(records(pieces), **fields)), unfolds=self.unfolds)
        return table + (f"\n{mark}" if mark else "")

    def picture(self, name: str, words: str) -> str:
        """Show the figure of a study, with words in its place where it cannot be seen."""
        mark = self.mark(name).rstrip()
        return f"![{words}](pictures/{name}.png)" + (f"\n\n{mark}" if mark else "")

    def claim(self, name: str, claim: str) -> str:
        """Say a sentence, if the records support it.

        Args:
            name: Name of the study.
            claim: Name of the claim.

        Returns:
            The sentence.

        Raises:
            ValueError: If the records do not support it.
        """
        study, pieces = self.shown(name)
        found = study.claims(records(pieces))[claim]
        if not found.holds:
            raise ValueError(
                f"the records of {name} do not support “{found.sentence}”: correct the claim {claim!r} in "
                f"{Path(study.file).name}, or find out why."
            )
        return f"{found.sentence} {self.mark(name)}".rstrip()

    def measured(self, name: str) -> bool:
        """Whether a study has records, for parts of a page that may be written before they are measured."""
        return bool(read(load(name), self.folder))

    def mark(self, name: str) -> str:
        """Say which older version made the records of a study, the first time that the page shows them."""
        pieces = self.shown(name)[1]
        old = [piece for piece in pieces if piece.version != current_version()]
        if not old or name in self.marked:
            return ""
        self.marked.add(name)
        versions = ", ".join(sorted({piece.version for piece in old}))
        share = "Measured" if len(old) == len(pieces) else f"{len(old)} of {len(pieces)} runs were measured"
        return f"*({share} with version {versions}.)*\n"

    def render(self, name: str) -> str:
        """Render a whole page."""
        loader = jinja2.FileSystemLoader(TEMPLATES)
        templates = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
        functions = {
            "table": self.table,
            "picture": self.picture,
            "claim": self.claim,
            "measured": self.measured,
        }
        return templates.get_template(f"{name}.md.j2").render(functions)

    def shown(self, name: str) -> tuple[AnyStudy, list[Piece[Any]]]:
        """Load a study and the pieces that it shows: its own, and those of the studies that it reads."""
        study = load(name)
        pieces = [piece for source in (study, *map(load, study.reads)) for piece in read(source, self.folder)]
        if not pieces and study.parts:
            raise ValueError(f"no records of {name}: run `python -m studies run {name}`.")
        return study, pieces


def shortened(table: str, *, unfolds: bool = True) -> str:
    """Show the first rows of a table, and all of them where the table is unfolded.

    Args:
        table: A table in Markdown.
        unfolds: Whether the whole table is there too.

    Returns:
        The table itself if it is short.
    """
    title, rule, *rows = table.rstrip("\n").split("\n")
    if len(rows) <= MOST_ROWS:
        return table
    first = "\n".join([title, rule, *rows[:MOST_ROWS]])
    whole = f'\n\n<details markdown="1"><summary>All {len(rows)} rows</summary>\n\n{table.rstrip()}\n\n</details>'
    return f"{first}{whole if unfolds else ''}\n"


def render_readme(folder: Path = RESULTS) -> str:
    """Render the README: its tables and claims, and where its numbers come from an older version.

    Args:
        folder: Where the records are.

    Returns:
        The whole text.
    """
    text, page = (ROOT / "README.md").read_text(), Page(folder, unfolds=False)
    blocks = {name: page.table(name, **fields) for name, fields in README_TABLES.items()}
    blocks |= {mark: f"{' '.join(page.claim(*each) for each in said)}\n" for mark, said in README_CLAIMS.items()}
    for name, block in blocks.items():
        text = re.sub(
            f"(<!-- {name} -->\n).*?(<!-- end -->)",
            lambda found, block=block: found[1] + block + found[2],  # type: ignore[misc]
            text,
            flags=re.DOTALL,
        )
    return text


def outdated_pictures(folder: Path = RESULTS, pictures: Path = ROOT / "docs/pictures") -> list[AnyStudy]:
    """Find the studies whose pictures were not drawn from these records by this code."""
    page = Page(folder)
    drawn = [study for study in map(load, NAMES) if study.draw and (page.measured(study.name) or not study.parts)]
    return [
        study
        for study in drawn
        if not is_current(pictures / f"{study.name}.png", study, records(page.shown(study.name)[1]))
    ]


def write_all() -> list[Path]:
    """Write every page, the README, and every picture that is out of date.

    Returns:
        What was written.
    """
    written = {ROOT / f"docs/{name}.md": Page().render(name) for name in PAGES}
    written[ROOT / "README.md"] = render_readme()
    for path, text in written.items():
        write_text(path, text)
    pictures = [
        path
        for study in outdated_pictures()
        for path in draw(study, records(Page().shown(study.name)[1]), ROOT / "docs/pictures", ["png"])
    ]
    return [*written, *pictures]
