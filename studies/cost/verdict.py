"""What does a whole verdict cost, against training all of its networks one after another?

Five thousand rotated images, {none, rot90, flips, d4} with one model, three networks each. *All examples* trains
the twelve networks on everything, without a verdict. *Plain loop* trains every network on every block. *Racing*
drops hopeless hypotheses: it is given the loop's networks, which are the same to the last bit, and counts the
seconds of the networks that it asks for, and its own.
"""

import functools
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from invariantnet.data.examples import Examples
from invariantnet.inference import Evidence, Records, gather_evidence
from invariantnet.inference.cache import NetworkKey
from invariantnet.inference.hypotheses import Hypothesis, compared_units, with_joins
from invariantnet.inference.models import MLPS
from invariantnet.inference.scoring import BlockScore
from invariantnet.nn import Symmetrized, mlp
from invariantnet.nn.standardize import InputStatistics
from invariantnet.symmetries import lookup as catalogue
from invariantnet.training.loop import train
from studies.datasets import BOTH, load
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.records import select

SHAPE, CLASSES = (28, 28), 10
"""Images and classes of MNIST."""
EXAMPLES, NETWORKS = 5000, 3
"""Networks are those of each hypothesis."""
MODEL = MLPS[0]
"""The model of every hypothesis: what a choice among several costs is the question of `cost_of_auto`."""


@dataclass(frozen=True)
class VerdictRecipe:
    """One verdict, reached in three ways."""

    seed: int = 0


@dataclass(frozen=True)
class Record:
    """What one way costs, and what it says."""

    method: str
    cpu_seconds: float
    networks: int
    """Networks trained."""
    names: tuple[str, ...] = ()
    probabilities: tuple[float, ...] = ()

    @property
    def favourite(self) -> str:
        """The most probable hypothesis."""
        return self.names[int(np.argmax(self.probabilities))]


class TimedCache(dict[NetworkKey, BlockScore]):
    """Scores of networks, the CPU seconds that each took, and which of them were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: dict[NetworkKey, float] = {}
        self.used: set[NetworkKey] = set()
        self.last = time.process_time()

    def __setitem__(self, key: NetworkKey, score: BlockScore) -> None:
        super().__setitem__(key, score)
        before, self.last = self.last, time.process_time()
        self.seconds[key] = self.last - before

    def __getitem__(self, key: NetworkKey) -> BlockScore:
        self.used.add(key)
        return super().__getitem__(key)


def run(recipe: VerdictRecipe) -> list[Record]:
    """Measure the three ways."""
    data = load("mnist:rotated", recipe.seed)
    x, y = torch.from_numpy(data.x_train[:EXAMPLES]), torch.from_numpy(data.y_train[:EXAMPLES])
    examples = Examples(x, y)
    symmetries = with_joins([catalogue.symmetry(name, SHAPE) for name in BOTH])
    hypotheses = [Hypothesis(symmetry, MODEL) for symmetry in symmetries]
    inputs = InputStatistics.of(x, symmetries, SHAPE)

    def make(hypothesis: Hypothesis) -> nn.Module:
        units = compared_units(hypothesis.copies, [h.copies for h in hypotheses])
        standardize = inputs.for_symmetry(hypothesis.symmetry)
        module = mlp(SHAPE, CLASSES, units=units)
        return Symmetrized(module, [hypothesis.symmetry], pool="max", standardize=standardize)

    start = time.process_time()
    for hypothesis, network in itertools.product(hypotheses, range(NETWORKS)):
        train(functools.partial(make, hypothesis), examples, MODEL.training, network)
    everything = Record("all examples", round(time.process_time() - start, 1), NETWORKS * len(hypotheses))
    cache, found = TimedCache(), [everything]
    for method, margin in (("plain loop", np.inf), ("racing", Evidence.margin)):
        cache.used.clear()
        start = time.process_time()
        config = Evidence(n_networks=NETWORKS, margin=margin)
        verdict = gather_evidence(make, hypotheses, examples, config=config, records=Records(cache))
        seconds = time.process_time() - start
        if method == "racing":
            seconds += sum(cache.seconds[key] for key in cache.used)
        probabilities = tuple(round(p, 4) for p in verdict.probabilities)
        found.append(Record(method, round(seconds, 1), len(cache.used), tuple(verdict.names), probabilities))
    return found[::-1]


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    (racing,), (loop,), (everything,) = (
        select(records, method=m) for m in ("racing", "plain loop", "all examples")
    )
    return {
        "ratio": Claim(
            f"{racing.cpu_seconds:.0f} CPU seconds. To train the {everything.networks} networks on all "
            f"examples, one after another, takes {everything.cpu_seconds:.0f}: a ratio of "
            f"{racing.cpu_seconds / everything.cpu_seconds:.2f} (aimed at: 0.5).",
            racing.cpu_seconds / everything.cpu_seconds <= 0.5,
        ),
        "same verdict": Claim(
            f"To train them on every block and drop none takes {loop.cpu_seconds:.0f}, a ratio of "
            f"{racing.cpu_seconds / loop.cpu_seconds:.2f}, and names the same symmetry, {racing.favourite}.",
            racing.favourite == loop.favourite,
        ),
        "saved": Claim(
            f"The race saves {loop.networks - racing.networks} of the loop's {loop.networks} networks, most of "
            "them on the last block, which costs the most: a hypothesis far behind after its first network gets "
            "no more networks, and neither does any hypothesis where one leads that clearly.",
            racing.networks < loop.networks,
        ),
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"verdict": Part(lambda _: [VerdictRecipe()])},
    run=run,
    claims=claims,
    alone=True,
    depends_on=FITS,
)
