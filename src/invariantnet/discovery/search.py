"""Find symmetries that nobody named."""

from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64, Shaped

from invariantnet._system.progress import meter
from invariantnet.discovery._matching import Moments
from invariantnet.discovery.closing import REJECTED, Closed, Closing
from invariantnet.discovery.copies import symmetry_of
from invariantnet.discovery.evalues import e_bh
from invariantnet.discovery.evidence import MOST_EXAMPLES, Evidence
from invariantnet.discovery.gradients import moments_of_gradients
from invariantnet.discovery.judging import Judge, inputs_against
from invariantnet.discovery.moments import inputs_that_vary, moments_given_labels, parts_of
from invariantnet.discovery.posterior import Posterior
from invariantnet.discovery.predictors import AnyPredictor, Labelled, choose
from invariantnet.discovery.proposals import FEW_INPUTS, Proposal, Source, propose
from invariantnet.discovery.result import Discovery, Tested
from invariantnet.symmetries.group import Group

MOST_INPUTS = 2000
"""Inputs that vary, at most: matching takes time that grows with their third power."""

FEWEST = 40
"""Examples below which nothing can be found: half of them propose, the others judge."""

PROPOSING = 0.5
"""Share of the examples that propose; the others judge."""


def discover(
    X: Any, y: Any, *, alpha: float = 0.05, random_state: int | None = None, verbose: int = 0
) -> Discovery:
    """Find the permutations of inputs, with changes of sign, to which labels are invariant.

    Among few inputs, groups are weighed by the evidence of all labels against an explicit prior over groups. Among
    many, half of the examples propose permutations that leave moments alone; the other half judges whether
    predictions improve when they are made invariant.

    Args:
        X: Inputs, one row per example; further axes are flattened.
        y: Labels: classes, or real numbers.
        alpha: Largest expected share of false discoveries.
        random_state: Seed of the split and of the search.
        verbose: 1 to show progress on standard error.

    Returns:
        What was found, with everything that was tested.

    Raises:
        ValueError: If the data cannot be used.
    """
    x, labels, classes = _checked(X, y, alpha)
    return discover_labelled(x, labels, classes, alpha=alpha, seed=random_state, verbose=verbose)


def discover_labelled(
    x: Float64[np.ndarray, "n dim"],
    y: Shaped[np.ndarray, " n"],
    classes: int | None,
    *,
    alpha: float,
    seed: int | None,
    verbose: int = 0,
) -> Discovery:
    """Discover symmetries of inputs and labels that were checked already.

    Args:
        x: Inputs.
        y: Class numbers, or real labels.
        classes: Number of classes; None for real labels.
        alpha: Largest expected share of false discoveries.
        seed: Seed of the split and of the search.
        verbose: 1 to show progress on standard error.

    Returns:
        What was found.

    Raises:
        ValueError: If too many inputs vary.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    examples = Labelled(x[order], y[order], classes)
    first = round(PROPOSING * len(x))
    live = inputs_that_vary(examples.x[:first]) if len(x) >= FEWEST else np.zeros(x.shape[1], bool)
    if live.sum() > MOST_INPUTS:
        raise ValueError(
            f"{live.sum():,} inputs vary, and discovery compares at most {MOST_INPUTS:,}: shrink images, or "
            "choose columns."
        )
    if not live.any():
        return _nothing(x, (), live, alpha, 0)
    seen = Labelled(examples.x[:, live], examples.y, classes)
    with meter("discovering symmetries", visible=verbose > 0) as update:
        if live.sum() <= FEW_INPUTS:
            return _weighed(seen, rng, alpha, live)
        return _Search(seen, first, rng, alpha, update).run(live, x.shape[1])


def _weighed(
    examples: Labelled, rng: np.random.Generator, alpha: float, live: Bool[np.ndarray, " all"]
) -> Discovery:
    """Weigh groups of few inputs on all labels."""
    posterior = Posterior(Evidence(examples), rng)
    posterior.search(signed=changes_sign(examples.x))
    level = -np.log(alpha)
    tested = tuple(
        Tested(
            _widened(w.generators, live), w.source, w.kind, w.log_prior, w.log_e_value, bool(w.log_odds >= level)
        )
        for w in posterior.weighed.values()
    )
    judged = min(MOST_EXAMPLES, len(examples))
    nothing = _nothing(np.zeros((len(examples), len(live))), tested, live, alpha, judged)
    nothing = replace(nothing, test="all labels", log_e_value=posterior.log_e_value)
    if posterior.log_e_value < level:
        return nothing
    best = posterior.best.generators
    against = inputs_against(symmetry_of(best), examples.x, len(examples) // 2)
    return replace(
        nothing,
        group=Group("discovered", _widened(best, live)),
        exact_probability=posterior.probability,
        of_inputs=against < REJECTED,
        log_e_value_against_inputs=against,
    )


def changes_sign(x: Float64[np.ndarray, "n dim"]) -> bool:
    """Whether some input has values of both signs."""
    return bool(((x < 0).any(axis=0) & (x > 0).any(axis=0)).any())


class _Search:
    """One search among many inputs: propose, test, close."""

    def __init__(
        self, examples: Labelled, first: int, rng: np.random.Generator, alpha: float, update: Any
    ) -> None:
        self.examples, self.first, self.rng, self.alpha, self.update = examples, first, rng, alpha, update
        self.signed = changes_sign(examples.x)
        self.predictor: AnyPredictor = choose(examples[:first])
        self.judge = Judge(self.predictor, examples, first)

    def run(self, live: Bool[np.ndarray, " all"], dim: int) -> Discovery:
        """Propose, test and close."""
        self.update(0.0, "looking for permutations that leave moments alone")
        proposals = propose(self.examples[: self.first], self.predictor, self.rng, signed=self.signed)
        values = []
        for i, proposal in enumerate(proposals):
            self.update(0.2 + 0.5 * i / len(proposals), f"testing {i + 1} of {len(proposals)} proposals")
            values.append(self.judge.log_e_value(proposal.generators))
        accepted = e_bh(values, self.alpha, [p.weight for p in proposals]) & ~self._losing(proposals)
        weight = sum(p.weight for p in proposals)
        tested = tuple(
            Tested(
                _widened(p.generators, live), p.source, p.kind, float(np.log(p.weight / weight)), value, bool(yes)
            )
            for p, value, yes in zip(proposals, values, accepted, strict=True)
        )
        judged = len(self.examples) - self.first
        if not accepted.any():
            return _nothing(np.zeros((len(self.examples), dim)), tested, live, self.alpha, judged)
        self.update(0.7, "choosing among what passed")
        return self._discovery(self._close(proposals, accepted), tested, live)

    def _losing(self, proposals: list[Proposal]) -> Bool[np.ndarray, " n"]:
        """Whether a proposal gains from few examples, but is seen to lose with many: then it is no symmetry."""
        losses = [self.judge.log_e_value_of_loss(p.generators) for p in proposals]
        return np.array(losses) >= -np.log(self.alpha)

    def _close(self, proposals: list[Proposal], accepted: Bool[np.ndarray, " n"]) -> Closed:
        parts = parts_of(self.examples.y, classes=self.examples.classes is not None)
        moments: dict[Source, Moments] = {"inputs": moments_given_labels(self.examples.x, parts)}
        gradients = moments_of_gradients(self.examples, self.predictor, self.rng)
        if gradients is not None:
            moments["predictions"] = gradients
        closing = Closing(self.judge, moments, self.rng)
        passed = [p for p, yes in zip(proposals, accepted, strict=True) if yes]
        return closing.close(passed)

    def _discovery(self, closed: Closed, tested: tuple[Tested, ...], live: Bool[np.ndarray, " all"]) -> Discovery:
        aside = ~live
        aside[np.flatnonzero(live)[closed.unclear]] = True
        return Discovery(
            group=Group("discovered", _widened(closed.generators, live)),
            tested=tested,
            test="unseen labels",
            log_e_value=self.judge.log_e_value(closed.generators),
            exact_probability=closed.probability,
            of_inputs=closed.of_inputs,
            log_e_value_against_inputs=self.judge.log_e_value_against_inputs(closed.generators),
            set_aside=tuple(np.flatnonzero(aside).tolist()),
            examples=len(self.examples),
            judged=len(self.examples) - self.first,
            alpha=self.alpha,
        )


def _nothing(
    x: Float64[np.ndarray, "n dim"],
    tested: tuple[Tested, ...],
    live: Bool[np.ndarray, " dim"],
    alpha: float,
    judged: int,
) -> Discovery:
    return Discovery(
        group=Group.from_permutations([list(range(x.shape[1]))], "trivial"),
        tested=tested,
        test="unseen labels",
        log_e_value=0.0,
        exact_probability=0.0,
        of_inputs=False,
        log_e_value_against_inputs=0.0,
        set_aside=tuple(np.flatnonzero(~live).tolist()),
        examples=len(x),
        judged=judged,
        alpha=alpha,
    )


def _widened(generators: Int64[np.ndarray, "n few"], live: Bool[np.ndarray, " all"]) -> Int64[np.ndarray, "n all"]:
    """Let index arrays on the inputs that vary act on all inputs."""
    places = np.flatnonzero(live)
    dim, few = len(live), len(places)
    wide = np.tile(np.arange(dim), (len(generators), 1))
    wide[:, places] = places[generators % few] + dim * (generators >= few)
    return wide


def _checked(
    X: Any, y: Any, alpha: float
) -> tuple[Float64[np.ndarray, "n dim"], Shaped[np.ndarray, " n"], int | None]:
    """Inputs as a matrix, labels as class numbers or real numbers, and the number of classes."""
    x = np.asarray(X)
    if x.ndim < 2 or x.dtype.kind not in "biuf":
        raise ValueError(f"inputs of shape {x.shape} and type {x.dtype} are no matrix: pass n×D real numbers.")
    x = x.reshape(len(x), -1).astype(np.float64)
    labels = np.asarray(y)
    if labels.shape != (len(x),):
        raise ValueError(f"{len(x)} inputs have labels of shape {labels.shape}: pass one label per input.")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha!r}: pass a level between 0 and 1, such as 0.05.")
    if not np.isfinite(x).all():
        raise ValueError("X holds NaN or infinite values: clean or drop those examples.")
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.round(labels)):
        if not np.isfinite(labels).all():
            raise ValueError("y holds NaN or infinite values: drop those examples.")
        return x, labels.astype(np.float64), None
    names, numbers = np.unique(labels, return_inverse=True)
    return x, numbers.astype(np.int64), len(names)
