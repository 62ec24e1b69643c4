"""Experiments are values: every figure and table is a list of recipes, and equal recipes are run once."""

import hashlib
import json
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

Method = Literal["paper", "baseline"]

BOTH = ("rot90", "flips")
VERSIONS = {"rot": ("rot90",), "flip": ("flips",)}
SIX_AND_NINE = (6, 9)
QUICK = {"examples": 4000, "epochs": 6}


@dataclass(frozen=True)
class Recipe:
    """One network trained on one data set with one seed."""

    method: Method
    model: str
    data: str
    seed: int
    groups: tuple[str, ...] = ()
    hidden: int = 100
    layer: tuple[tuple[str, Any], ...] = ()
    """Options of `InvariantLinear` that differ from its defaults."""
    without: tuple[int, ...] = ()
    """Classes left out of training and test data."""
    examples: int | None = None
    """Train on so many examples; None for all."""
    epochs: int = 60

    @property
    def key(self) -> str:
        """File name: readable, and different for every difference."""
        return file_name(f"{self.model}-{self.data}-seed{self.seed}", self)


def file_name(words: str, recipe: Any) -> str:
    """Readable words, and a digest of every field that is not as usual: a new field keeps old names."""
    unusual = {f.name: value for f in fields(recipe) if (value := getattr(recipe, f.name)) != f.default}
    digest = hashlib.sha256(json.dumps(unusual, sort_keys=True).encode()).hexdigest()[:8]
    return "".join(c if c.isalnum() or c in "-_" else "-" if c == ":" else "_" for c in words) + f"-{digest}"


def _invariant_net(version: str, data: str, seed: int, **difference: Any) -> Recipe:
    groups = VERSIONS.get(version, BOTH)
    return Recipe("paper", f"InvariantNet ({version})", data, seed, groups, **difference)


def _fixed(name: str, group: str, data: str, seed: int) -> Recipe:
    return Recipe("baseline", name, data, seed, (group,), layer=(("scheme", (1.0, 0.0)),))


def figure1(seed: int) -> list[Recipe]:
    """Trajectories of π: q = 1 on the transformed sets, q = 2 with Dir(2, 2, 2) on the plain one."""
    return [
        _invariant_net("rot", "mnist:permuted", seed),
        _invariant_net("flip", "mnist:permuted", seed),
        _invariant_net("rot", "mnist:rotated", seed),
        _invariant_net("flip", "mnist:flipped", seed),
        _invariant_net("both", "mnist:plain", seed),
    ]


def figure2(seed: int) -> list[Recipe]:
    """Box plots of test accuracy on permuted, rotated and flipped images."""
    recipes = []
    for variant in ("permuted", "rotated", "flipped"):
        data = f"mnist:{variant}"
        recipes += [_invariant_net(version, data, seed) for version in VERSIONS]
        recipes += [_fixed("RotNet", "rot90", data, seed), _fixed("FlipNet", "flips", data, seed)]
        recipes.append(Recipe("baseline", "MLP", data, seed))
    return recipes


def table1(seed: int) -> list[Recipe]:
    """Trained on plain images, tested on plain, rotated and flipped ones; 6 and 9 are in none of them."""
    data: dict[str, Any] = {"data": "mnist:plain", "seed": seed, "without": SIX_AND_NINE}
    invnet = Recipe("paper", "InvNet", groups=BOTH, hidden=200, **data)
    return [invnet, *(Recipe("baseline", model, **data) for model in ("BCNN", "CNN", "BMLP", "MLP"))]


READINGS: dict[str, dict[str, Any]] = {
    "as printed": {},
    "orbit indicators instead of unit vectors": {"layer": (("basis", "indicator"),)},
    "one draw of π per neuron": {"layer": (("draw", "neuron"),)},
    "one hard draw of π per neuron": {"layer": (("draw", "neuron"), ("hard", True))},
    "one hard draw of π per batch": {"layer": (("hard", True),)},
    "prior counted once per example": {"layer": (("prior_weight", "examples"),)},
    "prior per example, indicators": {"layer": (("basis", "indicator"), ("prior_weight", "examples"))},
    "prior per example, draws per neuron": {"layer": (("draw", "neuron"), ("prior_weight", "examples"))},
    "prior on the logits": {"layer": (("parametrisation", "logits"),)},
    "with 6 and 9": {"without": ()},
    "5 epochs": {"epochs": 5},
    "5 epochs, indicators": {"epochs": 5, "layer": (("basis", "indicator"),)},
    "identity with a branch of its own": {"layer": (("identity", "full"),)},
    "identity of its own, prior per example": {"layer": (("identity", "full"), ("prior_weight", "examples"))},
    "no identity: half rotations, half flips": {"layer": (("scheme", (0.5, 0.5, 0.0)),)},
    "no identity, indicators": {"layer": (("scheme", (0.5, 0.5, 0.0)), ("basis", "indicator"))},
    "a tenth of identity": {"layer": (("scheme", (0.45, 0.45, 0.1)),)},
}
"""Each way in which the text can be read, as a difference from the printed layer."""

ABLATION_SEEDS = 3


def ablation(seed: int) -> list[Recipe]:
    """The first row of Table 1 under every reading of the text."""
    if seed >= ABLATION_SEEDS:
        return []
    base = table1(seed)[0]
    return [replace(base, **difference) for difference in READINGS.values()]


def identity(seed: int) -> list[Recipe]:
    """Figure 1 once more, with an identity that sees every input."""
    if seed >= ABLATION_SEEDS:
        return []
    return [replace(r, layer=(("identity", "full"),)) for r in figure1(seed) if r.data != "mnist:plain"]


def quick(recipe: Recipe) -> Recipe:
    """The same recipe on few examples, for few epochs."""
    return replace(recipe, examples=QUICK["examples"], epochs=min(recipe.epochs, QUICK["epochs"]))
