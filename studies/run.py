"""Running recipes: each finished one is stored at once, so an interrupted sweep goes on where it stopped."""

import functools
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import joblib
import numpy as np
import torch
from torch import nn

from invariantnet.symmetries import lookup as catalogue
from invariantnet import data as datasets
from invariantnet.data import Dataset
from studies.recipes import Recipe
from invariantnet.nn import cnn, invariant_net, mlp
from invariantnet.priors import Dirichlet, as_prior
from invariantnet._system.progress import progress_bar
from invariantnet._system.files import clear_parts, writable_folder, write_json
from invariantnet.training.config import Training
from invariantnet.training.loop import log_probabilities, train
from invariantnet._system.torch_state import threads
from invariantnet._system.processes import watched

FORMAT = 1
Record = dict[str, Any]


@runtime_checkable
class Runnable(Protocol):
    """A recipe of any kind: a frozen dataclass with a name for its file."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def key(self) -> str:
        """File name without its ending."""


def sweep(
    recipes: Sequence[Runnable], folder: Path, run: Callable[[Any], Record], *, jobs: int = 2
) -> list[Record]:
    """Run what is not stored yet, and return the records in the order of the recipes."""
    runs = writable_folder(folder / "runs")
    clear_parts(runs)
    unique = list({r.key: r for r in recipes}.values())
    missing = [r for r in unique if load_record(runs, r) is None]
    if missing:
        parallel = joblib.Parallel(n_jobs=min(jobs, len(missing)), return_as="generator_unordered", batch_size=1)
        finished = parallel(joblib.delayed(watched(run_timed))(r, run) for r in missing)
        with progress_bar() as bar:
            task = bar.add_task(f"{len(missing)} networks", total=len(missing))
            for name, record in finished:
                write_json(runs / f"{name}.json", record)
                bar.update(task, advance=1, description=name)
    records = {r.key: load_record(runs, r) for r in unique}
    return [record for r in recipes if (record := records[r.key]) is not None]


def load_record(runs: Path, recipe: Runnable) -> Record | None:
    """The stored record, or None if the recipe has not been run."""
    path = runs / f"{recipe.key}.json"
    if not path.exists():
        return None
    try:
        record: Record = json.loads(path.read_text())
        version = record["format"]
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is no record of a run: remove it, or choose another --out.") from None
    if version != FORMAT:
        raise ValueError(
            f"{path} was written by another version (format {version}, not {FORMAT}): choose another --out."
        )
    return record


def run_timed(recipe: Runnable, run: Callable[[Any], Record]) -> tuple[str, Record]:
    """Run one recipe in a worker, and return its name and its record."""
    start = time.process_time()
    with threads(1):
        record = {"format": FORMAT, "recipe": asdict(recipe), **run(recipe)}
    return recipe.key, {**record, "cpu_seconds": round(time.process_time() - start, 2)}


def run_network(recipe: Recipe) -> Record:
    """Train and test one network."""
    data = load_without(recipe.data, recipe.seed, recipe.without)
    x, y = _training_set(recipe, data)
    config = Training(epochs=recipe.epochs)
    network, history = train(lambda: build(recipe, data, len(x)), x, y, config, recipe.seed)
    test_sets = {"own": (data.x_test, data.y_test)}
    if recipe.data == "mnist:plain":
        test_sets = shifted_test_sets(data, recipe.seed)
    return {
        "accuracy": {name: accuracy(network, *arrays, config.samples) for name, arrays in test_sets.items()},
        "names": list(history.scheme_names),
        "trajectory": [[round(p, 5) for p in pi] for pi in history.schemes],
        "pi": [round(p, 5) for p in history.schemes[history.best_epoch]] if history.schemes else None,
        "best_epoch": history.best_epoch,
        "history": [{k: round(v, 6) for k, v in epoch.items()} for epoch in history.epochs],
    }


def build(recipe: Recipe, data: Dataset, examples: int) -> nn.Module:
    """The network of a recipe."""
    classes = len(data.class_names)
    bayesian = recipe.model in ("BMLP", "BCNN")
    if recipe.model in ("MLP", "BMLP"):
        return mlp(data.shape, classes, recipe.hidden, bayesian=bayesian)
    if recipe.model in ("CNN", "BCNN"):
        return cnn(data.shape, classes, recipe.hidden, bayesian=bayesian)
    groups = [catalogue.symmetry(name, data.shape) for name in recipe.groups]
    options = dict(recipe.layer)
    if options.get("prior_weight") == "examples":
        options["prior_weight"] = float(examples)
    if "parametrisation" in options:
        alpha = as_prior(None, len(groups) + 1).alpha
        options["prior"] = Dirichlet(alpha, options.pop("parametrisation"))
    return invariant_net(groups, classes, recipe.hidden, **options)


def shifted_test_sets(data: Dataset, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Plain, rotated and flipped test images, in the reading of the paper that fits its baselines.

    Rotated: uniform among the four quarter turns. Flipped: uniform among no flip, a horizontal and a vertical one.
    """
    rng = np.random.default_rng(seed)
    turns = catalogue.symmetry("rot90", data.shape).elements.numpy()
    rng.integers(
        len(turns), size=len(data.x_train)
    )  # the poses of `mnist:rotated`, whose training images come first
    rotated = datasets.transformed(data.x_test, turns, rng.integers(len(turns), size=len(data.x_test)))
    poses = np.stack(
        [np.arange(data.dim), *(catalogue.symmetry(n, data.shape).generators[0] for n in ("hflip", "vflip"))]
    )
    drawn = np.random.default_rng(seed).integers(len(poses), size=len(data.x_test))
    flipped = datasets.transformed(data.x_test, poses, drawn)
    return {
        "plain": (data.x_test, data.y_test),
        "rotated": (rotated, data.y_test),
        "flipped": (flipped, data.y_test),
    }


def accuracy(network: nn.Module, x: np.ndarray, y: np.ndarray, samples: int) -> float:
    """Test accuracy in percent."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        predicted = log_probabilities(network, torch.from_numpy(x), samples=samples).argmax(-1)
    return round(100 * float((predicted == torch.from_numpy(y)).float().mean()), 3)


def default_jobs() -> int:
    """One process per core, one thread per process."""
    return os.cpu_count() or 1


@functools.lru_cache(maxsize=3)
def load_without(name: str, seed: int, without: tuple[int, ...]) -> Dataset:
    """A data set by name, without some of its classes; the last few are remembered."""
    data = datasets.load(name, seed=seed)
    return datasets.without_classes(data, [data.class_names[label] for label in without]) if without else data


def _training_set(recipe: Recipe, data: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    keep = np.random.default_rng(recipe.seed).permutation(len(data.x_train))[: recipe.examples]
    return torch.from_numpy(data.x_train[keep]), torch.from_numpy(data.y_train[keep])
