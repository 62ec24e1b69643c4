"""What does a verdict cost with a ResNet-8 of one's own, against its plain training?

Crops of photographs, 32×32 pixels in colour, mirrored at random; the network is written here, and knows nothing of
symmetries. `hflip` is compared with no symmetry.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import invariantnet as inv
from invariantnet.data.examples import Examples
from invariantnet.inference.models import OWN
from invariantnet.training.loop import train
from studies.backbones.images import crops
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown
from studies.truth.real_sets import missing_pictures

WIDTHS = (16, 32, 64)
"""Channels of the three blocks."""
SHAPE = (3, 32, 32)
"""Shape of a crop."""
CANDIDATE = "hflip"
"""Compared with no symmetry."""


class Block(nn.Module):
    """Two convolutions, and a path around them."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        self.around = nn.Identity() if stride == 1 else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        """Add both paths."""
        hidden = self.norms[0](self.first(x)).relu()
        out: Tensor = (self.norms[1](self.second(hidden)) + self.around(x)).relu()
        return out


class ResNet8(nn.Module):
    """A convolution, three blocks, and a linear head, with a forward pass of its own."""

    def __init__(self, channels: int, outputs: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, WIDTHS[0], 3, padding=1)
        self.blocks = nn.Sequential(*(Block(a, b) for a, b in zip((WIDTHS[0], *WIDTHS), WIDTHS, strict=False)))
        self.fc = nn.Linear(WIDTHS[-1], outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Compute logits."""
        logits: Tensor = self.fc(self.blocks(self.stem(x).relu()).mean((2, 3)))
        return logits


def resnet8(input_shape: tuple[int, ...], outputs: int) -> nn.Module:
    """The factory that users pass."""
    return ResNet8(input_shape[0], outputs)


@dataclass(frozen=True)
class ResNetRecipe:
    """One fit."""

    examples: int = 300
    seed: int = 0


@dataclass(frozen=True)
class Record:
    """A verdict, and what it cost."""

    examples: int
    favourite: str
    probability: float
    placement: str
    accuracy: float
    plain_seconds: float
    """CPU seconds of one plain training, without symmetry or verdict."""
    verdict_seconds: float
    """CPU seconds of the comparison."""
    fit_seconds: float
    """CPU seconds of everything: the final network is trained twice, once to be calibrated."""
    order: int
    """Elements of the largest group."""


def run(recipe: ResNetRecipe) -> list[Record]:
    """Train once plainly, and fit once."""
    x, y = crops("mirrored", recipe.examples, SHAPE[1], recipe.seed)
    x_test, y_test = crops("mirrored", recipe.examples, SHAPE[1], recipe.seed, right=True)
    examples = Examples(torch.from_numpy(x.reshape(len(x), -1)), torch.from_numpy(y))
    outputs = int(y.max()) + 1

    def plain() -> nn.Module:
        return nn.Sequential(nn.Unflatten(1, SHAPE), resnet8(SHAPE, outputs))

    start = time.process_time()
    train(plain, examples, OWN.final, recipe.seed)
    plain_seconds = time.process_time() - start
    clf = inv.InvariantClassifier([CANDIDATE], backbone=resnet8, n_networks=1, random_state=recipe.seed)
    start = time.process_time()
    clf.fit(x, y)
    fit_seconds = time.process_time() - start
    found = clf.posterior_
    return [
        Record(
            recipe.examples,
            found.favourite,
            round(max(found.probabilities), 4),
            clf.placement_,
            round(clf.score(x_test, y_test), 4),
            round(plain_seconds, 1),
            round(clf.cpu_seconds_["comparison"], 1),
            round(fit_seconds, 1),
            max(found.orders),
        )
    ]


def table(records: Sequence[Record]) -> str:
    """One row per fit."""
    rows = [
        [
            f"{r.examples:,}",
            f"{r.favourite} ({r.probability:.3f})",
            r.placement,
            f"{100 * r.accuracy:.1f} %",
            f"{r.plain_seconds:.0f} s",
            f"{r.verdict_seconds:.0f} s",
            f"{r.verdict_seconds / r.plain_seconds:.1f} of {r.order}",
            f"{r.fit_seconds:.0f} s",
        ]
        for r in records
    ]
    header = [
        "examples",
        "found",
        "averaged",
        "accuracy",
        "plain training",
        "comparison",
        "in plain trainings",
        "and network",
    ]
    return markdown(header, rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    within = sum(r.verdict_seconds <= r.order * r.plain_seconds for r in records)
    return {
        "cost": Claim(
            f"The comparison costs at most |G| times a plain training in {within} of {len(records)} fits."
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    run=run,
    parts={"mirrored": Part(lambda seed: [ResNetRecipe(seed=seed)], lacks=missing_pictures)},
    table=table,
    claims=claims,
    alone=True,
    depends_on=(*FITS, "studies.backbones", "studies.truth.real_sets"),
)
