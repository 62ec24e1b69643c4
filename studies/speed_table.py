"""The speed table: what learning a symmetry costs beside a plain MLP, as ratios within one run."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet._system.torch_state import seeded
from invariantnet.nn import InvariantLinear, Symmetrized, convnet, invariant_net, mlp
from invariantnet.objectives import LogPosterior, total
from invariantnet.symmetries import lookup as catalogue
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.reynolds import invariant_basis
from invariantnet.training._performance import transpose_moved_weights
from invariantnet.training.loop import split_preparation

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
            return [*_steps(repeats), *_inference(repeats), *_convolutions(repeats), *_bases(repeats)]
    finally:
        torch.set_num_threads(threads)


def _steps(repeats: int) -> list[Row]:
    """Training steps, with the least they could take: plain products, and plain layers on as many numbers."""
    rot90, flips, d4 = _groups("rot90", "flips", "d4")
    x, y = torch.rand(BATCH, 784), torch.randint(CLASSES, (BATCH,))
    weight, gradient = torch.rand(100, 784), torch.rand(BATCH, 100)
    reference = "training step of a 784-100-10 MLP"

    def products() -> None:
        F.linear(x, weight)
        gradient.mT @ x

    cases = {
        reference: training_step(mlp(SHAPE, CLASSES), x, y),
        "its matrix products alone": products,
        "paper layer, q = 1 (rot90), training step": training_step(invariant_net([rot90], CLASSES), x, y),
        "paper layer, q = 2 (rot90, flips), training step": training_step(
            invariant_net([rot90, flips], CLASSES), x, y
        ),
        "a plain layer on 196 numbers instead": training_step(mlp((196,), CLASSES), x[:, :196].clone(), y),
        "a plain layer on 392 numbers instead": training_step(mlp((392,), CLASSES), x[:, :392].clone(), y),
        "features, rot90, training step": training_step(Symmetrized(mlp(SHAPE, CLASSES), [rot90]), x, y),
        "features, d4, training step": training_step(Symmetrized(mlp(SHAPE, CLASSES), [d4]), x, y),
    }
    return _rows(best_times(cases, repeats), reference)


def _inference(repeats: int) -> list[Row]:
    """Folded networks, beside plain ones of the same size."""
    (rot90,) = _groups("rot90")
    x = torch.rand(BATCH, 784)
    printed = invariant_net([rot90], CLASSES).eval()
    layer = printed[0]
    assert isinstance(layer, InvariantLinear)
    rows = []
    for reference, plain, folded in (
        (
            "inference of a 784-100-10 MLP",
            mlp(SHAPE, CLASSES),
            {
                "paper layer, folded": nn.Sequential(layer.fold(), *list(printed)[1:]),
                "weights, rot90, folded": Symmetrized(mlp(SHAPE, CLASSES), [rot90], "weights").fold(),
            },
        ),
        (
            "inference of a 784-400-10 MLP",
            mlp(SHAPE, CLASSES, 400),
            {"features, rot90, folded": Symmetrized(mlp(SHAPE, CLASSES), [rot90]).fold()},
        ),
    ):
        cases = {name: _without_gradient(network, x) for name, network in {reference: plain, **folded}.items()}
        rows += _rows(best_times(cases, repeats), reference)
    return rows


def _convolutions(repeats: int) -> list[Row]:
    (d4,) = _groups("d4")
    x, y = torch.rand(32, 784), torch.randint(CLASSES, (32,))
    reference = "training step of a CNN, batch 32"
    cases = {
        reference: training_step(convnet(SHAPE, CLASSES), x, y),
        "CNN, outputs, d4, training step": training_step(
            Symmetrized(convnet(SHAPE, CLASSES), [d4], "outputs"), x, y
        ),
    }
    return _rows(best_times(cases, max(1, repeats // 10), calls=2), reference)


def _groups(*names: str) -> list[Group]:
    return [catalogue.symmetry(name, SHAPE) for name in names]


def _without_gradient(network: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    network.eval()

    def call() -> Tensor:
        with torch.inference_mode():
            return network(x)

    return call


def _bases(repeats: int) -> list[Row]:
    group = catalogue.symmetry("d4", SHAPE)
    reference = "D4 basis on 28×28 by eigendecomposition"
    elements = group.elements
    cases = {
        reference: lambda: dense_basis(elements),
        "D4 basis on 28×28 from the orbits": lambda: invariant_basis(group),
    }
    return _rows(best_times(cases, max(1, repeats // 10), calls=3), reference)


def training_step(network: nn.Module, x: Tensor, y: Tensor) -> Callable[[], None]:
    """One step as the training loop takes it: what no parameter touches is computed beforehand."""
    keep_freed_memory()
    transpose_moved_weights(network)
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
    """DiskArray as plain values."""
    return [asdict(row) for row in rows]


def _rows(best: dict[str, float], reference: str) -> list[Row]:
    return [Row(n, round(1e3 * s, 4), reference, round(s / best[reference], 4)) for n, s in best.items()]
