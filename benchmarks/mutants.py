"""Do the tests notice? One operator or constant of the mathematics is changed at a time, and its tests are run.

Usage: .venv/bin/python benchmarks/mutants.py [--count 20] [--seed 0] [--only groups] [--out results]

Works on a copy in a temporary folder; each mutant gets a process forked from this one, so that none has to import
torch again. Lists the mutants that survive: each is a hole in the tests, or a change that changes nothing. With
--out they are kept in mutants.json, together with the reasons that were written there by hand; --again tries only
those that survived the last time.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

# Whatever the package needs, but not the package: every mutant imports that anew.
import beartype  # noqa: F401
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
# The others of this file train networks, which takes too long for each mutant.
OF_POSTERIOR = (
    "test_bootstrap_posterior_against_a_plain_loop",
    "test_bootstrap_is_humble_about_differences_that_a_few_examples_make",
    "test_prior_of_hypotheses",
    "test_verdict_in_words",
    "test_a_posterior_is_shown_whole_or_not_at_all",
    "test_strength_in_words",
    "test_a_second_opinion_is_shown_where_it_was_asked_for",
    "test_the_largest_group_within_the_tolerance_is_bought",
    "test_the_mean_of_networks_is_that_of_their_probabilities",
    "test_bootstrap_in_parts_is_the_same",
    "test_weights_of_examples_scale_their_evidence",
)
TESTS = {
    "groups": ["test_groups", "test_catalogue"],
    "reynolds": ["test_reynolds"],
    "measures": ["test_measures"],
    "inference/posterior": [f"test_inference.py::{test}" for test in OF_POSTERIOR],
    "inference/evidence": ["test_inference"],
    "inference/heldout": ["test_inference"],
    "inference/store": ["test_workflow"],
}
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, what was changed, and the whole module with the change."""
    tree = ast.parse(source)
    # What a decorator is told is no mathematics.
    told = {id(n) for d in ast.walk(tree) for part in getattr(d, "decorator_list", ()) for n in ast.walk(part)}
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node) if id(node) not in told else ():
            altered = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(altered)) if i == number)
            before = _shown(twin)
            change(twin)
            line = source.splitlines()[node.lineno - 1].strip()
            yield node.lineno, f"{before} → {_shown(twin)} in: {line}", ast.unparse(altered)


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


def survives(folder: Path, module: str, content: str, tests: list[str], seconds: float) -> bool:
    """Whether the tests pass with the mutant; `folder` holds a copy of everything, which is mended afterwards."""
    path = folder / f"src/invariantnet/{module}.py"
    whole = path.read_text()
    path.write_text(content)
    child = os.fork()
    if not child:
        status = 1
        try:
            os.chdir(folder)
            sys.path.insert(0, str(folder / "src"))
            sys.dont_write_bytecode = True
            for number in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            files = [f"tests/{name}" if ".py" in name else f"tests/{name}.py" for name in tests]
            quiet = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
            status = int(pytest.main(["-x", "-q", "-n", "0", *quiet, *files]))
        finally:
            os._exit(status)
    status, end = None, time.monotonic() + seconds
    while status is None:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        done, found = os.waitpid(child, os.WNOHANG)
        status = found if done else None
        time.sleep(0.02)
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
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    parser.add_argument("--seconds", type=float, default=300)
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
    if options.again:
        chosen = [mutant for mutant in every if mutant[2] in survived(before, mutant[0])]
    else:
        chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    tried = []
    with a_copy() as folder:
        if not survives(folder, "groups", (ROOT / "src/invariantnet/groups.py").read_text(), ["test_groups"], 600):
            sys.exit("the tests fail without any change: mend them first")
        for module, line, change, content in chosen:
            alive = survives(folder, module, content, TESTS[module], options.seconds)
            tried.append((module, line, change, alive))
            print(f"{'SURVIVES' if alive else 'noticed '}  {module}.py:{line}  {change[:150]!r}", flush=True)
            if path:
                remember(path, before, tried, options.again)
    print(f"{len(chosen)} of {len(every)} mutants, {sum(alive for *_, alive in tried)} survive")


if __name__ == "__main__":
    main()
