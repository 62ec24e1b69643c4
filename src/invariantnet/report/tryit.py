"""The part of a page that predicts: networks, inputs and moves as data for `tryit.js`."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from invariantnet.estimator import InvariantClassifier
from invariantnet.nn.folding import folded
from invariantnet.report.evaluation import shortened
from invariantnet.symmetries.catalogue import CATALOGUE
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import symmetry as named_symmetry

MANY_CLASSES, MANY_NUMBERS = 60, 5000
"""Above this many classes a page is all bars; above this many numbers per input it would compute too long."""

LARGEST = 4_000_000
"""Bytes of networks, inputs and moves that a page may carry: with its pictures it stays below 5 MB."""

MOVES = {"rot90": "rotate", "hflip": "flip ↔", "vflip": "flip ↕", "shifts": "shift"}
"""Buttons for images, whatever the candidates were: what each of these symmetries does."""


class LeftOutError(ValueError):
    """The page cannot carry the networks; the message is the reason that the page gives."""


@dataclass(frozen=True)
class TryIt:
    """What the page needs to let a visitor move inputs and see both networks' answers."""

    inputs: tuple[str, ...]
    """Names of the inputs to pick from."""
    moves: tuple[str, ...]
    """Names of the buttons."""
    draws: bool
    """Whether a visitor can draw an input."""
    networks: tuple[str, ...]
    data: dict[str, Any]
    """For the script."""


def try_it(clf: InvariantClassifier, baseline: nn.Module | None, inputs: Tensor, names: list[str]) -> TryIt | None:
    """Collect what a page needs to predict by itself.

    Args:
        clf: The fitted classifier.
        baseline: The network to compare it with, if there is one.
        inputs: Test inputs to pick from, one row each.
        names: Their names.

    Returns:
        The data, or None if there is no input to pick.

    Raises:
        LeftOutError: If the inputs or the networks are too large, or the networks are not plain layers.
    """
    if not len(inputs):
        return None
    if clf.n_features_in_ > MANY_NUMBERS or len(clf.classes_) > MANY_CLASSES:
        raise LeftOutError("The inputs are too large, or the classes too many, to try the networks inside a page.")
    networks = {"chosen": folded(clf.network_)} | ({} if baseline is None else {"baseline": folded(baseline)})
    moves = _moves(clf)
    numbers = sum(p.numel() for network in networks.values() for p in network.parameters())
    size = 16 * (numbers + inputs.numel() + len(moves) * clf.n_features_in_) // 3
    if size > LARGEST:
        raise LeftOutError(f"The networks take {size / 1e6:.0f} MB, too much to carry inside a page.")
    low, high = float(inputs.min()), float(inputs.max())
    return TryIt(
        inputs=tuple(names),
        moves=tuple(name for name, _ in moves),
        draws=len(clf.input_shape_) == 2,
        networks=tuple(networks),
        data={
            "shape": list(clf.input_shape_),
            "classes": class_names(clf),
            "low": low,
            "high": max(high, low + 1e-6),
            "networks": {which: {"layers": _layers(network)} for which, network in networks.items()},
            "moves": [_packed(index, "<i4") for _, index in moves],
            "inputs": [_packed(row.numpy()) for row in inputs],
        },
    )


def class_names(clf: InvariantClassifier) -> list[str]:
    """Names of the classes, none of them so long that it would fill a page."""
    return [shortened(c) for c in clf.classes_]


def _moves(clf: InvariantClassifier) -> list[tuple[str, np.ndarray]]:
    """Buttons: the usual moves of images, and the generators of the candidates."""
    groups = [g for g in clf.candidates_ if isinstance(g, Group) and g.order > 1]
    candidates = [g for g in groups if "+" not in g.name and not g.is_matrix_group]
    found = _moves_of_images(clf.input_shape_) if any(map(_moves_images, candidates)) else []
    for group in candidates:
        for i, generator in enumerate(group.generators):
            if not any(np.array_equal(generator, index) for _, index in found):
                found.append((group.name if len(group.generators) == 1 else f"{group.name} {i + 1}", generator))
    return found


def _moves_of_images(shape: tuple[int, ...]) -> list[tuple[str, np.ndarray]]:
    found: list[tuple[str, np.ndarray]] = []
    for name, words in MOVES.items():
        try:
            generators = named_symmetry(name, shape).generators[:2]
        except ValueError:
            continue
        found += [(words if len(generators) == 1 else f"{words} {'↓→'[i]}", g) for i, g in enumerate(generators)]
    return found


def _moves_images(group: Group) -> bool:
    return group.name in CATALOGUE and CATALOGUE[group.name].shapes.startswith("(H, ")


def _layers(network: nn.Module) -> list[dict[str, Any]]:
    """Plain layers as data."""
    found: list[dict[str, Any]] = []
    for layer in network.children() if isinstance(network, nn.Sequential) else [network]:
        if isinstance(layer, nn.Linear):
            weight, bias = (_packed(values.detach().cpu().numpy()) for values in (layer.weight, layer.bias))
            found.append({"kind": "linear", "weight": weight, "bias": bias})
        elif isinstance(layer, nn.ReLU):
            found.append({"kind": "relu"})
        elif isinstance(layer, nn.MaxPool1d):
            found.append({"kind": "max", "size": layer.kernel_size})
        else:
            raise LeftOutError("This network does not fold into plain layers, so it cannot run inside this page.")
    return found


def _packed(values: np.ndarray, kind: str = "<f4") -> str:
    return base64.b64encode(values.astype(kind).tobytes()).decode()
