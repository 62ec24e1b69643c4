"""Permutations that leave moments alone, and the closure of noisy ones."""

import numpy as np
import pytest

from invariantnet.discovery._matching import Limits, Moments, _curve, _curve_of_corner, as_start, match
from invariantnet.discovery.closing import Closing
from invariantnet.discovery.moments import inputs_that_vary, moments_given_labels, parts_of
from invariantnet.discovery.neighbours import conjugate, fitting, regular_part, same_group
from invariantnet.discovery.proposals import Proposal, exchanges, search
from invariantnet.discovery.ranking import exchange_misfits
from invariantnet.symmetries._closure import close_indices, extend
from invariantnet.symmetries.lookup import symmetry


def invariant_moments(elements, seed, noise=0.0):
    """Random moments, averaged over a group."""
    rng = np.random.default_rng(seed)
    dim = elements.shape[1]
    pairs = rng.normal(size=(2, dim, dim))
    exact = Moments(rng.normal(size=(1, dim)), rng.normal(size=(1, dim)), pairs + pairs.transpose(0, 2, 1))
    averaged = exact.averaged(elements)
    errors = noise * rng.normal(size=pairs.shape)
    return Moments(averaged.even, averaged.odd, averaged.pairs + errors + errors.transpose(0, 2, 1))


def scrambled(group, seed):
    places = np.random.default_rng(seed).permutation(group.dim)
    return np.stack([conjugate(g, places) for g in group.generators])


@pytest.mark.parametrize("name", ["rot90", "hflip", "d4"])
def test_a_hidden_group_is_found_from_its_moments(name):
    generators = scrambled(symmetry(name, (5, 5)), seed=1)
    elements = close_indices(generators, 100, name)
    moments = invariant_moments(elements, seed=2, noise=0.05)
    best = search(moments, np.random.default_rng(0), signed=False)[0][1]
    assert best.tobytes() in {e.tobytes() for e in elements}


def test_loss_is_zero_exactly_for_elements():
    elements = close_indices(symmetry("rot90", (3, 3)).generators, 100, "rot90")
    moments = invariant_moments(elements, seed=0)
    assert all(moments.loss(e) == pytest.approx(0, abs=1e-18) for e in elements)
    assert moments.loss(np.roll(np.arange(9), 1)) > 1


def test_changes_of_sign_count_as_the_formula_says():
    moments = invariant_moments(np.arange(4)[None], seed=3)
    index = np.array([5, 0, 2, 7])  # -x1, x0, x2, -x3
    signs = np.zeros((4, 4))
    signs[[0, 1, 2, 3], [1, 0, 2, 3]] = -1, 1, 1, -1
    expected = ((moments.even - moments.even @ np.abs(signs).T) ** 2).sum()
    expected += ((moments.odd - moments.odd @ signs.T) ** 2).sum()
    expected += ((moments.pairs - signs @ moments.pairs @ signs.T) ** 2).sum()
    assert moments.loss(index) == pytest.approx(expected)
    free = Limits(np.ones((4, 4), bool), np.ones((4, 4), bool))
    assert moments.loss(match(moments, free, as_start(index))) <= moments.loss(index)


def test_misfit_of_exchanges_is_that_of_each_exchange():
    moments = invariant_moments(np.arange(6)[None], seed=4)
    fast = exchange_misfits(moments)
    for i in range(6):
        for j in range(i):
            exchange = np.arange(6)
            exchange[[i, j]] = j, i
            assert fast[i, j] == pytest.approx(moments.misfit(exchange))


def test_exchangeable_parts_are_among_the_partitions():
    part = np.stack([[1, 0, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5]])
    moments = invariant_moments(close_indices(part, 10, "three"), seed=5, noise=0.01)
    assert any(same_group(generators, part) for _, generators in exchanges(moments))


def test_a_noisy_element_is_mended_by_the_group_it_maps_onto_itself():
    turns = close_indices(symmetry("rot90", (6, 6)).generators, 10, "rot90")
    flip = symmetry("hflip", (6, 6)).generators[0]
    noisy = flip.copy()
    noisy[[3, 17]] = noisy[[17, 3]]
    assert np.array_equal(fitting(noisy, turns), flip)


def test_products_with_a_corner_are_those_with_its_matrix():
    moments = invariant_moments(np.arange(5)[None], seed=9)
    index = np.array([6, 0, 4, 3, 7])  # -x1, x0, x4, x3, -x2
    plus, minus = as_start(index)
    expected = sum(matrix @ (plus - minus) @ matrix for matrix in moments.pairs)
    for found in (_curve(moments, plus - minus), _curve_of_corner(moments, index)):
        assert np.allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_turn_with_wrong_places_keeps_its_right_ones():
    turn = symmetry("rot90", (6, 6)).generators[0]
    noisy = turn.copy()
    noisy[[3, 17]] = noisy[[17, 3]]  # two cycles of four become one of eight
    kept = regular_part(noisy, 0.65)
    moved = kept != np.arange(36)
    assert moved.sum() == 28
    assert np.array_equal(kept[moved], turn[moved])
    assert np.array_equal(regular_part(turn, 0.65), turn)


CLEAR = np.zeros(4, bool)
"""No input is in doubt."""


class Gains:
    """Stands for a judge: a gain for each group, by the bytes of its generators."""

    def __init__(self, gains):
        self.gains = gains

    def gain(self, generators):
        return self.gains[np.unique(generators, axis=0).tobytes()]

    def log_e_value_against_inputs(self, generators, unclear):
        return 0.0


@pytest.mark.usefixtures("annotations_unchecked")
@pytest.mark.parametrize(("both", "generators"), [(10.2, 1), (15.0, 2)])
def test_generators_that_labels_do_not_pay_for_are_left_out(both, generators):
    right, wrong = np.array([[1, 0, 3, 2]]), np.array([[1, 0, 2, 3]])
    together = np.unique(np.concatenate([right, wrong]), axis=0)
    judge = Gains({right.tobytes(): 10.0, wrong.tobytes(): 8.0, together.tobytes(): both})
    closing = Closing(judge, {}, np.random.default_rng(0), CLEAR)
    found = closing._lean(closing.candidate(together, CLEAR), of_inputs=True)
    assert len(found.generators) == generators
    if generators == 1:
        assert np.array_equal(found.generators, right)


@pytest.mark.usefixtures("annotations_unchecked")
def test_a_permutation_of_irregular_cycles_is_no_symmetry():
    """Cycles of 7, 11, 13 and 17 inputs: the order is 17,017, and no length covers most of them."""
    lengths = (7, 11, 13, 17)
    starts = np.cumsum((0, *lengths[:-1]))
    noisy = np.concatenate([start + np.roll(np.arange(n), 1) for start, n in zip(starts, lengths, strict=True)])
    closing = Closing(Gains({noisy.tobytes(): 9.0}), {}, np.random.default_rng(0), np.zeros(48, bool))
    assert closing.close([Proposal(noisy[None], "inputs", "permutation", 1.0)]) is None


@pytest.mark.usefixtures("annotations_unchecked")
def test_of_equally_good_candidates_the_smallest_group_is_taken():
    right, noisy = np.array([[1, 0, 3, 2]]), np.array([[1, 2, 3, 0]])
    gains = Gains({right.tobytes(): 10.0, noisy.tobytes(): 10.5})
    closing = Closing(gains, {}, np.random.default_rng(0), CLEAR)
    pool = [closing.candidate(right, CLEAR), closing.candidate(noisy, CLEAR)]
    closing.judge.gains[np.unique(np.concatenate([right, noisy]), axis=0).tobytes()] = 9.0
    assert np.array_equal(
        closing._joined(closing._first(pool, of_inputs=False), pool, of_inputs=False).generators, right
    )


def test_conjugates_rename_inputs():
    rng = np.random.default_rng(6)
    by, index = rng.permutation(7), rng.permutation(7)
    x = rng.normal(size=7)
    # Renaming, moving and renaming back is the conjugate.
    assert np.array_equal(x[conjugate(index, by)], x[np.argsort(by)[index[by]]])
    assert np.array_equal(extend(conjugate(index, np.arange(7))), extend(index))


def test_inputs_that_hardly_vary_are_set_aside():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(300, 5))
    x[:, 1], x[:, 3] = 0.0, (rng.random(300) < 0.01) * 1.0
    assert inputs_that_vary(x).tolist() == [True, False, True, False, True]


def test_parts_hold_every_example_once():
    y = np.repeat([0, 1, 2, 3], [50, 40, 3, 2])
    for parts in (parts_of(y, classes=True), parts_of(y.astype(float), classes=False)):
        assert sorted(np.concatenate(parts).tolist()) == list(range(95))
    assert len(parts_of(y, classes=True)) == 3


def test_moments_do_not_depend_on_units():
    x = np.random.default_rng(8).normal(size=(200, 4)) * [1, 2, 3, 4]
    parts = [np.arange(100), np.arange(100, 200)]
    one, other = moments_given_labels(x, parts), moments_given_labels(1000 * x, parts)
    assert np.allclose(one.pairs, other.pairs)
    assert np.allclose(one.odd, other.odd)
