"""What does a step cost, or a prediction, beside a plain MLP? Ratios within one run, best of several repeats."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet._system.torch_state import seeded, threads
from invariantnet.nn import InvariantLinear, Symmetrized, convnet, invariant_net, mlp
from invariantnet.symmetries import lookup as catalogue
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.reynolds import invariant_basis
from studies.cost.timing import best_times, dense_basis, training_step
from studies.framework import Claim, Part, Study
from studies.framework.freshness import NETWORKS
from studies.framework.markdown import markdown

SHAPE, CLASSES = (28, 28), 10
"""Images and classes of MNIST."""
BATCH, CNN_BATCH = 256, 32
"""Images per step."""
REPEATS, CALLS = 30, 20
"""Repeats of which the best counts, and calls per repeat; slow cases get a tenth of both."""
QUICK_REPEATS = 3
"""Repeats of a quick run: seconds, and no protection from other load."""

TARGETS = {
    "paper layer, q = 1 (rot90), training step": 0.7,
    "paper layer, q = 2 (rot90, flips), training step": 0.9,
    "features, rot90, training step": 3.2,
    "features, d4, training step": 6.4,
    "paper layer, folded": 1.02,
    "weights, rot90, folded": 1.02,
    "features, rot90, folded": 1.02,
    "CNN, outputs, d4, training step": 8.0,
}
"""Ratios that we aim at."""


@dataclass(frozen=True)
class StepRecipe:
    """One measurement of everything."""

    seed: int = 0
    repeats: int = REPEATS


@dataclass(frozen=True)
class Record:
    """Best time of one case, and its ratio to the reference."""

    name: str
    milliseconds: float
    reference: str
    ratio: float


def run(recipe: StepRecipe) -> list[Record]:
    """Measure every case."""
    repeats = recipe.repeats
    with threads(1), seeded(recipe.seed):
        return [*_steps(repeats), *_inference(repeats), *_convolutions(repeats), *_bases(repeats)]


def _steps(repeats: int) -> list[Record]:
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
    return _records(best_times(cases, repeats, CALLS), reference)


def _inference(repeats: int) -> list[Record]:
    """Folded networks, beside plain ones of the same size."""
    (rot90,) = _groups("rot90")
    x = torch.rand(BATCH, 784)
    printed = invariant_net([rot90], CLASSES).eval()
    layer = printed[0]
    assert isinstance(layer, InvariantLinear)
    small = {
        "inference of a 784-100-10 MLP": mlp(SHAPE, CLASSES),
        "paper layer, folded": nn.Sequential(layer.fold(), *list(printed)[1:]),
        "weights, rot90, folded": Symmetrized(mlp(SHAPE, CLASSES), [rot90], "weights").fold(),
    }
    wide = {
        "inference of a 784-400-10 MLP": mlp(SHAPE, CLASSES, 400),
        "features, rot90, folded": Symmetrized(mlp(SHAPE, CLASSES), [rot90]).fold(),
    }
    records = []
    for networks in (small, wide):
        cases = {name: _without_gradient(network, x) for name, network in networks.items()}
        records += _records(best_times(cases, repeats, CALLS), next(iter(networks)))
    return records


def _convolutions(repeats: int) -> list[Record]:
    (d4,) = _groups("d4")
    x, y = torch.rand(CNN_BATCH, 784), torch.randint(CLASSES, (CNN_BATCH,))
    reference = f"training step of a CNN, batch {CNN_BATCH}"
    averaged = Symmetrized(convnet(SHAPE, CLASSES), [d4], "outputs")
    cases = {
        reference: training_step(convnet(SHAPE, CLASSES), x, y),
        "CNN, outputs, d4, training step": training_step(averaged, x, y),
    }
    return _records(best_times(cases, max(1, repeats // 10), calls=2), reference)


def _bases(repeats: int) -> list[Record]:
    (group,) = _groups("d4")
    reference = "D4 basis on 28×28 by eigendecomposition"
    elements = group.elements
    cases = {
        reference: lambda: dense_basis(elements),
        "D4 basis on 28×28 from the orbits": lambda: invariant_basis(group),
    }
    return _records(best_times(cases, max(1, repeats // 10), calls=3), reference)


def _groups(*names: str) -> list[Group]:
    return [catalogue.symmetry(name, SHAPE) for name in names]


def _without_gradient(network: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    network.eval()

    def call() -> Tensor:
        with torch.inference_mode():
            outputs: Tensor = network(x)
            return outputs

    return call


def _records(best: dict[str, float], reference: str) -> list[Record]:
    return [
        Record(name, round(1e3 * seconds, 4), reference, round(seconds / best[reference], 4))
        for name, seconds in best.items()
    ]


def table(records: Sequence[Record]) -> str:
    """Times, ratios and the ratios that we aim at."""
    rows = [
        [
            r.name,
            f"{r.milliseconds:.3f}",
            f"{r.ratio:.2f}",
            r.reference,
            f"≤ {TARGETS[r.name]}" if r.name in TARGETS else "",
        ]
        for r in records
    ]
    return markdown(["case", "ms", "ratio", "to", "aimed at"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    ratio = {r.name: r.ratio for r in records}
    floor = [ratio[f"a plain layer on {n} numbers instead"] for n in (196, 392)]
    missed = [name for name, target in TARGETS.items() if ratio[name] > target]
    return {
        "targets": Claim(
            "All but the paper layer's training steps reach their targets.",
            all(name.startswith("paper layer, q") for name in missed),
        ),
        "floor": Claim(
            "A plain layer on as many numbers as the paper layer has rows takes "
            f"{floor[0]:.2f} and {floor[1]:.2f} of the reference, and that is the least."
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"times": Part(lambda _: [StepRecipe()])},
    run=run,
    quick=lambda recipe: replace(recipe, repeats=QUICK_REPEATS),
    table=table,
    claims=claims,
    alone=True,
    depends_on=(*NETWORKS, "studies.cost.timing"),
)
