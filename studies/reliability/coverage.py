"""What share of the program do the tests run?"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from studies.framework import Claim, Part, Study

ROOT = Path(__file__).parents[2]
"""The repository."""
AIM = 95.0
"""Percent of the branches."""


@dataclass(frozen=True)
class CoverageRecipe:
    """All tests, once."""

    seed: int = 0


@dataclass(frozen=True)
class Record:
    """Percent of the program that the tests run."""

    lines: float
    branches: float
    together: float


def run(recipe: CoverageRecipe) -> list[Record]:
    """Run all tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        command = [sys.executable, "-m", "pytest", "-q", "--cov", f"--cov-report=json:{report}"]
        subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
        found = json.loads(report.read_text())["totals"]
    lines = 100 * found["covered_lines"] / found["num_statements"]
    branches = 100 * found["covered_branches"] / found["num_branches"]
    return [Record(round(lines, 1), round(branches, 1), round(found["percent_covered"], 1))]


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    (r,) = records
    return {
        "covered": Claim(
            f"The tests run {r.lines} % of the program's lines and {r.branches} % of its branches (`make "
            "coverage`).",
            r.branches >= AIM,
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"tests": Part(lambda _: [CoverageRecipe()])},
    run=run,
    claims=claims,
    alone=True,
    depends_on=("invariantnet",),
)
