"""From settings to the examples of a run: what is learned from, what is kept for testing, and a digest of both."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from invariantnet import data as datasets
from invariantnet._system.progress import say
from invariantnet._system.words import package_version
from invariantnet.app.backbones import resolve_backbone
from invariantnet.app.record import Settings
from invariantnet.choices import Color
from invariantnet.data import Dataset
from invariantnet.data.fingerprint import Digests, fingerprint
from invariantnet.data.tables import row_numbers
from invariantnet.estimator import InvariantClassifier, InvariantRegressor
from invariantnet.estimator.stored import Backbone
from invariantnet.inference.models import models_for
from invariantnet.nn import Pretrained

FEWEST_REPEATS = 5
"""Examples per class below which classes that are whole numbers are probably numbers."""
SEEDS = 2**32
"""Number of seeds that numpy's generators take."""


@dataclass(frozen=True)
class Reading:
    """How files are read, where that was said; the arguments of `datasets.load`."""

    shape: tuple[int, ...] | None = None
    size: tuple[int, int] | None = None
    color: Color = "auto"
    label: str | None = None
    without: tuple[str, ...] = ()


AS_IT_IS = Reading()
"""Files are read as they are."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """The examples of a run.

    Args:
        data: Examples to learn from, and examples to test on.
        label: Name of the label column of a table, where it was named.
        row_numbers: Columns of a table that only count its rows.
        known: Digests of the examples to learn from.
        digest: Identifies the run by its data, its settings and the version of this package.
        backbone: Name of the backbone, or the user's own.
    """

    data: Dataset
    label: str | None
    row_numbers: tuple[str, ...]
    known: Digests
    digest: str
    backbone: str | Backbone

    @property
    def own_backbone(self) -> Backbone | None:
        """The user's own backbone; None for one of the package."""
        return None if isinstance(self.backbone, str) else self.backbone


def prepare(settings: Settings, reading: Reading = AS_IT_IS) -> Prepared:
    """Read the data of a run, and choose the examples to learn from and to test on.

    Args:
        settings: What the run is asked to do.
        reading: How files are read.

    Returns:
        The examples, with their digests: each example is hashed once.

    Raises:
        ValueError: If the settings or the data cannot be used.
    """
    check_settings(settings)
    backbone = resolve_backbone(settings.backbone)
    found = datasets.load(settings.data, seed=settings.seed, task=settings.task, **vars(reading))
    data = with_test_set(found, settings)
    keep = np.random.default_rng(settings.seed).permutation(len(data.x_train))[: settings.examples]
    data = replace(data, x_train=data.x_train[keep], y_train=data.y_train[keep])
    known, test = Digests.of(data.x_train, data.y_train), fingerprint(data.x_test, data.y_test)
    about = [package_version(), deciding(settings), _trainings(backbone, data), known.whole, test]
    text = json.dumps([*about, data.shape, data.class_names], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Prepared(data, reading.label, row_numbers(found), known, digest, backbone)


def say_if_classes_may_be_numbers(data: Dataset, settings: Settings, *, visible: bool) -> None:
    """Say so if labels that are whole numbers, and hardly ever repeat, are taken for classes.

    Args:
        data: Examples to learn from.
        settings: Whether the user said what labels are.
        visible: Whether to say anything.
    """
    classes, examples = len(data.class_names), len(data.x_train)
    if settings.task == "auto" and classes * FEWEST_REPEATS > examples and all(map(_is_whole, data.class_names)):
        words = f"{classes} different whole numbers among {examples:,} labels are taken for classes"
        say(f"{words}: if they are numbers to predict, pass --task numbers.", visible=visible)


def _is_whole(name: str) -> bool:
    try:
        return float(name).is_integer()
    except ValueError:
        return False


def say_row_numbers(columns: Sequence[str], *, visible: bool) -> None:
    """Say which columns only count rows.

    Args:
        columns: Their names.
        visible: Whether to say anything.
    """
    if columns:
        words = f"{' and '.join(columns)} only counts the rows, and is an input all the same"
        say(f"{words}: leave it out with --without {','.join(columns)}.", visible=visible)


def check_settings(settings: Settings) -> None:
    """Raise a ValueError for the first setting that cannot be."""
    if settings.examples is not None and settings.examples < 2:
        raise ValueError(f"{settings.examples} examples are too few to learn from: ask for more.")
    if not 0 <= settings.test_share < 1:
        raise ValueError(f"a test share of {settings.test_share} is no share: pass a number from 0 to below 1.")
    if not 0 <= settings.seed < SEEDS:
        raise ValueError(f"{settings.seed} is no seed: pass a whole number from 0 to {SEEDS - 1}.")


def make_estimator(
    settings: Settings, data: Dataset, *, backbone: str | Backbone, verbose: int = 0
) -> InvariantClassifier | InvariantRegressor:
    """Make the estimator of a run, not fitted.

    Args:
        settings: What the run is asked to do.
        data: Says whether classes or numbers are predicted, and which shape inputs have.
        backbone: Name of the backbone, or the user's own.
        verbose: 1 shows progress.

    Returns:
        The estimator, a classifier or a regressor.
    """
    if data.has_numbers and settings.method == "paper":
        raise ValueError("method 'paper' is for classes: use 'evidence' or 'heldout', or --task classes.")
    kind = InvariantRegressor if data.has_numbers else InvariantClassifier
    return kind(
        settings.symmetries,
        data.shape,
        settings.method,
        backbone=backbone,
        hidden=settings.hidden,
        placement=settings.placement,
        pool=settings.pool,
        joins=settings.joins,
        n_networks=settings.n_networks,
        epochs=settings.epochs,
        tolerance=settings.tolerance,
        uncertainty=settings.uncertainty,
        second_opinion=settings.second_opinion,
        n_jobs=settings.n_jobs,
        device=settings.device,
        precision=settings.precision,
        random_state=settings.seed,
        verbose=verbose,
    )


def with_test_set(data: Dataset, settings: Settings) -> Dataset:
    """Keep a share of the examples for testing, where the data has no test set of its own.

    Args:
        data: The data as it was read.
        settings: Say how large the share is.

    Returns:
        The data with a test set; at least one example of every class is left to learn from.

    Raises:
        ValueError: If too few examples are left.
    """
    share = round(settings.test_share * len(data.x_train))
    if len(data.x_test) or not share:
        return data
    if len(data.x_train) - share < 2:
        raise ValueError(
            f"a test share of {settings.test_share} leaves too few of {len(data.x_train)} examples to learn from: "
            "lower it, or pass more data."
        )
    order = np.random.default_rng(settings.seed).permutation(len(data.x_train))
    # Of every class, one example stays to learn from.
    _, last = np.unique(_classes_of(data)[order][::-1], return_index=True)
    kept = np.isin(np.arange(len(order)), len(order) - 1 - last)
    order = np.concatenate([order[~kept], order[kept]]) if kept[:share].any() else order
    share = min(share, len(order) - int(kept.sum()))
    test, train = order[:share], order[share:]
    return replace(
        data,
        x_train=data.x_train[train],
        y_train=data.y_train[train],
        x_test=data.x_train[test],
        y_test=data.y_train[test],
        provenance=f"{data.provenance}, {share} of its {len(order)} examples kept for testing",
    )


def deciding(settings: Settings) -> dict[str, Any]:
    """List the settings that decide results: neither the number of processes nor the name of a file does.

    Args:
        settings: What the run is asked to do.

    Returns:
        Their values by name.
    """
    return {name: value for name, value in asdict(settings).items() if name not in ("n_jobs", "device", "data")}


def _trainings(backbone: str | Backbone, data: Dataset) -> list[str]:
    """How every model that may be compared is trained, and which body: runs of other settings are not mixed."""
    body = [backbone.digest(data.shape)] if isinstance(backbone, Pretrained) else []
    return [*body, *(repr(model) for model in models_for(backbone, data.shape))]


def _classes_of(data: Dataset) -> np.ndarray:
    return np.zeros(len(data.y_train), int) if data.has_numbers else data.y_train
