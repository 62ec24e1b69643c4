"""How an estimator is fitted, by each method: the comparison of the symmetries, then the final network."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from torch import Tensor

from invariantnet._system.processes import quiet_renewal
from invariantnet._system.progress import evidence_bar, say, timed, training_bar, working
from invariantnet.data.examples import Examples
from invariantnet.estimator.estimate import Ahead, Final, announced
from invariantnet.estimator.final import FinalTrainer
from invariantnet.estimator.heads import ComparedHeads
from invariantnet.inference import Evidence, HeldOut, Records, SymmetryPosterior, fit_heldout, gather_evidence
from invariantnet.inference.cache import NetworkKey, ScoreCache
from invariantnet.inference.climbing import left_out, with_joins_of
from invariantnet.inference.hypotheses import Hypothesis, with_joins
from invariantnet.inference.laplace import laplace_evidence
from invariantnet.inference.prices import predict_moved
from invariantnet.inference.ranges_after_groups import probes_for, rungs_beside, with_ranges
from invariantnet.inference.scoring import MakeNetwork, PredictMoved
from invariantnet.nn import InvariantLinear, Symmetrized
from invariantnet.nn.pretrained import Pretrained
from invariantnet.symmetries.plain import plain_hypothesis, plain_name
from invariantnet.symmetries.ranges import Range
from invariantnet.training.loop import train

MOST_CLIMBS = 3
"""Times that a favourite is joined with the other candidates: the kinds of symmetry that an image may combine are
shifts, symmetries of the square, and exchanges of colours or signs."""


@dataclass(frozen=True, eq=False)
class _Compared:
    """What a comparison is about: networks, what they learn from, and how they predict moved inputs."""

    make_network: MakeNetwork
    examples: Examples
    predict_moved: PredictMoved
    planned: set[NetworkKey] = field(default_factory=set)
    """Networks that the races so far have planned."""


class Fitter(FinalTrainer):
    """An estimator that compares symmetries and trains the final network."""

    rest_: Tensor | None
    """Numbers of the examples that did not discover the candidates; None if the user named these."""

    second_opinion: bool
    tolerance: float
    n_networks: int
    n_jobs: int

    def _fit_evidence(self, examples: Examples, seed: int, cache: ScoreCache | None) -> None:
        self._compare(self._unseen(examples), seed, cache)
        self.posterior_ = replace(self.posterior_, tolerance=self.tolerance)
        self._train_final(self.posterior_.built_in, examples, seed)

    def _unseen(self, examples: Examples) -> Examples:
        """Examples that have not discovered the candidates; all if the user named them."""
        return examples if self.rest_ is None else examples[self.rest_]

    def _compare(self, examples: Examples, seed: int, cache: ScoreCache | None) -> None:
        """Race the hypotheses; sets `posterior_`.

        With `"auto"`, candidates are not closed under joins where these are too many. So the one that
        predicts best is then joined with every other, and the race goes on with the joins, until no join is best.
        """
        self.cpu_seconds_ = {}
        cache = {} if cache is None else cache
        with timed(self.cpu_seconds_, "comparison"):
            compared = self._what_is_compared(examples, cache)
            self._race(compared, seed, cache, self.hypotheses_)
            for _ in range(MOST_CLIMBS):
                if not (new := self._join_the_best()):
                    break
                self._race(compared, seed, cache, new)
            self._ask_about_ranges(compared, seed, cache)
        searched = self._goes_on and self.posterior_.learned
        evidence = self.posterior_.log_evidence[: len(self._groups)] if searched else ()
        others = left_out(self.symmetries, self.candidates_, self.input_shape_, evidence)
        self.posterior_ = replace(self.posterior_, left_out=others)
        if self.second_opinion:
            self._ask_for_a_second_opinion(compared, seed)

    def _race(self, compared: "_Compared", seed: int, cache: ScoreCache, new: Sequence[Hypothesis]) -> None:
        """Race all hypotheses; scores of earlier races are in the cache, so that only `new` ones cost time."""
        config = Evidence(n_networks=self.n_networks, n_jobs=self.n_jobs, tolerance=max(0.0, self.tolerance))
        make_final = compared.make_network if isinstance(self.backbone, Pretrained) else self.make_network
        final = Final(make_final, self.final_training, self.uncertainty)
        ahead = Ahead(compared.make_network, new, compared.examples, self.likelihood, final)
        visible = self.verbose > 0
        said = announced(ahead, config, visible=visible)
        with evidence_bar(said.work, visible=visible, words=plain_hypothesis) as on_network, quiet_renewal():
            self.posterior_ = gather_evidence(
                compared.make_network,
                self.hypotheses_,
                compared.examples,
                config=said.config,
                likelihood=self.likelihood,
                seed=seed,
                records=Records(
                    cache=cache,
                    about={**self._about_scores(), "probes": [probe.name for probe in self._probes]},
                    on_network=on_network,
                    step_seconds=said.step_seconds,
                    class_names=self._class_names,
                    predict_moved=compared.predict_moved,
                    probes=self._probes,
                    planned=compared.planned,
                    alpha=self._alpha,
                ),
            )

    def _ask_about_ranges(self, compared: "_Compared", seed: int, cache: ScoreCache) -> None:
        """Compare the favourite with ranges, if inputs that are moved a little are predicted almost as well."""
        first, groups = self.posterior_, self._groups
        if not (self._goes_on and first.learned):
            return
        favourite = next(g for g in groups if g.name == first.favourite)
        rungs = rungs_beside(favourite, groups, first.strain, self.input_shape_)
        if not rungs:
            return
        model = self.hypothesis_of(favourite).model.name
        self.candidates_ = with_joins([favourite, *rungs], closed=False)
        self._combine_symmetries_and_models()
        self.hypotheses_ = [h for h in self.hypotheses_ if h.model.name == model]
        words = "Inputs that are moved a little are predicted almost as well"
        say(f"{words}: now asking how far they may move.", visible=self.verbose > 0)
        self._race(compared, seed, cache, self.hypotheses_)
        second, self.candidates_ = self.posterior_, [*groups, *rungs]
        self._combine_symmetries_and_models()
        self.posterior_ = with_ranges(first, second, favourite.name, self.candidates_)

    @property
    def _probes(self) -> list[Range]:
        """Ranges by which the networks of a comparison of groups are tried."""
        suits = self.likelihood.averages_probabilities and self.placement != "weights"
        return probes_for(self.input_shape_) if suits and self._goes_on else []

    def _join_the_best(self) -> list[Hypothesis]:
        """Add joins of the group that predicts best; none if there is no reason to go on."""
        if not (self._goes_on and self.posterior_.learned):
            return []
        favourite = self._groups[int(np.argmax(self.posterior_.log_evidence))]
        known = {g.name for g in self._groups}
        self.candidates_ = [*with_joins_of(favourite, self._groups, self.posterior_.log_evidence)]
        self._combine_symmetries_and_models()
        new = [h for h in self.hypotheses_ if h.symmetry.name not in known]
        if new:
            words = f"{plain_name(favourite.name)} predicts best so far: now joined with what may hold as well."
            say(words.capitalize(), visible=self.verbose > 0)
        return new

    def _what_is_compared(self, examples: Examples, cache: ScoreCache | None) -> "_Compared":
        """Networks on the inputs or, with a pretrained body, heads on the features of all copies."""
        if not isinstance(self.backbone, Pretrained):
            return _Compared(self.make_compared_network, examples, predict_moved)
        self._seen = self._see(self.candidates_, examples, cache)
        z = self._seen.compressed().to(examples.device)
        settings = (self.hidden, self.outputs_)
        heads = ComparedHeads.of(self._seen, z, self.candidates_, settings, self.likelihood)
        return _Compared(heads.make_network, Examples(z, examples.y, examples.weight), heads.predict_moved)

    def _ask_for_a_second_opinion(self, compared: "_Compared", seed: int) -> None:
        what = "second opinion"
        with working(f"asking for a {what}", visible=self.verbose > 0), timed(self.cpu_seconds_, what):
            found = laplace_evidence(
                compared.make_network,
                [self.hypothesis_of(symmetry) for symmetry in self.candidates_],
                compared.examples,
                likelihood=self.likelihood,
                seed=seed,
                n_jobs=self.n_jobs,
            )
        self.posterior_ = replace(self.posterior_, laplace=found)

    @property
    def _class_names(self) -> list[str] | None:
        """Names of the classes, for the verdict; None for numbers."""
        return None

    def _fit_heldout(self, examples: Examples, seed: int, _: ScoreCache | None) -> None:
        config = HeldOut()
        with working(f"comparing {len(self.candidates_)} symmetries", visible=self.verbose > 0):
            result = fit_heldout(
                self._make_mixture, examples, config=config, likelihood=self.likelihood, seed=seed
            )
        self.posterior_ = self._posterior_from(result.probabilities.tolist(), round(config.share * len(examples)))
        self.path_ = result.history.schemes
        self._train_final(self.posterior_.built_in, examples, seed)

    def _make_mixture(self) -> Symmetrized:
        """One untrained network, averaged over all candidates."""
        return Symmetrized(
            self._module(self.hypotheses_[0], "mean"),
            self._groups,
            self.placement_,
            standardize=self.inputs_.shared.for_all(self.candidates_),
            prior=self._alpha,
            probabilities=self.likelihood.averages_probabilities,
            input_shape=self._network_shape,
            head=self.head,
        )

    def _fit_paper(self, examples: Examples, seed: int, _: ScoreCache | None) -> None:
        config = self.trainings.final
        with training_bar(config.steps(len(examples)), "the paper's network", visible=self.verbose > 0) as on_step:
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
