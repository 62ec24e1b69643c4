"""The scikit-learn face: fit, and ask which symmetry the data has."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import nn

from invariantnet.catalogue import group as named_group
from invariantnet.groups import Group
from invariantnet.inference import Evidence, HeldOut, SymmetryPosterior, fit_heldout, gather_evidence
from invariantnet.inference.evidence import block_ends
from invariantnet.inference.heldout import snap
from invariantnet.measures import TRIVIAL, hypotheses
from invariantnet.nn import InvariantLinear, Symmetrized, cnn, invariant_net, mlp
from invariantnet.nn.symmetrized import Placement, Pool
from invariantnet.progress import evidence_bar
from invariantnet.training import Training, log_probabilities, train

FINAL = Training(
    batch_size=128, learning_rate=1e-2, weight_decay=0.1, validation=0.0, schedule="one-cycle", min_steps=500
)
"""Chosen by validation on rotated MNIST, 5,000 examples, with images outside of these."""


class InvariantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that finds the symmetry of its data and is exactly invariant to it.

    Args:
        groups: candidate symmetries, by name or as `Group`; no symmetry is always one more.
        input_shape: shape of one input, such as (28, 28); by default that of `X[0]`.
        method: `"evidence"` trains one network per hypothesis and compares their predictions; `"heldout"` trains
            one network and learns π on held-out data; `"paper"` is the printed layer, for comparison.
        backbone: `"mlp"`, `"cnn"`, or a function of input shape and number of classes that makes a network.
        hidden: width of the hidden layer of the built-in backbones.
        placement: where the network is averaged over the group; see `nn.Symmetrized`.
        pool: `"max"` or `"mean"` over the group, for the final network with placement `"features"`. Hypotheses
            are always compared with the mean: a maximum makes networks with larger groups more flexible, and
            so favours them where there is no symmetry at all.
        tolerance: nats per example that invariance may cost. 0 asks which symmetry the data has; more asks for
            the largest group that is affordable, for inputs that will be transformed after training.
        joins: whether joins of candidates are candidates too.
        prior: α of the Dirichlet prior over the hypotheses.
        seeds: networks per hypothesis.
        epochs: of the final training on everything.
        jobs: processes that train at the same time.
        random_state: decides everything that is drawn.
        verbose: 1 shows a progress bar in a terminal.

    Attributes:
        posterior_: the `SymmetryPosterior`.
        group_: the group that the network is invariant to.
        network_: the fitted torch module; `network_.fold()` gives plain layers.
        classes_: the labels.

    >>> import invariantnet as inv
    >>> data = inv.datasets.load("digits:flipped")
    >>> clf = InvariantClassifier(groups=["flips"], input_shape=(8, 8), seeds=1, epochs=10, random_state=0)
    >>> clf.fit(data.x_train, data.y_train).group_.name
    'flips'

    """

    def __init__(
        self,
        groups: Sequence[str | Group] = ("rot90", "flips"),
        input_shape: tuple[int, ...] | None = None,
        method: str = "evidence",
        *,
        backbone: str | Callable[[tuple[int, ...], int], nn.Module] = "mlp",
        hidden: int = 100,
        placement: Placement = "features",
        pool: Pool = "max",
        tolerance: float = 0.0,
        joins: bool = True,
        prior: float | Sequence[float] = 1.0,
        seeds: int = 2,
        epochs: int = 50,
        jobs: int = 1,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.input_shape = input_shape
        self.method = method
        self.backbone = backbone
        self.hidden = hidden
        self.placement = placement
        self.pool = pool
        self.tolerance = tolerance
        self.joins = joins
        self.prior = prior
        self.seeds = seeds
        self.epochs = epochs
        self.jobs = jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> "InvariantClassifier":
        """Find the symmetry, and train the network that is invariant to it."""
        x = self._inputs(X, reset=True)
        labels = np.asarray(y)
        check_classification_targets(labels)
        if labels.shape != (len(x),):
            raise ValueError(f"{len(x)} inputs, but labels of shape {labels.shape}: pass one label per input.")
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"only one class, {self.classes_[0]!r}: labels must differ for anything to be learned."
            )
        targets = torch.from_numpy(codes.astype(np.int64))
        if len(x) > 1 and bool((x == x[0]).all()):
            raise ValueError("all inputs are equal: there is nothing to learn from.")
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        candidates = [g if isinstance(g, Group) else named_group(g, self.input_shape_) for g in self.groups]
        self.hypotheses_ = hypotheses(candidates, closed=self.joins)
        if self.method == "evidence":
            self._fit_evidence(x, targets, seed)
        elif self.method == "heldout":
            self._fit_heldout(x, targets, seed)
        elif self.method == "paper":
            self._fit_paper(x, targets, seed)
        else:
            raise ValueError(f"method {self.method!r} is unknown: choose 'evidence', 'heldout' or 'paper'.")
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class."""
        check_is_fitted(self, "network_")
        return log_probabilities(self.network_, self._inputs(X, reset=False)).exp().numpy()

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class."""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def _fit_evidence(self, x: torch.Tensor, y: torch.Tensor, seed: int) -> None:
        config = Evidence(
            seeds=self.seeds, jobs=self.jobs, margin=np.inf if self.tolerance > 0 else Evidence.margin
        )
        with evidence_bar(len(block_ends(len(x), config)) - 1, visible=self.verbose > 0) as on_block:
            self.posterior_ = gather_evidence(
                self._make_network,
                self.hypotheses_,
                x,
                y,
                config=config,
                alpha=self.prior,
                seed=seed,
                on_block=on_block,
            )
        chosen = self.posterior_.within(self.tolerance)
        self.group_ = next(g for g in self.hypotheses_ if g.name == chosen)
        final = replace(FINAL, epochs=self.epochs)
        pool: Pool = self.pool if self.placement == "features" else "mean"

        def make() -> nn.Module:
            return Symmetrized(self._make_module(), [self.group_], self.placement, pool)

        self.network_, self.history_ = train(make, x, y, final, seed)

    def _fit_heldout(self, x: torch.Tensor, y: torch.Tensor, seed: int) -> None:
        config = HeldOut(training=replace(HeldOut.training, epochs=self.epochs))
        result = fit_heldout(
            self._make_module,
            self.hypotheses_,
            x,
            y,
            config=config,
            alpha=float(np.mean(self.prior)),
            placement=self.placement,
            seed=seed,
        )
        self.posterior_ = self._posterior_from(result.probabilities.tolist(), round(config.share * len(x)))
        self.network_, self.history_ = snap(result).eval(), result.history
        self.group_ = self.network_.groups[0]

    def _fit_paper(self, x: torch.Tensor, y: torch.Tensor, seed: int) -> None:
        groups = [g for g in self.hypotheses_ if g.name != TRIVIAL]

        def make() -> nn.Module:
            return invariant_net(groups, len(self.classes_), self.hidden)

        self.network_, self.history_ = train(make, x, y, Training(), seed)
        *p, p_none = next(
            m for m in self.network_.modules() if isinstance(m, InvariantLinear)
        ).probabilities.tolist()
        by_name = {TRIVIAL: p_none, **{g.name: p_k for g, p_k in zip(groups, p, strict=True)}}
        self.posterior_ = self._posterior_from([by_name[g.name] for g in self.hypotheses_], len(x))
        self.group_ = next(g for g in self.hypotheses_ if g.name == self.posterior_.favourite)

    def _posterior_from(self, probabilities: list[float], examples: int) -> SymmetryPosterior:
        unknown = (float("nan"),) * len(self.hypotheses_)
        return SymmetryPosterior(
            names=tuple(g.name for g in self.hypotheses_),
            orders=tuple(g.order for g in self.hypotheses_),
            probabilities=tuple(probabilities),
            log_evidence=unknown,
            log_evidence_spread=unknown,
            examples=examples,
        )

    def _make_module(self) -> nn.Module:
        if self.backbone == "mlp":
            return mlp(self.input_shape_, len(self.classes_), self.hidden)
        if self.backbone == "cnn":
            return cnn(self.input_shape_, len(self.classes_), self.hidden)
        if callable(self.backbone):
            return self.backbone(self.input_shape_, len(self.classes_))
        raise ValueError(f"backbone {self.backbone!r} is unknown: choose 'mlp' or 'cnn', or pass a function.")

    def _make_network(self, group: Group) -> nn.Module:
        return Symmetrized(self._make_module(), [group], self.placement)

    def _inputs(self, X: Any, *, reset: bool) -> torch.Tensor:
        values = X.detach().cpu().numpy() if isinstance(X, torch.Tensor) else np.asarray(X)
        if values.ndim < 2:
            raise ValueError(f"X of shape {values.shape} is not a list of inputs: pass (n, …).")
        flat = values.reshape(len(values), -1).astype(np.float32)
        if not np.isfinite(flat).all():
            raise ValueError("X holds NaN or infinite values: clean or drop those examples.")
        if reset:
            shape = tuple(self.input_shape or values.shape[1:])
            if int(np.prod(shape)) != flat.shape[1]:
                raise ValueError(f"inputs of {flat.shape[1]} numbers do not have the shape {shape}.")
            self.input_shape_ = shape
            self.n_features_in_ = flat.shape[1]
        elif flat.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {flat.shape[1]} features, the classifier was fitted with {self.n_features_in_}."
            )
        return torch.from_numpy(flat)
