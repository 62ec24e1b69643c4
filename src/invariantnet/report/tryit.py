"""The part of a page that predicts: networks, inputs and moves as data for `tryit.js`."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from invariantnet.estimator import InvariantRegressor
from invariantnet.report.answers import Estimator, class_names
from invariantnet.report.pictures import COLOURS, GROUND, Frame
from invariantnet.report.program import LeftOutError, packed, program
from invariantnet.report.warps import Slider, sliders
from invariantnet.symmetries.catalogue import CATALOGUE
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import symmetry as named_symmetry
from invariantnet.symmetries.plain import plain_name

MANY_CLASSES, MANY_NUMBERS = 60, 5000
"""Above this many classes a page is all bars; above this many numbers per input it would compute too long."""

LARGEST = 4_000_000
"""Bytes of networks, inputs and moves that a page may carry: with its pictures it stays below 5 MB."""

MOVES = {"rot90": "rotate", "hflip": "flip ↔", "vflip": "flip ↕", "shifts": "shift"}
"""Buttons for images, whatever the candidates were: what each of these symmetries does."""


@dataclass(frozen=True)
class TryIt:
    """What the page needs to let a visitor move inputs and see both networks' answers."""

    inputs: tuple[str, ...]
    """Names of the inputs to pick from."""
    moves: tuple[str, ...]
    """Names of the buttons."""
    draws: bool
    """Whether a visitor can draw an input."""
    sliders: tuple[Slider, ...]
    """What moves an input along a range."""
    networks: tuple[str, ...]
    data: dict[str, Any]
    """For the script."""


def try_it(clf: Estimator, baseline: nn.Module | None, inputs: Tensor, names: list[str]) -> TryIt | None:
    """Collect what a page needs to predict by itself.

    Args:
        clf: The fitted estimator.
        baseline: The network to compare it with, if there is one.
        inputs: Test inputs to pick from, one row each.
        names: Their names.

    Returns:
        The data, or None if there is no input to pick.

    Raises:
        LeftOutError: If the inputs or the networks are too large, or have layers that the page does not know.
    """
    if not len(inputs):
        return None
    if clf.n_features_in_ > MANY_NUMBERS or len(class_names(clf)) > MANY_CLASSES:
        raise LeftOutError("The inputs are too large, or the classes too many, to try the networks inside a page.")
    moves = _moves(clf)
    room = LARGEST - 16 * (inputs.numel() + len(moves) * clf.n_features_in_) // 3
    networks = _programs(clf, baseline, room)
    along = sliders(clf)
    frame = Frame.of(clf, inputs.numpy())
    return TryIt(
        inputs=tuple(names),
        moves=tuple(name for name, _ in moves),
        draws=frame.kind == "pixels" and len(clf.input_shape_) == 2,
        sliders=tuple(along),
        networks=tuple(networks),
        data={
            "shape": list(clf.input_shape_),
            "classes": class_names(clf),
            "drawn": frame.kind,
            "colours": [GROUND, *COLOURS],
            "low": frame.low.tolist(),
            "high": frame.high.tolist(),
            "numbers": _units(clf),
            "networks": networks,
            "moves": [packed(index, "<i4") for _, index in moves],
            "sliders": [{"labels": each.labels, "maps": each.maps} for each in along],
            "inputs": [packed(row.numpy()) for row in inputs],
        },
    )


def _programs(clf: Estimator, baseline: nn.Module | None, room: int) -> dict[str, dict[str, Any]]:
    """Both networks for the script, in 32 bits if there is room for that, else in 16; at least the final one."""
    networks = {"chosen": clf.network_} | ({} if baseline is None else {"baseline": baseline})
    for half, count in ((False, 2), (True, 2), (True, 1)):
        kept = list(networks.items())[:count]
        found = {which: program(network.cpu(), clf.n_features_in_, half=half) for which, network in kept}
        size = len(json.dumps(found))
        if size <= room:
            return found
    raise LeftOutError(f"The networks take {size / 1e6:.0f} MB, too much to carry inside a page.")


def _units(clf: Estimator) -> dict[str, Any] | None:
    """What turns outputs into numbers; None for classes."""
    if not isinstance(clf, InvariantRegressor):
        return None
    return {"scale": list(clf.y_scale_), "mean": list(clf.y_mean_), "error": clf.likelihood.error_of_unit_scale}


def _moves(clf: Estimator) -> list[tuple[str, np.ndarray]]:
    """Buttons: the usual moves of images, and the generators of the candidates."""
    groups = [g for g in clf.candidates_ if isinstance(g, Group) and g.order > 1]
    candidates = [g for g in groups if "+" not in g.name and not g.is_matrix_group]
    found = _moves_of_images(clf.input_shape_) if any(map(_moves_images, candidates)) else []
    for group in candidates:
        new = [g for g in group.generators if not any(np.array_equal(g, index) for _, index in found)]
        words = plain_name(group.name)
        found += [(words if len(new) == 1 else f"{words} {i}", g) for i, g in enumerate(new, 1)]
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
