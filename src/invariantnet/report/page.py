"""From a folder that `fit` wrote to its report."""

import base64
import hashlib
import io
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import safetensors
import safetensors.torch
from markupsafe import Markup
from torch import Tensor, nn

from invariantnet._system.files import write_text
from invariantnet._system.words import count_words
from invariantnet.estimator import InvariantClassifier
from invariantnet.estimator.persistence import RUN, folded, posterior_from, read_record
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.nn import mlp
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.report import charts
from invariantnet.report.evaluation import orbit_group
from invariantnet.symmetries.catalogue import CATALOGUE, TRIVIAL
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import symmetry as named_symmetry

REPORT, PLAIN = "report.html", "plain.safetensors"
MANY_CLASSES, MANY_NUMBERS = 60, 5000
FURTHEST_BEHIND = 50.0
MOVES = {"rot90": "rotate", "hflip": "flip ↔", "vflip": "flip ↕", "shifts": "shift"}
"""What can be done to an image, whatever the candidates were."""


def write_report(folder: Path) -> Path:
    """Write `report.html` beside the record it is made from."""
    record = read_record(folder)
    if "evaluation" not in record or "data" not in record:
        raise ValueError(f"{folder} holds a model that was saved from Python: `invariantnet fit` makes reports.")
    clf = InvariantClassifier.load(folder)
    path = folder / REPORT
    try:
        page = _html(record, clf, folder)
    except Exception as error:  # a record of a stranger's can hold anything anywhere
        raise ValueError(f"no page can be made of {folder / RUN} ({error}): fit again.") from None
    write_text(path, page)
    return path


def _html(record: dict[str, Any], clf: InvariantClassifier, folder: Path) -> str:
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    files = resources.files("invariantnet.report")
    script = files.joinpath("tryit.js").read_text()
    posterior = posterior_from(record)
    why_not = _why_no_tryit(clf)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.from_string(files.joinpath("page.html.j2").read_text()).render(
        record=record,
        css=Markup(files.joinpath("page.css").read_text()),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        words=words,
        count_words=count_words,
        invariance=_invariance(record),
        names=posterior.names,
        headline=_headline(posterior, record["chosen"]),
        chosen_words=words(record["chosen"]),
        accuracy=record["data"]["test_accuracy"],
        posterior_chart=_posterior_chart(posterior),
        evidence_chart=_evidence_chart(posterior),
        laplace_chart=_laplace_chart(posterior),
        laplace_words=_laplace_words(posterior),
        race_chart=_race_chart(posterior),
        calibration_chart=_calibration_chart(record["evaluation"]["calibration"]),
        orbit_name=words(orbit_group(clf).name),
        examples=_examples(record["evaluation"]["examples"], clf),
        doubtful=_doubtful(record["evaluation"].get("doubtful", []), clf),
        classes=[str(c) for c in clf.classes_],
        tryit=None if why_not else _tryit(record, clf, folder),
        why_no_tryit=why_not,
        details=_details(record),
    )


def words(name: str) -> str:
    """A hypothesis, as one says it."""
    return "no symmetry" if name == TRIVIAL else name


def _invariance(record: dict[str, Any]) -> str:
    if record["chosen"] == TRIVIAL:
        return "has no symmetry built in"
    if record["exact"]:
        return f"is exactly invariant to {record['chosen']}"
    if record["parameters"]["method"] == "paper":
        return f"mixes weight-sharing schemes, most of all {record['chosen']}, so it is not exactly invariant,"
    return f"is averaged over {SAMPLED} sampled elements of {record['chosen']}, so it is nearly invariant to it,"


def _headline(posterior: SymmetryPosterior, chosen: str) -> str:
    if posterior.learned_nothing:
        return "No network has learned to predict the labels, so they say nothing about symmetries."
    p = max(posterior.probabilities)
    found = f"{words(posterior.favourite)}, with probability {p:.3f}" if p < 0.9995 else words(posterior.favourite)
    if posterior.strength == "inconclusive":
        return f"The data does not decide: {found} is the favourite."
    sentence = (
        f"The data has {found}." if posterior.favourite == TRIVIAL else f"The data is symmetric under {found}."
    )
    if chosen != posterior.favourite:
        sentence += f" Within the tolerance, the network is invariant to {words(chosen)}."
    return sentence


def _posterior_chart(posterior: SymmetryPosterior) -> Markup:
    rows = [
        charts.Bar(words(name), p, f"{p:.3f}", strong=name == posterior.favourite)
        for name, p in zip(posterior.names, posterior.probabilities, strict=True)
    ]
    return charts.bars(rows, "Posterior: " + ", ".join(f"{row.label} {row.text}" for row in rows))


def _evidence_chart(posterior: SymmetryPosterior) -> Markup | None:
    factors = posterior.log_bayes_factors
    if not np.isfinite(factors).all():
        return None
    furthest = max(FURTHEST_BEHIND, 1.1 * -min(factors))
    several = any(spread > 0 for spread in posterior.log_evidence_spread)
    rows = [
        charts.Bar(
            words(name),
            factor,
            f"{'≤ ' if name in posterior.dropped else ''}{factor:.1f}{f' ± {spread:.1f}' if several else ''}",
            spread,
            name == posterior.favourite,
        )
        for name, factor, spread in zip(posterior.names, factors, posterior.log_evidence_spread, strict=True)
    ]
    alt = "Log evidence against the best: " + ", ".join(f"{row.label} {row.text}" for row in rows)
    return charts.bars(rows, alt, low=-furthest, high=0.05 * furthest)


def _laplace_chart(posterior: SymmetryPosterior) -> Markup | None:
    if not posterior.laplace:
        return None
    behind = [value - max(posterior.laplace) for value in posterior.laplace]
    furthest = max(FURTHEST_BEHIND, 1.1 * -min(behind))
    rows = [
        charts.Bar(words(name), value, f"{value:.1f}", strong=name == posterior.second_opinion)
        for name, value in zip(posterior.names, behind, strict=True)
    ]
    alt = "Laplace's log marginal likelihood against the best: " + ", ".join(f"{r.label} {r.text}" for r in rows)
    return charts.bars(rows, alt, low=-furthest, high=0.05 * furthest)


def _laplace_words(posterior: SymmetryPosterior) -> str:
    if posterior.second_opinion == posterior.favourite:
        return "It agrees with the posterior."
    other = words(posterior.second_opinion or TRIVIAL)
    return (
        f"It disagrees: it favours {other}, where held-out predictions favour "
        f"{words(posterior.favourite)}. It judges networks by the labels they learned from, so rely on it less."
    )


def _race_chart(posterior: SymmetryPosterior) -> Markup | None:
    if not posterior.race:
        return None
    paths: dict[str, list[tuple[float, float]]] = {name: [(0.0, 0.0)] for name in posterior.names}
    for i, row in enumerate(posterior.race, 1):
        best = max(row.log_evidence.values())
        for name, value in row.log_evidence.items():
            paths[name].append((float(i), value - best))
    found = [charts.Line(words(name), tuple(points)) for name, points in paths.items()]
    ticks = ["0", *(f"{row.examples:,}" for row in posterior.race)]
    alt = "Log evidence behind the leader after each block: " + "; ".join(
        f"{line.label} {line.points[-1][1]:.0f} after {ticks[len(line.points) - 1]} labels" for line in found
    )
    return charts.lines(found, ticks, alt)


def _calibration_chart(bins: list[dict[str, float]]) -> Markup:
    points = [(b["stated"], b["observed"], int(b["count"])) for b in bins]
    alt = "Calibration: " + ", ".join(f"stated {s:.2f} observed {o:.2f}" for s, o, _ in points)
    return charts.reliability(points, alt)


def _examples(stored: list[dict[str, Any]], clf: InvariantClassifier) -> list[list[dict[str, Any]]]:
    names = [str(c) for c in clf.classes_]
    values = [v for example in stored for copy in example["copies"] for v in copy]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return [
        [
            {
                "picture": _picture(np.array(copy), clf.input_shape_, low, high),
                "alt": f"{names[example['label']]}, copy {i}",
                "said": f"{names[said['class']]} {said['probability']:.2f}",
                "right": said["class"] == example["label"],
                "plain": f"{names[plain['class']]} {plain['probability']:.2f}",
                "plain_right": plain["class"] == example["label"],
            }
            for i, (copy, said, plain) in enumerate(
                zip(example["copies"], example["chosen"], example["plain"], strict=True)
            )
        ]
        for example in stored
    ]


def _doubtful(stored: list[dict[str, Any]], clf: InvariantClassifier) -> list[dict[str, str]]:
    names = [str(c) for c in clf.classes_]
    values = [v for item in stored for v in item["input"]]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    return [
        {
            "picture": _picture(np.array(item["input"]), clf.input_shape_, low, high),
            "truth": names[item["label"]],
            "said": " or ".join(
                f"{names[c]} {p:.2f}" for c, p in zip(item["classes"], item["probabilities"], strict=True)
            ),
            "doubt": f"{item['entropy']:.2f} nats"
            + ("" if item["epistemic"] is None else f", {item['epistemic']:.2f} of them its own"),
        }
        for item in stored
    ]


def _picture(x: np.ndarray, shape: tuple[int, ...], low: float, high: float) -> str:
    """A PNG as a data URI: pixels of images; of anything else, its numbers as columns of light."""
    from PIL import Image

    bright = np.clip((x - low) / max(high - low, 1e-12), 0, 1)
    if len(shape) == 1:
        levels = np.linspace(1, 0, 32)[:, None]
        pixels = np.where(bright[None] >= levels, 220, 20)
    elif len(shape) == 3 and shape[0] == 3:
        pixels = np.moveaxis(bright.reshape(shape) * 255, 0, -1)
    else:
        pixels = bright.reshape(-1, shape[-1])[: shape[-2]] * 255
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _why_no_tryit(clf: InvariantClassifier) -> str | None:
    if clf.n_features_in_ > MANY_NUMBERS or len(clf.classes_) > MANY_CLASSES:
        return "The inputs are too large, or the classes too many, for networks to travel inside a page."
    if not isinstance(folded(clf.network_), nn.Sequential) or _layers(folded(clf.network_)) is None:
        return "This network does not fold into plain layers, so it does not travel inside the page."
    return None


def _tryit(record: dict[str, Any], clf: InvariantClassifier, folder: Path) -> dict[str, Any] | None:
    stored = record["evaluation"]["examples"]
    if not stored:
        return None
    plain = mlp(clf.input_shape_, clf.outputs_, clf.hidden)
    try:
        plain.load_state_dict(safetensors.torch.load((folder / PLAIN).read_bytes()))
    except (OSError, RuntimeError, safetensors.SafetensorError) as error:
        fault = str(error).splitlines()[0]
        raise ValueError(f"{folder / PLAIN} is missing or damaged ({fault}): fit again.") from None
    moves = [{"name": name, "index": index.tolist()} for name, index in _moves(clf)]
    values = [v for example in stored for v in example["copies"][0]]
    return {
        "moves": moves,
        "draws": len(clf.input_shape_) == 2,
        "examples": [{"name": f"{clf.classes_[e['label']]}, test input"} for e in stored],
        "data": {
            "shape": list(clf.input_shape_),
            "classes": [str(c) for c in clf.classes_],
            "low": min(values),
            "high": max(max(values), min(values) + 1e-6),
            "networks": {
                "chosen": {"layers": _layers(folded(clf.network_))},
                "plain": {"layers": _layers(plain)},
            },
            "moves": moves,
            "examples": [{"x": example["copies"][0]} for example in stored],
        },
    }


def _moves(clf: InvariantClassifier) -> list[tuple[str, np.ndarray]]:
    """Buttons: generators of the candidates, and what one does to images."""
    candidates = [g for g in clf.hypotheses_ if g.order > 1 and "+" not in g.name and not g.is_matrix_group]
    found: list[tuple[str, np.ndarray]] = []
    if any(g.name in CATALOGUE and _moves_images(g) for g in candidates):
        for name, words_of_move in MOVES.items():
            try:
                generators = named_symmetry(name, clf.input_shape_).generators
            except ValueError:
                continue
            many = len(generators) > 1
            found += [
                (f"{words_of_move} {'↓→'[i]}" if many else words_of_move, g) for i, g in enumerate(generators[:2])
            ]
    for group in candidates:
        for i, generator in enumerate(group.generators):
            if not any(np.array_equal(generator, index) for _, index in found):
                found.append((group.name if len(group.generators) == 1 else f"{group.name} {i + 1}", generator))
    return found


def _moves_images(group: Group) -> bool:
    return CATALOGUE[group.name].shapes.startswith("(H, ")


def _layers(network: nn.Module) -> list[dict[str, Any]] | None:
    """Plain layers as data, or None if there are others."""
    found: list[dict[str, Any]] = []
    for layer in network.children():
        if isinstance(layer, nn.Linear):
            found.append({"kind": "linear", "weight": _packed(layer.weight), "bias": _packed(layer.bias)})
        elif isinstance(layer, nn.ReLU):
            found.append({"kind": "relu"})
        elif isinstance(layer, nn.MaxPool1d):
            found.append({"kind": "max", "size": layer.kernel_size})
        else:
            return None
    return found


def _packed(values: Tensor) -> str:
    return base64.b64encode(values.detach().cpu().numpy().astype("<f4").tobytes()).decode()


def _details(record: dict[str, Any]) -> list[tuple[str, str]]:
    settings = [
        (
            name.replace("_", " "),
            "default" if value is None else ", ".join(value) if isinstance(value, list) else str(value),
        )
        for name, value in record["settings"].items()
    ]
    versions = [(name, version) for name, version in record["versions"].items()]
    return [*settings, ("fingerprint", record["learned"]["fingerprint_"]), *versions]
