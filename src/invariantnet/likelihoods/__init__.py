"""What the outputs of a network say about a target: which class it is, or which numbers and how surely."""

from invariantnet.likelihoods.base import Calibration, Likelihood
from invariantnet.likelihoods.categorical import Categorical
from invariantnet.likelihoods.student_t import StudentT

__all__ = ["Calibration", "Categorical", "Likelihood", "StudentT"]
