"""Numbers."""

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.base import RegressorMixin
from torch import Tensor

from invariantnet.estimator.base import InvariantEstimator
from invariantnet.estimator.onnx import Deployed
from invariantnet.estimator.validation import as_numbers
from invariantnet.likelihoods import StudentT
from invariantnet.likelihoods.student_t import DEGREES
from invariantnet.training.loop import predict


class InvariantRegressor(RegressorMixin, InvariantEstimator):  # type: ignore[misc]
    """A regressor that finds the symmetry of its data; errors have heavy tails, and a size that is calibrated.

    Targets are one number per example, or a row of them. Parameters and attributes are those of
    `InvariantClassifier`; there is no method `"paper"`.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 4))
    >>> y = abs(X).max(1)
    >>> reg = InvariantRegressor(symmetries=["sign"], n_networks=1, epochs=5, random_state=0).fit(X, y)
    >>> reg.posterior_.favourite
    'sign'

    """

    likelihood = StudentT()
    learned_fields = ("y_mean", "y_scale", "single")
    methods = ("evidence", "heldout")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def predict(self, X: Any, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the mean of each number.

        Args:
            X: Inputs.
            return_std: Whether to predict the standard error too.

        Returns:
            The means, in the units of the targets; with `return_std`, means and standard errors.
        """
        # In double precision, so that a number does not depend on the batch that it was predicted in.
        output = predict(copy.deepcopy(self._fitted()).double(), self._tensor(X).double(), self.likelihood).cpu()
        mean = self._in_units(self.likelihood.mean(output)) + np.asarray(self.y_mean_)
        error = self._in_units(self.likelihood.error(output))
        if self.single_:
            mean, error = mean[:, 0], error[:, 0]
        return (mean, error) if return_std else mean

    def predict_interval(self, X: Any, coverage: float = 0.9) -> tuple[np.ndarray, np.ndarray]:
        """Predict intervals that hold new observations.

        Args:
            X: Inputs.
            coverage: Probability with which an interval holds the number.

        Returns:
            The lower and the upper ends.

        Raises:
            ValueError: If the coverage is no probability.
        """
        mean, error = self.predict(X, return_std=True)
        reach = self.reach(coverage) * error
        return mean - reach, mean + reach

    def reach(self, coverage: float) -> float:
        """Standard errors on either side of a mean that hold a new observation with this probability.

        Args:
            coverage: The probability.

        Returns:
            The number of standard errors.

        Raises:
            ValueError: If it is no probability.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"a coverage of {coverage} is no probability: pass a number between 0 and 1.")
        # The error is a standard deviation, which is larger than the scale of Student's t.
        return float(stdtrit(DEGREES, (1 + coverage) / 2)) / math.sqrt(DEGREES / (DEGREES - 2))

    def _deployed(self) -> Deployed:
        return replace(
            super()._deployed(), target_scale=self.y_scale_, target_mean=self.y_mean_, single=self.single_
        )

    def _split_uncertainty(self, draws: Tensor) -> dict[str, np.ndarray]:
        aleatoric = self.likelihood.error(draws).square().mean(0)
        epistemic = self.likelihood.mean(draws).var(0, correction=0)
        parts = {"total": aleatoric + epistemic, "aleatoric": aleatoric, "epistemic": epistemic}
        found = {name: self._in_units(part.sqrt()) for name, part in parts.items()}
        return {name: part[:, 0] for name, part in found.items()} if self.single_ else found

    def _in_units(self, values: Tensor) -> np.ndarray:
        return values.numpy() * np.asarray(self.y_scale_)

    def _targets(self, y: Any, examples: int) -> np.ndarray:
        targets = as_numbers(y, examples).astype(np.float64) + 0.0  # zero has two signs
        self.single_, self.outputs_ = targets.ndim == 1, 2 * math.prod(targets.shape[1:])
        return targets

    def _encoded(self, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        rows = targets.reshape(len(targets), -1)
        mean = np.average(rows, axis=0, weights=weights)
        apart = rows - mean
        power = np.frexp(abs(apart).max(0))[1]  # their squares might be too large, or too small
        scale = np.ldexp(np.average(np.ldexp(apart, -power) ** 2, axis=0, weights=weights) ** 0.5, power)
        scale[scale == 0] = 1.0
        self.y_mean_, self.y_scale_ = tuple(mean.tolist()), tuple(scale.tolist())
        return (apart / scale).astype(np.float32).reshape(targets.shape)
