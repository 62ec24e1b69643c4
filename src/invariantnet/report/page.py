"""The page about a run: one HTML file that needs nothing else."""

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources

import jinja2
from markupsafe import Markup
from torch import nn

from invariantnet._system.words import count_words
from invariantnet.estimator import InvariantClassifier
from invariantnet.estimator.persistence import ModelRecord
from invariantnet.inference.kinds import kind_of
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.metrics import CalibrationBin
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.report import charts
from invariantnet.report.class_table import class_table
from invariantnet.report.evaluation import (
    Doubt,
    Evaluation,
    ShownInputs,
    shown_copies,
    shown_symmetry,
)
from invariantnet.report.pictures import brightness, thumbnail
from invariantnet.report.posterior_charts import (
    evidence_chart,
    laplace_chart,
    models_chart,
    posterior_chart,
    race_chart,
    range_charts,
)
from invariantnet.report.tryit import LeftOutError, TryIt, class_names, try_it
from invariantnet.symmetries.catalogue import CATALOGUE, TRIVIAL
from invariantnet.symmetries.families import FAMILIES
from invariantnet.symmetries.plain import both_names, plain_name


@dataclass(frozen=True, eq=False)
class Subject:
    """What a page is about.

    Args:
        title: Short name of the data.
        source: Where the data comes from.
        examples: Number of examples that were learned from.
        model: Record of the fitted classifier.
        classifier: The classifier itself.
        evaluation: How it does on test data.
        inputs: The test inputs to show.
        baseline: The network to compare it with, if there is one.
        settings: Names and values to list at the end.
    """

    title: str
    source: str
    examples: int
    model: ModelRecord
    classifier: InvariantClassifier
    evaluation: Evaluation
    inputs: ShownInputs
    baseline: nn.Module | None
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Copy:
    """One copy of an example: its picture, and what both networks say of it."""

    picture: str
    alt: str
    said: str
    right: bool
    baseline: str
    baseline_right: bool


@dataclass(frozen=True)
class _Doubtful:
    """A doubtful input: its picture, the likeliest classes, the true one, and how large the doubt is."""

    picture: str
    said: str
    truth: str
    doubt: str


def render(subject: Subject) -> str:
    """Make the page.

    Args:
        subject: What it is about.

    Returns:
        HTML.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    files = resources.files("invariantnet.report")
    script = files.joinpath("tryit.js").read_text()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    model, posterior = subject.model, subject.model.posterior
    tryit, why_no_tryit = _try_it(subject)
    return environment.from_string(files.joinpath("page.html.j2").read_text()).render(
        subject=subject,
        model=model,
        posterior=posterior,
        evaluation=subject.evaluation,
        css=Markup(files.joinpath("page.css").read_text()),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        words=both_names,
        count_words=count_words,
        headline=_headline(posterior, model.chosen),
        invariance=_invariance(model),
        posterior_chart=posterior_chart(posterior),
        evidence_chart=evidence_chart(posterior),
        range_charts=range_charts(posterior),
        models_chart=models_chart(posterior),
        by_class=class_table(posterior),
        laplace_chart=laplace_chart(posterior),
        laplace_words=_laplace_words(posterior),
        race_chart=race_chart(posterior),
        calibration_chart=_calibration_chart(subject.evaluation.calibration),
        shown_symmetry=both_names(shown_symmetry(subject.classifier).name),
        examples=_examples(subject),
        doubtful=_doubtful(subject),
        network_names=_network_names(model.chosen),
        explained=_explained(posterior.names),
        classes=class_names(subject.classifier),
        tryit=tryit,
        why_no_tryit=why_no_tryit,
        details=[*subject.settings, ("fingerprint", model.learned.fingerprint), *model.versions.items()],
    )


def _invariance(model: ModelRecord) -> str:
    named = both_names(model.chosen)
    if model.chosen == TRIVIAL:
        return "has no symmetry built in"
    if model.exact:
        return f"is exactly invariant to {named}"
    if model.parameters.method == "paper":
        return f"mixes weight-sharing schemes, most of all {named}, so it is not exactly invariant,"
    if model.deviation is not None:
        changes = f"its probabilities change by {model.deviation} (measured)"
        return f"is nearly invariant to {named}: inside the range, {changes},"
    return f"is averaged over {SAMPLED} sampled elements of {named}, so it is nearly invariant to it,"


def _headline(posterior: SymmetryPosterior, chosen: str) -> str:
    if not posterior.learned:
        return "No network has learned to predict the labels, so they say nothing about symmetries."
    p = posterior.certainty
    named = both_names(posterior.favourite)
    found = f"{named}, with probability {p:.3f}" if p < 0.9995 else named
    if posterior.strength == "inconclusive":
        return f"The data does not decide: {found} is the favourite."
    sentence = (
        f"The data has {found}." if posterior.favourite == TRIVIAL else f"The data is symmetric under {found}."
    )
    if chosen != posterior.favourite:
        sentence += f" Within the tolerance, the network is invariant to {both_names(chosen)}."
    return sentence


def _explained(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """What the symmetries of the catalogue are."""
    parts = dict.fromkeys(part for name in names for part in kind_of(name).split("+") if part != TRIVIAL)
    described = {name: entry.description for name, entry in CATALOGUE.items()}
    described |= {name: f"{family.description}, in {family.counts}" for name, family in FAMILIES.items()}
    return [(part, described[part]) for part in parts if part in described]


def _network_names(chosen: str) -> dict[str, str]:
    named = "without symmetry" if chosen == TRIVIAL else f"with {plain_name(chosen)}"
    return {"chosen": named, "baseline": "the same network without the symmetry"}


def _laplace_words(posterior: SymmetryPosterior) -> str:
    if posterior.second_opinion == posterior.favourite:
        return "It agrees with the posterior."
    other, ours = both_names(posterior.second_opinion or TRIVIAL), both_names(posterior.favourite)
    return (
        f"It disagrees: it favours {other}, where held-out predictions favour {ours}. It judges networks by the "
        "labels they learned from, so rely on it less."
    )


def _calibration_chart(bins: tuple[CalibrationBin, ...]) -> Markup:
    alt = "Calibration: " + ", ".join(f"stated {b.stated:.2f} observed {b.observed:.2f}" for b in bins)
    return charts.reliability([(b.stated, b.observed, b.count) for b in bins], alt)


def _examples(subject: Subject) -> list[list[_Copy]]:
    """For every example its copies, drawn with the same black and white."""
    clf, names = subject.classifier, class_names(subject.classifier)
    group = shown_symmetry(clf)
    inputs = [shown_copies(group, row[None]).numpy() for row in subject.inputs.examples]
    low, high = brightness(*inputs)
    return [
        [
            _Copy(
                picture=thumbnail(x, clf.input_shape_, low, high),
                alt=f"{names[example.label]}, copy {i}",
                said=f"{names[said.label]} {said.probability:.2f}",
                right=said.label == example.label,
                baseline=f"{names[other.label]} {other.probability:.2f}",
                baseline_right=other.label == example.label,
            )
            for i, (x, said, other) in enumerate(zip(copies, example.chosen, example.baseline, strict=True))
        ]
        for copies, example in zip(inputs, subject.evaluation.examples, strict=True)
    ]


def _doubtful(subject: Subject) -> list[_Doubtful]:
    names, inputs = class_names(subject.classifier), subject.inputs.doubtful.numpy()
    low, high = brightness(inputs)
    return [
        _Doubtful(
            picture=thumbnail(x, subject.classifier.input_shape_, low, high),
            said=" or ".join(f"{names[answer.label]} {answer.probability:.2f}" for answer in doubt.answers),
            truth=names[doubt.label],
            doubt=_size_of(doubt),
        )
        for x, doubt in zip(inputs, subject.evaluation.doubtful, strict=True)
    ]


def _size_of(doubt: Doubt) -> str:
    own = "" if doubt.epistemic is None else f", {doubt.epistemic:.2f} of them its own"
    return f"{doubt.entropy:.2f} nats{own}"


def _try_it(subject: Subject) -> tuple[TryIt | None, str | None]:
    """What the page needs to predict by itself, or the reason why it cannot."""
    clf = subject.classifier
    names = [f"{class_names(clf)[example.label]}, test input" for example in subject.evaluation.examples]
    try:
        return try_it(clf, subject.baseline, subject.inputs.examples, names), None
    except LeftOutError as reason:
        return None, str(reason)
