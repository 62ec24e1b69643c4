"""Which inputs take part in a search: they vary often enough, and they are not copies of others."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from invariantnet.discovery.moments import inputs_that_hardly_vary, inputs_that_vary
from invariantnet.symmetries._closure import Indices
from invariantnet.symmetries._orbits import signed_orbits


@dataclass(frozen=True, eq=False)
class Columns:
    """Inputs that take part, and how the others follow them.

    If two inputs are equal in all examples, no label can tell whether they were exchanged, so such an exchange is
    no discovery. Only the first of equal inputs takes part. The others follow it.

    Args:
        first: For every input, the first input that equals it in all examples.
        varies: Whether each input varies often enough to tell its place.
        hardly: Whether it varies so little that others of its orbit may be set aside.
    """

    first: Int64[np.ndarray, " dim"]
    varies: Bool[np.ndarray, " dim"]
    hardly: Bool[np.ndarray, " dim"]

    @property
    def dim(self) -> int:
        """Number of inputs."""
        return len(self.first)

    @property
    def used(self) -> Bool[np.ndarray, " dim"]:
        """Whether each input takes part."""
        return self.varies & (self.first == np.arange(self.dim))

    @property
    def repeated(self) -> tuple[int, ...]:
        """Inputs that vary and equal an earlier one."""
        return tuple(np.flatnonzero(self.varies & ~self.used).tolist())

    def set_aside(self, unclear: Bool[np.ndarray, " used"] | None = None) -> tuple[int, ...]:
        """List inputs that vary too little, and the ones whose places are unclear, with their copies."""
        aside = ~self.varies
        if unclear is not None:
            aside |= np.isin(self.first, np.flatnonzero(self.used)[unclear])
        return tuple(np.flatnonzero(aside).tolist())

    def widen(self, generators: Indices) -> Int64[np.ndarray, "n all"]:
        """Let index arrays on the inputs that take part act on all inputs.

        Copies of an input follow it if every input of its orbit has equally many; otherwise they stay, because
        there is no place for them to go.

        Args:
            generators: Index arrays on the inputs that take part, signs included.

        Returns:
            Index arrays on all inputs.

        Example:
            >>> columns = Columns(np.array([0, 1, 0, 1]), np.ones(4, bool), np.zeros(4, bool))
            >>> columns.widen(np.array([[1, 0]]))
            array([[1, 0, 3, 2]])
        """
        places = np.flatnonzero(self.used)
        few, dim = len(places), self.dim
        to, negative = generators % few, generators >= few
        wide = np.tile(np.arange(dim), (len(generators), 1))
        copies = [np.flatnonzero(self.first == place) for place in places]
        counts, orbits = np.array([len(c) for c in copies]), signed_orbits(to)[0]
        least, most = np.full(few, counts.max()), np.zeros(few, int)
        np.minimum.at(least, orbits, counts)
        np.maximum.at(most, orbits, counts)
        follows = (least == most)[orbits]
        for rank in range(counts.max()):
            own = np.flatnonzero((counts > rank) & (follows | (rank == 0)))
            ranked = np.full(few, -1)
            ranked[own] = [copies[i][rank] for i in own]
            wide[:, ranked[own]] = ranked[to[:, own]] + dim * negative[:, own]
        return wide


def columns_of(x: Float64[np.ndarray, "n dim"], proposing: int) -> Columns:
    """Find inputs that vary too little, and inputs that repeat others.

    Args:
        x: All inputs, in the order in which they are seen.
        proposing: Number of the first examples, in which an input has to vary; with 0, none does.

    Returns:
        Which inputs take part.
    """
    _, first, inverse = np.unique(x.T, axis=0, return_index=True, return_inverse=True)
    none = np.zeros(x.shape[1], bool)
    varies = inputs_that_vary(x[:proposing]) if proposing else none
    hardly = inputs_that_hardly_vary(x[:proposing]) if proposing else none
    return Columns(first[inverse.ravel()].astype(np.int64), varies, hardly)
