"""Do the tests notice if one operator, constant or condition of the mathematics is changed?

The work is done on a copy in a temporary folder. First the tests of a module's folder are run as they are, to
learn which of them run which line, and how long each takes. A mutant then meets the tests of its line, the fastest
first, in a forked process, so that torch is imported only once. A mutant that survives is a gap in the tests, or a
change that changes nothing; `mutants_explained.json` says why.
"""

import ast
import contextlib
import copy
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from studies.framework import Claim, Part, Study
from studies.framework.markdown import markdown

ROOT = Path(__file__).parents[2]
"""The repository."""
EXPLAINED = Path(__file__).with_name("mutants_explained.json")
"""Why no test notices some changes."""

MODULES = (
    "symmetries/group",
    "symmetries/reynolds",
    "symmetries/measure",
    "inference/posterior",
    "inference/race",
    "inference/rules",
    "inference/bootstrap",
    "inference/scoring",
    "inference/prices",
    "inference/heldout",
    "inference/laplace",
    "inference/mixture_posterior",
    "inference/cache",
    "uncertainty",
)
"""Where the mathematics is."""

QUICK_COUNT = 3
"""Mutants of a quick run."""
LONGEST_WATCH = 3600.0
"""Seconds that the tests of a folder may take."""
PATIENCE = 30.0
"""Seconds that a mutant gets beyond twice the time of its tests: some loop for ever."""

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
"""What each operator is exchanged for."""


@dataclass(frozen=True)
class MutantRecipe:
    """The mutants of one module."""

    module: str
    seed: int
    count: int | None = None
    """Number of mutants, drawn at random; None for all."""


@dataclass(frozen=True)
class Record:
    """How many mutants of a module were tried, and which of them no test noticed."""

    module: str
    mutants: int
    survivors: tuple[str, ...]


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    lines: range
    """Lines of the statement up to the change."""
    change: str
    content: str


@dataclass(frozen=True)
class Tests:
    """The tests of one module: how long each takes, and which run each of its lines."""

    seconds: dict[str, float]
    by_line: dict[int, list[str]]

    def of(self, lines: range) -> list[str]:
        """The tests of a statement, the fastest first; all of them if importing the module executes it."""
        found = {test for line in lines for test in self.by_line.get(line, [])}
        return sorted(self.seconds if "" in found else found, key=lambda test: self.seconds[test])


class Watcher:
    """A plugin of pytest that adds up what every test takes, and tells coverage which test is running."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_call(self, item: Any) -> None:
        """Called by pytest before a test."""
        import coverage

        current = coverage.Coverage.current()
        if current is not None:
            current.switch_context(item.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Called by pytest after each phase of a test."""
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


def recipes(seed: int) -> list[MutantRecipe]:
    """Every module."""
    return [MutantRecipe(module, seed) for module in MODULES]


def run(recipe: MutantRecipe) -> list[Record]:
    """Try the mutants of a module."""
    chosen = list(mutants((ROOT / _path(recipe.module)).read_text()))
    if recipe.count is not None:
        chosen = random.Random(recipe.seed).sample(chosen, min(recipe.count, len(chosen)))
    with _copy_of_everything() as folder:
        tests = watch(folder, recipe.module)
        survivors = [m.change for m in chosen if survives(folder, recipe.module, m, tests)]
    # A line may hold the same thing twice.
    return [Record(recipe.module, len(chosen), tuple(dict.fromkeys(survivors)))]


def _path(module: str) -> str:
    return f"src/invariantnet/{module}.py"


def _tests(module: str) -> list[str]:
    """Name the tests of the module's folder, and the tests that hold for every module."""
    folder = module.rpartition("/")[0]
    return [f"tests/{folder}" if folder else f"tests/test_{module}.py", "tests/laws", "tests/oracles"]


def mutants(source: str) -> Iterator[Mutant]:
    """Change one operator, constant or condition at a time.

    Settings (constants of a module, defaults of fields), what a decorator is told, and checks that two lengths are
    equal are not mathematics, and stay.

    Args:
        source: The text of a module.

    Yields:
        The mutants.
    """
    tree = ast.parse(source)
    starts = sorted({node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)})
    apart: list[ast.AST] = [part for node in ast.walk(tree) for part in getattr(node, "decorator_list", ())]
    apart += [node for node in tree.body if isinstance(node, ast.Assign)]
    apart += [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "strict"]
    bodies = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    apart += [part for body in bodies for part in body if isinstance(part, ast.AnnAssign)]
    kept = {id(node) for part in apart for node in ast.walk(part)}
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node) if id(node) not in kept else ():
            altered = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(altered)) if i == number)
            before = _shown(twin)
            change(twin)
            at: int = node.lineno  # type: ignore[attr-defined]
            line = source.splitlines()[at - 1].strip()
            start = max(s for s in starts if s <= at)
            yield Mutant(range(start, at + 1), f"{before} → {_shown(twin)} in: {line}", ast.unparse(altered))


def _shown(node: ast.AST) -> str:
    return ast.unparse(node.test if isinstance(node, ast.If | ast.IfExp) else node)


def _changes(node: ast.AST) -> Iterator[Callable[[Any], None]]:
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        yield lambda n: setattr(n, "op", SWAPS[type(n.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield lambda n: n.ops.__setitem__(0, SWAPS[type(n.ops[0])]())
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield lambda n: setattr(n, "value", n.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield lambda n: setattr(n, "value", not n.value)
    elif isinstance(node, ast.IfExp | ast.If):
        yield lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))


def watch(folder: Path, module: str) -> Tests:
    """Run the tests of a module as it is.

    Args:
        folder: A copy of the repository.
        module: Such as `inference/race`.

    Returns:
        How long each test takes, and which lines it runs.

    Raises:
        ValueError: If a test fails.
    """
    learned = folder / "tests.json"

    def learn() -> int:
        import coverage

        watcher, data = Watcher(), str(folder / ".coverage")
        (folder / "coveragerc").write_text(f"[run]\nsource = {folder}/src\ndata_file = {data}\n")
        options = ["--cov", f"--cov-config={folder}/coveragerc", "--cov-report="]
        status = run_tests(folder, _tests(module), options, watcher)
        kept = coverage.CoverageData(data)
        kept.read()
        lines = kept.contexts_by_lineno(str((folder / _path(module)).resolve()))
        learned.write_text(json.dumps([watcher.seconds, lines]))
        return status

    if forked(learn, LONGEST_WATCH) != 0:
        raise ValueError(f"tests of {module} fail without any change: mend them first.")
    seconds, by_line = json.loads(learned.read_text())
    return Tests(seconds, {int(line): tests for line, tests in by_line.items()})


def survives(folder: Path, module: str, mutant: Mutant, tests: Tests) -> bool:
    """Say whether the tests pass with the mutant in place; afterwards the copy is as before."""
    chosen = tests.of(mutant.lines)
    if not chosen:
        return True
    path = folder / _path(module)
    whole = path.read_text()
    path.write_text(mutant.content)
    limit = PATIENCE + 2 * sum(tests.seconds[test] for test in chosen)
    status = forked(lambda: run_tests(folder, chosen, []), limit)
    path.write_text(whole)
    return status == 0


def run_tests(folder: Path, tests: list[str], options: list[str], *plugins: object) -> int:
    """Run tests of the copy in this process, which has to be a forked one, and return pytest's status."""
    import pytest

    for name in [n for n in sys.modules if n.split(".")[0] in ("invariantnet", "studies")]:
        del sys.modules[name]  # the copy's are to be imported
    os.chdir(folder)
    sys.path[:0] = [str(folder / "src"), str(folder)]
    sys.dont_write_bytecode = True
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    quiet = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main(["-x", "-q", "-n", "0", *quiet, *options, *tests], plugins=[*plugins]))


def forked(work: Callable[[], int], seconds: float) -> int:
    """Do work in a forked process, kill it when its time is up, and return its status."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = work()
        finally:
            os._exit(status)
    end = time.monotonic() + seconds
    while True:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        done, found = os.waitpid(child, os.WNOHANG)
        if done:
            return found
        time.sleep(0.02)


@contextlib.contextmanager
def _copy_of_everything() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("src", "tests", "studies"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        yield folder


def table(records: Sequence[Record]) -> str:
    """How many changes were tried and not noticed; and the changes that no test notices, with the reason."""
    counts = [[r.module, str(r.mutants), str(len(r.survivors))] for r in records]
    why = json.loads(EXPLAINED.read_text())
    reasons = [
        [r.module, f"`{change.replace('|', chr(92) + '|')}`", why.get(change, "Not explained yet.")]
        for r in records
        for change in r.survivors
    ]
    found = markdown(["module", "changes tried", "not noticed"], counts)
    return f"{found}\n{markdown(['module', 'change', 'why no test notices'], reasons)}" if reasons else found


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    tried, survivors = sum(r.mutants for r in records), [change for r in records for change in r.survivors]
    why = json.loads(EXPLAINED.read_text())
    return {
        "explained": Claim(
            f"Of {tried} changes, {len(survivors)} went unnoticed, each because it changes nothing that matters.",
            all(change in why for change in survivors),
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"modules": Part(recipes)},
    run=run,
    quick=lambda recipe: replace(recipe, count=QUICK_COUNT),
    table=table,
    claims=claims,
    alone=True,
    depends_on=("invariantnet",),
)
