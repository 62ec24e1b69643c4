"""Is a verdict by heads on a frozen body right, and what does it cost beyond the passes through the body?

Digits 5 to 9 pass through a small network that was trained on the digits 0 to 4, and enlarged through
EfficientNet-lite0 with its ImageNet weights; so do crops of photographs. Poses are drawn at random, so that the
symmetry is known; photographs that are upside down are another class.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import invariantnet as inv
from invariantnet.symmetries.copies import Copies
from studies.backbones.bodies import SIDE, missing_lite0, missing_photographs, timed
from studies.backbones.images import crops, new_digits
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown

GROUPS = ("hflip", "vflip", "rot180", "flips", "rot90")
"""Candidates; their joins are candidates too."""
LADDER = (*GROUPS, "rotation")
"""The same with all rotations up to an angle; without joins."""
JOINED = ("hflip", "rotation:15", "rotation:30", "rotation:45")
"""Two answers that are both true of mirrored photographs, and their joins."""
SURE = 0.9
"""Probability from which on a verdict counts as sure."""
TARGET = 1.2
"""Most CPU time of a verdict, in units of that of the passes through the body."""
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
    pass_seconds: float | None
    """CPU seconds of the forward passes of the body alone; unknown in older records."""
    verdict_seconds: float | None
    """CPU seconds of the comparison: copies, passes, files and heads; unknown in older records."""
    fit_seconds: float
    """CPU seconds of everything, the final network included."""
    accuracy: float
    """On test images in the same poses."""
    at_least: float | None = None
    """Probability that the data has at least the symmetry that is true; unknown in older records."""

    @property
    def ratio(self) -> float | None:
        """CPU time of the verdict, in units of that of the passes."""
        if self.verdict_seconds is None or self.pass_seconds is None:
            return None
        return self.verdict_seconds / self.pass_seconds


def run(recipe: FrozenRecipe) -> list[Record]:
    """Fit once."""
    backbone, body = timed(recipe.body)
    if recipe.body != "photographs":
        (x, y), (x_test, y_test) = new_digits(recipe.poses, recipe.examples, recipe.seed)
    else:
        x, y = crops(recipe.poses, recipe.examples, SIDE, recipe.seed)
        x_test, y_test = crops(recipe.poses, recipe.examples // 5, SIDE, recipe.seed, right=True)
    joins = "rotation" not in recipe.candidates
    clf = inv.InvariantClassifier(recipe.candidates, backbone=backbone, joins=joins, random_state=recipe.seed)
    start = time.process_time()
    clf.fit(x, y)
    whole, passes = time.process_time() - start, body.seconds
    found, truth = clf.posterior_, TRUTH.get(recipe.poses, recipe.poses)
    return [
        Record(
            body=recipe.body,
            poses=recipe.poses,
            examples=recipe.examples,
            candidates=recipe.candidates,
            truth=truth,
            favourite=found.favourite,
            probability=round(max(found.probabilities), 4),
            copies=Copies.of(clf.candidates_).count,
            pass_seconds=round(passes, 1),
            verdict_seconds=round(clf.cpu_seconds_["comparison"], 1),
            fit_seconds=round(whole, 1),
            accuracy=round(clf.score(x_test, y_test), 4),
            at_least=round(found.at_least[found.names.index(truth)], 4),
        )
    ]


def table(records: Sequence[Record]) -> str:
    """One row per verdict."""
    rows = [
        [
            f"{r.body}, {r.examples:,}",
            "as they are" if r.poses == "trivial" else r.poses,
            _kinds(r.candidates),
            r.truth,
            f"{r.favourite} ({r.probability:.3f})",
            "–" if r.at_least is None else f"{r.at_least:.3f}",
            f"{100 * r.accuracy:.1f} %",
            "–" if r.pass_seconds is None else f"{r.pass_seconds:.1f} s",
            "–" if r.verdict_seconds is None else f"{r.verdict_seconds:.0f} s",
            f"{r.fit_seconds:.0f} s",
        ]
        for r in records
    ]
    header = ["images", "poses", "candidates", "true", "found", "at least the true one", "accuracy"]
    return markdown([*header, "passes", "verdict", "and network"], rows)


def _kinds(candidates: Sequence[str]) -> str:
    """Say in words what was compared."""
    if candidates == JOINED:
        return "hflip, rotations and their joins"
    return "groups and rotations" if "rotation" in candidates else "groups"


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
    ratios = [r.ratio for r in large if r.ratio is not None]
    if ratios:
        ratio = max(ratios)
        found["cost"] = Claim(
            f"With {large[0].examples:,} photographs and {large[0].copies} copies of each, the verdict takes "
            f"{ratio:.2f} times the CPU time of the forward passes of the body alone "
            f"({'within' if ratio <= TARGET else 'above'} the target of {TARGET})."
        )
    return found


def _digits(seed: int) -> list[FrozenRecipe]:
    return [FrozenRecipe("digits", poses, 500, seed=seed) for poses in ("trivial", "rot90", "flips", "d4")]


def _enlarged_digits(seed: int) -> list[FrozenRecipe]:
    return [FrozenRecipe("enlarged digits", poses, 500, seed=seed) for poses in ("trivial", "rot90")]


def _photographs(seed: int) -> list[FrozenRecipe]:
    some = [("mirrored", 300), ("turned", 300), ("posed", 300)]
    return [FrozenRecipe("photographs", poses, examples, seed=seed) for poses, examples in some]


def _many_photographs(seed: int) -> list[FrozenRecipe]:
    return [FrozenRecipe("photographs", "mirrored", 1000, LADDER, seed=seed)]


def _joined_photographs(seed: int) -> list[FrozenRecipe]:
    return [FrozenRecipe("photographs", "mirrored", 1000, JOINED, seed=seed)]


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    run=run,
    parts={
        "many photographs": Part(_many_photographs, lacks=missing_photographs),
        "photographs": Part(_photographs, lacks=missing_photographs),
        "joined": Part(_joined_photographs, lacks=missing_photographs),
        "digits": Part(_digits),
        "enlarged digits": Part(_enlarged_digits, lacks=missing_lite0),
    },
    table=table,
    claims=claims,
    alone=True,
    depends_on=(*FITS, "studies.backbones", "studies.truth.real_sets"),
)
