"""The scikit-learn face: fit, and ask which symmetry the data has."""

from invariantnet.estimator.base import FINAL, InvariantEstimator, Method, final_training
from invariantnet.estimator.candidates import compared_units
from invariantnet.estimator.classifier import InvariantClassifier
from invariantnet.estimator.regressor import InvariantRegressor

__all__ = [
    "FINAL",
    "InvariantClassifier",
    "InvariantEstimator",
    "InvariantRegressor",
    "Method",
    "compared_units",
    "final_training",
]
