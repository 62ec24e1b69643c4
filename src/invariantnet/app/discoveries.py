"""`invariantnet discover`: from a data set to a folder with a verdict; interrupted searches can be resumed."""

import hashlib
import json
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from invariantnet import data as datasets
from invariantnet._system.files import locked, writable_folder, write_json
from invariantnet._system.progress import working
from invariantnet._system.typed_json import from_json, to_json
from invariantnet._system.words import package_version
from invariantnet.app.preparation import Reading, say_row_numbers
from invariantnet.app.unfinished import check_not_interrupted, check_ours, say_nothing_to_resume
from invariantnet.choices import Task
from invariantnet.data import Dataset
from invariantnet.data.fingerprint import fingerprint
from invariantnet.data.tables import row_numbers
from invariantnet.discovery.checking import checked
from invariantnet.discovery.result import Discovery
from invariantnet.discovery.search import discover_labelled
from invariantnet.estimator.persistence import UNFINISHED
from invariantnet.inference.cache import FolderCache
from invariantnet.symmetries.group import Group

RECORD = "discovery.json"
"""Name of the record inside the folder."""


@dataclass(frozen=True)
class DiscoverySettings:
    """What a search is asked to do; equal settings on equal data give equal results."""

    data: str
    task: Task = "auto"
    alpha: float = 0.05
    examples: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class TestedRecord:
    """One proposal and its test."""

    source: str
    kind: str
    moved: int
    """Number of inputs that it moves."""
    log_prior: float
    log_e_value: float
    accepted: bool


@dataclass(frozen=True)
class DiscoveryRecord:
    """Everything that `discovery.json` holds about a search."""

    settings: DiscoverySettings
    digest: str
    """Identifies settings, data and version: equal digests mean equal results."""
    verdict: str
    shape: tuple[int, ...]
    """Shape of one input."""
    generators: tuple[tuple[int, ...], ...]
    """Index arrays: output i is input `generator[i]`; indices from the number of inputs on change the sign."""
    exact_probability: float
    log_e_value: float
    of_inputs: bool
    set_aside: tuple[int, ...]
    repeated: tuple[int, ...]
    tested: tuple[TestedRecord, ...]

    @property
    def group(self) -> Group:
        """The symmetry that was found; trivial if none was."""
        return Group("discovered", np.array(self.generators, dtype=np.int64))


def discover_data(
    settings: DiscoverySettings, out: Path, reading: Reading, *, resume: bool = False, overwrite: bool = False
) -> DiscoveryRecord:
    """Look for symmetries of a data set, and write the verdict to a folder.

    Args:
        settings: What to do.
        out: Folder to write to.
        reading: How files are read.
        resume: Whether to go on with an interrupted search of the same settings and data.
        overwrite: Whether to replace a finished search in the folder.

    Returns:
        The record.

    Raises:
        ValueError: If settings, data or folder cannot be used.
    """
    if settings.examples is not None and settings.examples < 1:
        raise ValueError(f"{settings.examples} examples are too few: ask for more.")
    writable_folder(out)
    if (out / RECORD).exists() and not (resume or overwrite):
        raise ValueError(
            f"{out} holds a finished search: replace it with --overwrite, or keep it and pass another --out."
        )
    with working(f"reading {settings.data}", visible=True):
        data = datasets.load(settings.data, seed=settings.seed, task=settings.task, **vars(reading))
    say_row_numbers(row_numbers(data), visible=True)
    chosen = np.random.default_rng(settings.seed).permutation(len(data.x_train))[: settings.examples]
    x, y = np.asarray(data.x_train[chosen]), np.asarray(data.y_train[chosen])
    about = {**asdict(settings), "data": fingerprint(x, y), "shape": data.shape, "version": package_version()}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    work = out / UNFINISHED
    check_ours(work)
    with locked(out):
        finished = _read(out) if resume else None
        if finished is not None and finished.digest == digest:
            print(f"{out} holds the finished search of these settings and data.", file=sys.stderr)
            return finished
        if not (resume or overwrite):
            check_not_interrupted(out, work)
        if work.exists() and not resume:
            shutil.rmtree(work)
        cache = FolderCache(work / digest)
        if resume and not cache.folder.exists() and (work.exists() or (out / RECORD).exists()):
            say_nothing_to_resume(out)
        labelled = checked(x, y, "numbers" if data.has_numbers else "classes")
        found = discover_labelled(labelled, alpha=settings.alpha, seed=settings.seed, verbose=1, cache=cache)
        record = _record(settings, digest, data, found)
        write_json(out / RECORD, to_json(record))
        shutil.rmtree(work, ignore_errors=True)
    return record


def _read(out: Path) -> DiscoveryRecord | None:
    """Read the record of a finished search; None if there is none, or a damaged one."""
    try:
        return from_json(DiscoveryRecord, json.loads((out / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None


def _record(settings: DiscoverySettings, digest: str, data: Dataset, found: Discovery) -> DiscoveryRecord:
    identity = np.arange(found.group.dim)
    return DiscoveryRecord(
        settings=settings,
        digest=digest,
        verdict=found.verdict,
        shape=tuple(data.shape),
        generators=tuple(tuple(g) for g in found.generators.tolist()),
        exact_probability=found.exact_probability,
        log_e_value=found.log_e_value,
        of_inputs=found.of_inputs,
        set_aside=found.set_aside,
        repeated=found.repeated,
        tested=tuple(
            TestedRecord(
                t.source,
                t.kind,
                int((t.generators != identity).any(axis=0).sum()),
                t.log_prior,
                t.log_e_value,
                t.accepted,
            )
            for t in found.tested
        ),
    )
