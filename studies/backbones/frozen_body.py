"""Is a verdict by heads on a frozen body right, and what does it cost beyond the passes through the body?

Digits 5 to 9 pass through a small network that was trained on the digits 0 to 4; crops of photographs through
EfficientNet-lite0 with its ImageNet weights. Poses are drawn at random, so that the symmetry is known; photographs
that are upside down are another class.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import invariantnet as inv
from invariantnet.nn import Pretrained
from invariantnet.symmetries.copies import Copies
from studies.backbones.bodies import digits_body, lite0, missing_photographs
from studies.backbones.images import crops, new_digits
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown

GROUPS = ("hflip", "vflip", "rot180", "flips", "rot90")
"""Candidates; their joins are candidates too."""
LADDER = (*GROUPS, "rotation")
"""The same with all rotations up to an angle; without joins."""
SURE = 0.9
"""Probability from which on a verdict counts as sure."""
TARGET = 1.2
"""Most CPU time of a verdict, in units of that of the passes through the body."""
SIDE = 64
"""Pixels of the side of a crop."""
TRUTH = {"trivial": "trivial", "mirrored": "hflip", "turned": "rot90", "posed": "trivial"}
"""What is true of images in these poses; else the poses are named by it."""


@dataclass(frozen=True)
class FrozenRecipe:
    """One verdict."""

    body: str
    poses: str
    examples: int
    candidates: tuple[str, ...] = GROUPS
    seed: int = 0


@dataclass(frozen=True)
class Record:
    """A verdict, and what it cost."""

    body: str
    poses: str
    examples: int
    candidates: tuple[str, ...]
    truth: str
    favourite: str
    probability: float
    copies: int
    """Distinct copies of each image."""
    body_seconds: float
    """CPU seconds of the passes through the body."""
    verdict_seconds: float
    """CPU seconds of the whole comparison, these passes included."""
    accuracy: float
    """On test images in the same poses."""

    @property
    def ratio(self) -> float:
        """CPU time of the verdict, in units of that of the passes."""
        return self.verdict_seconds / self.body_seconds


def run(recipe: FrozenRecipe) -> list[Record]:
    """Fit once."""
    if recipe.body == "digits":
        backbone = Pretrained(digits_body())
        (x, y), (x_test, y_test) = new_digits(recipe.poses, recipe.examples, recipe.seed)
    else:
        backbone = lite0()
        x, y = crops(recipe.poses, recipe.examples, SIDE, recipe.seed)
        x_test, y_test = crops(recipe.poses, recipe.examples // 5, SIDE, recipe.seed, right=True)
    joins = "rotation" not in recipe.candidates
    clf = inv.InvariantClassifier(recipe.candidates, backbone=backbone, joins=joins, random_state=recipe.seed)
    start = time.process_time()
    clf.fit(x, y)
    whole = time.process_time() - start
    found = clf.posterior_
    return [
        Record(
            body=recipe.body,
            poses=recipe.poses,
            examples=recipe.examples,
            candidates=recipe.candidates,
            truth=TRUTH.get(recipe.poses, recipe.poses),
            favourite=found.favourite,
            probability=round(max(found.probabilities), 4),
            copies=Copies.of(clf.candidates_).count,
            body_seconds=round(clf.cpu_seconds_["body"], 1),
            verdict_seconds=round(whole, 1),
            accuracy=round(clf.score(x_test, y_test), 4),
        )
    ]


def table(records: Sequence[Record]) -> str:
    """One row per verdict."""
    rows = [
        [
            f"{r.body}, {r.examples:,}",
            "as they are" if r.poses == "trivial" else r.poses,
            "groups and rotations" if "rotation" in r.candidates else "groups",
            r.truth,
            f"{r.favourite} ({r.probability:.3f})",
            f"{100 * r.accuracy:.1f} %",
            f"{r.body_seconds:.0f} s",
            f"{r.verdict_seconds:.0f} s",
        ]
        for r in records
    ]
    header = ["images", "poses", "candidates", "true", "found", "accuracy", "body", "verdict and network"]
    return markdown(header, rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    wrong = [r for r in records if r.favourite != r.truth and r.probability >= SURE]
    sure = [r for r in records if r.favourite == r.truth and r.probability >= SURE]
    found = {
        "right": Claim(
            f"Of {len(records)} verdicts, {len(sure)} are right with a probability of at least {SURE}, and "
            f"{len(wrong) or 'none'} {'is' if len(wrong) < 2 else 'are'} wrong and that sure."
        )
    }
    large = [r for r in records if "rotation" in r.candidates]
    if large:
        ratio = max(r.ratio for r in large)
        found["cost"] = Claim(
            f"With {large[0].examples:,} photographs and {large[0].copies} copies of each, verdict and network "
            f"take {ratio:.2f} times the CPU time of the passes through the body "
            f"({'within' if ratio <= TARGET else 'above'} the target of {TARGET})."
        )
    return found


def _digits(seed: int) -> list[FrozenRecipe]:
    return [FrozenRecipe("digits", poses, 500, seed=seed) for poses in ("trivial", "rot90", "flips", "d4")]


def _photographs(seed: int) -> list[FrozenRecipe]:
    return [FrozenRecipe("photographs", "mirrored", 300, seed=seed)]


def _many_photographs(seed: int) -> list[FrozenRecipe]:
    return [FrozenRecipe("photographs", "mirrored", 1000, LADDER, seed=seed)]


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    run=run,
    parts={
        "photographs": Part(_photographs, lacks=missing_photographs),
        "digits": Part(_digits),
        "many photographs": Part(_many_photographs, lacks=missing_photographs),
    },
    table=table,
    claims=claims,
    alone=True,
    depends_on=(*FITS, "studies.backbones", "studies.truth.real_sets"),
)
