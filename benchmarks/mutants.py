"""Do the tests notice? One operator or constant of the mathematics is changed at a time, and its tests are run.

Usage: .venv/bin/python benchmarks/mutants.py [--count 20] [--seed 0] [--only groups] [--seconds 300]

Works on a copy in a temporary folder. Lists the mutants that survive: each is a hole in the tests, or a change
that changes nothing.
"""

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = {
    "groups": ["test_groups", "test_catalogue"],
    "reynolds": ["test_reynolds"],
    "measures": ["test_measures"],
    "inference/posterior": ["test_inference", "test_numerics"],
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
    for number, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            altered = copy.deepcopy(tree)
            twin = next(n for i, n in enumerate(ast.walk(altered)) if i == number)
            before = ast.unparse(twin)
            change(twin)
            yield getattr(node, "lineno", 0), f"{before}  →  {ast.unparse(twin)}", ast.unparse(altered)


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


def survives(module: str, content: str, tests: list[str], seconds: float) -> bool:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in ("src", "tests", "benchmarks"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        (folder / f"src/invariantnet/{module}.py").write_text(content)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
        command += [f"tests/{name}.py" for name in tests]
        environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    every = [
        (module, *mutant)
        for module in TESTS
        if options.only in (None, module)
        for mutant in mutants((ROOT / f"src/invariantnet/{module}.py").read_text())
    ]
    chosen = random.Random(options.seed).sample(every, min(options.count, len(every)))
    survivors = 0
    for module, line, change, content in chosen:
        alive = survives(module, content, TESTS[module], options.seconds)
        survivors += alive
        print(f"{'SURVIVES' if alive else 'noticed '}  {module}.py:{line}  {change[:150]!r}", flush=True)
    print(f"{len(chosen)} of {len(every)} mutants, {survivors} survive")


if __name__ == "__main__":
    main()
