"""The lattice of the compared symmetries: which of them contain which."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from invariantnet.symmetries.ranges import AnySymmetry


def at_least(
    symmetries: Sequence[AnySymmetry], probabilities: Sequence[float]
) -> Float[np.ndarray, " symmetries"]:
    r"""Compute $p(\text{data has at least } G) = \sum_{H \ge G} p(H)$ for every symmetry.

    Args:
        symmetries: What was compared; each claims its symmetry and no larger one of these.
        probabilities: Probability of each.

    Returns:
        One probability per symmetry, at least its own.

    Example:
        >>> from invariantnet.inference.hypotheses import with_joins
        >>> from invariantnet.symmetries.named import symmetry
        >>> groups = with_joins([symmetry(name, (4, 4)) for name in ("hflip", "rot90")])
        >>> [g.name for g in groups], at_least(groups, (0.1, 0.2, 0.3, 0.4)).round(9).tolist()
        (['trivial', 'hflip', 'rot90', 'd4'], [1.0, 0.6, 0.7, 0.4])
    """
    p = np.array(probabilities)
    return np.array([p[[small <= large for large in symmetries]].sum() for small in symmetries])
