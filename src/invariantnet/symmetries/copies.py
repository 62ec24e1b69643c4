r"""All copies of an input under several symmetries, each made once, and how groups move them.

Let U be the smallest group that contains all groups of a comparison. For any function φ, the features of all
copies are $Z(x) = (φ(T_u x))_{u \in U}$. A group $G \le U$ acts on Z by exchanging copies,
$Z(T_g x)_u = Z(x)_{ug}$. So Z is an ordinary input, and every group is a permutation group on it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from invariantnet.symmetries.group import Group, transform
from invariantnet.symmetries.named import join
from invariantnet.symmetries.ranges import AnySymmetry, Range

MOST_COPIES = 64
"""Elements of the group that all candidates generate: each is a pass of every input through the body."""
MOST_COPIES_OF_RANGES = 256
"""Distinct copies of all ranges and groups of a comparison; ladders of ranges share few of them."""

DECIMALS = 9
"""Decimals to which two copies of a random input agree if they are one copy; products of matrices are rounded."""


@dataclass(frozen=True, eq=False)
class Copies:
    """The distinct copies that several symmetries make of an input.

    Args:
        carriers: Symmetries whose copies they are.
        kept: Of each carrier, the numbers of the copies that no earlier carrier makes.
        keys: Recognises each copy.

    Example:
        >>> from invariantnet import symmetry
        >>> flip, turns = (symmetry(name, shape=(2, 2)) for name in ("hflip", "rot90"))
        >>> copies = Copies.of([flip, turns])
        >>> copies.count, copies.numbers(flip), copies.lifted(flip, features=1).order
        (8, (0, 2), 2)
    """

    carriers: tuple[AnySymmetry, ...]
    kept: tuple[tuple[int, ...], ...]
    keys: tuple[bytes, ...]

    @classmethod
    def of(cls, symmetries: Sequence[AnySymmetry]) -> "Copies":
        """Collect the copies: those of the join if all symmetries are groups, else those of each symmetry.

        Args:
            symmetries: Symmetries on inputs of one length.

        Returns:
            The copies, each once.

        Raises:
            ValueError: There are too many copies.
        """
        groups = [s for s in symmetries if isinstance(s, Group)]
        carriers: tuple[AnySymmetry, ...] = tuple(symmetries)
        if len(groups) == len(symmetries):
            carriers = (_join_of(groups),)
        found: dict[bytes, None] = {}
        kept = []
        for carrier in carriers:
            new = []
            for k, key in enumerate(_keys(_copies_of_the_probe(carrier))):
                if key not in found:
                    found[key] = None
                    new.append(k)
            kept.append(tuple(new))
        if len(found) > MOST_COPIES_OF_RANGES:
            raise ValueError(
                f"the candidates make {len(found)} copies of each input, more than {MOST_COPIES_OF_RANGES} for a "
                "pretrained body: pass fewer candidates."
            )
        return cls(carriers, tuple(kept), tuple(found))

    @property
    def count(self) -> int:
        """Number of copies of each input."""
        return len(self.keys)

    @property
    def digest(self) -> str:
        """Recognises these copies, in this order."""
        return hashlib.sha256(b"".join(self.keys)).hexdigest()[:16]

    def act(self, x: Float[Tensor, "n dim"]) -> Float[Tensor, "n copies dim"]:
        """Make all copies of flat inputs; the first is the input itself."""
        made = x.new_empty((len(x), self.count, x.shape[1]))
        shares = made.split([len(kept) for kept in self.kept], dim=1)
        for carrier, kept, share in zip(self.carriers, self.kept, shares, strict=True):
            if kept:
                copies = carrier.act(x)
                share.copy_(copies if len(kept) == copies.shape[1] else copies[:, list(kept)])
        return made

    def numbers(self, symmetry: AnySymmetry) -> tuple[int, ...]:
        """Numbers of the copies that a symmetry makes, among all of them."""
        position = {key: k for k, key in enumerate(self.keys)}
        return tuple(position[key] for key in _keys(_copies_of_the_probe(symmetry)))

    def lifted(self, group: Group, features: int) -> Group:
        """Make the group that exchanges the copies of an input as `group` moves the input.

        Args:
            group: A subgroup of the only carrier.
            features: Numbers that stand for each copy.

        Returns:
            The permutation group on vectors of length copies x features.
        """
        position = {key: k for k, key in enumerate(self.keys)}
        rows = []
        for generator in group.generators:
            moved = transform(_probe(group.dim), torch.from_numpy(generator))
            exchanged = np.array([position[key] for key in _keys(self.act(moved[None])[0])])
            rows.append((exchanged[:, None] * features + np.arange(features)).ravel())
        return Group.from_permutations(np.array(rows), name=group.name)


def few_enough(groups: Sequence[Group]) -> list[Group]:
    """Take groups, from the first on, while all that are taken make few enough copies together.

    Args:
        groups: Groups on inputs of one length, the smallest first.

    Returns:
        The groups that are taken.
    """
    taken: list[Group] = []
    whole = groups[0]
    for group in groups:
        joined = _joined(whole, group)
        if joined is not None:
            whole = joined
            taken.append(group)
    return taken


def _join_of(groups: Sequence[Group]) -> Group:
    whole = groups[0]
    for group in groups:
        joined = _joined(whole, group)
        if joined is None:
            raise ValueError(
                f"with {group.name}, the candidates together make more than the {MOST_COPIES} copies of an input "
                "that pass through a pretrained body: pass fewer or smaller candidates."
            )
        whole = joined
    return whole


def _joined(first: Group, second: Group) -> Group | None:
    """The join of two groups; None if it has too many elements."""
    if second.order > MOST_COPIES:  # the join of large groups would take long to find
        return None
    found = first if second <= first else join(first, second)
    assert isinstance(found, Group)
    return found if found.order <= MOST_COPIES and found.can_list_elements else None


def _probe(dim: int) -> Float[Tensor, " dim"]:
    """An input without any symmetry."""
    return torch.rand(dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def _copies_of_the_probe(symmetry: AnySymmetry) -> Float[Tensor, "copies dim"]:
    if isinstance(symmetry, Range):
        return symmetry.act(_probe(symmetry.dim))
    return transform(_probe(symmetry.dim), symmetry.elements)


def _keys(copies: Float[Tensor, "copies dim"]) -> list[bytes]:
    # Adding 0.0 turns -0.0 into 0.0, whose bytes differ. A digest is shorter than a copy.
    rounded = np.round(copies.numpy(), DECIMALS) + 0.0
    return [hashlib.sha256(copy.tobytes()).digest() for copy in rounded]
