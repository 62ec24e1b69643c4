"""What invariance to each symmetry costs, and what it buys."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.data.arrays import DiskArray, read
from invariantnet.inference.findings import Price
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.symmetries.group import Group, transform
from invariantnet.symmetries.measure import Measure
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.training.loop import EVALUATION_BATCH, predict

PRICED = 1000
"""Examples of a block on which the accuracy under each symmetry is measured: enough for a standard error of at
most 1.6 percentage points."""
PREDICTED_IN_ALL, FEWEST_PRICED = 16_000, 125
"""Copies predicted in all: with many symmetries, or many copies of an input, fewer examples are priced, so that
this takes a small part of the time of training. The fewest have a standard error of 4.5 percentage points."""
POSES = 64
"""Random transformations of a range by which inputs are moved, each of them an equal share of the inputs."""

CLEAR = 4.0
"""Standard errors that a price must be away from the tolerance before it counts as known: every block is another
chance to be wrong."""


def affordable(block: Float[np.ndarray, "hypotheses n"], tolerance: float) -> list[bool] | None:
    """Tell which hypotheses are affordable, if one block is enough to tell.

    Args:
        block: Log probability that each hypothesis gave to each label of the block.
        tolerance: Nats per example that a hypothesis may lose against the best one.

    Returns:
        Whether each hypothesis loses less than the tolerance; None if any loss is within `CLEAR` standard errors
        of it.
    """
    gaps = block[block.sum(1).argmax()] - block
    clear = abs(gaps.mean(1) - tolerance) > CLEAR * gaps.std(1) / np.sqrt(gaps.shape[1])
    return (gaps.mean(1) < tolerance).tolist() if clear.all() else None


def prices(
    symmetries: Sequence[AnySymmetry],
    accuracy: Sequence[dict[str, float]],
    seen: Float[np.ndarray, "hypotheses n"],
    starts: Sequence[int],
    dropped: Mapping[int, int],
) -> list[Price]:
    """Compute the cost and benefit of each symmetry on the last block that it took part in.

    Args:
        symmetries: The hypotheses.
        accuracy: Accuracies of each hypothesis on moved inputs.
        seen: Log probability that each hypothesis gave to each label so far.
        starts: Number of the first label of each block.
        dropped: Labels predicted by each hypothesis that was dropped, by its number.

    Returns:
        One price per symmetry.
    """
    found = []
    for k, symmetry in enumerate(symmetries):
        until = dropped.get(k, seen.shape[-1])
        part = seen[:, max(start for start in starts if start < until) : until]
        loss = float(part.sum(1).max() - part[k].sum()) / part.shape[1]
        found.append(Price(symmetry.name, symmetry.copies, loss, accuracy[k], symmetry.size))
    return found


def priced_examples(symmetries: int, copies: int) -> int:
    """Number of examples on which the accuracy of a network under each symmetry is measured.

    Args:
        symmetries: Symmetries that move the inputs.
        copies: Copies that the network makes of an input.

    Returns:
        The number of examples.
    """
    return max(FEWEST_PRICED, min(PRICED, PREDICTED_IN_ALL // max(1, symmetries * copies)))


def predict_moved(
    network: nn.Module, symmetry: AnySymmetry, x: Tensor | DiskArray, likelihood: Likelihood
) -> Tensor:
    """Predict inputs that are each moved by a random transformation of a symmetry.

    Args:
        network: A trained network.
        symmetry: The group or range that moves the inputs. The draw of transformations is always the same.
        x: Flat inputs.
        likelihood: Says what the outputs mean.

    Returns:
        One row of normalised outputs per input.
    """
    generator = torch.Generator().manual_seed(0)
    moved = _moved_within if isinstance(symmetry, Range) else _moved_by_elements
    return torch.cat([predict(network, part, likelihood) for part in moved(x, symmetry, generator)])


def _moved_by_elements(x: Tensor | DiskArray, group: AnySymmetry, generator: torch.Generator) -> Iterator[Tensor]:
    assert isinstance(group, Group)
    elements = Measure.of([group], sampled=SAMPLED).elements
    drawn = torch.randint(len(elements), (len(x),), generator=generator)
    parts = x.split(EVALUATION_BATCH)
    poses = drawn.split([len(part) for part in parts])
    return (_move(read(part), elements, pose) for part, pose in zip(parts, poses, strict=True))


def _moved_within(x: Tensor | DiskArray, symmetry: AnySymmetry, generator: torch.Generator) -> Iterator[Tensor]:
    assert isinstance(symmetry, Range)
    positions = 2 * torch.rand(POSES, symmetry.parameters, generator=generator, dtype=torch.float64) - 1
    if symmetry.group is not None:
        parts: Iterator[Tensor] = _moved_by_elements(x, symmetry.group, generator)
    else:
        parts = (read(part) for part in x.split(EVALUATION_BATCH))
    for part in parts:
        poses = torch.randint(POSES, (len(part),), generator=generator)
        moved = torch.empty_like(part)
        for k in poses.unique().tolist():
            moved[poses == k] = symmetry.move(part[poses == k], positions[k].tolist())
        yield moved


def _move(x: Float[Tensor, "n dim"], elements: Tensor, drawn: Tensor) -> Float[Tensor, "n dim"]:
    """Move each input by the element drawn for it."""
    moved = torch.empty_like(x)
    for g in drawn.unique():
        moved[drawn == g] = transform(x[drawn == g], elements[g])
    return moved
