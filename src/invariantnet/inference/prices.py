"""What invariance to each group costs, and what it buys."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet.data.arrays import DiskArray, read
from invariantnet.inference.posterior import Price
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.symmetries.group import Group, transform
from invariantnet.symmetries.measure import Measure
from invariantnet.training.loop import EVALUATION_BATCH, predict

PRICED = 1000
"""Examples of a block on which accuracies under each transformation are measured."""


def affordable(block: np.ndarray, tolerance: float) -> list[bool] | None:
    """Who loses less than the tolerance per example; None if a loss is not four standard errors from it."""
    gaps = block[block.sum(1).argmax()] - block
    surely = abs(gaps.mean(1) - tolerance) > 4 * gaps.std(1) / np.sqrt(gaps.shape[1])
    return (gaps.mean(1) < tolerance).tolist() if surely.all() else None


def prices(
    symmetries: Sequence[Group],
    accuracy: dict[int, dict[str, float]],
    seen: np.ndarray,
    starts: Sequence[int],
    dropped: dict[int, int],
) -> list[Price]:
    """Cost and benefit of each group, on the last block that it took part in; `starts` are those of the blocks."""
    found = []
    for k, group in enumerate(symmetries):
        until = dropped[k] if k in dropped else seen.shape[-1]
        part = seen[:, max(start for start in starts if start < until) : until]
        loss = float(part.sum(1).max() - part[k].sum()) / part.shape[1]
        found.append(Price(group.name, group.order, loss, accuracy[k]))
    return found


def predict_moved(network: nn.Module, group: Group, x: Tensor | DiskArray, likelihood: Likelihood) -> Tensor:
    """What the network says of each input under an element of the group, drawn for it."""
    elements = Measure.of([group], sampled=SAMPLED).elements
    drawn = torch.randint(len(elements), (len(x),), generator=torch.Generator().manual_seed(0))
    parts = x.split(EVALUATION_BATCH)
    poses = drawn.split([len(part) for part in parts])
    moved = (_moved(read(part), elements, pose) for part, pose in zip(parts, poses, strict=True))
    return torch.cat([predict(network, part, likelihood) for part in moved])


def _moved(x: Tensor, elements: Tensor, drawn: Tensor) -> Tensor:
    moved = torch.empty_like(x)
    for g in drawn.unique():
        moved[drawn == g] = transform(x[drawn == g], elements[g])
    return moved
