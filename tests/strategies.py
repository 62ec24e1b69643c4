"""Groups to test laws on: the catalogue on many shapes, and random ones."""

import numpy as np
import torch
from hypothesis import strategies as st
from scipy.linalg import block_diag

from invariantnet import Group, symmetry
from invariantnet.symmetries._closure import as_matrices
from invariantnet.symmetries.lookup import symmetries_for

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
"""Largest rounding error of sums over a group, by the type of the numbers."""

SHAPES = [(1,), (5,), (2, 2), (3, 5), (4, 4), (5, 3), (2, 3, 3), (3, 2, 4)]
CATALOGUE_GROUPS = [
    group for shape in SHAPES for group in symmetries_for(shape) if group.can_list_elements and group.order <= 720
]


def groups(*names: str, shape: tuple[int, ...] = (4, 4)) -> list[Group]:
    return [symmetry(name, shape=shape) for name in names]


def label(group: Group) -> str:
    return f"{group.name}-{'x'.join(map(str, group.shape or (group.dim,)))}"


def matrices(group: Group) -> np.ndarray:
    elements = group.elements.numpy()
    return elements if group.is_matrix_group else as_matrices(elements)


def dense(tensor: torch.Tensor) -> np.ndarray:
    return (tensor.to_dense() if tensor.layout == torch.sparse_csr else tensor).numpy()


def rotation(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


@st.composite
def permutation_groups(draw, dims=st.integers(1, 6)) -> Group:  # noqa: B008 - strategies are immutable
    dim = draw(dims)
    generators = draw(st.lists(st.permutations(range(dim)), min_size=1, max_size=3))
    return Group.from_permutations(generators, name="random permutations")


@st.composite
def signed_groups(draw) -> Group:
    dim = draw(st.integers(1, 4))
    indices = draw(st.lists(st.permutations(range(dim)), min_size=1, max_size=2))
    signs = draw(st.lists(st.lists(st.booleans(), min_size=dim, max_size=dim), min_size=2, max_size=2))
    generators = [
        [i + dim * s for i, s in zip(index, sign, strict=True)]
        for index, sign in zip(indices, signs[: len(indices)], strict=True)
    ]
    return Group.from_permutations(generators, name="random signed permutations")


@st.composite
def matrix_groups(draw) -> Group:
    """Dihedral groups beside a trivial direction, in a random basis: not orthogonal, R not symmetric."""
    n = draw(st.integers(2, 6))
    extra = draw(st.integers(0, 2))
    seed = draw(st.integers(0, 2**16))
    rng = np.random.default_rng(seed)
    dim = 2 + extra
    basis = np.eye(dim) + 0.3 * rng.uniform(-1, 1, (dim, dim)) / dim
    turn = block_diag(rotation(2 * np.pi / n), np.eye(extra))
    mirror = block_diag(np.diag([1.0, -1.0]), np.eye(extra))
    kept = [turn, mirror] if draw(st.booleans()) else [turn]
    return Group.from_matrices([np.linalg.solve(basis, m @ basis) for m in kept], name="random matrices")


any_group = st.one_of(st.sampled_from(CATALOGUE_GROUPS), permutation_groups(), signed_groups(), matrix_groups())
index_group = st.one_of(st.sampled_from(CATALOGUE_GROUPS), permutation_groups(), signed_groups())
