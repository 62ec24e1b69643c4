"""The scikit-learn face: fit, and ask which symmetry the data has."""

from invariantnet.choices import Method
from invariantnet.estimator.base import FINAL, InvariantEstimator, final_training
from invariantnet.estimator.classifier import InvariantClassifier
from invariantnet.estimator.regressor import InvariantRegressor
from invariantnet.inference.hypotheses import compared_units

__all__ = [
    "FINAL",
    "InvariantClassifier",
    "InvariantEstimator",
    "InvariantRegressor",
    "Method",
    "compared_units",
    "final_training",
]
