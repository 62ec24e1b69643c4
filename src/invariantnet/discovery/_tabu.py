r"""Permutations improved by exchanges of two images: the best one at a time, even if it makes things worse.

A search that only goes downhill ends where a block of inputs has to move together, such as a column of a board. A
tabu search takes the best exchange that does not undo a recent one, and remembers the best permutation on its way.
With a number $c$ per moved pair, the objective is

$$\ell(\pi) - c \cdot \#\{(i, j): \pi(i) \ne i \text{ or } \pi(j) \ne j\},$$

so that a permutation that moves all inputs and fits but for noise is better than the identity, which fits exactly.
"""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Float64, Int64

from invariantnet.discovery._matching import Moments

ALLOWED = 1.25
"""Squared change of a moved number, in units of noise, that counts as nothing: noise alone is about 1."""

SHORTEST, LONGEST = 8, 20
"""Steps for which a place does not get its earlier image back."""

Numbers = Float64[np.ndarray, "dim dim"]
"""A number for each exchange of the images of two places."""


@dataclass(eq=False)
class Tabu:
    """A search through the exchanges of two images.

    Args:
        moments: What to leave alone.
        rng: Decides for how long exchanges stay forbidden.
    """

    moments: Moments
    rng: np.random.Generator
    _pairs: Float32[np.ndarray, "matrices dim dim"] = field(init=False)
    _singles: Float32[np.ndarray, "dim dim"] = field(init=False)

    def __post_init__(self) -> None:
        self._pairs = np.ascontiguousarray(self.moments.pairs, dtype=np.float32)
        self._singles = (self.moments.even_products + self.moments.odd_products).astype(np.float32)

    def improved(self, index: Int64[np.ndarray, " dim"], steps: int) -> Int64[np.ndarray, " dim"]:
        """Exchange images of two places at a time.

        Args:
            index: A permutation without changes of sign.
            steps: Number of exchanges.

        Returns:
            The best permutation that was met, never the identity.
        """
        dim, index = self.moments.dim, index.copy()
        best, least, value = index.copy(), 0.0, 0.0
        forbidden = np.zeros((dim, dim), np.int64)
        places = np.arange(dim)
        for step in range(1, steps + 1):
            change, moving = self.changes(index)
            until = np.minimum(forbidden[places[:, None], index], forbidden[places[:, None], index].T)
            allowed = (until < step) | (value + change < least - 1e-3)
            change = np.where(np.triu(allowed, 1) & (moving > 0), change, np.inf)
            i, j = np.unravel_index(change.argmin(), change.shape)
            if not np.isfinite(change[i, j]):
                break
            value += float(change[i, j])
            forbidden[[i, j], index[[i, j]]] = step + self.rng.integers(SHORTEST, LONGEST, size=2)
            index[[i, j]] = index[[j, i]]
            if value < least - 1e-3:
                best, least = index.copy(), value
        return best

    def changes(self, index: Int64[np.ndarray, " dim"]) -> tuple[Numbers, Int64[np.ndarray, "dim dim"]]:
        """How the objective changes if the images of two places are exchanged.

        Args:
            index: A permutation.

        Returns:
            The changes, and how many inputs would then move.
        """
        dim, places = self.moments.dim, np.arange(len(index))
        moved = self._pairs[:, index][:, :, index]
        own, moved_own = (np.diagonal(m, axis1=1, axis2=2) for m in (self._pairs, moved))
        # Inner products of rows and columns; entries between the two places are counted apart.
        gain = 2 * np.tensordot(self._pairs, moved, axes=([0, 2], [0, 2])) + self._singles[:, index]
        gain -= 2 * np.einsum("ki,kij->ij", own, moved) + 2 * np.einsum("kij,kj->ij", self._pairs, moved_own)
        products = own.T @ moved_own
        gain += products
        kept = np.diag(gain) + 2 * np.diag(products)
        gain = gain + gain.T + 4 * (self._pairs * moved).sum(axis=0) - kept[:, None] - kept
        fixed, back = index == places, index == places[:, None]
        count = dim - int(fixed.sum())
        moving = count + fixed[:, None].astype(np.int64) + fixed - back - back.T
        touched = (dim - count) ** 2 - (dim - moving) ** 2
        return -2.0 * gain.astype(np.float64) - ALLOWED * len(self._pairs) * touched, moving
