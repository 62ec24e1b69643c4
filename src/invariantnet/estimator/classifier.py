"""Classes."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from invariantnet import metrics
from invariantnet.data.conversion import have_fractions
from invariantnet.estimator.base import InvariantEstimator
from invariantnet.estimator.onnx import Deployed
from invariantnet.estimator.validation import as_column
from invariantnet.likelihoods import Categorical
from invariantnet.training.loop import predict


class InvariantClassifier(ClassifierMixin, InvariantEstimator):  # type: ignore[misc]
    """A classifier that finds the symmetry of its data and is invariant to it.

    It is exactly invariant to a group, and to a range up to a deviation that is measured.

    Args:
        symmetries: Candidate symmetries, by name or as `Group` or `Range`; no symmetry is always one more. The
            name of a family of ranges, such as `"rotation"`, stands for its ladder. `"auto"` takes every group of
            the catalogue that acts on the inputs and that examples can refute.
            `"discover"` takes what one half of the examples discovers; the other half compares it and its parts.
        input_shape: Shape of one input, such as (28, 28); that of `X[0]` by default.
        method: `"evidence"` trains networks for every hypothesis and compares their predictions; `"heldout"`
            learns π on held-out data, in one network for all; `"paper"` is the printed layer, for comparison.
        backbone: `"auto"` lets the models that suit the shape compete: MLPs with little and with much decay and
            with two hidden layers, convolutions with and without global pooling for images and sequences.
            `"mlp"` and `"cnn"` take only the one kind, and a name of `posterior_.models` only that model. Or a
            function of input shape and number of outputs that makes a network, which receives inputs of shape
            (n, *input_shape). Or `nn.Pretrained(body)`, of which only heads are trained.
        head: Name of the layer of your own backbone before which copies are pooled, such as `"classifier.1"`; by
            default the last layer of a sequence, and the last linear layer that is called of any other network.
        hidden: Width of the hidden layer of the built-in backbones.
        placement: Where the network is averaged over the symmetry; see `nn.Symmetrized`.
        pool: `"max"` or `"mean"` over the copies, with placement `"features"`. Hypotheses are compared with the
            same pool; a backbone of your own is compared with the mean, because a maximum would be extra capacity.
            If a range is among them, all are compared as means of predictions; the final network has this pool.
        uncertainty: `"none"` trains one network; `"ensemble"` trains five; `"bbb"` learns a distribution of every
            weight (Bayes by Backprop); `"laplace"` learns one of the last layer's weights. `predict_proba` then
            averages, and `predict_uncertainty` tells what the network does not know.
        second_opinion: Whether to compare the hypotheses by Laplace's approximation of their marginal likelihood
            too, and to say where it disagrees; costs one more network per hypothesis.
        tolerance: Nats per example that invariance may cost. 0 asks which symmetry the data has; more asks for
            the largest symmetry that is affordable, for inputs that will be transformed after training.
        joins: Whether joins of candidates are candidates too; `"auto"` leaves them out if they are too many.
        prior: α of the Dirichlet prior over the symmetries, one for each. By default `trivial`, the
            hypothesis of no symmetry, has half of the probability, and all kinds of symmetry share the other half.
        n_networks: Networks per hypothesis. A hypothesis far behind after one network gets no more, and
            on inputs of up to 128 numbers its other networks do not count. From two on,
            a verdict that only the differences between networks leave open gets up to four times as many.
        epochs: Passes of the final training over all examples; by default two or four times those of the compared
            networks, and more if these make fewer than 500 steps.
        n_jobs: Processes that train at the same time.
        device: Where to compute; `"auto"` takes a GPU if there is one.
        precision: `"bf16-mixed"` trains with matrix products and convolutions in 16 bits, which is faster on GPUs
            that have units for them; weights stay in 32 bits, and so do predictions.
        random_state: Decides everything that is drawn.
        verbose: 1 shows progress on standard error.

    Attributes:
        posterior_: The `SymmetryPosterior`.
        symmetry_: The symmetry that the network is invariant to.
        placement_: Where the network is averaged: `"outputs"` instead of `"features"` if your own backbone has no
            layer before which copies can be pooled. Networks of ranges always average their outputs.
        candidates_: Every symmetry that was compared.
        hypotheses_: Every symmetry with every model that suits it.
        network_: The fitted torch module; a `Symmetrized` has `fold()` for plain layers.
        deviation_: How far the network is from being invariant to a range, on inputs that it has learned from;
            None for a group.
        history_: The final training, epoch by epoch.
        path_: π after every epoch, with method `"heldout"`.
        input_shape_: Shape of one input.
        n_features_in_: Numbers per input.
        classes_: The labels.

    >>> import invariantnet as inv
    >>> data = inv.datasets.load("digits:flipped")
    >>> clf = InvariantClassifier(["flips"], input_shape=(8, 8), n_networks=1, epochs=10, random_state=0)
    >>> clf.fit(data.x_train[:500], data.y_train[:500]).symmetry_.name
    'flips'

    """

    likelihood = Categorical()
    learned_fields = ("classes",)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class.

        Args:
            X: Inputs.

        Returns:
            Probabilities, one row per input, in the order of `classes_`.
        """
        return self._log_probabilities(X).exp().numpy()

    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class.

        Args:
            X: Inputs.

        Returns:
            One of `classes_` for each input.
        """
        chosen = self._log_probabilities(X).argmax(-1).numpy()
        return self.classes_[chosen]

    def _log_probabilities(self, X: Any) -> Tensor:
        return predict(self._fitted(), self._tensor(X), self.likelihood).cpu()

    @property
    def _class_names(self) -> list[str] | None:
        return [str(c) for c in self.classes_.tolist()]

    def _deployed(self) -> Deployed:
        return replace(super()._deployed(), class_names=tuple(str(c) for c in self.classes_.tolist()))

    def _split_uncertainty(self, draws: Tensor) -> dict[str, np.ndarray]:
        return metrics.split_uncertainty(draws.exp().numpy())

    def _targets(self, y: Any, examples: int) -> np.ndarray:
        shape = getattr(y, "shape", ())
        if len(shape) == 2 and shape[1] > 1:  # type: ignore[misc]
            raise ValueError(
                f"y should be a 1d array, got {shape[1]} labels per example: fit "  # type: ignore[misc]
                "sklearn.multioutput.MultiOutputClassifier(InvariantClassifier(…)), or pass one column."
            )
        labels = as_column(y, examples)
        if labels.dtype.kind == "S":
            raise ValueError("y holds bytes, not texts: pass y.astype(str).")
        if have_fractions(labels):
            raise ValueError(
                "Unknown label type: numbers with fractions are no classes: use InvariantRegressor, or round them."
            )
        try:
            check_classification_targets(labels)
            self.classes_, codes = np.unique(labels, return_inverse=True)
        except TypeError:
            raise ValueError("y holds labels of several types, or missing ones: make all of them texts.") from None
        self.outputs_ = len(self.classes_)
        if self.outputs_ < 2:
            raise ValueError(
                f"only one class, {self.classes_[0]!r}: labels must differ for anything to be learned."
            )
        return codes.astype(np.int64)
