"""The models that compete: a backbone with its training settings. Data choose among them, not we."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, get_args

import numpy as np
from torch import nn

from invariantnet.choices import BackboneName, Placement, Pool, Precision, require_choice
from invariantnet.nn.architectures import convnet, is_sequence, linear, mlp
from invariantnet.nn.native import Native, native_network, orbit_network, sorted_mlp
from invariantnet.nn.pretrained import Pretrained
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.symmetries.cosets import contains_generators, coset_representatives, exchanges_freely
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import symmetry as named_symmetry
from invariantnet.symmetries.ranges import AnySymmetry
from invariantnet.training.config import Training

MOST_INPUTS_OF_AN_MLP = 4096
"""Numbers per input up to which MLPs compete with convolutions: beyond, their first layer costs too much."""
MOST_PIXELS_WITHOUT_POOLING = 128 * 128
"""Pixels of an image up to which a CNN competes that keeps the places of its features."""
SHORTEST_SEQUENCE = 16
"""Length from which on convolutions along a sequence compete: shorter ones are mostly tables."""

SMALLEST_IMAGE = 8
"""Pixels of the shorter side from which on convolutions compete: halved twice, two are left."""

NATIVE_FROM, MOST_LISTED, MOST_ORDERS = 17, 24, 120
"""Elements from which on networks compete that need no copies, where one is known; and elements up to which each
makes a copy in spite of that: four points in any order, or five numbers. A mean over all orders of five numbers
learned a quadratic function of them 1,000 nats better than sorted numbers do (875 labels, seed 1010)."""

MORE_STEPS = 1.6
"""Factor of the smallest number of steps where ranges are compared: 80 steps of a CNN were enough to find turns by
up to 90° in 1,250 digits (seed 1000), and shifts of 6 to 8 pixels where 8 is true in 312 (seed 1001)."""

LARGER = 2
"""Factor of the batches and the rate of heads that take single copies: half of the steps, and the log evidence of
the best symmetry rose by 2 to 19 nats on 300 and 1,000 photographs (seeds 1000 to 1002)."""

QUARTERS = 4
"""Batches of an epoch of convolutions at least: with few examples a step then takes about half as long. On five
sets of 100 to 200 images (seeds 11 to 15) this took 0.6 of the CPU time; favourites and their probabilities stayed
the same, and the best evidence lost 0 to 9 nats."""

LONGER, MOST_FINAL_STEPS = 4, 500
"""Steps of the final network on few examples, in those of a compared one, and at most: with 200 steps the accuracy
of CNNs on 100 to 200 images (seeds 11, 12, 14, 15) was the same to within 2 % as with 500, in half the time."""

Make = Callable[..., nn.Module]
"""Makes a network from the shape of an input, the number of outputs and of features, `units` and `pool`."""


@dataclass(frozen=True)
class Model:
    """A backbone and how it is trained.

    Args:
        name: Name in posteriors and reports.
        training: How networks are trained to be compared; without a validation split, as the next block judges.
        final: How the final network is trained.
        make: Makes the backbone; None for a backbone of the user's own.
        reads_sequences: Whether it takes a flat input for a sequence, rather than for a row of a table.
        shared_units: Whether its inputs have the units that all candidates allow, rather than those of its own
            symmetry.
        placement: Where it is averaged, whatever the user asked for; None leaves that to the user.
        pool: How it pools features of units and copies, whatever the user asked for; None leaves that to the user.
        side_by_side: Whether networks of one shape are trained side by side to be compared: all their weights are
            those of linear layers.
        inputs: Numbers that it takes of each copy, where an example holds all copies of an input; None where it
            makes the copies of its inputs itself.
    """

    name: str
    training: Training
    final: Training
    make: Make | None = field(default=None, repr=False)
    reads_sequences: bool = False
    shared_units: bool = False
    placement: Placement | None = None
    pool: Pool | None = None
    side_by_side: bool = False
    inputs: int | None = None

    def for_numbers(self) -> "Model":
        """The same model, compared after at least twice as many steps: numbers must be learned more precisely."""
        return replace(self, training=replace(self.training, min_steps=2 * self.training.min_steps))

    def computing_in(self, precision: Precision) -> "Model":
        """The same model, trained with other numbers."""
        training, final = (replace(t, precision=precision) for t in (self.training, self.final))
        return replace(self, training=training, final=final)

    def in_shared_units(self) -> "Model":
        """The same model, on inputs in the units that all candidates allow."""
        return replace(self, name=f"{self.name} in shared units", shared_units=True)


_BRIEF = Training(
    epochs=24,
    batch_size=32,
    learning_rate=3e-3,
    weight_decay=1e-2,
    validation=0.0,
    schedule="one-cycle",
    min_steps=100,
)
"""How compared networks are trained unless their model says otherwise. Small batches and at least 100 steps,
because the first networks learn from a few dozen examples; the one-cycle rate gets far in few epochs."""


def _model(name: str, make: Make | None, longer: int, **training: Any) -> Model:
    """Make a model whose final network learns for `longer` times the epochs, in larger batches."""
    compared = replace(_BRIEF, **training)
    steps = min(MOST_FINAL_STEPS, LONGER * compared.min_steps)
    final = replace(compared, epochs=longer * compared.epochs, batch_size=64, min_steps=steps)
    return Model(name, compared, final, make, side_by_side=make is not None)


MLPS = (
    _model("plain mlp", mlp, 4),
    _model("decayed mlp", mlp, 4, weight_decay=1.0),
    _model("deep mlp", partial(mlp, depth=2), 4, learning_rate=1e-2, weight_decay=0.1),
    replace(
        _model("averaging mlp", partial(mlp, depth=2), 4, learning_rate=1e-2, weight_decay=0.1),
        pool="mean",
    ),
)
"""MLPs with little and with much decay, with two hidden layers, and with features that are averaged over copies.
Much decay suits few or noisy examples. A maximum over copies suits pictures, where something is there or not; a
mean suits what adds up, such as counts and energies. There a maximum favours subgroups of the truth, which have
more freedom to make up for it: where neighbours are counted in 5×5 cells, by 20 nats. With a mean, all symmetries
have equally wide layers: with more units for smaller groups, a polynomial of five numbers without noise favoured
Z5 to the true D5 in two of four draws of 1,000 (seeds 1010 to 1013), and now in one, where the verdict is open."""

LINEAR = replace(_model("linear", linear, 4, learning_rate=3e-2, weight_decay=3e-2), placement="weights")
"""A linear function of the inputs, averaged over their orbits: many tables say no more. It starts at zero, so its
rate is higher than that of an MLP, which starts with features of every kind. It needs no copies, so that it stands
for groups of any size: else sums would be learned best without the symmetry that they have."""


def _convolutions(name: str, make: Make) -> Model:
    training = {"learning_rate": 5e-3, "weight_decay": 0.05, "min_batches": QUARTERS}
    found = _model(name, make, 2, epochs=8, min_steps=50, **training)
    return replace(found, reads_sequences=True, side_by_side=False)


CNNS = (_convolutions("plain cnn", convnet), _convolutions("pooled cnn", partial(convnet, pooled=True)))
"""Convolutions that keep the places of features, and such that average over all places, as textures need."""

MODEL_NAMES = tuple(model.name for model in (LINEAR, *MLPS, *CNNS))
"""Models that can be asked for one by one, so that a later fit need not compare them again."""

OWN = _model("own", None, 2, epochs=8, batch_size=64, min_batches=QUARTERS, learning_rate=5e-3)
"""A backbone of the user's own: its batches may cost much. With quarters, a comparison of a ResNet-8 on 300 crops
(seed 100) took 15 CPU seconds instead of 41, and gave the truth .98 instead of .82."""


HEADS = (
    _model("linear head", linear, 4, epochs=16, weight_decay=0.1),
    _model("decayed linear head", linear, 4, epochs=16, weight_decay=1.0),
    _model("hidden head", mlp, 4),
)
"""Heads on the features of a pretrained body. The loss of a linear one is convex, so averaging its weights over a
true symmetry never makes it worse: it is a clean judge."""

COMPONENTS = 64
"""Numbers that stand for a copy in the comparison of heads: principal components of features, the same for all."""

LINEAR_HEADS = tuple(model.name for model in HEADS if model.make is linear)
"""Heads whose average over a group is that of their weights."""

UNFROZEN = replace(_BRIEF, epochs=3, batch_size=16, learning_rate=1e-4, min_steps=0)
"""How a body and its head are trained together, once the head is trained: gently, so that little is forgotten."""


def _native(native: Native, name: str, epochs: int, min_steps: int) -> Model:
    make, of_sets = partial(native_network, native), native == "permutations"
    training = {"learning_rate": 1e-2, "weight_decay": 0.05, "min_batches": 1 if of_sets else QUARTERS}
    found = _model(name, make, 2, epochs=epochs, min_steps=min_steps, **training)
    return replace(found, side_by_side=of_sets)


NATIVE: dict[Native, Model] = {
    "permutations": _native("permutations", "set network", epochs=32, min_steps=200),
    "shifts": _native("shifts", "circular cnn", epochs=16, min_steps=100),
    "cyclic": replace(_native("cyclic", "circular cnn", epochs=16, min_steps=100), reads_sequences=True),
}
"""Exact networks for groups too large to list, by the part of the group that they are invariant to."""

EXCHANGING: tuple[tuple[Model, Callable[..., nn.Module]], ...] = (
    (NATIVE["permutations"], orbit_network),
    (replace(MLPS[0], name="sorted plain mlp"), sorted_mlp),
    (replace(MLPS[1], name="sorted decayed mlp"), sorted_mlp),
    (replace(MLPS[2], name="sorted deep mlp"), partial(sorted_mlp, depth=2)),
)
"""Models for groups that exchange single numbers freely within their orbits, with what makes their backbones from
the orbits: a function of every number, and the MLPs of other symmetries on sorted numbers."""


def models_for(backbone: object, shape: tuple[int, ...]) -> tuple[Model, ...]:
    """List the models that suit inputs of a shape.

    Args:
        backbone: `"auto"`, `"mlp"`, `"cnn"`, the name of one model, or a backbone of the user's own.
        shape: Shape of one input.

    Returns:
        The models that compete.

    Raises:
        ValueError: If there is no backbone of this name.
    """
    if isinstance(backbone, Pretrained):
        return HEADS
    if callable(backbone):
        return (OWN,)
    require_choice("backbone", backbone, (*get_args(BackboneName), *MODEL_NAMES))
    size = math.prod(shape)
    pixels = shape[-1] * shape[-2] if len(shape) > 1 else size
    cnns = CNNS if is_sequence(shape) or pixels <= MOST_PIXELS_WITHOUT_POOLING else CNNS[1:]
    if backbone in MODEL_NAMES:
        return tuple(model for model in (LINEAR, *MLPS, *CNNS) if model.name == backbone)
    if backbone == "mlp":
        return MLPS
    if backbone == "cnn":
        return cnns
    suits_cnn = shape[0] >= SHORTEST_SEQUENCE if is_sequence(shape) else min(shape[-2:]) >= SMALLEST_IMAGE
    found = MLPS if size <= MOST_INPUTS_OF_AN_MLP or len(shape) == 1 or not suits_cnn else ()
    found = (LINEAR, *found) if len(shape) == 1 and not suits_cnn else found
    return (*found, *cnns) if suits_cnn else found


def native_models(part: Group) -> tuple[Model, ...]:
    """List the models that are invariant to a group by construction.

    Args:
        part: What `native_part` found.

    Returns:
        The models that compete.
    """
    if not exchanges_freely(part):
        return (next(model for name, model in NATIVE.items() if name == part.name),)
    labels = part.orbits().numpy()
    orbits = [np.flatnonzero(labels == label).tolist() for label in range(labels.max() + 1)]
    return tuple(replace(model, make=partial(make, orbits)) for model, make in EXCHANGING)


def copies_are_listed(symmetry: AnySymmetry, part: Group | None) -> bool:
    """Whether models that make copies of an input compete beside the exact ones, which need none.

    Args:
        symmetry: A candidate.
        part: What `native_part` found.

    Returns:
        True if they do.
    """
    most = MOST_ORDERS if part is not None and exchanges_freely(part) else MOST_LISTED
    return part is None or symmetry.copies <= most


def trained_on_draws(model: Model) -> Model:
    """The model for a comparison with ranges, whose steps learn from a few random copies of an example.

    Args:
        model: A model.

    Returns:
        The same with more steps on few examples: with fewer, wide ranges are not learned yet.
    """
    training = model.training
    return replace(model, training=replace(training, min_steps=round(MORE_STEPS * training.min_steps)))


def on_single_copies(model: Model) -> Model:
    """The model of a head for a comparison with ranges: its network takes the copies of an example one by one.

    Args:
        model: One of `HEADS`.

    Returns:
        The same, knowing how many numbers it takes, with larger batches and a higher rate.
    """
    batch, rate = LARGER * model.training.batch_size, LARGER * model.training.learning_rate
    return replace(
        model, training=replace(model.training, batch_size=batch, learning_rate=rate), inputs=COMPONENTS
    )


def native_part(symmetry: Group, shape: tuple[int, ...]) -> Group | None:
    """Find the part of a large group that some network is invariant to by construction.

    Args:
        symmetry: A candidate.
        shape: Shape of one input.

    Returns:
        The part: a group of the catalogue with few cosets, or all of a group that exchanges numbers freely within
        its orbits. None for groups of at most 16 elements, and where no such network is known.
    """
    if symmetry.is_matrix_group or symmetry.order < NATIVE_FROM:
        return None
    for name in NATIVE:
        try:
            part = named_symmetry(name, shape)
        except ValueError:
            continue
        if contains_generators(symmetry, part) and coset_representatives(symmetry, part, SAMPLED) is not None:
            return part
    return symmetry if exchanges_freely(symmetry) else None
