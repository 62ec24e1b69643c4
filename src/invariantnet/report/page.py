"""The page about a run: one HTML file that needs nothing else."""

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources

import jinja2
from markupsafe import Markup
from torch import nn

from invariantnet._system.words import count_words
from invariantnet.estimator.persistence import ModelRecord
from invariantnet.inference.kinds import kind_of
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.metrics import CalibrationBin
from invariantnet.report import charts, wording
from invariantnet.report.answers import Answer, Estimator, class_names
from invariantnet.report.baseline import other_kind
from invariantnet.report.class_table import class_table
from invariantnet.report.evaluation import (
    Doubt,
    Evaluation,
    ShownInputs,
    shown_copies,
    shown_symmetry,
)
from invariantnet.report.network_words import network_words, one_network
from invariantnet.report.pictures import Frame
from invariantnet.report.posterior_charts import (
    evidence_chart,
    laplace_chart,
    models_chart,
    posterior_chart,
    race_chart,
    range_charts,
)
from invariantnet.report.program import LeftOutError
from invariantnet.report.tryit import TryIt, try_it
from invariantnet.symmetries.catalogue import CATALOGUE, TRIVIAL
from invariantnet.symmetries.families import FAMILIES
from invariantnet.symmetries.plain import both_names, plain_name

FILTERS = {"plain": plain_name, "both": both_names, "typed": wording.typed, "percent": charts.percent}
"""What the template turns names and numbers into words with."""


@dataclass(frozen=True, eq=False)
class Subject:
    """What a page is about.

    Args:
        title: Short name of the data.
        source: Where the data comes from.
        examples: Number of examples that were learned from.
        model: Record of the fitted estimator.
        estimator: The estimator itself.
        evaluation: How it does on test data.
        inputs: The test inputs to show.
        baseline: The network to compare it with, if there is one.
        settings: Names and values to list at the end.
    """

    title: str
    source: str
    examples: int
    model: ModelRecord
    estimator: Estimator
    evaluation: Evaluation
    inputs: ShownInputs
    baseline: nn.Module | None
    settings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Copy:
    """One copy of an example: its picture, and what both networks say of it."""

    picture: str
    alt: str
    said: Answer
    baseline: Answer


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
    classes = class_names(subject.estimator)
    backbone, other = _backbone(subject), other_kind(subject.estimator) if subject.baseline else None
    environment.filters |= FILTERS
    return environment.from_string(files.joinpath("page.html.j2").read_text()).render(
        subject=subject,
        model=model,
        posterior=posterior,
        evaluation=subject.evaluation,
        css=Markup(files.joinpath("page.css").read_text()),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        words=both_names,
        plain=plain_name,
        count_words=count_words,
        one_network=one_network,
        network_words=network_words,
        headline=wording.headline(posterior, model.chosen),
        meaning=wording.meaning(posterior),
        steps=wording.next_steps(posterior, model.chosen),
        parts=_parts(subject, tried=tryit is not None or why_no_tryit is not None),
        strengths=wording.strengths(posterior),
        invariance=wording.invariance(model),
        quality=wording.quality(subject.evaluation, classes=bool(classes)),
        backbone=backbone,
        baseline=wording.baseline(backbone, other),
        compared=_has_rivals(posterior),
        posterior_chart=posterior_chart(posterior),
        evidence_chart=evidence_chart(posterior),
        range_charts=range_charts(posterior),
        models_chart=models_chart(posterior),
        by_class=class_table(posterior),
        laplace_chart=laplace_chart(posterior),
        laplace_words=wording.second_opinion(posterior),
        race_chart=race_chart(posterior),
        calibration_chart=_calibration_chart(subject.evaluation.calibration),
        shown_symmetry=both_names(shown_symmetry(subject.estimator).name),
        examples=_examples(subject),
        doubtful=_doubtful(subject),
        network_names=wording.network_names(model.chosen, other),
        explained=_explained(posterior.names),
        classes=classes,
        tryit=tryit,
        why_no_tryit=why_no_tryit,
        details=[*subject.settings, ("fingerprint", model.learned.fingerprint), *model.versions.items()],
    )


def _has_rivals(posterior: SymmetryPosterior) -> bool:
    """Whether symmetries were compared: else a page has no race, no prices, and no copies to show."""
    return len(posterior.names) > 1


def _parts(subject: Subject, *, tried: bool) -> list[tuple[str, str]]:
    """Identifiers and names of the parts that the page has, for its navigation."""
    evaluation, posterior = subject.evaluation, subject.model.posterior
    there = {
        "symmetry": ("Which symmetry", True),
        "try": ("Try it", tried),
        "test": ("On test data", evaluation.test_examples > 0),
        "copies": ("Copies", evaluation.test_examples > 0 and _has_rivals(posterior)),
        "confusion": ("Confusion", bool(evaluation.confusion)),
        "calibration": ("Calibration", evaluation.test_examples > 0),
        "models": ("Networks", len(posterior.models) > 1),
        "by-class": (
            "By class" if class_names(subject.estimator) else "By size",
            class_table(posterior) is not None,
        ),
        "race": ("The race", bool(posterior.race) and _has_rivals(posterior)),
        "prices": ("Prices", bool(posterior.prices) and _has_rivals(posterior)),
        "settings": ("Settings", True),
    }
    return [(part, name) for part, (name, shown) in there.items() if shown]


def _backbone(subject: Subject) -> str:
    """Name of the kind of network that the final one is."""
    posterior = subject.model.posterior
    best = dict(zip(posterior.names, posterior.best_models, strict=False))
    return best.get(subject.model.chosen, str(subject.model.parameters.backbone))


def _explained(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """What the symmetries of the catalogue are."""
    parts = dict.fromkeys(part for name in names for part in kind_of(name).split("+") if part != TRIVIAL)
    described = {name: entry.description for name, entry in CATALOGUE.items()}
    described |= {name: f"{family.description}, in {family.counts}" for name, family in FAMILIES.items()}
    return [(part, described[part]) for part in parts if part in described]


def _calibration_chart(bins: tuple[CalibrationBin, ...]) -> Markup:
    alt = "Calibration: " + ", ".join(f"stated {b.stated:.2f} observed {b.observed:.2f}" for b in bins)
    return charts.reliability([(b.stated, b.observed, b.count) for b in bins], alt)


def _examples(subject: Subject) -> list[list[_Copy]]:
    """For every example its copies, drawn with the same black and white."""
    symmetry = shown_symmetry(subject.estimator)
    inputs = [shown_copies(symmetry, row[None]).numpy() for row in subject.inputs.examples]
    frame = Frame.of(subject.estimator, *inputs)
    return [
        [
            _Copy(
                picture=frame.picture(x),
                alt=f"{example.truth}, {'as it is' if i == 0 else f'copy {i}'}",
                said=said,
                baseline=other,
            )
            for i, (x, said, other) in enumerate(zip(copies, example.chosen, example.baseline, strict=True))
        ]
        for copies, example in zip(inputs, subject.evaluation.examples, strict=True)
    ]


def _doubtful(subject: Subject) -> list[_Doubtful]:
    inputs = subject.inputs.doubtful.numpy()
    frame = Frame.of(subject.estimator, inputs)
    numbers = not class_names(subject.estimator)
    return [
        _Doubtful(
            picture=frame.picture(x),
            said=doubt.said,
            truth=doubt.truth,
            doubt="" if numbers else _size_of(doubt),
        )
        for x, doubt in zip(inputs, subject.evaluation.doubtful, strict=True)
    ]


def _size_of(doubt: Doubt) -> str:
    own = "" if doubt.epistemic is None else f", {doubt.epistemic:.2f} of them its own"
    return f"{doubt.size:.2f} nats{own}"


def _try_it(subject: Subject) -> tuple[TryIt | None, str | None]:
    """What the page needs to predict by itself, or the reason why it cannot."""
    names = [f"{example.truth}, test input" for example in subject.evaluation.examples]
    try:
        found = try_it(subject.estimator, subject.baseline, subject.inputs.examples, names)
    except LeftOutError as reason:
        return None, str(reason)
    return (found if found and (found.moves or found.sliders or found.draws) else None), None
