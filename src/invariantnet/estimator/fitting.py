"""How an estimator is fitted, by each method: the comparison of the symmetries, then the final network."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from invariantnet._system.progress import evidence_bar, timed, training_bar, working
from invariantnet.data.examples import Examples
from invariantnet.estimator.invariance import network_deviation
from invariantnet.estimator.networks import NetworkMaker
from invariantnet.inference import Evidence, HeldOut, Records, SymmetryPosterior, fit_heldout, gather_evidence
from invariantnet.inference.cache import ScoreCache
from invariantnet.inference.hypotheses import ranges_left_out
from invariantnet.inference.laplace import laplace_evidence
from invariantnet.nn import InvariantLinear
from invariantnet.symmetries.plain import plain_hypothesis, plain_name
from invariantnet.training.loop import train
from invariantnet.uncertainty import train_uncertain, training_steps


class Fitter(NetworkMaker):
    """An estimator that compares symmetries and trains the final network."""

    second_opinion: bool
    tolerance: float
    prior: float | Sequence[float]
    n_networks: int
    n_jobs: int
    verbose: int

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
                placement=self.placement_,
                standardize=self.inputs_.for_all(self.candidates_),
                seed=seed,
                input_shape=self._network_shape,
                head=self.head,
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
            "placement": self.placement_,
            "head": self.head,
            "pool": self.pool,
        }

    @property
    def _alpha(self) -> float | list[float]:
        """The prior as plain numbers, whatever a search over it has passed."""
        return np.asarray(self.prior, float).tolist()
