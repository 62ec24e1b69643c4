"""Find symmetries that nobody named."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool
from scipy.stats import false_discovery_control

from invariantnet._system.progress import Update, meter
from invariantnet._system.torch_state import threads
from invariantnet.choices import Task
from invariantnet.discovery.candidates import Closed
from invariantnet.discovery.checking import checked
from invariantnet.discovery.closing import Closing
from invariantnet.discovery.columns import Columns, columns_of
from invariantnet.discovery.evalues import e_bh
from invariantnet.discovery.judging import Judge
from invariantnet.discovery.predictors import AnyPredictor, Labelled, choose
from invariantnet.discovery.proposals import FEW_INPUTS, Proposal, moments_by_source, propose
from invariantnet.discovery.result import Discovery, Tested
from invariantnet.discovery.scores import Scores, scores_of
from invariantnet.discovery.weighing import changes_sign, weighed
from invariantnet.inference.cache import ScoreCache
from invariantnet.symmetries.group import Group

MOST_INPUTS = 2000
"""Inputs that vary, at most: matching takes time that grows with their third power."""

FEWEST = 40
"""Examples below which nothing can be found: half of them propose, the others judge."""

SECONDS_AN_INPUT = 0.35
"""Time that a search takes for each input, roughly: 10 to 30 s for 64 inputs, 90 to 210 s for 550."""

PROPOSING = 0.5
"""Share of the examples that propose; the others judge."""


def discover(
    X: Any,
    y: Any,
    *,
    task: Task = "auto",
    alpha: float = 0.05,
    random_state: int | None = None,
    verbose: int = 0,
) -> Discovery:
    """Find the permutations of inputs, with changes of sign, to which labels are invariant.

    Among few inputs, groups are weighed by the evidence of all labels against an explicit prior over groups. Among
    many, half of the examples propose permutations that leave moments alone; the other half judges whether
    predictions improve when they are made invariant.

    Args:
        X: Inputs, one row per example; further axes are flattened.
        y: Labels, one per example.
        task: Whether labels are `classes` or `numbers`. `auto` takes numbers if some label has a fraction, and
            classes otherwise; it refuses whole numbers that hardly ever repeat.
        alpha: Largest expected share of false discoveries.
        random_state: Seed of the split and of the search.
        verbose: 1 to show progress on standard error.

    Returns:
        What was found, with everything that was tested.

    Raises:
        ValueError: If the data cannot be used.
    """
    return discover_labelled(checked(X, y, task), alpha=alpha, seed=random_state, verbose=verbose)


def discover_labelled(
    examples: Labelled, *, alpha: float, seed: int | None, verbose: int = 0, cache: ScoreCache | None = None
) -> Discovery:
    """Discover symmetries of inputs and labels that were checked already.

    Args:
        examples: Inputs and labels.
        alpha: Largest expected share of false discoveries.
        seed: Seed of the split and of the search.
        verbose: 1 to show progress on standard error.
        cache: Scores of an interrupted search of the same examples and seed, which are not computed again.

    Returns:
        What was found.

    Raises:
        ValueError: If alpha is no level, or too many inputs vary.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha!r}: pass a level between 0 and 1, such as 0.05.")
    rng = np.random.default_rng(seed)
    examples = examples[rng.permutation(len(examples))]
    first = round(PROPOSING * len(examples)) if len(examples) >= FEWEST else 0
    columns = columns_of(examples.x, first)
    live = columns.used
    if live.sum() > MOST_INPUTS:
        raise ValueError(
            f"{live.sum():,} inputs vary, and discovery compares at most {MOST_INPUTS:,}: shrink images, or "
            "choose columns."
        )
    nothing = _nothing(len(examples), columns, alpha)
    if not live.any():
        return nothing
    seen = Labelled(examples.x[:, live], examples.y, examples.classes)
    seconds = SECONDS_AN_INPUT * float(live.sum())
    with threads(1), meter("discovering symmetries", visible=verbose > 0, seconds=seconds) as update:
        if live.sum() <= FEW_INPUTS:
            return weighed(seen, rng, nothing, columns, cache)
        return _Search(seen, first, rng, alpha, update, scores_of(seen, cache)).run(nothing, columns)


class _Search:
    """One search among many inputs: propose, test, close."""

    def __init__(
        self,
        examples: Labelled,
        first: int,
        rng: np.random.Generator,
        alpha: float,
        update: Update,
        scores: Scores,
    ) -> None:
        self.examples, self.first, self.rng, self.alpha, self.update = examples, first, rng, alpha, update
        self.signed = changes_sign(examples.x)
        self.predictor: AnyPredictor = choose(examples[:first])
        self.judge = Judge(self.predictor, examples, first, scores)

    def run(self, nothing: Discovery, columns: Columns) -> Discovery:
        """Propose, test and close."""
        self.update(0.0, "looking for permutations that leave moments alone")
        proposals = propose(self.examples[: self.first], self.predictor, self.rng, signed=self.signed)
        values = []
        for i, proposal in enumerate(proposals):
            self.update(0.2 + 0.5 * i / len(proposals), f"testing {i + 1} of {len(proposals)} proposals")
            values.append(self.judge.log_e_value(proposal.generators))
        accepted = e_bh(values, self.alpha, [p.weight for p in proposals])
        accepted[accepted] = self._gain_from_most([p for p, yes in zip(proposals, accepted, strict=True) if yes])
        weight = sum(p.weight for p in proposals)
        tested = tuple(
            Tested(
                columns.widen(p.generators), p.source, p.kind, float(np.log(p.weight / weight)), value, bool(yes)
            )
            for p, value, yes in zip(proposals, values, accepted, strict=True)
        )
        nothing = replace(nothing, tested=tested, judged=len(self.examples) - self.first)
        if not accepted.any():
            return nothing
        self.update(0.7, "choosing among what passed")
        closed = self._close(proposals, accepted, columns.hardly[columns.used])
        return nothing if closed is None else self._discovery(closed, nothing, columns)

    def _gain_from_most(self, proposals: list[Proposal]) -> Bool[np.ndarray, " n"]:
        """Whether proposals gain where most examples are learned from, by Benjamini's and Hochberg's procedure."""
        values = [self.judge.p_value_from_most(p.generators) for p in proposals]
        return np.asarray(false_discovery_control(values) <= self.alpha) if values else np.zeros(0, bool)

    def _close(
        self, proposals: list[Proposal], accepted: Bool[np.ndarray, " n"], hardly: Bool[np.ndarray, " dim"]
    ) -> Closed | None:
        moments = moments_by_source(self.examples, self.predictor, self.rng)
        closing = Closing(self.judge, moments, self.rng, hardly)
        passed = [p for p, yes in zip(proposals, accepted, strict=True) if yes]
        return closing.close(passed)

    def _discovery(self, closed: Closed, nothing: Discovery, columns: Columns) -> Discovery:
        return replace(
            nothing,
            group=Group("discovered", columns.widen(closed.generators)),
            log_e_value=self.judge.log_e_value(closed.generators),
            exact_probability=closed.probability,
            of_inputs=closed.of_inputs,
            log_e_value_against_inputs=self.judge.log_e_value_against_inputs(closed.generators, closed.unclear),
            set_aside=columns.set_aside(closed.unclear),
            room=closed.room,
        )


def _nothing(examples: int, columns: Columns, alpha: float) -> Discovery:
    """Nothing found, and nothing tested yet."""
    return Discovery(
        group=Group.from_permutations([list(range(columns.dim))], "trivial"),
        tested=(),
        test="unseen labels",
        log_e_value=0.0,
        exact_probability=0.0,
        of_inputs=False,
        log_e_value_against_inputs=0.0,
        set_aside=columns.set_aside(),
        repeated=columns.repeated,
        examples=examples,
        judged=0,
        alpha=alpha,
    )
