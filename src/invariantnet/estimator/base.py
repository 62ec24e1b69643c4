"""What classifier and regressor share: candidates, the comparison, the final network, files."""

import contextlib
import copy
import html
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from invariantnet._system.progress import working
from invariantnet._system.sizes import must_fit
from invariantnet._system.torch_state import threads
from invariantnet.choices import Method, Placement, Pool, Precision, Uncertainty
from invariantnet.data.arrays import DiskArray, as_inputs, blocks, read
from invariantnet.data.duplicates import merge_duplicates
from invariantnet.data.examples import Examples
from invariantnet.data.fingerprint import Digests, fingerprint
from invariantnet.estimator.discovering import discover_candidates
from invariantnet.estimator.fitting import Fitter
from invariantnet.estimator.invariance import network_deviation, restricted, restriction_words
from invariantnet.estimator.stored import Backbone
from invariantnet.estimator.validation import check_parameters, checked_inputs, seed_from, usable_device
from invariantnet.inference import SymmetryPosterior
from invariantnet.inference.cache import ScoreCache
from invariantnet.inference.hypotheses import MOST_COPIES, candidates
from invariantnet.inference.support import Support
from invariantnet.nn import Ensemble
from invariantnet.nn.pretrained import Pretrained
from invariantnet.nn.symmetrized import NO_HEAD
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.copies import few_enough
from invariantnet.symmetries.ranges import AnySymmetry

Fitted = TypeVar("Fitted", bound="InvariantEstimator")

EARLIER = (
    "discovery_",
    "trained_symmetry_",
    "restricted_to_",
    "restriction_",
    "placement_",
    "path_",
    "cpu_seconds_",
    "posterior_",
    "symmetry_",
    "network_",
    "history_",
)
"""Attributes that a new fit forgets."""

SMALL = 1_000_000
"""Weights of a layer up to which one thread is as fast as several, and much faster where other work runs."""


class InvariantEstimator(Fitter):
    """What classifier and regressor share."""

    methods: ClassVar[tuple[str, ...]] = get_args(Method)

    def __init__(
        self,
        symmetries: str | Sequence[str | AnySymmetry] = "auto",
        input_shape: tuple[int, ...] | None = None,
        method: Method = "evidence",
        *,
        backbone: str | Backbone = "auto",
        head: str | None = None,
        hidden: int = 100,
        placement: Placement = "features",
        pool: Pool = "max",
        uncertainty: Uncertainty = "none",
        second_opinion: bool = False,
        tolerance: float = 0.0,
        joins: bool = True,
        prior: float | Sequence[float] = 1.0,
        n_networks: int = 2,
        epochs: int | None = None,
        n_jobs: int = 1,
        device: str = "auto",
        precision: Precision = "32-true",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.symmetries = symmetries
        self.input_shape = input_shape
        self.method = method
        self.backbone = backbone
        self.head = head
        self.hidden = hidden
        self.placement = placement
        self.pool = pool
        self.uncertainty = uncertainty
        self.second_opinion = second_opinion
        self.tolerance = tolerance
        self.joins = joins
        self.prior = prior
        self.n_networks = n_networks
        self.epochs = epochs
        self.n_jobs = n_jobs
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def fit(self: Fitted, X: Any, y: Any, sample_weight: Any = None) -> Fitted:
        """Find the symmetry, and train the network that is invariant to it.

        Equal examples count as one with the sum of their weights, so that none helps to predict its own copy.

        Args:
            X: Inputs.
            y: Targets.
            sample_weight: Weight of each example.

        Returns:
            The estimator itself.

        Raises:
            ValueError: If a parameter or the data cannot be used, or the training diverged.
        """
        return self.fit_with(X, y, sample_weight)

    def fit_with(
        self: Fitted,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        cache: ScoreCache | None = None,
        known: Digests | None = None,
    ) -> Fitted:
        """Fit as `fit` does, and keep the score of every network of the comparison.

        Args:
            X: Inputs.
            y: Targets.
            sample_weight: Weight of each example.
            cache: Scores of finished networks: what is there is not trained again, and new scores go into it.
            known: Digests of the data, where the caller has them already.

        Returns:
            The estimator itself.

        Raises:
            ValueError: If a parameter or the data cannot be used, or the training diverged.
        """
        examples, seed = self._begin(X, y, sample_weight, known, cache)
        fit = {"evidence": self._fit_evidence, "heldout": self._fit_heldout, "paper": self._fit_paper}[self.method]
        try:
            with self._threads():
                fit(examples, seed, cache)
        finally:
            self._forget_features()
        if not all(bool(value.isfinite().all()) for value in self.network_.parameters()):
            raise ValueError("training diverged: look for extreme values in X, or use another backbone.")
        return self

    def compare(self, X: Any, y: Any, sample_weight: Any = None) -> SymmetryPosterior:
        """Find the symmetry, and train no final network: only the verdict.

        A network of an earlier `fit` is forgotten; compare with a `sklearn.base.clone` to keep it.

        Args:
            X: Inputs.
            y: Targets.
            sample_weight: Weight of each example.

        Returns:
            The posterior over the symmetries, as `posterior_` is after `fit`.

        Raises:
            ValueError: If the data or a parameter cannot be used.
        """
        if self.method != "evidence":
            raise ValueError(f"method {self.method!r} has no verdict without a fit: use method 'evidence'.")
        examples, seed = self._begin(X, y, sample_weight, None, None)
        try:
            with self._threads():
                self._compare(self._unseen(examples), seed, None)
        finally:
            self._forget_features()
        return self.posterior_

    def _begin(
        self, X: Any, y: Any, sample_weight: Any, known: Digests | None, cache: ScoreCache | None
    ) -> tuple[Examples, int]:
        """Check parameters and data, and draw the seed."""
        check_parameters(self)
        self.deviation_ = None
        for name in EARLIER:
            self.__dict__.pop(name, None)
        with working("preparing the examples", visible=self.verbose > 0):
            examples = self._prepare(X, y, sample_weight, known, cache)
        return examples, seed_from(self.random_state)

    def _asked(
        self, examples: Examples, cache: ScoreCache | None
    ) -> str | AnySymmetry | Sequence[str | AnySymmetry]:
        """What to compare: what the user named, or what one part of the examples discovers."""
        self.rest_ = None
        if not isinstance(self.symmetries, str) or self.symmetries != "discover":
            return self.symmetries
        classes = None if examples.y.is_floating_point() else self.outputs_
        found = discover_candidates(examples, classes, seed_from(self.random_state), cache)
        self.discovery_, self.rest_ = found.discovery, found.rest
        return found.groups or [TRIVIAL]

    def _threads(self) -> contextlib.AbstractContextManager[None]:
        """One thread for small networks, which gain nothing from more and lose much where other work runs too."""
        small = self.n_features_in_ * self.hidden <= SMALL and not callable(self.backbone)
        self.threads_ = 1 if small else torch.get_num_threads()
        return threads(1) if small else contextlib.nullcontext()

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, known: Digests | None, cache: ScoreCache | None
    ) -> Examples:
        """Check the data, learn its scale and its fingerprint, and choose the hypotheses."""
        values = checked_inputs(self, X, reset=True)
        values, targets, weights, rows = merge_duplicates(
            values, self._targets(y, len(values)), sample_weight, None if known is None else known.rows
        )
        targets = self._encoded(targets, weights)
        must_fit(
            4 * MOST_COPIES * self.hidden * (self.n_features_in_ + self.outputs_),
            f"a network of {self.hidden} hidden units",
            "pass a smaller hidden",
        )
        x = as_inputs(values)
        if all(bool((part == read(x[:1])).all()) for part in blocks(x)):
            raise ValueError("all inputs are equal: there is nothing to learn from.")
        device = usable_device(self.device)
        w = None if weights is None else torch.from_numpy(weights).to(device)
        examples = Examples(x.to(device), torch.from_numpy(targets).to(device), w)
        self.fingerprint_ = known.whole if known else fingerprint(values, targets, rows)
        self.candidates_ = candidates(
            self._asked(examples, cache),
            self.input_shape_,
            joins=self.joins,
            support=Support.of(x, self.input_shape_),
        )
        if isinstance(self.backbone, Pretrained) and self.symmetries == "auto":
            self.candidates_ = [*few_enough(self._groups)]
        self.measure_inputs(x)
        self._combine_symmetries_and_models()
        self.placement_ = self._placement_of_the_backbone()
        if self.placement_ != self.placement:
            warnings.warn(NO_HEAD, UserWarning, stacklevel=5)
        return examples

    def restricted_to(self: Fitted, symmetry: str | AnySymmetry, X: Any = None) -> Fitted:
        """Make an estimator of the same weights that is invariant to a smaller symmetry.

        Args:
            symmetry: A part of `symmetry_`, by name or as an object; `"trivial"` leaves no symmetry.
            X: Inputs to measure on how many predictions change; none by default.

        Returns:
            A fitted estimator; this one stays as it is. Its `restriction_` says what changes.

        Raises:
            ValueError: If the symmetry is no part of `symmetry_`, or the method has no network to restrict.
        """
        if self.method == "paper":
            raise ValueError("the paper's layer has its symmetry in its weights: use method 'evidence'.")
        network = copy.deepcopy(self._fitted())
        smaller = copy.copy(self)
        smaller._restrict(symmetry)
        smaller.network_ = restricted(network, smaller.symmetry_).eval()
        smaller.deviation_ = None
        smaller.restriction_ = restriction_words(self.symmetry_, smaller.symmetry_)
        if X is not None:
            tensor = smaller._tensor(X)
            smaller.deviation_ = network_deviation(smaller.network_, smaller.symmetry_, tensor, self.likelihood)
            differs = (self.predict(X) != smaller.predict(X)).reshape(len(tensor), -1)
            changed = np.mean(differs.any(axis=1))
            smaller.restriction_ += f"; {100 * changed:.1f} % of {len(tensor):,} predictions change"
        return smaller

    def predict_uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """Tell how unsure each prediction is, and why.

        What the drawn networks agree is uncertain, no further data will tell; what they disagree about, it might.

        Args:
            X: Inputs.

        Returns:
            Uncertainties `total`, `aleatoric` and `epistemic`. Classes: entropies in nats, which add up. Numbers:
            standard deviations, whose squares add up.

        Raises:
            ValueError: If there is only one network.
        """
        network = self._fitted()
        if not isinstance(network, Ensemble):
            raise ValueError("a single network cannot tell its uncertainty: fit with uncertainty='ensemble'.")
        with torch.no_grad():
            draws = torch.cat([network.predict_each(part) for part in blocks(self._tensor(X))], dim=1)
        return self._split_uncertainty(draws.double().cpu())

    @abstractmethod
    def _split_uncertainty(self, draws: Tensor) -> dict[str, np.ndarray]:
        """From normalised outputs (draws, n, outputs)."""

    @abstractmethod
    def _targets(self, y: Any, examples: int) -> np.ndarray:
        """Check the targets; sets `outputs_`, how many numbers the network gives."""

    def _encoded(self, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Targets as the network learns them."""
        return targets

    def _fitted(self) -> nn.Module:
        check_is_fitted(self, "network_")
        return self.network_

    def _tensor(self, X: Any) -> Tensor | DiskArray:
        like = next(self._fitted().parameters())
        return as_inputs(checked_inputs(self, X, reset=False)).to(like.device, like.dtype)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text: str = super().__repr__(N_CHAR_MAX)
        return f"{text}\n{self.posterior_.verdict}" if hasattr(self, "posterior_") else text

    def _html_repr(self) -> str:
        text: str = super()._html_repr()
        return f"{text}<p>{html.escape(self.posterior_.verdict)}</p>" if hasattr(self, "posterior_") else text
