"""The speed table: what learning a symmetry costs beside a plain MLP, as ratios within one run."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from invariantnet import catalogue
from invariantnet.nn import invariant_net, mlp
from invariantnet.objectives import LogPosterior, total
from invariantnet.reynolds import invariant_basis
from invariantnet.training import seeded, split_preparation

SHAPE = (28, 28)
BATCH = 256
CLASSES = 10
REPEATS = 30
CALLS = 20


@dataclass(frozen=True)
class Row:
    """One line of the table: best time of a call, and its ratio to the reference."""

    name: str
    milliseconds: float
    reference: str
    ratio: float


def bench(repeats: int = REPEATS) -> list[Row]:
    """Measure everything; the cases take turns, so that a busy moment of the machine hits all of them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with seeded(0):
            return [*_steps(repeats), *_bases(repeats)]
    finally:
        torch.set_num_threads(threads)


def _steps(repeats: int) -> list[Row]:
    rot90, flips = (catalogue.group(name, SHAPE) for name in ("rot90", "flips"))
    x, y = torch.rand(BATCH, 784), torch.randint(CLASSES, (BATCH,))
    reference = "training step of a 784-100-10 MLP"
    cases = {
        reference: training_step(mlp(SHAPE, CLASSES), x, y),
        "paper layer, q = 1 (rot90), training step": training_step(invariant_net([rot90], CLASSES), x, y),
        "paper layer, q = 2 (rot90, flips), training step": training_step(
            invariant_net([rot90, flips], CLASSES), x, y
        ),
    }
    return _rows(best_times(cases, repeats), reference)


def _bases(repeats: int) -> list[Row]:
    group = catalogue.group("d4", SHAPE)
    reference = "D4 basis on 28×28 by eigendecomposition"
    elements = group.elements
    cases = {
        reference: lambda: dense_basis(elements),
        "D4 basis on 28×28 from the orbits": lambda: invariant_basis(group),
    }
    return _rows(best_times(cases, max(1, repeats // 10), calls=3), reference)


def training_step(network: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    """One step as the training loop takes it: what no parameter touches is computed beforehand."""
    prepare, trainable = split_preparation(network)
    z = prepare(x)
    objective = LogPosterior(trainable, examples=60_000)
    optimizer = torch.optim.Adam(trainable.parameters(), fused=True)

    def step() -> None:
        optimizer.zero_grad()
        (-total(objective.terms(z, y).values())).backward()
        optimizer.step()

    return step


def dense_basis(elements: Tensor) -> Tensor:
    """The paper's recipe: eigenvectors of the dense Reynolds operator with eigenvalue 1."""
    order, dim = elements.shape
    operator = torch.zeros(dim, dim, dtype=torch.float64)
    for element in elements:
        operator[torch.arange(dim), element] += 1 / order
    values, vectors = torch.linalg.eigh(operator)
    return vectors[:, values > 0.5].mT


def best_times(cases: dict[str, Callable[[], Any]], repeats: int, calls: int = CALLS) -> dict[str, float]:
    """Seconds per call, the best of several repeats, the cases in turn."""
    best = dict.fromkeys(cases, float("inf"))
    for call in cases.values():
        call()
    for _ in range(repeats):
        for name, call in cases.items():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / calls)
    return best


def as_json(rows: list[Row]) -> list[dict[str, Any]]:
    """Rows as plain values."""
    return [asdict(row) for row in rows]


def _rows(best: dict[str, float], reference: str) -> list[Row]:
    return [Row(n, round(1e3 * s, 4), reference, round(s / best[reference], 4)) for n, s in best.items()]
