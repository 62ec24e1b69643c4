"""Which studies there are; a study is imported only when it is asked for."""

import importlib
from typing import Any

from studies.framework.study import Study

FOLDERS = {
    "paper": ("table1", "figure1", "figure2", "figure3", "ablation", "identity"),
    "inference": (
        "posterior",
        "calibration",
        "second_opinion",
        "laplace_oracle",
        "mixture",
        "uncertainty",
        "learning",
    ),
    "truth": ("null_and_power", "simulations", "panel", "cost_of_auto"),
    "ranges": ("reach", "rotated_mnist", "half_turns", "shifted_waves", "cost_of_ladder"),
    "backbones": ("frozen_body", "killed_body", "own_resnet", "image_sizes"),
    "discovery": ("few_inputs", "hidden_groups", "provable", "unscrambled"),
    "cost": ("step_times", "verdict", "by_hand", "growth", "larger_than_memory", "basis"),
    "reliability": ("faults", "fuzz", "load", "mutants", "coverage"),
}
"""The studies by the page that shows them; of the paper's, the one that takes longest comes first."""

NAMES = tuple(name for names in FOLDERS.values() for name in names)
"""Every study, in the order of the pages."""


def named(name: str) -> tuple[str, ...]:
    """List the studies that a name on the command line means: all of them, those of a folder, or one."""
    return NAMES if name == "all" else FOLDERS.get(name, (name,))


def load(name: str) -> Study[Any, Any, Any]:
    """Import a study.

    Args:
        name: One of `NAMES`.

    Returns:
        The study.

    Raises:
        ValueError: If there is no such study.
    """
    for folder, names in FOLDERS.items():
        if name in names:
            study: Study[Any, Any, Any] = importlib.import_module(f"studies.{folder}.{name}").STUDY
            return study
    raise ValueError(f"no study named {name!r}: choose one of {', '.join(NAMES)}.")
