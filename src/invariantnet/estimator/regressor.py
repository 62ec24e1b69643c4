"""Numbers."""

import copy
import math
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from torch import Tensor

from invariantnet.estimator.base import InvariantEstimator
from invariantnet.estimator.onnx import Deployed
from invariantnet.estimator.validation import as_column
from invariantnet.inference.models import LITTLE_DECAY
from invariantnet.likelihoods import Gaussian
from invariantnet.training.loop import predict


class InvariantRegressor(RegressorMixin, InvariantEstimator):  # type: ignore[misc]
    """A regressor that finds the symmetry of its data; Gaussian errors, of a size that it learns too.

    Parameters and attributes are those of `InvariantClassifier`; there is no method `"paper"`.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 4))
    >>> y = abs(X).max(1)
    >>> reg = InvariantRegressor(symmetries=["reversal", "sign"], n_networks=1, random_state=0).fit(X, y)
    >>> reg.posterior_.favourite
    'reversal+sign'

    """

    likelihood = Gaussian()
    learned_fields = ("y_mean", "y_scale")
    comparison = LITTLE_DECAY
    methods = ("evidence", "heldout")
    outputs_ = 2

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The mean; and its standard error, if asked for."""
        # In double precision, so that a number does not depend on the batch that it was predicted in.
        output = predict(copy.deepcopy(self._fitted()).double(), self._tensor(X).double(), self.likelihood).cpu()
        mean = (output[:, 0] * self.y_scale_ + self.y_mean_).numpy()
        return (mean, (self.likelihood.error(output) * self.y_scale_).numpy()) if return_std else mean

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the intervals that hold a new observation with this probability."""
        if not 0 < coverage < 1:
            raise ValueError(f"a coverage of {coverage} is no probability: pass a number between 0 and 1.")
        mean, error = self.predict(X, return_std=True)
        reach = NormalDist().inv_cdf((1 + coverage) / 2) * error
        return mean - reach, mean + reach

    def _deployed(self) -> Deployed:
        return replace(super()._deployed(), target_scale=self.y_scale_, target_mean=self.y_mean_)

    def _split_uncertainty(self, draws: Tensor) -> dict[str, np.ndarray]:
        aleatoric = self.likelihood.error(draws).square().mean(0)
        epistemic = draws[..., 0].var(0, correction=0)
        parts = {"total": aleatoric + epistemic, "aleatoric": aleatoric, "epistemic": epistemic}
        return {name: self.y_scale_ * part.sqrt().numpy() for name, part in parts.items()}

    def _targets(self, y: Any, examples: int) -> np.ndarray:
        return as_column(y, examples).astype(np.float64) + 0.0  # zero has two signs

    def _encoded(self, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        self.y_mean_ = float(np.average(targets, weights=weights))
        apart = targets - self.y_mean_
        power = int(np.frexp(abs(apart).max())[1])  # their squares might be too large, or too small
        scale = float(np.average(np.ldexp(apart, -power) ** 2, weights=weights)) ** 0.5
        self.y_scale_ = math.ldexp(scale, power) or 1.0
        return ((targets - self.y_mean_) / self.y_scale_).astype(np.float32)
