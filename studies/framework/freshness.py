"""Whether a record is still what the code would give: a digest of the code and settings that it depends on."""

import ast
import functools
import hashlib
import json
from collections.abc import Collection, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import invariantnet
from studies.framework.study import Recipe, Study

PACKAGE = Path(invariantnet.__file__).parent
"""Source of the package."""
STUDIES = Path(__file__).parent.parent
"""Source of the studies."""
NETWORKS = (
    "choices",
    "data",
    "likelihoods",
    "metrics",
    "nn",
    "objectives",
    "priors",
    "symmetries",
    "training",
    "studies.datasets",
)
"""What the numbers of a study depend on that trains networks."""
FITS = (*NETWORKS, "estimator", "inference", "uncertainty", "studies.inference.fits")
"""What the numbers of a study depend on that fits estimators."""
NO_NUMBERS = (
    "data/folders",
    "data/image_cache",
    "data/images",
    "data/numpy_files",
    "data/tables",
    "estimator/estimate",
    "estimator/onnx",
    "estimator/persistence",
    "estimator/restoring",
    "estimator/stored",
    "inference/left_out",
    "inference/verdict",
    "symmetries/plain",
)
"""Modules that read and write files of users, announce a time or find words: no number of a study depends on them,
unless it names them."""
DIGITS = 16
"""Hexadecimal digits of a digest: enough that no two versions of the code ever share one."""


def settings(recipe: Recipe) -> dict[str, Any]:
    """Describe a recipe by its seed and by the fields that differ from their defaults.

    A new field with a default keeps the identity of older recipes.

    Args:
        recipe: The recipe.

    Returns:
        Values that JSON can hold.
    """
    described: dict[str, Any] = json.loads(json.dumps(recipe, default=_unusual))
    return described


def _unusual(value: Any) -> dict[str, Any]:
    found = {f.name: (getattr(value, f.name), f.default) for f in fields(value)}
    return {name: item for name, (item, usual) in found.items() if name == "seed" or item != usual}


def digest(study: Study[Any, Any, Any], recipe: Recipe) -> str:
    """Digest of a recipe, of the study's file and of the code that its numbers depend on.

    Comments, docstrings and the functions that only show records do not count.

    Args:
        study: The study.
        recipe: One of its recipes.

    Returns:
        Hexadecimal digits.
    """
    everything = [_code_digest(study), json.dumps(settings(recipe), sort_keys=True)]
    return hashlib.sha256("\n".join(everything).encode()).hexdigest()[:DIGITS]


@functools.cache
def _code_digest(study: Study[Any, Any, Any]) -> str:
    showing = [f.__name__ for f in (study.table, study.draw, study.claims) if f is not None]
    parts = [meaning(Path(study.file), frozenset(showing))]
    ignored = {PACKAGE / f"{name}.py" for name in NO_NUMBERS if name.replace("/", ".") not in study.depends_on}
    parts += [meaning(path) for name in study.depends_on for path in source_files(name) if path not in ignored]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def source_files(name: str) -> list[Path]:
    """Find the source of a module or package.

    Args:
        name: Such as `nn`, `estimator.base`, `studies.paper.networks`, or `invariantnet` for the whole package.

    Returns:
        Its files in alphabetical order.

    Raises:
        ValueError: If there is no such module.
    """
    if name == "invariantnet":
        place = PACKAGE
    elif name.startswith("studies."):
        place = STUDIES.joinpath(*name.split(".")[1:])
    else:
        place = PACKAGE.joinpath(*name.split("."))
    found = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    if not found or not found[0].exists():
        raise ValueError(f"no module {name}: correct depends_on of the study.")
    return found


@functools.cache
def meaning(path: Path, without: Collection[str] = frozenset()) -> str:
    """Digest of what a file computes: the same whatever its comments, docstrings and layout, and in every Python.

    In the package, texts of several words do not count either: messages and names in words change no number. In a
    study they may be names of data, which decide what is drawn.

    Args:
        path: A file of Python source.
        without: Names of functions to leave out.

    Returns:
        Hexadecimal digits.
    """
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if getattr(node, "name", None) not in without]
    words = list(_words(tree, prose_counts=PACKAGE not in path.parents))
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def _words(node: ast.AST, *, prose_counts: bool) -> Iterator[str]:
    """Name every node and value in order; what Python versions add as empty fields is left out."""
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant):
                continue  # a docstring
            if not prose_counts and isinstance(item, ast.Constant) and " " in str(item.value):
                continue
            if isinstance(item, ast.AST):
                yield name
                yield from _words(item, prose_counts=prose_counts)
            elif item is not None:
                yield f"{name}={item!r}"
    yield "end"
