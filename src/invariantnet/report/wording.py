"""What a page says first: the verdict, what it means, and what to do with it, without group theory."""

import re

from markupsafe import Markup, escape

from invariantnet._system.words import round_words
from invariantnet.estimator.persistence import ModelRecord
from invariantnet.inference.comparison import DECISIVE, NOT_COMPARED, PARTIAL, STRONG
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.report.evaluation import Evaluation
from invariantnet.report.network_words import one_network
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.plain import both_names, plain_name

OPTION = re.compile(r"--[a-z][a-z-]*")
"""An option of a command."""

COMMAND = re.compile(r"`([^`]+)`")
"""Something to type."""

CERTAIN = 0.9995
"""Probability from which on a headline leaves it out, because it would read 1.000."""


def headline(posterior: SymmetryPosterior, chosen: str) -> str:
    """Say the verdict in one short sentence.

    Args:
        posterior: What was found.
        chosen: Name of the symmetry of the final network.

    Returns:
        The sentence.
    """
    if not posterior.learned:
        return "No network has learned to predict the labels, so they say nothing about symmetries."
    if posterior.strength == NOT_COMPARED:
        return "No symmetry was compared, so the network has none."
    p = posterior.certainty
    found = f"{posterior.found}, with probability {p:.3f}" if p < CERTAIN else posterior.found
    if posterior.strength == "inconclusive":
        if posterior.established:
            more = "" if posterior.established == posterior.favourite else f": {found}, is the favourite"
            sure = f"The data is symmetric under at least {both_names(posterior.established)}."
            return f"{sure} What else holds is open{more}."
        return f"The data does not decide: {found}, is the favourite."
    if posterior.strength == PARTIAL:
        refuting = " and ".join(posterior.refuted_by[posterior.favourite])
        sentence = f"Only some classes are symmetric under {found}: it does not hold for {refuting}."
        return f"{sentence} The network has {both_names(chosen)}."
    sentence = (
        f"The data has {found}." if posterior.favourite == TRIVIAL else f"The data is symmetric under {found}."
    )
    if chosen != posterior.favourite:
        sentence += f" Within the tolerance, the network is invariant to {both_names(chosen)}."
    return sentence


def meaning(posterior: SymmetryPosterior) -> str:
    """Say what the verdict means for the labels."""
    if not posterior.learned:
        return "No network predicts better than a guess that ignores the inputs."
    if posterior.strength == "inconclusive":
        return "Several symmetries predict the labels almost equally well."
    if posterior.strength == NOT_COMPARED:
        why = posterior.verdict.removeprefix(f"{NOT_COMPARED}: ")
        return f"{why[:1].upper()}{why[1:]}."
    name = plain_name(posterior.favourite)
    if posterior.strength == PARTIAL:
        return f"Labels of most classes stay the same under {name}, but others would become another class."
    if posterior.favourite == TRIVIAL:
        return "Moving an input in any of the ways that were compared may change its label."
    return f"Labels stay the same under {name}: an input and its copies moved in this way have the same label."


def next_steps(posterior: SymmetryPosterior, chosen: str) -> tuple[str, ...]:
    """List what a colleague should do now.

    Args:
        posterior: What was found.
        chosen: Name of the symmetry of the final network.

    Returns:
        One sentence per step, the most useful first.
    """
    if posterior.next_steps:
        return tuple(f"{step[:1].upper()}{step[1:]}." for step in posterior.next_steps)
    use = (
        "Predict new inputs with `invariantnet predict RUN DATA`, where RUN is the folder of this page, or take "
        "the network elsewhere with `invariantnet export RUN model.onnx`."
    )
    if posterior.strength == NOT_COMPARED:
        return use, "A symmetry may still be there: name the ones you suspect, with --symmetries."
    if chosen == TRIVIAL:
        return (
            use,
            "Do not add copies moved in these ways to your training data: they would cost accuracy.",
            "A symmetry that was not compared may still be there: name it as a candidate.",
        )
    return (
        use,
        f"You need not add copies of your data made by {plain_name(chosen)}: the network treats them alike.",
        "Keep new inputs like these: the verdict is about the data that was given.",
    )


def strengths(posterior: SymmetryPosterior) -> str:
    """Say what the first word of a verdict means; empty if the word says so itself, and with a space if not."""
    if posterior.strength not in ("decisive", "strong", "inconclusive"):
        return ""
    return (
        f"Decisive means a probability of at least {DECISIVE:.2f}, strong of at least {STRONG:.2f}, and less is "
        "inconclusive. "
    )


def invariance(model: ModelRecord) -> str:
    """Say how invariant the final network is; the subject of the sentence is the network."""
    named = plain_name(model.chosen)
    if model.chosen == TRIVIAL and model.parameters.method != "paper":
        return "has no symmetry built in"
    if model.exact:
        return f"is exactly invariant to {named}"
    if model.parameters.method == "paper":
        return f"mixes weight-sharing schemes, most of all {named}, so it is not exactly invariant,"
    if model.deviation is not None:
        changes = f"its predictions change by {model.deviation} (measured)"
        numbers = model.learned.y_mean is not None
        nearly = "nearly" if numbers or model.deviation.is_small else "only roughly"
        return f"is {nearly} invariant to {named}: inside the range, {changes},"
    return f"is averaged over {SAMPLED} sampled elements of {named}, so it is nearly invariant to it,"


def quality(evaluation: Evaluation, *, classes: bool) -> str:
    """Say how good the final network is on the test data."""
    share, count = 100 * evaluation.accuracy.chosen[TRIVIAL], f"{evaluation.test_examples:,} test examples"
    if classes:
        return f"and is right on {share:.1f} % of {count}."
    error = round_words(evaluation.scores["mean_absolute_error"])
    return f"and explains {share:.1f} % of the variance of {count}, with a mean absolute error of {error}."


def network_names(chosen: str, other: str | None = None) -> dict[str, str]:
    """Headings of the networks that a visitor can try.

    Args:
        chosen: Name of the symmetry of the final network.
        other: Kind of network that the baseline is, if it is another one.

    Returns:
        The heading of each network, by its key.
    """
    named = "without symmetry" if chosen == TRIVIAL else f"with {plain_name(chosen)}"
    same = "the same network" if other is None else one_network(other)
    return {"chosen": named, "baseline": f"{same} without the symmetry"}


def baseline(backbone: str, other: str | None) -> str:
    """Say what the final network is compared with.

    Args:
        backbone: Kind of network that the final one is.
        other: Kind of network that the baseline is, if it is another one.

    Returns:
        The words.
    """
    if other is None:
        return (
            f"Beside it is the baseline: the same kind of network, {one_network(backbone)}, without the "
            "symmetry, trained in the same way on the same examples."
        )
    return (
        f"Beside it is the baseline: {one_network(other)} without the symmetry, trained on the same examples. "
        f"It is of another kind, because {one_network(backbone)} always has the symmetry."
    )


def typed(sentence: str) -> Markup:
    """Mark what is to be typed, and keep options in one piece, which browsers break after their hyphens."""
    marked = COMMAND.sub(r"<code>\1</code>", str(escape(sentence)))
    return Markup(OPTION.sub(r'<span class="option">\g<0></span>', marked))


def second_opinion(posterior: SymmetryPosterior) -> str:
    """Say whether Laplace's approximation agrees."""
    if posterior.second_opinion == posterior.favourite:
        return "It agrees with the posterior."
    other, ours = both_names(posterior.second_opinion or TRIVIAL), both_names(posterior.favourite)
    return (
        f"It disagrees: it favours {other}, where held-out predictions favour {ours}. It judges networks by the "
        "labels they learned from, so rely on it less."
    )
