"""Does a fit with a frozen body that was killed go on to the very same bits?

A process is killed, without warning, while copies pass through the body, and another goes on with what it left.
"""

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor, nn

import invariantnet as inv
from invariantnet.inference.cache import FolderCache
from invariantnet.nn import Pretrained
from studies.backbones.bodies import SIDE, digits_body, lite0, missing_photographs
from studies.backbones.images import Images, crops, new_digits
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown

CANDIDATES = ("hflip", "rot90")
"""Eight copies with their join."""


@dataclass(frozen=True)
class KilledRecipe:
    """One kill."""

    body: str = "digits"
    examples: int = 200
    after: int = 900
    """Copies that pass before the process is killed."""
    seed: int = 0


@dataclass(frozen=True)
class Record:
    """What was left, and whether the end is the same."""

    body: str
    examples: int
    parts_kept: int
    """Files of features that the killed process left."""
    parts: int
    """Files of features in all."""
    equal_posteriors: bool
    equal_predictions: bool


class Killed(nn.Module):
    """A body that kills its process after a number of inputs."""

    def __init__(self, body: nn.Module, after: int) -> None:
        super().__init__()
        self.body, self.after, self.seen = body, after, 0

    def forward(self, x: Tensor) -> Tensor:
        """Compute features, or die."""
        self.seen += len(x)
        if self.seen > self.after:
            os.kill(os.getpid(), signal.SIGKILL)
        features: Tensor = self.body(x)
        return features


def _images(recipe: KilledRecipe) -> Images:
    if recipe.body == "photographs":
        return crops("mirrored", recipe.examples, SIDE, recipe.seed)
    return new_digits("rot90", recipe.examples, recipe.seed)[0]


def _fitted(recipe: KilledRecipe, backbone: Pretrained, folder: Path) -> inv.InvariantClassifier:
    clf = inv.InvariantClassifier(CANDIDATES, backbone=backbone, n_networks=1, random_state=recipe.seed)
    return clf.fit_with(*_images(recipe), cache=FolderCache(folder))


def _features(folder: Path) -> int:
    return len(list(folder.glob("*-*-*/*.safetensors")))


def run(recipe: KilledRecipe) -> list[Record]:
    """Fit, be killed, go on, and compare."""
    backbone = lite0() if recipe.body == "photographs" else Pretrained(digits_body())
    dying = Pretrained(Killed(backbone.body, recipe.after), preprocess=backbone.preprocess)
    x, _ = _images(recipe)
    with tempfile.TemporaryDirectory() as scratch:
        whole, broken = Path(scratch) / "whole", Path(scratch) / "broken"
        first = _fitted(recipe, backbone, whole)
        process = multiprocessing.get_context("fork").Process(target=_fitted, args=(recipe, dying, broken))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        kept = _features(broken)
        second = _fitted(recipe, backbone, broken)
        return [
            Record(
                body=recipe.body,
                examples=recipe.examples,
                parts_kept=kept,
                parts=_features(whole),
                equal_posteriors=first.posterior_.log_evidence == second.posterior_.log_evidence,
                equal_predictions=bool(np.array_equal(first.predict_proba(x), second.predict_proba(x))),
            )
        ]


def table(records: Sequence[Record]) -> str:
    """One row per kill."""
    words = {True: "the same bits", False: "different"}
    rows = [
        [
            f"{r.body}, {r.examples}",
            f"{r.parts_kept} of {r.parts}",
            words[r.equal_posteriors],
            words[r.equal_predictions],
        ]
        for r in records
    ]
    return markdown(["images", "parts that were kept", "evidence", "predictions"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    equal = all(r.equal_posteriors and r.equal_predictions and r.parts_kept for r in records)
    return {"equal": Claim("After kill and resume, evidence and predictions are the same to the last bit.", equal)}


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    run=run,
    parts={
        "killed": Part(lambda seed: [KilledRecipe(seed=seed)]),
        "photographs": Part(lambda seed: [KilledRecipe("photographs", 100, 600, seed)], lacks=missing_photographs),
    },
    table=table,
    claims=claims,
    alone=True,
    depends_on=(*FITS, "studies.backbones", "studies.truth.real_sets"),
)
