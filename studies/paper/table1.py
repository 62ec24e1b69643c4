"""Table 1: how accurate are networks on rotated and flipped images, if they were trained on plain ones?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.datasets import BOTH, SHIFTS, SIX_AND_NINE
from studies.framework import Claim, Part, Study
from studies.framework.freshness import FITS
from studies.framework.markdown import markdown, spread
from studies.framework.records import select
from studies.inference.fits import Confusion, FitRecipe, FitResult
from studies.paper import figure1
from studies.paper.networks import NetworkRecipe, NetworkResult
from studies.paper.published import CLOSE, SEEDS, TABLE_1, cell

BASELINES = ("BCNN", "CNN", "BMLP", "MLP")
"""The paper's baselines, the slowest first."""
D4_SEEDS, TEN_DIGIT_SEEDS = 10, 4
"""Seeds of our networks."""
TOLERANCE = 0.5
"""Nats per example that invariance may cost: the test images are moved, although the training images are not."""


@dataclass(frozen=True)
class Record:
    """Test accuracy of one network on the three test sets, in percent."""

    method: str
    model: str
    seed: int
    plain: float
    rotated: float
    flipped: float
    pi: tuple[float, ...] | None
    chosen: str | None = None
    """The symmetry of our network."""
    confused: tuple[Confusion, ...] = ()
    """The classes that our network confuses most."""


def invnet(seed: int) -> NetworkRecipe:
    """The paper's network with both symmetries; 6 and 9 are left out everywhere."""
    return NetworkRecipe("paper", "InvNet", "mnist:plain", seed, BOTH, hidden=200, without=SIX_AND_NINE)


def printed(seed: int) -> list[NetworkRecipe]:
    """The paper's network and its baselines."""
    others = [NetworkRecipe("baseline", m, "mnist:plain", seed, without=SIX_AND_NINE) for m in BASELINES]
    return [invnet(seed), *others]


def invariant_to_d4(seed: int) -> list[FitRecipe]:
    """Ours, an MLP and a CNN, with a tolerance that affords D4."""
    base = replace(with_ten_digits(seed)[0], without=SIX_AND_NINE)
    return [base, replace(base, backbone="cnn", hidden=100, epochs=6)]


def with_ten_digits(seed: int) -> list[FitRecipe]:
    """Our MLP with 6 and 9, which a half turn exchanges."""
    fit = FitRecipe("mnist:plain", 60_000, seed, "trivial", symmetries=("d4",), backbone="mlp", hidden=200)
    return [replace(fit, tolerance=TOLERANCE, epochs=20)]


def keep(recipe: figure1.AnyRecipe, result: NetworkResult | FitResult) -> list[Record]:
    """Keep the three accuracies."""
    plain, rotated, flipped = (result.accuracy[shift] for shift in SHIFTS)
    found = Record(recipe.method, _model_name(recipe), recipe.seed, plain, rotated, flipped, None)
    if isinstance(result, NetworkResult):
        return [replace(found, pi=result.pi)]
    return [replace(found, chosen=result.chosen, confused=result.confused)]


def _model_name(recipe: figure1.AnyRecipe) -> str:
    if isinstance(recipe, NetworkRecipe):
        return recipe.model
    digits = "" if recipe.without else ", all ten digits"
    return f"ours ({recipe.backbone.upper()}, {recipe.symmetries[0]}{digits})"


def table(records: Sequence[Record]) -> str:
    """Mean ± standard deviation over seeds, with the paper's numbers beside ours where it has any."""
    models = [m for m in dict.fromkeys([*TABLE_1, *(r.model for r in records)]) if select(records, model=m)]
    compare = any(m in TABLE_1 for m in models)
    rows = []
    for model in models:
        found, cells = select(records, model=model), [model]
        for shift in SHIFTS:
            cells += [spread([getattr(r, shift) for r in found]), *([cell(model, shift)] if compare else [])]
        rows.append([*cells, str(len(found))])
    columns = [column for s in SHIFTS for column in ((f"{s}: ours", "paper") if compare else (s,))]
    return markdown(["model", *columns, "seeds"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the pages say."""
    ours = select(records, method="evidence")
    ten = [r for r in ours if r.model.endswith("all ten digits)")]
    invnet = ", ".join(f"{shift} {value:+.1f}" for shift, value in deviations(records, "InvNet").items())
    return {
        "baselines": _baselines(records),
        "InvNet": Claim(f"InvNet as printed, ours minus the paper's: {invnet}."),
        "exact": Claim(
            "An exactly invariant network has three equal numbers.",
            all(r.plain == r.rotated == r.flipped for r in ours),
        ),
        "confused": Claim(
            f"The three pairs that each seed confuses most, as shares of its errors: {_confused(ours)}."
        ),
        "6 and 9": Claim(
            "With all ten digits, 6 and 9 are not among the three: most people write them differently.",
            not any(pair[:2] == ("6", "9") for r in ten for pair in r.confused),
        ),
    }


def deviations(records: Sequence[Record], model: str) -> dict[str, float]:
    """Ours minus the paper's on each test set, in percentage points."""
    found = select(records, model=model)
    return {s: float(np.mean([getattr(r, s) for r in found])) - TABLE_1[model][s][0] for s in SHIFTS}


def _baselines(records: Sequence[Record]) -> Claim:
    gaps = {(m, shift): gap for m in BASELINES for shift, gap in deviations(records, m).items()}
    misses = [f"{m} on {shift} images ({gap:+.2f})" for (m, shift), gap in gaps.items() if abs(gap) > CLOSE]
    close = f"{len(gaps) - len(misses)} of their {len(gaps)} numbers are within {CLOSE} points of the paper's"
    return Claim(f"{close}; the others are {' and '.join(misses)}." if misses else f"{close}.")


def _confused(records: Sequence[Record]) -> str:
    lines = []
    for model in dict.fromkeys(r.model for r in records):
        found = select(records, model=model)
        shares: Counter[str] = Counter()
        for r in found:
            shares.update({f"{a} and {b}": share / len(found) for a, b, share in r.confused})
        lines.append(f"{model}: " + ", ".join(f"{pair} {share:.0%}" for pair, share in shares.most_common(3)))
    return "; ".join(lines)


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={
        "paper": Part(printed, SEEDS),
        "evidence": Part(invariant_to_d4, D4_SEEDS),
        "ten digits": Part(with_ten_digits, TEN_DIGIT_SEEDS),
    },
    run=figure1.run,
    keep=keep,
    quick=figure1.quick,
    table=table,
    claims=claims,
    depends_on=(*FITS, "studies.paper.networks"),
)
