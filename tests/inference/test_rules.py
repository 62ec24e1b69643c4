"""The rules of a race: its blocks, and which hypotheses are hopeless."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from invariantnet.inference.rules import Drop, error_of_networks, hopeless, plan_blocks, with_bounds


@example(1, None, 2.0)
@given(st.integers(1, 5000), st.one_of(st.none(), st.integers(1, 600)), st.floats(1.1, 4))
def test_blocks_grow_and_cover_everything(n, first, growth):
    if (first or 1) >= n:
        with pytest.raises(ValueError, match="leaves none"):
            plan_blocks(n, first, growth)
        return
    blocks = plan_blocks(n, first, growth)
    ends = [blocks[0].start, *(block.end for block in blocks)]
    assert [block.start for block in blocks] == ends[:-1]
    assert [block.number for block in blocks] == list(range(len(blocks)))
    assert ends[-1] == n
    assert ends == sorted(set(ends))
    least = max(16, min(32, n // 4))
    assert ends[0] == (first or min(500, max(least, n // 16 if n >= 2000 else n // 8), n // 2))


@pytest.mark.parametrize(
    ("n", "first", "growth", "ends"),
    [
        (5000, None, None, [312, 1248, 5000]),
        (2000, None, None, [125, 500, 2000]),
        (999, None, None, [124, 248, 496, 999]),
        (150, None, None, [32, 64, 150]),
        (100, None, None, [25, 50, 100]),
        (20_000, None, None, [500, 2000, 8000, 20_000]),
        (1_000_000, None, None, [500, 2000, 8000, 32_000]),  # so that the comparison does not take hours
        (950, 100, 2.0, [100, 200, 400, 950]),
        (1650, 100, 2.0, [100, 200, 400, 800, 1650]),
        (2000, 100, 2.0, [100, 200, 400, 800, 1600, 2000]),
        (110, 100, 2.0, [100, 110]),
        (220, 100, 2.0, [100, 220]),
        (4, 1, 1.1, [1, 2, 3, 4]),
    ],
)
def test_blocks_of_known_sizes(n, first, growth, ends):
    assert [block.end for block in plan_blocks(n, first, growth)] == ends[1:]


def test_only_a_group_with_more_elements_is_dropped_and_only_when_far_behind():
    leader = np.zeros(100)
    noise = np.tile([-1.0, 1.0], 50)  # four standard errors of its sum are 40 nats
    for behind, out in ((49.0, {}), (51.0, {1: 0})):
        seen = np.stack([leader, noise - behind / 100])
        assert hopeless(seen, [0, 1], [4, 4], 10.0) == out
        assert hopeless(seen, [0, 1], [4, 8], 10.0) == out
        assert hopeless(seen, [0, 1], [4, 2], 10.0) == {}, "with more data it could catch up"
        assert hopeless(seen, [1], [4, 8], 10.0) == {}, "its rival is out already"
        assert hopeless(seen, [0, 1], [4, 8], np.inf) == {}
    assert hopeless(np.array([[0.0], [-10.0]]), [0, 1], [1, 1], 10.0) == {}
    for error, out in ((7.4, {1: 0}), (7.6, {})):  # hypot(10, 7.5) is 12.5, four of it are 50
        assert hopeless(np.stack([leader, noise - 0.6]), [0, 1], [4, 4], 10.0, error) == out
    steps = np.array([[-1.0], [-3.0], [-2.0]]) * np.ones(100)
    assert hopeless(steps, [0, 1, 2], [1, 1, 1], 10.0) == {1: 0, 2: 0}, "the rival that is furthest ahead"


def test_a_dropped_hypothesis_is_credited_with_the_scores_of_the_rival_that_beat_it():
    """Also if that rival was dropped later; never with the scores of another hypothesis that won in the end."""
    scored = np.arange(-32.0, 0).reshape(4, 2, 4)
    bounded = with_bounds(scored, {1: Drop(2, 2), 2: Drop(0, 3)})
    np.testing.assert_array_equal(bounded[[0, 3]], scored[[0, 3]])
    np.testing.assert_array_equal(bounded[1, :, :2], scored[1, :, :2])
    np.testing.assert_array_equal(bounded[1, :, 2], scored[2, :, 2])
    np.testing.assert_array_equal(bounded[2, :, :3], scored[2, :, :3])
    np.testing.assert_array_equal(bounded[1:3, :, 3], scored[[0, 0], :, 3])
    at_once = with_bounds(scored, {1: Drop(2, 2), 2: Drop(0, 2)})
    np.testing.assert_array_equal(at_once[1:3, :, 2:], scored[[0, 0], :, 2:])


def test_the_error_of_networks_is_that_of_a_difference_of_two():
    rng = np.random.default_rng(0)
    block = rng.normal(size=(500, 4, 1)) * 3 / 25 + rng.normal(size=(500, 1, 25))
    differences = (
        block[::2, 0].sum(-1) - block[1::2, 0].sum(-1) - (block[::2].mean(1) - block[1::2].mean(1)).sum(-1)
    )
    assert error_of_networks(block) * 25 == pytest.approx(np.sqrt(2) * 3, rel=0.1)
    assert differences.std() == pytest.approx(np.sqrt(2 * 3 / 4) * 3, rel=0.1), "less the mean of four"
