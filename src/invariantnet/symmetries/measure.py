r"""A mixture of Haar measures: the one object behind every placement of an average over groups.

$\mu_\pi = \sum_k \pi_k \mu_k$, with $\mu_k$ uniform on $G_k$. A function averaged over $\mu_\pi$ is exactly
invariant to $G_k$ if π is one-hot at k. A mixture is invariant only to what its groups share, so two symmetries at
once need their join among the hypotheses.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from invariantnet.symmetries._closure import as_matrices
from invariantnet.symmetries.group import Group

DECIMALS = 6
"""Decimals to which entries of matrices must agree for two of them to be one element."""


@dataclass(frozen=True, eq=False)
class Measure:
    r"""The mixture $\mu_\pi$ over the elements of several groups.

    Args:
        elements: Every element of any of the groups once, the identity first.
        haar: $\mu_k(g)$ in row g and column k: one over the order of group k if g is in it, else 0.

    Example:
        >>> from invariantnet import symmetry
        >>> measure = Measure.of([symmetry(n, shape=(4,)) for n in ("trivial", "reversal")])
        >>> measure.weights(torch.tensor([0.5, 0.5]))
        tensor([0.7500, 0.2500])
    """

    elements: Shaped[Tensor, "n ..."]
    haar: Float[Tensor, "n groups"]

    @classmethod
    def of(cls, groups: Sequence[Group], *, sampled: int | None = None, seed: int = 0) -> "Measure":
        """Collect the elements of several groups.

        Args:
            groups: Groups on inputs of one length.
            sampled: Number of random elements that stand for a group with more; None takes all.
            seed: Decides which elements are drawn.

        Returns:
            The measure, with every element once.

        Raises:
            ValueError: A group has too many elements to list, and `sampled` is None.
        """
        position: dict[bytes, int] = {}
        elements: list[np.ndarray] = []
        entries: list[tuple[int, int, float]] = []
        matrices = any(group.is_matrix_group for group in groups)
        for k, group in enumerate(groups):
            members = _members(group, sampled, seed)
            if matrices and not group.is_matrix_group:
                members = as_matrices(members)
            for member in members:
                # Adding 0.0 turns -0.0 into 0.0, whose bytes differ.
                key = (np.round(member, DECIMALS) + 0.0).tobytes() if matrices else member.tobytes()
                if key not in position:
                    position[key] = len(elements)
                    elements.append(member)
                entries.append((position[key], k, 1 / len(members)))
        haar = torch.zeros(len(elements), len(groups))
        for row, k, weight in entries:
            haar[row, k] += weight
        return cls(torch.from_numpy(np.stack(elements)), haar)

    def weights(self, pi: Float[Tensor, " groups"]) -> Float[Tensor, " n"]:
        r"""Compute $\mu_\pi(g) = \sum_k \pi_k \mu_k(g)$ for every element."""
        return self.haar.to(pi) @ pi


def _members(group: Group, sampled: int | None, seed: int) -> np.ndarray:
    if sampled is None or (group.can_list_elements and group.order <= sampled):
        return group.elements.numpy()
    return group.sample(sampled, seed)
