"""Groups that remain in question, and the one that is chosen."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from invariantnet.symmetries._closure import Indices

REJECTED = 3.0
"""Log e-value above which the inputs do not have a symmetry, at the level 0.05."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A group that remains in question.

    Args:
        generators: Index arrays, signs included.
        gain: Nats by which it predicts the judged labels better than no symmetry.
        against_inputs: Log e-value against the inputs having it.
        unclear: Inputs that were set aside, because their places cannot be told; the group leaves them alone.
        passed: Whether it passed its own test on unseen labels.
    """

    generators: Indices
    gain: float
    against_inputs: float
    unclear: Bool[np.ndarray, " dim"]
    passed: bool = False

    def weight(self, *, of_inputs: bool) -> float:
        """Log weight in the posterior; none if the inputs are to have the symmetry, and do not."""
        return -np.inf if of_inputs and self.against_inputs >= REJECTED else self.gain


@dataclass(frozen=True, eq=False)
class Closed:
    """The chosen group.

    Args:
        generators: Index arrays, signs included.
        probability: That it is exactly this group, among all candidates that were compared.
        of_inputs: Whether the inputs have the symmetry too.
        unclear: Inputs that were set aside because their places cannot be told.
        room: Whether moments leave room for a larger group.
    """

    generators: Indices
    probability: float
    of_inputs: bool
    unclear: Bool[np.ndarray, " dim"]
    room: bool
