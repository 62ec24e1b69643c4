"""The posterior in words: one sentence, next steps, and a table."""

import numpy as np

from invariantnet._system.words import count_words
from invariantnet.inference.by_class import deciding_classes
from invariantnet.inference.comparison import Comparison
from invariantnet.inference.kinds import kind_of, probabilities_of_kinds
from invariantnet.inference.left_out import left_out_words, why_alone
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.families import MOST_BESIDE
from invariantnet.symmetries.plain import both_names, plain_name

MOST_ADVISED = 20
"""Times the present number of examples beyond which more of them are no advice."""
UNLIKELY = 0.05
"""Probability of all but two kinds of symmetry from which on leaving them out is advised."""
MOST_ROWS, SHOWN = 8, 0.001
"""Symmetries of a table that are all shown; of more, those with this probability, and no symmetry."""
MOST_REFUTING = 2
"""Classes that the verdict names which refute the next best symmetry."""
NATS = "A nat is a factor of 2.7 in probability"
"""The unit of evidence, explained where it stands."""
ALLOWING = "Probabilities allow for the luck of these examples and networks, so they differ by less."
"""Why probabilities are closer to each other than evidence is."""

PRIOR = "No symmetry leads although another has more evidence: beforehand it has ½, unless you pass a prior."
"""Why the favourite may have less evidence than another."""


def found(posterior: Comparison) -> str:
    """Name the most probable kind of symmetry, and say how far its ranges reach."""
    kind = kind_of(posterior.favourite)
    return f"{both_names(kind)}{_reach(posterior, kind)}"


def sentence(posterior: Comparison) -> str:
    """Say in one sentence what the posterior is."""
    strength, favourite = posterior.strength, posterior.favourite
    if not posterior.learned:
        return (
            f"{strength}: after {posterior.examples:,} predictions, no network predicts the labels better "
            "than a guess that ignores the inputs, so they say nothing about symmetries"
        )
    if len(posterior.names) == 1:
        return f"{strength}: {both_names(favourite)} was the only candidate{why_alone(posterior.left_out)}"
    (name, p), *others = _kinds(posterior)
    said = f"{strength}: {found(posterior)}, with probability {p:.3f} after {posterior.examples:,} predictions"
    if any(posterior.ranges[family].costs_beyond for family in _families(posterior, name)):
        said += "; larger ones cost accuracy"
    if favourite in posterior.refuted_by:
        whole = both_names(posterior.accepted)
        said += f"; it does not hold for {_losing(posterior)}; what holds for all: {whole}"
    if others:
        rival, p = others[0]
        said += f"; next {both_names(rival)} with {p:.3f}{_refuting(posterior, rival, name)}"
    if posterior.established:
        p = posterior.at_least[posterior.names.index(posterior.established)]
        said += f"; at least {both_names(posterior.established)} with {p:.3f}"
    if strength == "inconclusive":
        said += f"; {_remedy(posterior)}"
    if other := posterior.second_opinion:
        said += f"; Laplace's approximation {'agrees' if other == name else f'favours {both_names(other)}'}"
    return said


def next_steps(posterior: Comparison) -> tuple[str, ...]:
    """List what to do about an open verdict, the most useful first; nothing if there is nothing to do."""
    if not posterior.learned:
        return (
            f"pass more examples: {posterior.examples:,} predictions were not enough to learn from",
            "check that every label belongs to its input: a shuffled column looks just like this",
            "say what an input is, if images or sequences are stored as plain columns: input_shape=(28, 28) "
            "or --shape 28,28 lets convolutions compete",
            "pass a network of your own that suits such data, with backbone= or --backbone",
        )
    if posterior.favourite in posterior.refuted_by and len(posterior.names) > 1:
        return _steps_if_partial(posterior)
    if posterior.strength != "inconclusive":
        return ()
    if not posterior.has_evidence:
        return (
            "let networks of every symmetry predict, which tells more: method='evidence', or --method evidence",
            _meanwhile(posterior),
        )
    favourite, established = posterior.favourite, posterior.established
    steps = [_first_step(posterior)]
    if sum(p for _, p in _kinds(posterior)[2:]) >= UNLIKELY:
        asked = _worth_asking(posterior)
        if {kind for kind, _ in _kinds(posterior) if "+" not in kind} - {TRIVIAL, *asked}:
            steps.append(
                f"compare only what you think possible: symmetries={asked}, or --symmetries {','.join(asked)}"
            )
    if established not in (None, favourite):
        steps.append(
            f"to build in {plain_name(established)} only, which is sure: "
            f"symmetries=['{established}'], or --symmetries {established}"
        )
    if not posterior.tolerance:
        steps.append(
            "if inputs will come moved after training, pass tolerance=0.02, or --tolerance 0.02: this builds in "
            "the largest symmetry that lowers the probability of right answers by at most about 2 %"
        )
    return (*steps, _meanwhile(posterior))


def _meanwhile(posterior: Comparison) -> str:
    """Say what the network is invariant to while the verdict is open."""
    built_in = posterior.built_in
    if built_in == TRIVIAL:
        return "meanwhile the network has no symmetry built in, which is safe"
    which = "the largest symmetry within the tolerance" if posterior.tolerance else "the favourite"
    return f"meanwhile the network is invariant to {which}, {plain_name(built_in)}"


def _steps_if_partial(posterior: Comparison) -> tuple[str, ...]:
    named, refuting = plain_name(posterior.favourite), " and ".join(posterior.refuted_by[posterior.favourite])
    return (
        f"look at moved inputs of {refuting}: if people would give them the same label, pass some of "
        "them as examples",
        f"to build in {named} all the same, which predict better on the whole, pass tolerance=0.02, or "
        "--tolerance 0.02",
        f"meanwhile the network has {plain_name(posterior.accepted)}, and tells such copies apart",
    )


def left_out(posterior: Comparison) -> str:
    """Say what `auto` left out, and how to ask for a range; nothing if it left out nothing."""
    if len(posterior.names) == 1 or not posterior.left_out:
        return ""  # the verdict says why
    group = posterior.accepted
    beside = group != TRIVIAL and posterior.orders[posterior.names.index(group)] <= MOST_BESIDE
    return left_out_words(posterior.left_out, posterior.favourite, group if beside else None)


def table(posterior: Comparison) -> str:
    """Show a small table, what its columns mean, the verdict, and the next steps."""
    width = max(len("symmetry"), *map(len, posterior.names))
    lines = [f"{'symmetry':{width}}  elements  probability  log evidence  in words"]
    rows = list(
        zip(posterior.names, posterior.orders, posterior.probabilities, posterior.log_evidence, strict=True)
    )
    shown_rows = [row for row in rows if len(rows) <= MOST_ROWS or row[0] == TRIVIAL or round(row[2], 3) >= SHOWN]
    for name, order, p, evidence in shown_rows:
        bound = "≤ " if name in posterior.dropped else ""
        shown = "–" if np.isnan(evidence) else f"{bound}{evidence:.1f}"
        lines.append(f"{name:{width}}  {count_words(order):>8}  {p:11.3f}  {shown:>12}  {plain_name(name)}")
    if hidden := len(rows) - len(shown_rows):
        lines.append(f"and {hidden} more, with probabilities below {SHOWN}.")
    if posterior.has_evidence:
        lines.append("elements: ways in which a symmetry moves an input; leaving it as it is counts as one.")
        lines.append(f"log evidence: of {posterior.examples:,} labels, in nats. {NATS}.")
        lines.append(ALLOWING)
        if posterior.favourite == TRIVIAL and posterior.log_bayes_factors[posterior.names.index(TRIVIAL)] < 0:
            lines.append(PRIOR)
    if any(row[0] in posterior.dropped for row in shown_rows):
        lines.append("≤: given up early, because it was too far behind; at most this.")
    lines.append(sentence(posterior))
    if said := left_out(posterior):
        lines.append(said)
    steps = [f"- {step}" for step in next_steps(posterior)]
    return "\n".join([*lines, *(["next steps:", *steps] if steps else [])])


def _kinds(posterior: Comparison) -> list[tuple[str, float]]:
    """Kinds of symmetry with their probabilities, the most probable first."""
    kinds = probabilities_of_kinds(posterior.names, posterior.probabilities)
    return sorted(kinds.items(), key=lambda each: -each[1])


def _worth_asking(posterior: Comparison) -> list[str]:
    """Two kinds of symmetry that the data most probably has, alone or within larger ones."""
    sure = posterior.at_least or posterior.probabilities
    ordered = sorted(zip(sure, posterior.names, strict=True), key=lambda each: -each[0])
    kinds = dict.fromkeys(kind_of(name) for _, name in ordered if name != TRIVIAL)
    return list(kinds)[:2]


def _families(posterior: Comparison, kind: str) -> list[str]:
    """Families of ranges that a kind of symmetry has."""
    return [part for part in kind.split("+") if part in posterior.ranges]


def _reach(posterior: Comparison, kind: str) -> str:
    """How far the ranges of a kind of symmetry reach, in words."""
    families = _families(posterior, kind)
    one = len(families) == 1
    said = (posterior.ranges[f].words if one else f"{f} {posterior.ranges[f].words}" for f in families)
    return "".join(f", {words}" for words in said)


def _losing(posterior: Comparison) -> str:
    """Classes that refute the favourite, with what they lose by it."""
    gains = {g.part: g for g in posterior.by_class if g.symmetry == posterior.favourite}
    parts = posterior.refuted_by[posterior.favourite]
    return " and ".join(f"{part} ({gains[part].nats_per_example:+.2f} nats per example)" for part in parts)


def _refuting(posterior: Comparison, rival: str, favourite: str) -> str:
    """Name the classes that refute the next best symmetry, or the few that lose most by it."""
    ordered = sorted(zip(posterior.probabilities, posterior.names, strict=True), key=lambda each: -each[0])
    best = next(name for _, name in ordered if kind_of(name) == rival)
    refuting = posterior.refuted_by.get(best, ())
    if 0 < len(refuting) < sum(gain.symmetry == best for gain in posterior.by_class):
        most = " most" if len(refuting) > MOST_REFUTING else ""
        return f", refuted{most} by {' and '.join(refuting[:MOST_REFUTING])}"
    named = deciding_classes(posterior.by_class, best) if favourite == TRIVIAL else []
    return (
        f", with which {' and '.join(named)} {'is' if len(named) == 1 else 'are'} predicted worse" if named else ""
    )


def _more(posterior: Comparison, needed: int | None) -> str:
    """How many more examples to pass, rounded; empty if that is too many to advise."""
    if needed is None or needed > MOST_ADVISED * posterior.examples:
        return ""
    more = max(needed - posterior.examples, posterior.examples // 4, 1)
    digits = 10 ** (len(str(more)) - 1)
    return f"{-(-more // digits) * digits:,}"


def _remedy(posterior: Comparison) -> str:
    """Say what would settle an open verdict."""
    if not posterior.has_evidence:
        return "π that one network learns tells little"
    if more := _more(posterior, posterior.examples_needed):
        return f"about {more} more examples would probably settle it"
    if more := _more(posterior, posterior.examples_at_best):
        return f"it is too early to say how many more examples would settle it: at least {more}"
    return "more examples would hardly settle it: both predict almost equally well"


def _first_step(posterior: Comparison) -> str:
    if more := _more(posterior, posterior.examples_needed):
        return f"label about {more} more examples, and fit again"
    if more := _more(posterior, posterior.examples_at_best):
        return f"label at least {more} more examples, and fit again"
    return "use either: both predict almost equally well, so for data like this it makes little difference"
