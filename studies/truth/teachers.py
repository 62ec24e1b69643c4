"""Random teachers without symmetry, and their twins: the same networks, averaged over a group."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from invariantnet.inference.hypotheses import candidates
from invariantnet.symmetries.group import Group
from studies.truth.problems import Problem, generator

UNITS = 32
"""Hidden units of a teacher."""
NOISE = 0.1
"""Standard deviation of the noise, in standard deviations of the teacher."""
CONTRAST = 0.05
"""Smallest share of a teacher's variance that a wrong symmetry must fail to explain, five times that of the noise.
Below it a wrong symmetry predicts as well as the truth does, so that no data tell them apart."""
PROBES = 400
"""Inputs on which contrasts are estimated: enough to tell 4 % from 6 %."""
MOST_TRIES = 1000
"""Teachers to draw until one has contrast: on eight numbers about one in ten has, on images nearly all."""

Function = Callable[[Float[np.ndarray, "n dim"]], Float[np.ndarray, " n"]]
"""Maps inputs to numbers."""


def draw_teacher(dim: int, rng: np.random.Generator) -> Function:
    """Draw a network of tanh units whose inputs have variance one; biases make it neither odd nor even.

    Args:
        dim: Numbers per input.
        rng: Source of its weights.

    Returns:
        The function that it computes.
    """
    weights, biases = rng.normal(size=(dim, UNITS)) / np.sqrt(dim), rng.normal(size=UNITS)
    outputs = rng.normal(size=UNITS) / np.sqrt(UNITS)
    return lambda x: np.tanh(x @ weights + biases) @ outputs


def symmetrised(function: Function, group: Group) -> Function:
    """Average a function over the copies of its input."""
    elements = group.elements.numpy()
    return lambda x: np.mean([function(x[:, element]) for element in elements], axis=0)


def contrast(
    function: Function, truth: Group, hypotheses: Sequence[Group], x: Float[np.ndarray, "n dim"]
) -> float:
    """Smallest share of the variance that a false hypothesis cannot explain.

    Args:
        function: A function that is invariant to the truth.
        truth: Its symmetry.
        hypotheses: All symmetries that are compared.
        x: Inputs from a distribution that every hypothesis preserves.

    Returns:
        The share; 1 if no hypothesis is false.
    """
    values = function(x)
    false = [g for g in hypotheses if not g <= truth]
    unexplained = [np.var(values - symmetrised(function, g)(x)) for g in false]
    return float(min(unexplained, default=np.var(values)) / np.var(values))


def draw_twins(
    groups: Sequence[Group], truth: Group, rng: np.random.Generator
) -> tuple[Function, Function, tuple[float, float]]:
    """Draw a teacher without symmetry and its twin, both with contrast.

    Args:
        groups: All symmetries that are compared, none first.
        truth: Symmetry of the twin.
        rng: Source of the weights.

    Returns:
        The teacher, the twin, and the contrast of each.

    Raises:
        ValueError: If no teacher has contrast.
    """
    for _ in range(MOST_TRIES):
        teacher, x = draw_teacher(truth.dim, rng), rng.normal(size=(PROBES, truth.dim))
        twin = symmetrised(teacher, truth)
        found = contrast(twin, truth, groups, x)
        if found >= CONTRAST and (without := contrast(teacher, groups[0], groups, x)) >= CONTRAST:
            return teacher, twin, (without, found)
    raise ValueError(f"no teacher tells {truth.name} from the other candidates: leave some of them out.")


def teacher_problem(
    shape: tuple[int, ...],
    names: tuple[str, ...],
    twin_of: str,
    has_symmetry: bool,
    n: int,
    classes: int,
    seed: int,
) -> tuple[Problem, float]:
    """Draw Gaussian inputs, and label them by a teacher or by its twin.

    Args:
        shape: Shape of one input.
        names: The candidates.
        twin_of: Symmetry of the twin: a candidate or a join of several.
        has_symmetry: Take the twin instead of the teacher.
        n: Examples.
        classes: Classes, equally frequent; 0 for numbers.
        seed: Equal seeds give a teacher and its twin the same weights and inputs.

    Returns:
        The problem, and the contrast of its labels.
    """
    rng = generator(seed, shape, twin_of, n, classes)
    groups = [s for s in candidates(list(names), shape, joins=True) if isinstance(s, Group)]
    truth = next(g for g in groups if g.name == twin_of)
    teacher, twin, contrasts = draw_twins(groups, truth, rng)
    x = rng.normal(size=(n, truth.dim))
    values = (twin if has_symmetry else teacher)(x)
    scores = (values - values.mean()) / values.std() + NOISE * rng.normal(size=n)
    y = scores if not classes else np.searchsorted(np.quantile(scores, np.arange(1, classes) / classes), scores)
    named = [g for g in groups if g.name in names]
    parts = tuple(g.name for g in named if has_symmetry and g <= truth)
    return Problem(x.astype(np.float32), y, shape, names, parts, numbers=not classes), contrasts[has_symmetry]
