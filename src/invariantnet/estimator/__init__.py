"""The scikit-learn face: fit, and ask which symmetry the data has."""

from pathlib import Path

from invariantnet.estimator.classifier import InvariantClassifier
from invariantnet.estimator.persistence import RUN, read_model_record
from invariantnet.estimator.regressor import InvariantRegressor
from invariantnet.estimator.stored import Backbone

__all__ = ["InvariantClassifier", "InvariantRegressor", "load_estimator"]


def load_estimator(folder: Path, *, backbone: Backbone | None = None) -> InvariantClassifier | InvariantRegressor:
    """Load a model of either kind.

    Args:
        folder: What `save` or `invariantnet fit` wrote.
        backbone: The backbone of the user's own that the model was fitted with, as no code is stored.

    Returns:
        The fitted estimator.

    Raises:
        ValueError: If the folder holds no model, or a damaged one.
    """
    kind = read_model_record(folder).kind
    for estimator in (InvariantClassifier, InvariantRegressor):
        if estimator.__name__ == kind:
            return estimator.load(folder, backbone=backbone)
    raise ValueError(
        f"{folder / RUN} holds an unknown kind of model, {kind[:60]!r}: use the version that wrote it."
    )
