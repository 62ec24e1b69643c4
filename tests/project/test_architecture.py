"""The files read in the order of the theory, and imports point one way."""

import ast
import sys
from pathlib import Path

import pytest

import invariantnet

ROOT = Path(invariantnet.__file__).parent

# A module may import from those before it, and from its own package.
ORDER = [
    "memory", "storage", "workers", "rows", "progress", "cluster",
    "actions", "closure", "orbits", "groups", "catalogue", "reynolds", "datasets", "measures",
    "priors", "metrics", "likelihoods", "nn", "objectives", "team", "training", "inference",
    "weighting", "persistence", "exporting", "estimator", "report", "fit", "bench", "experiments", "cli",
    "__main__",
]  # fmt: skip
ABOVE_THE_ESTIMATOR = {"fit", "experiments", "report", "cli", "__main__", "estimator"}


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


MODULES = [p for p in sorted(ROOT.rglob("*.py")) if p != ROOT / "__init__.py"]


def test_every_module_has_its_place():
    assert {layer(p) for p in MODULES} == set(ORDER)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path):
    for name in imports(path):
        if name.startswith("invariantnet."):
            target = name.split(".")[1]
            if target.startswith("__"):
                continue
            assert ORDER.index(target) <= ORDER.index(layer(path)), f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_plots_and_estimators_stay_above(path):
    if layer(path) in ABOVE_THE_ESTIMATOR:
        return
    for name in imports(path):
        assert not name.startswith("matplotlib"), f"{path.name} imports {name}"
        assert not name.startswith("sklearn") or name.startswith("sklearn.datasets"), f"{path.name} imports {name}"


def test_public_names_are_all_there():
    for name in invariantnet.__all__:
        assert getattr(invariantnet, name) is not None
    assert set(invariantnet.__all__) <= set(dir(invariantnet))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = invariantnet.nonsense
    assert "invariantnet.symmetries.group" in sys.modules
