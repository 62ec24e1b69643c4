"""From the standings of a race to the posterior over symmetries."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Shaped

from invariantnet.inference.bootstrap import bootstrap_probabilities, mean_prediction
from invariantnet.inference.by_class import Gain, gains_by_class, parts_of, refuting_classes
from invariantnet.inference.findings import ModelEvidence
from invariantnet.inference.kinds import best_of_each_kind, probabilities_of_kinds
from invariantnet.inference.lattice import at_least
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.prices import prices
from invariantnet.inference.range_posterior import Spread, range_posteriors
from invariantnet.inference.scoring import BlockScore
from invariantnet.inference.standings import Contest, Standings
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.ranges import AnySymmetry

SETTLED_NATS, SETTLED_ERRORS = 3.0, 2.0
"""A gap of this many nats, and standard errors beyond them, makes a verdict strong."""
GAP_ERRORS = 2.0
"""Standard errors by which the gap per label may differ from what was seen."""
LATE = 0.5
"""Share of the labels, the last ones, that tell how fast a gap grows: early networks know little."""


def answer(
    contest: Contest,
    now: Standings,
    starts: Sequence[int],
    y: Shaped[np.ndarray, "n *k"],
    class_names: Sequence[str] | None,
) -> SymmetryPosterior:
    """The posterior after the last block that was run.

    Args:
        contest: What was compared.
        now: The scores.
        starts: Number of labels predicted before each block.
        y: The labels that were predicted.
        class_names: Names of the classes.

    Returns:
        The posterior over the symmetries.
    """
    seen, total = now.seen, now.seen.sum(1)
    best = [k for k in contest.best(total, now.included) if k is not None]
    predicted = [_predicted(now, ours) for ours in contest.members]
    names, shared = [s.name for s in contest.symmetries], min(predicted)
    bounded, pointwise = now.bounded, _pointwise(now, best)
    begun = [start for start in starts if start < now.labels]
    dropped = {k: n for k, n in enumerate(predicted) if n < now.labels}
    tried = [_tried(now, ours, k) for ours, k in zip(contest.members, best, strict=True)]
    spread = (bounded * now.counts[: now.labels]).sum(-1).std(1, ddof=int(now.networks > 1))
    probabilities = now.stages[-1].probabilities
    log_evidence = tuple(contest.log_evidence(total, now.excluded).tolist())
    needed, at_best = _examples_needed(names, pointwise[:, :shared], list(probabilities.values()))
    by_class = _by_class(names, pointwise, predicted, y[: now.labels], class_names)
    return SymmetryPosterior(
        names=tuple(names),
        orders=tuple(s.copies for s in contest.symmetries),
        probabilities=tuple(probabilities.values()),
        at_least=tuple(at_least(contest.symmetries, [*probabilities.values()]).tolist()),
        log_evidence=log_evidence,
        log_evidence_spread=tuple(spread[best].tolist()),
        examples=now.labels,
        dropped=tuple(names[k] for k, ours in enumerate(contest.members) if not set(ours) & set(now.alive)),
        prices=tuple(prices(contest.symmetries, [score.accuracy for score in tried], seen[best], begun, dropped)),
        race=tuple(now.stages),
        guessing=float((now.guess * now.counts)[: now.labels].sum()),
        learned=now.learned,
        models=model_evidence(contest, now, total),
        best_models=best_models(contest, now, begun[-1]),
        by_class=by_class,
        refuted_by=_with_larger(
            _refuted_by(by_class, *_moved(contest, now, starts), y, class_names), contest.symmetries
        ),
        examples_needed=needed,
        examples_at_best=at_best,
        ranges=range_posteriors(
            contest.symmetries, list(probabilities.values()), log_evidence, _rungs(contest, now, best)
        ),
        strain=tried[int(np.argmax(list(probabilities.values())))].strain,
        pointwise=pointwise[:, :shared],
        counts=now.counts[:shared],
    )


def _pointwise(now: Standings, chosen: Sequence[int]) -> Float[np.ndarray, "chosen n"]:
    """Log probability that some hypotheses gave to each label; by first networks where one has no others."""
    bounded, alone = now.bounded[chosen], now.alone[chosen, : now.labels].any(axis=0)
    return np.where(alone, bounded[:, 0], mean_prediction(bounded))


def _rungs(contest: Contest, now: Standings, best: Sequence[int]) -> Spread:
    """How probable some symmetries are beside each other, with the error that comes from the choice of networks.

    Neighbouring rungs of a ladder differ by little, so that networks with a lucky start decide between them. A
    bootstrap of two networks hardly shows this. So the spread of networks, estimated from all symmetries together,
    is an error of every rung; between kinds of symmetry the rungs of a kind share it, or else the kind with the
    most rungs would gain by it.

    Args:
        contest: What was compared.
        now: The scores.
        best: The best hypothesis of each symmetry.
    """
    counts, average = now.counts[: now.labels], mean_prediction(now.bounded)[:, None]

    def among(symmetries: Sequence[int]) -> Sequence[float]:
        log_prior = contest.log_prior[list(symmetries)]
        if not now.learned:
            return (np.exp(log_prior) / np.exp(log_prior).sum()).tolist()
        ours = [best[s] for s in symmetries]
        luck = np.broadcast_to(now.luck, max(contest.kinds) + 1)[[contest.kinds[k] for k in ours]]
        return bootstrap_probabilities(average[ours], log_prior, 0, counts, spread=luck).tolist()

    return among


def best_models(contest: Contest, now: Standings, start: int) -> tuple[str, ...]:
    """For each symmetry, the model whose networks predict best after learning from the most examples.

    The evidence also counts what networks predicted from few examples, where small models lead.

    Args:
        contest: What was compared.
        now: The scores.
        start: Labels predicted before the last block.

    Returns:
        The name of one model per symmetry; models that predicted the last block come first.
    """
    late, total = now.seen[:, start:].sum(1), now.seen.sum(1)
    lasted = [k for k in now.included if k not in now.drops or now.drops[k].labels > start]
    chosen = zip(contest.best(late, lasted), contest.best(total, now.included), strict=True)
    found = [best if last is None else last for last, best in chosen]
    return tuple(contest.hypotheses[k].model.name for k in found if k is not None)


def model_evidence(
    contest: Contest, now: Standings, total: Float[np.ndarray, " hypotheses"]
) -> tuple[ModelEvidence, ...]:
    """Probability of each model, whatever the symmetry, and its evidence with the best one; dropped ones last."""
    assert now.probabilities is not None
    found: dict[str, list[int]] = {}
    for k, hypothesis in enumerate(contest.hypotheses):
        if k in now.drops or k not in now.excluded:
            found.setdefault(hypothesis.model.name, []).append(k)
    evidence = []
    for name, ours in found.items():
        lasted = [k for k in ours if k not in now.drops]
        probability, most = float(now.probabilities[ours].sum()), float(total[lasted or ours].max())
        evidence.append(ModelEvidence(name, probability, most, dropped=not lasted))
    return tuple(sorted(evidence, key=lambda each: (each.dropped, -each.log_evidence)))


def examples_needed(
    pointwise: Float[np.ndarray, "symmetries n"], probabilities: Sequence[float], *, errors: float = 0.0
) -> int | None:
    r"""Estimate how many labels in all would settle the verdict between the two favourites.

    With a gap of $m \pm s$ nats a label, $n m$ exceeds $3 + 2 s \sqrt n$ from the returned $n$ on.

    Args:
        pointwise: Log probability that each symmetry gave to each label.
        probabilities: Probability of each symmetry.
        errors: Take the gap to be as large, in either direction, as this many of its standard errors allow.

    Returns:
        The number; None if the gap does not grow.
    """
    if len(probabilities) < 2 or not pointwise.shape[1]:
        return None
    second, first = np.argsort(probabilities)[-2:]
    gap = (pointwise[first] - pointwise[second])[int(LATE * pointwise.shape[1]) :]
    mean, spread = float(gap.mean()), float(gap.std())
    if errors:
        mean = abs(mean) + errors * spread / math.sqrt(len(gap))
    if mean <= 0:
        return None
    root = (SETTLED_ERRORS * spread + math.sqrt((SETTLED_ERRORS * spread) ** 2 + 4 * mean * SETTLED_NATS)) / (
        2 * mean
    )
    return math.ceil(root**2)


def _examples_needed(
    names: Sequence[str], pointwise: Float[np.ndarray, "symmetries n"], probabilities: Sequence[float]
) -> tuple[int | None, int | None]:
    """The numbers that would settle which kind of symmetry it is, each kind by its best."""
    best = pointwise[best_of_each_kind(names, probabilities)]
    kinds = list(probabilities_of_kinds(names, probabilities).values())
    return examples_needed(best, kinds), examples_needed(best, kinds, errors=GAP_ERRORS)


def _predicted(now: Standings, ours: Sequence[int]) -> int:
    """Labels that some model of a symmetry has predicted."""
    kept = [k for k in ours if k not in now.excluded]
    return max(now.drops[k].labels if k in now.drops else now.labels for k in kept)


def _tried(now: Standings, ours: Sequence[int], best: int) -> BlockScore:
    """The last score on moved inputs of the best model of a symmetry, or of one that was ahead before."""
    return now.tried[best if best in now.tried else next(k for k in ours if k in now.tried)]


def _by_class(
    names: Sequence[str],
    pointwise: Float[np.ndarray, "symmetries n"],
    predicted: Sequence[int],
    y: Shaped[np.ndarray, "n *k"],
    class_names: Sequence[str] | None,
) -> tuple[Gain, ...]:
    if TRIVIAL not in names:
        return ()
    return gains_by_class(names, pointwise, predicted, names.index(TRIVIAL), parts_of(y, class_names))


def _moved(
    contest: Contest, now: Standings, starts: Sequence[int]
) -> tuple[Mapping[str, Float[np.ndarray, " shown"]], int]:
    """How the best network without symmetry predicted moved inputs, and the number of their first label."""
    known = {k: score.moved for k, score in now.tried.items() if score.moved}
    plain = [k for k in known if contest.hypotheses[k].symmetry.name == TRIVIAL]
    if not plain:
        return {}, 0
    # A dropped model has seen less, so the model that predicted the most labels comes first.
    until = {k: now.drops[k].labels if k in now.drops else now.labels for k in plain}
    best = max(plain, key=lambda k: (until[k], now.seen[k].sum()))
    return known[best], max(start for start in starts if start < until[best])


def _refuted_by(
    gains: Sequence[Gain],
    moved: Mapping[str, Float[np.ndarray, " shown"]],
    start: int,
    y: Shaped[np.ndarray, "n *k"],
    class_names: Sequence[str] | None,
) -> dict[str, tuple[str, ...]]:
    """Classes that refute each symmetry; quarters of numbers refute none, as chance decides what is in them."""
    if TRIVIAL not in moved or y.dtype.kind not in "iub":
        return {}
    shown = y[start : start + len(moved[TRIVIAL])]
    return refuting_classes(gains, moved, parts_of(shown, class_names))


def _with_larger(
    refuted: dict[str, tuple[str, ...]], symmetries: Sequence[AnySymmetry]
) -> dict[str, tuple[str, ...]]:
    """Refute every symmetry that contains a refuted one: it does not hold for these classes either."""
    parts = [s for s in symmetries if s.name in refuted]
    larger = {s.name: part.name for part in parts for s in symmetries if s.name not in refuted and part <= s}
    return refuted | {name: refuted[part] for name, part in larger.items()}
