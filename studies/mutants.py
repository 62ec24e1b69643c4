"""Do the tests notice? One operator or constant of the mathematics is changed at a time, and its tests are run.

Usage: .venv/bin/python benchmarks/mutants.py [--only groups] [--count 20] [--seed 0] [--out results]

Works on a copy in a temporary folder. First the tests are run as they are, to learn which of them come by which
line and how long each takes; a mutant then meets those of its line, the fastest first, in a process forked from
this one, so that none has to import torch again. Lists the mutants that survive: each is a hole in the tests, or a
change that changes nothing. With --out they are kept in mutants.json, together with the reasons that were written
there by hand; --again tries only those that survived the last time.
"""

import argparse
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

# Whatever the package needs, but not the package: every mutant imports that anew.
import beartype  # noqa: F401
import coverage
import hypothesis  # noqa: F401
import jaxtyping  # noqa: F401
import joblib  # noqa: F401
import pytest
import rich.progress  # noqa: F401
import scipy.sparse.csgraph  # noqa: F401
import sklearn.base  # noqa: F401
import sympy.combinatorics  # noqa: F401
import torch  # noqa: F401

ROOT = Path(__file__).parent.parent
TESTS = {
    "groups": ["test_groups", "test_catalogue"],
    "reynolds": ["test_reynolds"],
    "measures": ["test_measures"],
    "inference/posterior": ["test_posterior", "test_schemes"],
    "inference/evidence": ["test_race", "test_inference"],
    "inference/race": ["test_race"],
    "inference/prices": ["test_prices", "test_inference"],
    "inference/heldout": ["test_inference"],
    "inference/laplace": ["test_laplace", "test_own_networks"],
    "inference/schemes": ["test_schemes"],
    "inference/weights": ["test_uncertainty", "test_own_networks"],
    "inference/store": ["test_workflow"],
}
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[range, str, str]]:
    """Lines of the statement up to the change, what was changed, and the whole module with the change."""
    tree = ast.parse(source)
    starts = sorted({node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)})
    # What a decorator is told is no mathematics, nor are settings (constants of a module, defaults of fields), nor
    # that two lengths are checked to be equal.
    apart = [part for node in ast.walk(tree) for part in getattr(node, "decorator_list", ())]
    apart += [node for node in tree.body if isinstance(node, ast.Assign)]
    apart += [node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "strict"]
    bodies = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    apart += [part for body in bodies for part in body if isinstance(part, ast.AnnAssign)]
    told = {id(node) for part in apart for node in ast.walk(part)}
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node) if id(node) not in told else ():
            altered = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(altered)) if i == number)
            before = _shown(twin)
            change(twin)
            line = source.splitlines()[node.lineno - 1].strip()
            start = max(number for number in starts if number <= node.lineno)
            yield range(start, node.lineno + 1), f"{before} → {_shown(twin)} in: {line}", ast.unparse(altered)


def _shown(node: ast.AST) -> str:
    return ast.unparse(node.test if isinstance(node, ast.If | ast.IfExp) else node)


def _changes(node: ast.AST) -> Iterator:
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


class Durations:
    """A plugin of pytest that adds up what every test takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


@dataclass(frozen=True)
class Tests:
    """Of one module: how long each takes, and which come by each of its lines."""

    seconds: dict[str, float]
    by_line: dict[int, list[str]]

    def of(self, lines: range) -> list[str]:
        """Those of a statement, the fastest first; all of them, if it is executed when the module is imported."""
        found = {test for line in lines for test in self.by_line.get(line, [])}
        return sorted(self.seconds if "" in found else found, key=lambda test: self.seconds[test])


def watch(folder: Path, module: str) -> Tests:
    """Run the tests of a module as it is."""
    learned = folder / "tests.json"

    def learn() -> int:
        durations, data = Durations(), str(folder / ".coverage")
        (folder / "coveragerc").write_text(f"[run]\nsource = {folder}/src\ndata_file = {data}\n")
        options = ["--cov", f"--cov-config={folder}/coveragerc", "--cov-context=test", "--cov-report="]
        status = run_tests(folder, [f"tests/{name}.py" for name in TESTS[module]], options, durations)
        kept = coverage.CoverageData(data)
        kept.read()
        lines = kept.contexts_by_lineno(str((folder / f"src/invariantnet/{module}.py").resolve()))
        tests = {line: [context.partition("|")[0] for context in found] for line, found in lines.items()}
        learned.write_text(json.dumps([durations.seconds, tests]))
        return status

    if forked(learn, 3600) != 0:
        sys.exit(f"the tests of {module} fail without any change: mend them first")
    seconds, by_line = json.loads(learned.read_text())
    return Tests(seconds, {int(line): tests for line, tests in by_line.items()})


def run_tests(folder: Path, tests: list[str], options: list[str], *plugins: object) -> int:
    os.chdir(folder)
    sys.path.insert(0, str(folder / "src"))
    sys.dont_write_bytecode = True
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    quiet = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main(["-x", "-q", "-n", "0", *quiet, *options, *tests], plugins=[*plugins]))


def forked(work: Callable[[], int], seconds: float) -> int:
    """The exit status of work that is done in a process of its own, and killed when its time is up."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = work()
        finally:
            os._exit(status)
    status, end = None, time.monotonic() + seconds
    while status is None:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        done, found = os.waitpid(child, os.WNOHANG)
        status = found if done else None
        time.sleep(0.02)
    return status


def survives(folder: Path, module: str, content: str, tests: list[str], seconds: float) -> bool:
    """Whether the tests pass with the mutant; `folder` holds a copy of everything, which is mended afterwards."""
    path = folder / f"src/invariantnet/{module}.py"
    whole = path.read_text()
    path.write_text(content)
    status = forked(lambda: run_tests(folder, tests, []), seconds) if tests else 0
    path.write_text(whole)
    return status == 0


@contextlib.contextmanager
def a_copy() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("src", "tests", "benchmarks"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        yield folder


def recorded(path: Path | None) -> dict[str, Any]:
    rows = json.loads(path.read_text()) if path and path.exists() else []
    return {row["module"]: row for row in rows}


def survived(rows: dict[str, Any], module: str) -> dict[str, str]:
    """The changes that nobody noticed so far, and why."""
    return {found["change"]: found["why"] for found in rows.get(module, {}).get("survivors", [])}


def remember(path: Path, before: dict[str, Any], tried: list[tuple[str, int, str, bool]], again: bool) -> None:
    """Counts and survivors of each module; reasons that are there already stay."""
    rows = dict(before)
    for module in dict.fromkeys(module for module, *_ in tried):
        reasons = survived(before, module)
        mine = [(change, alive) for name, _, change, alive in tried if name == module]
        # A line may hold the same thing twice.
        alive = dict.fromkeys(change for change, alive in mine if alive)
        if again:
            alive |= dict.fromkeys(change for change in reasons if change not in dict(mine))
        survivors = [{"change": change, "why": reasons.get(change, "")} for change in alive]
        count = before[module]["mutants"] if again else len(mine)
        rows[module] = {"module": module, "mutants": count, "survivors": survivors}
    # Written without the package: the one that this process would import is a mutant's.
    path.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows.values()) + "\n]\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="so many of them, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=TESTS, help="one module")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    path = options.out and options.out / "mutants.json"
    before = recorded(path)
    every = [
        (module, *mutant)
        for module in TESTS
        if options.only in (None, module)
        for mutant in mutants((ROOT / f"src/invariantnet/{module}.py").read_text())
    ]
    chosen = every
    if options.again:
        chosen = [mutant for mutant in every if mutant[2] in survived(before, mutant[0])]
    elif options.count is not None:
        chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    tried = []
    with a_copy() as folder:
        learned = {module: watch(folder, module) for module in dict.fromkeys(module for module, *_ in chosen)}
        for module, lines, change, content in chosen:
            tests = learned[module].of(lines)
            # A mutant may loop for ever; one that is only slow has to have its time.
            limit = 30 + 2 * sum(learned[module].seconds[test] for test in tests)
            alive = survives(folder, module, content, tests, limit)
            tried.append((module, lines[-1], change, alive))
            print(f"{'SURVIVES' if alive else 'noticed '}  {module}.py:{lines[-1]}  {change[:150]!r}", flush=True)
            if path:
                remember(path, before, tried, options.again)
    print(f"{len(chosen)} of {len(every)} mutants, {sum(alive for *_, alive in tried)} survive")


if __name__ == "__main__":
    main()
