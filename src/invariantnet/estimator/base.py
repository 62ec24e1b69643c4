"""What classifier and regressor share: candidates, the comparison, the final network, files."""

import contextlib
import html
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from invariantnet._system.progress import evidence_bar, timed, training_bar, working
from invariantnet._system.sizes import must_fit
from invariantnet._system.torch_state import threads
from invariantnet.choices import Method, Placement, Pool, Uncertainty
from invariantnet.data.arrays import DiskArray, as_inputs, blocks, read
from invariantnet.data.duplicates import merge_duplicates
from invariantnet.data.examples import Examples
from invariantnet.data.fingerprint import fingerprint
from invariantnet.estimator.invariance import network_deviation
from invariantnet.estimator.networks import NetworkMaker
from invariantnet.estimator.stored import Backbone
from invariantnet.estimator.validation import check_parameters, checked_inputs, seed_from, usable_device
from invariantnet.inference import Evidence, HeldOut, Records, SymmetryPosterior, fit_heldout, gather_evidence
from invariantnet.inference.cache import ScoreCache
from invariantnet.inference.hypotheses import MOST_COPIES, candidates, ranges_left_out
from invariantnet.inference.laplace import laplace_evidence
from invariantnet.nn import Ensemble, InvariantLinear
from invariantnet.symmetries.plain import plain_hypothesis, plain_name
from invariantnet.symmetries.ranges import AnySymmetry
from invariantnet.training.loop import train
from invariantnet.uncertainty import train_uncertain, training_steps

Fitted = TypeVar("Fitted", bound="InvariantEstimator")

EARLIER = ("path_", "cpu_seconds_", "posterior_", "symmetry_", "network_", "history_")
"""Attributes that a new fit forgets."""

SMALL = 1_000_000
"""Weights of a layer up to which one thread is as fast as several, and much faster where other work runs."""


class InvariantEstimator(NetworkMaker):
    """What classifier and regressor share."""

    methods: ClassVar[tuple[str, ...]] = get_args(Method)

    def __init__(
        self,
        symmetries: str | Sequence[str | AnySymmetry] = "auto",
        input_shape: tuple[int, ...] | None = None,
        method: Method = "evidence",
        *,
        backbone: str | Backbone = "auto",
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
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.symmetries = symmetries
        self.input_shape = input_shape
        self.method = method
        self.backbone = backbone
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
        self.random_state = random_state
        self.verbose = verbose

    def fit(self: Fitted, X: Any, y: Any, sample_weight: Any = None) -> Fitted:
        """Find the symmetry, and train the network that is invariant to it.

        Equal examples count as one with the sum of their weights, so that none helps to predict its own copy.
        """
        return self.fit_with(X, y, sample_weight)

    def fit_with(
        self: Fitted,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        cache: ScoreCache | None = None,
        known_fingerprint: str | None = None,
    ) -> Fitted:
        """Fit as `fit` does, and keep the score of every network of the comparison.

        Args:
            X: Inputs.
            y: Targets.
            sample_weight: Weight of each example.
            cache: Scores of finished networks: what is there is not trained again, and new scores go into it.
            known_fingerprint: Fingerprint of the data, where the caller has computed it already.

        Returns:
            The estimator itself.
        """
        examples, seed = self._begin(X, y, sample_weight, known_fingerprint)
        fit = {"evidence": self._fit_evidence, "heldout": self._fit_heldout, "paper": self._fit_paper}[self.method]
        with self._threads():
            fit(examples, seed, cache)
        if not all(bool(value.isfinite().all()) for value in self.network_.parameters()):
            raise ValueError("training diverged: look for extreme values in X, or use another backbone.")
        return self

    def compare(self, X: Any, y: Any, sample_weight: Any = None) -> SymmetryPosterior:
        """Find the symmetry, and train no final network: only the verdict.

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
        examples, seed = self._begin(X, y, sample_weight, None)
        with self._threads():
            self._compare(examples, seed, None)
        return self.posterior_

    def _begin(self, X: Any, y: Any, sample_weight: Any, known_fingerprint: str | None) -> tuple[Examples, int]:
        """Check parameters and data, and draw the seed."""
        check_parameters(self)
        self.deviation_ = None
        for name in EARLIER:
            self.__dict__.pop(name, None)
        with working("preparing the examples", visible=self.verbose > 0):
            examples = self._prepare(X, y, sample_weight, known_fingerprint)
        return examples, seed_from(self.random_state)

    def _threads(self) -> contextlib.AbstractContextManager[None]:
        """One thread for small networks, which gain nothing from more and lose much where other work runs too."""
        small = self.n_features_in_ * self.hidden <= SMALL and not callable(self.backbone)
        self.threads_ = 1 if small else torch.get_num_threads()
        return threads(1) if small else contextlib.nullcontext()

    def _prepare(self, X: Any, y: Any, sample_weight: Any, known_fingerprint: str | None) -> Examples:
        """Check the data, learn its scale and its fingerprint, and choose the hypotheses."""
        values = checked_inputs(self, X, reset=True)
        values, targets, weights, rows = merge_duplicates(values, self._targets(y, len(values)), sample_weight)
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
        self.fingerprint_ = known_fingerprint or fingerprint(values, targets, rows)
        self.candidates_ = candidates(self.symmetries, self.input_shape_, joins=self.joins)
        self._combine_symmetries_and_models()
        self.measure_inputs(x)
        return examples

    def predict_uncertainty(self, X: Any) -> dict[str, np.ndarray]:
        """How unsure each prediction is: in total, and of that `aleatoric` and `epistemic`.

        What the drawn networks agree is uncertain, no further data will tell; what they disagree about, it might.
        Classes: entropies in nats, which add up. Numbers: standard deviations, whose squares add up.
        """
        network = self._fitted()
        if not isinstance(network, Ensemble):
            raise ValueError("a single network does not know its doubts: fit with uncertainty='ensemble'.")
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

    def _fit_evidence(self, examples: Examples, seed: int, cache: ScoreCache | None) -> None:
        self._compare(examples, seed, cache)
        self._train_final(self.posterior_.within(self.tolerance), examples, seed)

    def _compare(self, examples: Examples, seed: int, cache: ScoreCache | None) -> None:
        """Race the hypotheses; sets `posterior_`."""
        config = Evidence(n_networks=self.n_networks, n_jobs=self.n_jobs, tolerance=max(0.0, self.tolerance))
        self.cpu_seconds_: dict[str, float] = {}
        with (
            evidence_bar(len(self.candidates_), visible=self.verbose > 0, words=plain_hypothesis) as on_network,
            timed(self.cpu_seconds_, "comparison"),
        ):
            self.posterior_ = gather_evidence(
                self.make_compared_network,
                self.hypotheses_,
                examples,
                config=config,
                likelihood=self.likelihood,
                alpha=self._alpha,
                seed=seed,
                records=Records(cache, self._about_scores(), on_network, self._class_names),
            )
        left_out = ranges_left_out(self.symmetries, self.candidates_, self.input_shape_)
        self.posterior_ = replace(self.posterior_, left_out=left_out)
        if self.second_opinion:
            self._ask_for_a_second_opinion(examples, seed)

    def _ask_for_a_second_opinion(self, examples: Examples, seed: int) -> None:
        with (
            working("asking for a second opinion", visible=self.verbose > 0),
            timed(self.cpu_seconds_, "second opinion"),
        ):
            found = laplace_evidence(
                self.make_compared_network,
                [self.hypothesis_of(symmetry) for symmetry in self.candidates_],
                examples,
                likelihood=self.likelihood,
                seed=seed,
                n_jobs=self.n_jobs,
            )
        self.posterior_ = replace(self.posterior_, laplace=found)

    @property
    def _class_names(self) -> list[str] | None:
        """Names of the classes, for the verdict; None for numbers."""
        return None

    def _train_final(self, chosen: str, examples: Examples, seed: int) -> None:
        """The network that is invariant to the chosen group: calibrated on a fifth, then trained on everything."""
        self.symmetry_ = next(g for g in self.candidates_ if g.name == chosen)
        final, what = self.trainings.final, f"the network with {plain_name(self.symmetry_.name)}"
        steps = training_steps(final, len(examples), self.uncertainty)
        with training_bar(steps, what, visible=self.verbose > 0) as on_step:
            self.network_, self.history_ = train_uncertain(
                self.make_final_network,
                examples,
                final,
                seed,
                uncertainty=self.uncertainty,
                likelihood=self.likelihood,
                on_step=on_step,
            )
        self.deviation_ = network_deviation(self.network_, self.symmetry_, examples.x, self.likelihood)

    def _fit_heldout(self, examples: Examples, seed: int, _: ScoreCache | None) -> None:
        config = HeldOut()
        with working(f"comparing {len(self.candidates_)} symmetries", visible=self.verbose > 0):
            result = fit_heldout(
                lambda: self._module(self.hypotheses_[0], "mean"),
                self._groups,
                examples,
                config=config,
                likelihood=self.likelihood,
                alpha=self._alpha,
                placement=self.placement,
                standardize=self.inputs_.for_all(self.candidates_),
                seed=seed,
                input_shape=self._network_shape,
            )
        self.posterior_ = self._posterior_from(result.probabilities.tolist(), round(config.share * len(examples)))
        self.path_ = result.history.schemes
        self._train_final(self.posterior_.favourite, examples, seed)

    def _fit_paper(self, examples: Examples, seed: int, _: ScoreCache | None) -> None:
        config = self.trainings.final
        steps = config.steps(len(examples))
        with training_bar(steps, "the paper's network", visible=self.verbose > 0) as on_step:
            self.network_, self.history_ = train(self.make_final_network, examples, config, seed, on_step=on_step)
        layer = next(m for m in self.network_.modules() if isinstance(m, InvariantLinear))
        by_name = dict(zip(layer.names, layer.probabilities.tolist(), strict=True))
        self.posterior_ = self._posterior_from([by_name[g.name] for g in self.candidates_], len(examples))
        self.symmetry_ = next(g for g in self.candidates_ if g.name == self.posterior_.favourite)

    def _posterior_from(self, probabilities: list[float], examples: int) -> SymmetryPosterior:
        unknown = (float("nan"),) * len(self.candidates_)
        return SymmetryPosterior(
            names=tuple(g.name for g in self.candidates_),
            orders=tuple(g.copies for g in self.candidates_),
            probabilities=tuple(probabilities),
            log_evidence=unknown,
            log_evidence_spread=unknown,
            examples=examples,
        )

    def _about_scores(self) -> dict[str, object]:
        """What the scores of compared networks depend on, besides the arguments of the comparison itself."""
        backbone = (
            self.backbone if isinstance(self.backbone, str) else getattr(self.backbone, "__qualname__", "own")
        )
        return {
            "data": self.fingerprint_,
            "shape": self.input_shape_,
            "backbone": backbone,
            "hidden": self.hidden,
            "placement": self.placement,
            "pool": self.pool,
        }

    @property
    def _alpha(self) -> float | list[float]:
        """The prior as plain numbers, whatever a search over it has passed."""
        return np.asarray(self.prior, float).tolist()

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
