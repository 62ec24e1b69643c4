"""What is compared: symmetries, each with every model that suits it, in networks of equal size."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from invariantnet.inference.models import (
    LINEAR,
    Model,
    copies_are_listed,
    models_for,
    native_models,
    native_part,
    on_single_copies,
    trained_on_draws,
)
from invariantnet.inference.support import Support
from invariantnet.nn.pretrained import Pretrained
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.families import FAMILIES
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.lookup import groups_suited_to
from invariantnet.symmetries.named import join, ladder
from invariantnet.symmetries.named import symmetry as named_symmetry
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.symmetries.reynolds import reynolds_operator

MOST_COPIES = 8
"""Units per feature, tied or not: as many as the largest group of images without translations has elements."""
MAX_HYPOTHESES = 32
"""Symmetries that are compared, joins included: more would take hours and dilute the prior."""
MOST_INPUTS_WITH_JOINS, MOST_INPUTS_WITH_HUGE_JOINS = 1024, 64
"""Numbers per input up to which `auto` looks for joins; and up to which it does so on several axes with groups too
large to list. Beyond, the search takes minutes, and on images it ends with more joins than are compared."""

MOST_INPUTS_SIDE_BY_SIDE = 128
"""Numbers per input up to which a second network in a heat costs less than half of the first, for an MLP."""

Asked = str | AnySymmetry | Sequence[str | AnySymmetry]
"""What users ask for: names, groups, ranges, or `"auto"`."""


def candidates(
    asked: Asked, shape: tuple[int, ...], *, joins: bool, support: Support | None = None
) -> list[AnySymmetry]:
    """Find the symmetries to compare.

    Args:
        asked: What the user asked for: names, groups, ranges, or `"auto"`. The name of a family of ranges stands
            for its whole ladder.
        shape: Shape of one input.
        joins: Whether joins of candidates are candidates too.
        support: Where inputs lie. `"auto"` does not ask about symmetries that no example can refute.

    Returns:
        The symmetries, no symmetry first.

    Raises:
        ValueError: If a name is unknown, or a group acts on inputs of another size.
    """
    if isinstance(asked, str) and asked == "auto":
        suited = [g for g in groups_suited_to(shape) if support is None or support.can_refute(g)]
        return [*_with_quick_joins(suited, shape, joins=joins)] if suited else with_joins(_meant(TRIVIAL, shape))
    names = [asked] if isinstance(asked, str | Group | Range) else asked
    found = [symmetry for name in names for symmetry in _meant(name, shape)]
    for symmetry in found:
        if symmetry.dim != math.prod(shape):
            raise ValueError(
                f"{symmetry.name} acts on {symmetry.dim} numbers, an input has {math.prod(shape)}: make the group "
                "for this shape."
            )
        if isinstance(symmetry, Range) and symmetry.shape != shape:
            raise ValueError(
                f"{symmetry.name} is for shape {symmetry.shape}, not {shape}: make it for this shape."
            )
    return with_joins(found, closed=joins)


def _meant(name: str | AnySymmetry, shape: tuple[int, ...]) -> Sequence[AnySymmetry]:
    """All symmetries that a name stands for."""
    if not isinstance(name, str):
        return [name]
    if any(part.strip() in FAMILIES for part in name.split("+")):
        return ladder(name, shape)
    return [named_symmetry(name, shape)]


def _with_quick_joins(every: Sequence[Group], shape: tuple[int, ...], *, joins: bool) -> list[Group]:
    """The groups, with their joins where these are few and quickly found."""
    dim = math.prod(shape)
    one_axis, listed = sum(n > 1 for n in shape) == 1, all(g.can_list_elements for g in every)
    quick = dim <= MOST_INPUTS_WITH_HUGE_JOINS or (dim <= MOST_INPUTS_WITH_JOINS and (one_axis or listed))
    try:
        return with_joins(every, closed=joins and quick)
    except ValueError:  # too many joins
        return with_joins(every, closed=False)


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A symmetry and a model: what one kind of network assumes.

    Args:
        symmetry: What the network is invariant to, exactly or nearly.
        model: Its backbone, and how it is trained.
        native: The part of the symmetry that the backbone is invariant to by construction; None if there is none.
    """

    symmetry: AnySymmetry
    model: Model
    native: Group | None = None

    @property
    def name(self) -> str:
        """Name among all hypotheses."""
        return f"{self.symmetry.name} · {self.model.name}"

    @property
    def copies(self) -> int:
        """Copies that the network makes of each input."""
        if self.model.placement == "weights":
            return 1
        return self.symmetry.copies // (1 if self.native is None else self.native.order)

    @property
    def side_by_side(self) -> bool:
        """Whether its networks may be trained side by side with others of their shape."""
        draws = isinstance(self.symmetry, Range) and self.model.inputs is None
        is_listed = not draws and self.copies <= SAMPLED
        return self.model.side_by_side and is_listed and self.model.training.precision == "32-true"

    def is_small(self, inputs: int) -> bool:
        """Whether a training step takes hardly longer for two networks side by side than for one.

        Args:
            inputs: Numbers in an example.

        Returns:
            False if a second network costs more than half of the first.
        """
        return self.side_by_side and (self.model.inputs or inputs) <= MOST_INPUTS_SIDE_BY_SIDE


def all_hypotheses(
    symmetries: Sequence[AnySymmetry], backbone: object, shape: tuple[int, ...]
) -> list[Hypothesis]:
    """Combine every symmetry with every model that suits it.

    Args:
        symmetries: The candidates.
        backbone: `"auto"`, `"mlp"`, `"cnn"`, or a backbone of the user's own.
        shape: Shape of one input.

    Returns:
        The hypotheses, in the order of the symmetries.
    """
    usual = models_for(backbone, shape)
    if any(isinstance(symmetry, Range) for symmetry in symmetries):
        usual = tuple(map(on_single_copies if isinstance(backbone, Pretrained) else trained_on_draws, usual))
    others = tuple(model for model in usual if model is not LINEAR)
    linear = _told_apart_by_means(symmetries) if LINEAR in usual else []
    found = []
    for symmetry in symmetries:
        is_listed = callable(backbone) or not others
        part = None if is_listed or isinstance(symmetry, Range) else native_part(symmetry, shape)
        listed = others if copies_are_listed(symmetry, part) else ()
        found += [Hypothesis(symmetry, model) for model in listed]
        if part is not None:
            found += [Hypothesis(symmetry, model, part) for model in native_models(part)]
        if symmetry in linear or not others:
            found.append(Hypothesis(symmetry, LINEAR))
    return found


def _told_apart_by_means(symmetries: Sequence[AnySymmetry]) -> list[AnySymmetry]:
    """Symmetries that have a linear function of their own, the largest of each with the same orbit means.

    A linear function that is invariant to cyclic shifts is invariant to all permutations too: it speaks for the
    larger group.
    """
    largest: dict[bytes, AnySymmetry] = {}
    for symmetry in sorted((s for s in symmetries if isinstance(s, Group)), key=rank):
        largest[reynolds_operator(symmetry).round(decimals=6).numpy().tobytes()] = symmetry
    return list(largest.values())


def compared_units(copies: int, rivals: Sequence[int]) -> int:
    """Count the units that make each feature of a network, before it is pooled over copies.

    A feature pooled over a group is made of tied units, one per element. More units alone would make a larger
    group win where there is no symmetry at all. So a smaller group gets more untied units: all networks have the
    same number, and each hypothesis is nothing but a constraint on the same plain network. If the orders do not
    divide one another, the total is the number that comes closest; a larger group has one unit per element.

    Args:
        copies: Copies that the network makes of each input: the order of its group.
        rivals: Copies of all networks that are compared.

    Returns:
        Untied units per feature.
    """
    orders = set(rivals)
    fewest = min(MOST_COPIES, max(orders))

    def unevenness(total: int) -> float:
        return max(abs(math.log(round(total / n) * n / total)) for n in orders if n <= total)

    total = min(range(fewest, 2 * fewest + 1), key=unevenness)
    return max(1, round(total / copies))


@overload
def with_joins(
    symmetries: Sequence[Group], *, closed: bool = True, limit: int = MAX_HYPOTHESES
) -> list[Group]: ...


@overload
def with_joins(
    symmetries: Sequence[AnySymmetry], *, closed: bool = True, limit: int = MAX_HYPOTHESES
) -> list[AnySymmetry]: ...


def with_joins(
    symmetries: Sequence[AnySymmetry], *, closed: bool = True, limit: int = MAX_HYPOTHESES
) -> list[AnySymmetry] | list[Group]:
    """List the candidates, no symmetry, and all joins; equal ones once, groups before ranges, sorted by size.

    Args:
        symmetries: The candidates.
        closed: Whether to add joins.
        limit: Largest number of symmetries.

    Returns:
        The symmetries to compare.

    Raises:
        ValueError: If there are no candidates, too many hypotheses, or two symmetries of one name.

    >>> from invariantnet import symmetry
    >>> found = with_joins([symmetry(n, shape=(28, 28)) for n in ("rot90", "flips")])
    >>> ", ".join(g.name for g in found)
    'trivial, flips, rot90, d4'
    """
    if not symmetries:
        raise ValueError("no candidate groups: pass at least one, or their names.")
    dims = {s.dim for s in symmetries}
    if len(dims) > 1:
        raise ValueError(f"candidates on inputs of different lengths {sorted(dims)}: make them for one shape.")
    found: list[AnySymmetry] = [_trivial(symmetries[0])]
    waiting: list[AnySymmetry] = []

    def add(candidate: AnySymmetry) -> None:
        if isinstance(candidate, Range) and candidate.exact:  # a range of no extent is its group, or nothing
            candidate = candidate.group or found[0]
        known = [*found, *waiting]
        if any(g == candidate for g in known):
            return
        # Fail as early as possible: joins of large groups take long.
        if len(known) == limit:
            raise ValueError(
                f"more than {limit} symmetries, joins included: pass fewer candidates, such as rotation:30 for "
                "rotation, or leave the joins out (joins=False)."
            )
        if candidate.name in {g.name for g in known}:
            raise ValueError(
                f"two different symmetries are called {candidate.name!r}: give each a name of its own, "
                "Group.from_permutations(…, name='…')."
            )
        waiting.append(candidate)

    for symmetry in sorted(symmetries, key=rank):
        add(symmetry)
    while waiting:
        candidate = waiting.pop(0)
        found.append(candidate)
        for other in found[1:-1] if closed else ():
            known = [g for g in (*found, *waiting) if isinstance(g, Group)]
            smaller, larger = sorted((candidate, other), key=rank)
            add(join(smaller, larger, known))
    return sorted(found, key=rank)


def _trivial(like: AnySymmetry) -> Group:
    identity = np.arange(like.dim)[None]
    return Group(TRIVIAL, identity, like.shape, known_elements=identity)


def rank(symmetry: AnySymmetry) -> tuple[bool, int, bool, str, float]:
    """Sort key of symmetries: groups before ranges, and by size.

    Args:
        symmetry: A symmetry.

    Returns:
        A tuple that sorts groups before ranges, then by size, then single names before joins, then by name.
    """
    # At equal order a single name goes before a join, so that of equal groups the plainer name stays.
    if isinstance(symmetry, Group):
        return (False, symmetry.order, "+" in symmetry.name, symmetry.name, 0.0)
    order = 1 if symmetry.group is None else symmetry.group.order
    return (True, order, len(symmetry.extents) > 1, symmetry.family, symmetry.value)
