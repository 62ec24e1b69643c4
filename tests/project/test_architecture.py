"""The rooms of the house: what may import what, and how large a room may be."""

import ast
import inspect
import sys
from collections.abc import Callable
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import invariantnet
from invariantnet import metrics

ROOT = Path(__file__).parents[2]
PACKAGE = "invariantnet"

# A room may import from the rooms before it. The data come after the symmetries because the variants of the
# embedded data sets (`mnist:rotated`) are made with the symmetries of the catalogue.
ORDER = [
    "choices",
    "_system",
    "symmetries",
    "data",
    "priors", "metrics", "likelihoods",
    "nn",
    "objectives",
    "training",
    "inference",
    "discovery",
    "uncertainty",
    "estimator",
    "report",
    "app",
    "__main__",
]  # fmt: skip
ESTIMATOR = ORDER.index("estimator")
BELOW_THE_ESTIMATOR = ("sklearn.datasets", "sklearn.metrics")
"""What rooms below the estimator may use of scikit-learn: functions, no conventions."""


def modules_in(folder: Path) -> dict[str, Path]:
    """Map the dotted name of every module of a package to its file."""
    names = {path: path.relative_to(folder.parent).with_suffix("").parts for path in sorted(folder.rglob("*.py"))}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in names.items()}


@cache
def imported_names(path: Path) -> frozenset[str]:
    """List every name that a file imports, at the top or inside a function, as `module` or `module.name`."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def import_graph(modules: dict[str, Path]) -> dict[str, set[str]]:
    """Map every module to the modules of the same tree that it imports."""

    def home(name: str) -> str | None:
        while name and name not in modules:
            name = name.rpartition(".")[0]
        return name or None

    return {
        module: {target for name in imported_names(path) if (target := home(name))}
        for module, path in modules.items()
    }


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules of one import cycle, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def room(module: str) -> str:
    """Return the room of a module of the package: `invariantnet.nn.mixture` is in `nn`."""
    return module.split(".")[1]


def place(module: str) -> int:
    """Return the place of a module's room in the order."""
    return ORDER.index(room(module))


SOURCE = modules_in(ROOT / "src" / PACKAGE)
STUDIES = modules_in(ROOT / "studies")
TESTS = sorted((ROOT / "tests").rglob("*.py"))
# The package itself holds only the public names, and loads their modules at first use.
SOURCE_GRAPH = {
    module: targets for module, targets in import_graph({**SOURCE, **STUDIES}).items() if module in SOURCE
}
del SOURCE_GRAPH[PACKAGE]
STUDIES_GRAPH = import_graph(STUDIES)


def test_every_room_has_its_place_in_the_order():
    assert {room(module) for module in SOURCE_GRAPH} == set(ORDER)


def test_imports_point_down_the_order():
    edges = [(module, target) for module, targets in SOURCE_GRAPH.items() for target in targets]
    # A public name is imported from the module that defines it, not from the package.
    assert not [edge for edge in edges if edge[1] == PACKAGE or edge[1] in STUDIES]
    assert not [edge for edge in edges if place(edge[1]) > place(edge[0])]


@pytest.mark.parametrize("graph", [SOURCE_GRAPH, STUDIES_GRAPH], ids=["src", "studies"])
def test_no_import_cycle(graph):
    cycle = find_cycle(graph)
    assert not cycle, " imports ".join(cycle)


def test_no_import_escapes_the_graph():
    """A module named in a string, to be imported by importlib, would be invisible above."""
    names = {name for name in SOURCE | STUDIES if "." in name}
    for module in SOURCE_GRAPH:
        nodes = ast.walk(ast.parse(SOURCE[module].read_text()))
        named = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        # A module may name its own package, to find the files beside it.
        assert named & names <= {module.rpartition(".")[0]}, module


def test_a_cycle_inside_functions_is_found(tmp_path):
    (tmp_path / "house").mkdir()
    (tmp_path / "house/__init__.py").touch()
    (tmp_path / "house/hall.py").write_text("from house.attic import stairs\n")
    (tmp_path / "house/attic.py").write_text("def stairs():\n    from house import hall\n    return hall\n")
    cycle = find_cycle(import_graph(modules_in(tmp_path / "house")))
    assert set(cycle) == {"house.hall", "house.attic"}


def test_figures_and_estimators_stay_outside_the_core():
    for module in SOURCE_GRAPH:
        allowed = "sklearn" if place(module) >= ESTIMATOR else BELOW_THE_ESTIMATOR
        names = imported_names(SOURCE[module])
        assert not [name for name in names if name.startswith("matplotlib")], module
        assert not [name for name in names if name.startswith("sklearn") and not name.startswith(allowed)], module


def test_public_names_are_all_there():
    for name in invariantnet.__all__:
        assert getattr(invariantnet, name) is not None
    assert set(invariantnet.__all__) <= set(dir(invariantnet))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = invariantnet.nonsense
    assert "invariantnet.symmetries.group" in sys.modules


def public_functions() -> dict[str, Callable[..., object]]:
    """Map what users call to the functions: public names, metrics, and methods of the estimators and of groups."""
    found = {name: getattr(metrics, name) for name in metrics.__dict__ if not name.startswith("_")}
    for public in invariantnet.__all__:
        owner = getattr(invariantnet, public)
        found[public] = owner
        if inspect.isclass(owner):
            methods = inspect.getmembers(owner, inspect.isfunction)
            found |= {f"{public}.{name}": method for name, method in methods if not name.startswith("_")}
    ours = {name: each for name, each in found.items() if inspect.isfunction(each)}
    return {name: each for name, each in ours.items() if each.__module__.startswith(PACKAGE)}


def test_what_users_call_says_what_it_takes():
    functions = public_functions()
    assert {"InvariantClassifier.fit", "join", "accuracy"} <= set(functions)
    for name, function in functions.items():
        signature, said = inspect.signature(function), inspect.getdoc(function) or ""
        if set(signature.parameters) - {"self", "cls"}:
            assert "Args:" in said, name
            assert "Returns:" in said or signature.return_annotation in (None, "None"), name


def public_docstrings(path: Path) -> dict[str, tuple[str, str]]:
    """Map every public function of a file that returns something to what it returns and to its docstring."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return {
        f"{path}:{node.lineno} {node.name}": (ast.unparse(node.returns), ast.get_docstring(node) or "")
        for node in nodes
        if not node.name.startswith("_") and node.returns is not None
    }


def test_what_says_what_it_takes_says_what_it_returns():
    for path in SOURCE.values():
        for name, (returned, said) in public_docstrings(path).items():
            if "Args:" in said and returned != "None" and not returned.startswith("Iterator"):
                assert "Returns:" in said, name


LONGEST_FUNCTION = 60
"""Lines, docstring included: what fits on a screen."""

LARGEST_FILE = 350
"""Lines: what can be read in one sitting."""

MOST_ARGUMENTS = 7
"""Arguments of a function, `__init__` excepted: what fits in mind."""

EVASIVE_NAMES = {
    "memory", "team", "rows", "weighting", "workers", "actions", "beside", "beyond", "targets", "schemes",
    "doubts", "corners", "wrong",
}  # fmt: skip
"""Module names that do not say what is inside."""


def function_lengths(path: Path) -> dict[str, int]:
    """Map every function of a file to its number of lines."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions)]
    return {f"{path}:{node.lineno} {node.name}": node.end_lineno - node.lineno + 1 for node in nodes}


def test_functions_fit_on_a_screen():
    lengths = {}
    for path in [*SOURCE.values(), *STUDIES.values(), *TESTS]:
        lengths |= function_lengths(path)
    assert not {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION}


def test_arguments_fit_in_mind():
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for path in [*SOURCE.values(), *STUDIES.values()]:
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, functions)]
        counts = {n.name: len(n.args.args) + len(n.args.kwonlyargs) for n in nodes if n.name != "__init__"}
        assert not {name: count for name, count in counts.items() if count > MOST_ARGUMENTS}, path


def unexplained_constants(path: Path) -> list[str]:
    """List the constants of a module that neither a docstring below nor a comment explains."""
    lines = path.read_text().splitlines()
    body = ast.parse(path.read_text()).body
    found = []
    for node, after in zip(body, [*body[1:], None], strict=True):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        parts = [part for target in targets if target for part in ast.walk(target)]
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        # What every study has, and what stands for a type, is explained where it is used.
        if not (names and names[0].isupper()) or names[0] == "STUDY" or "TypeVar(" in lines[node.lineno - 1]:
            continue
        explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        commented = lines[node.lineno - 2].startswith("#") or "  # " in lines[node.end_lineno - 1]
        found += [] if explained or commented else names
    return found


def test_constants_say_what_they_are_for():
    found = {name: unexplained_constants(path) for name, path in (SOURCE | STUDIES).items()}
    assert not {name: constants for name, constants in found.items() if constants}


def test_files_can_be_read_in_one_sitting():
    paths = [*SOURCE.values(), *STUDIES.values(), *TESTS]
    lines = {path: len(path.read_text().splitlines()) for path in paths}
    assert not {path: count for path, count in lines.items() if count > LARGEST_FILE}


def test_module_names_say_what_is_inside():
    paths = [*SOURCE.values(), *STUDIES.values(), *TESTS]
    assert not [path for path in paths if path.stem.removeprefix("test_") in EVASIVE_NAMES]
