"""From predictions to probabilities, and to words."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from invariantnet.inference import SymmetryPosterior
from invariantnet.inference.bootstrap import bootstrap_probabilities, mean_prediction
from invariantnet.inference.by_class import Gain
from invariantnet.inference.findings import Price
from invariantnet.inference.hypotheses import with_joins
from invariantnet.inference.lattice import at_least
from invariantnet.priors import log_prior_of
from invariantnet.symmetries.named import symmetry


def test_bootstrap_posterior_against_a_plain_loop():
    rng = np.random.default_rng(0)
    values = rng.normal(-1, 0.5, (3, 2, 60))
    log_prior = np.log([0.2, 0.3, 0.5])
    ours = bootstrap_probabilities(values, log_prior, seed=1, draws=20_000)
    slow = []
    for _ in range(4000):
        w, u = rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(2))
        score = log_prior + 60 * np.array([np.log(u @ np.exp(scheme)) @ w for scheme in values])
        p = np.exp(score - score.max())
        slow.append(p / p.sum())
    np.testing.assert_allclose(ours, np.mean(slow, 0), atol=0.03)


def test_equal_examples_give_the_same_sum_in_every_draw():
    """Whatever their weights, which add up to the number of examples."""
    values = np.array([-1.0, -1.3])[:, None, None].repeat(5, axis=2)
    p = bootstrap_probabilities(values, np.zeros(2), 0)
    assert p[0] == pytest.approx(1 / (1 + np.exp(-1.5)))


def test_many_examples_do_not_underflow():
    p = bootstrap_probabilities(np.full((2, 1, 20_000), -3.0), np.log([0.8, 0.2]), 0, draws=20)
    assert p.tolist() == pytest.approx([0.8, 0.2])


def test_weights_of_networks_are_uniform_on_their_simplex(monkeypatch):
    """One network of three predicts the label, against three that guess among three classes."""
    monkeypatch.setattr("invariantnet.inference.bootstrap.MIXES", 20_000)
    values = np.log([[[1.0], [1e-300], [1e-300]], [[1 / 3]] * 3])
    p = bootstrap_probabilities(values, np.zeros(2), 0, draws=20_000)
    u = (np.arange(1000) + 0.5) / 1000
    assert p[0] == pytest.approx(np.mean(2 * (1 - u) * u / (u + 1 / 3)), abs=0.006)


def test_bootstrap_is_less_sure_of_a_difference_that_a_few_examples_make():
    even = np.full((2, 1, 400), -0.5)
    noisy = even.copy()
    noisy[1, 0, :3] += 3.0
    plain_softmax = 1 / (1 + np.exp(-9.0))
    assert bootstrap_probabilities(noisy, np.zeros(2), 0)[1] < plain_softmax
    np.testing.assert_allclose(bootstrap_probabilities(even, np.zeros(2), 0), [0.5, 0.5])
    steady = even.copy()
    steady[1] += 0.1
    assert bootstrap_probabilities(steady, np.zeros(2), 0)[1] > 0.999


def test_prior_of_hypotheses():
    np.testing.assert_allclose(np.exp(log_prior_of((1.0, 3.0), 2)), [0.25, 0.75])
    for alpha in (0.0, -1.0, (1.0,), (1.0, float("inf"))):
        with pytest.raises(ValueError, match="is no prior"):
            log_prior_of(alpha, 2)


def test_what_is_at_least_there_counts_every_larger_symmetry():
    lattice = with_joins([symmetry(name, (4, 4)) for name in ("rot90", "flips", "hflip")])
    assert [g.name for g in lattice] == ["trivial", "hflip", "flips", "rot90", "d4"]
    assert at_least(lattice, (0.1, 0.1, 0.1, 0.3, 0.4)).round(9).tolist() == [1.0, 0.6, 0.5, 0.7, 0.4]
    turns = [symmetry(name, (5, 5)) for name in ("trivial", "rot90", "rotation:90", "rotation:180")]
    assert at_least(turns, (0.1, 0.2, 0.3, 0.4)).round(9).tolist() == [1.0, 0.6, 0.7, 0.4], (
        "full turns hold quarters"
    )
    apart = with_joins([symmetry(name, (4, 4)) for name in ("hflip", "shifts")], closed=False)
    assert at_least(apart, (0.1, 0.2, 0.7)).round(9).tolist() == [1.0, 0.2, 0.7]


def posterior_with(*probabilities):
    names = ("trivial", "rot90", "d4")[: len(probabilities)]
    return SymmetryPosterior(
        names, (1, 4, 8)[: len(names)], probabilities, (0.0,) * len(names), (0.0,) * len(names), 100
    )


@pytest.mark.parametrize(
    ("probabilities", "words"),
    [
        (
            (0.001, 0.995, 0.004),
            "decisive: quarter turns (rot90), with probability 0.995 after 100 predictions; next quarter turns",
        ),
        ((0.95, 0.03, 0.02), "strong: no symmetry"),
        ((0.4, 0.35, 0.25), "inconclusive: no symmetry"),
        ((1.0,), "not compared: no symmetry was the only candidate"),
    ],
)
def test_verdict_in_words(probabilities, words):
    assert posterior_with(*probabilities).verdict.startswith(words)


def test_the_table_of_a_posterior():
    posterior = SymmetryPosterior(
        ("trivial", "rot90"), (1, 4), (0.25, 0.75), (-9.0, -8.0), (0.0, 0.0), 10, ("trivial",)
    )
    lines = str(posterior).splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["trivial", "1", "0.250", "≤", "-9.0", "no", "symmetry"],
        ["rot90", "4", "0.750", "-8.0", "quarter", "turns"],
    ]
    assert posterior.log_bayes_factors == (-1.0, 0.0)
    assert lines[3].startswith("elements: ways in which a symmetry moves an input")
    assert "A nat is a factor of 2.7" in lines[4]
    assert lines[5].startswith("Probabilities allow for the luck of these examples and networks")
    assert lines[6].startswith("≤: given up early")
    assert "race" not in repr(posterior), "the history of a race is long"
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        str(replace(posterior, orders=(1,)))
    with pytest.raises(ValueError, match="were not stored"):
        posterior.over_schemes()


def test_of_many_symmetries_the_table_shows_the_probable_ones():
    names = ("trivial", *(f"g{k}" for k in range(9)))
    probabilities = (0.0, 0.9, 0.0992, *[0.0001] * 6, 0.0002)
    lines = str(SymmetryPosterior(names, (1, *[2] * 9), probabilities, (-9.0,) * 10, (0.0,) * 10, 10)).splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["trivial", "g0", "g1"]
    assert lines[4] == "and 7 more, with probabilities below 0.001."


@pytest.mark.parametrize(
    ("best", "word"),
    [
        (0.99, "decisive"),
        (0.9896, "decisive"),
        (0.989, "strong"),
        (0.9, "strong"),
        (0.899, "inconclusive"),
    ],
)
def test_strength_in_words(best, word):
    assert posterior_with(1 - best, best).strength == word


def test_the_verdict_mentions_a_second_opinion():
    posterior = posterior_with(0.25, 0.75)
    assert posterior.second_opinion is None
    assert "Laplace" not in posterior.verdict
    assert replace(posterior, laplace=(-2.0, -1.0)).verdict.endswith("; Laplace's approximation agrees")
    assert replace(posterior, laplace=(-1.0, -2.0)).verdict.endswith(
        "; Laplace's approximation favours no symmetry"
    )


def test_the_verdict_says_if_no_network_has_learned():
    posterior = posterior_with(0.25, 0.75)
    assert "guess" not in posterior.verdict
    nothing = replace(posterior, learned=False)
    assert nothing.strength == "nothing learned"
    assert nothing.verdict.startswith("nothing learned: ")
    assert "probability" not in nothing.verdict
    assert any("more examples" in step for step in nothing.next_steps)
    assert str(nothing).splitlines()[-len(nothing.next_steps)] == f"- {nothing.next_steps[0]}"


@pytest.mark.parametrize(
    ("needed", "at_best", "said"),
    [
        (30, 20, "about 20 more examples"),
        (None, 50, "too early to say how many more examples would settle it: at least 40"),
        (10_000, 50, "too early to say"),
        (None, 10_000, "hardly"),
        (10_000, 10_000, "hardly"),
    ],
)
def test_an_open_verdict_says_what_would_settle_it(needed, at_best, said):
    known = {"examples": 10, "examples_needed": needed, "examples_at_best": at_best}
    assert said in replace(posterior_with(0.45, 0.55), **known).verdict
    step = replace(posterior_with(0.45, 0.55), **known).next_steps[0]
    assert step.startswith("use either" if said == "hardly" else "label ")
    assert said not in replace(posterior_with(0.05, 0.95), **known).verdict


def test_advice_agrees_with_the_network_that_was_built_with_a_tolerance():
    prices = tuple(Price(name, k, loss, {}) for name, k, loss in (("trivial", 1, 0.0), ("rot90", 4, 0.01)))
    open_verdict = replace(posterior_with(0.55, 0.45), prices=prices)
    assert open_verdict.built_in == "trivial"
    assert "no symmetry built in" in open_verdict.next_steps[-1]
    tolerated = replace(open_verdict, tolerance=0.02)
    assert tolerated.built_in == "rot90"
    assert tolerated.next_steps[-1].endswith("the largest symmetry within the tolerance, quarter turns")
    assert not any("pass tolerance" in step for step in tolerated.next_steps)


def test_an_open_verdict_without_evidence_builds_in_nothing_and_names_the_method_that_tells_more():
    unknown = (float("nan"),) * 2
    learned_pi = replace(posterior_with(0.45, 0.55), log_evidence=unknown, log_evidence_spread=unknown)
    assert learned_pi.built_in == "trivial"
    assert "method='evidence'" in learned_pi.next_steps[0]
    assert not any("use either" in step for step in learned_pi.next_steps)
    assert replace(learned_pi, probabilities=(0.05, 0.95)).built_in == "rot90"


def test_only_classes_that_refute_a_symmetry_are_said_to():
    gains = [Gain("rot90", part, -0.5 if part == "a" else 0.0, 0.01, 100) for part in "abcdefgh"]
    worse = replace(posterior_with(0.6, 0.4), by_class=tuple(gains))
    assert "with which a is predicted worse" in worse.verdict
    assert "refuted" not in worse.verdict
    assert "refuted by a" in replace(worse, refuted_by={"rot90": ("a",)}).verdict
    assert "refuted most by a and b;" in replace(worse, refuted_by={"rot90": ("a", "b", "c")}).verdict
    assert "refuted" not in replace(worse, refuted_by={"rot90": tuple("abcdefgh")}).verdict, "all do"


def test_the_table_says_why_no_symmetry_leads_with_less_evidence():
    posterior = replace(posterior_with(0.51, 0.49), log_evidence=(-7.8, -6.3))
    assert "beforehand it has ½" in str(posterior)
    assert "beforehand it has ½" not in str(replace(posterior, log_evidence=(-6.3, -7.8)))


def test_what_is_worth_asking_is_most_probable_alone_or_within_larger_ones():
    """Channels are more probable than turns alone, but turns are part of two larger symmetries."""
    names, p = ("trivial", "channels", "rot90", "d4", "rot90+channels"), (0.26, 0.28, 0.1, 0.16, 0.2)
    whole = replace(posterior_with(0.5, 0.5), names=names, orders=(1, 6, 4, 8, 24), probabilities=p)
    whole = replace(whole, log_evidence=(0.0,) * 5, at_least=(1.0, 0.48, 0.46, 0.16, 0.2))
    assert any("--symmetries channels,rot90" in step for step in whole.next_steps)


def test_a_notebook_shows_the_table():
    printed = []
    posterior = posterior_with(0.25, 0.75)
    posterior._repr_pretty_(SimpleNamespace(text=printed.append), False)
    assert printed == [str(posterior)]


def test_an_open_verdict_lists_next_steps():
    open_verdict = posterior_with(0.2, 0.4, 0.4)
    steps = open_verdict.next_steps
    assert not any("compare only" in step for step in steps), "these two were all that was compared"
    assert any("tolerance=" in step for step in steps)
    many = replace(
        open_verdict,
        names=("trivial", "rot90", "sign", "d4"),
        orders=(1, 4, 2, 8),
        probabilities=(0.1, 0.4, 0.1, 0.4),
        log_evidence=(0.0,) * 4,
    )
    assert "symmetries=['rot90', 'd4'], or --symmetries rot90,d4" in many.next_steps[1]
    assert "quarter turns" in steps[-1]
    assert "no symmetry built in" in posterior_with(0.6, 0.4).next_steps[-1]
    assert not posterior_with(0.005, 0.995).next_steps, "nothing to do"


def test_the_largest_group_within_the_tolerance_is_chosen():
    prices = [
        Price("trivial", 1, 0.0, {}),
        Price("rot90", 4, 0.3, {}),
        Price("flips", 4, 0.2, {}),
        Price("d4", 8, 0.5, {}),
    ]
    posterior = replace(posterior_with(0.75, 0.125, 0.125), prices=tuple(prices))
    bought = {0.0: "trivial", 0.1: "trivial", 0.2: "flips", 0.4: "flips", 0.5: "d4", 9.0: "d4"}
    assert {tolerance: posterior.within(tolerance) for tolerance in bought} == bought
    assert replace(posterior, prices=(prices[3],)).within(0.4) == "trivial"
    assert replace(posterior, prices=(prices[1],)).within(0.4) == "rot90"
    late = replace(posterior, prices=(Price("trivial", 1, 0.1, {}), Price("rot90", 4, 0.0, {})))
    assert late.within(0.0) == "trivial", "the favourite, although another did better on the last block"


def test_networks_are_averaged_by_their_probabilities():
    values = np.random.default_rng(0).normal(-1, 1, (3, 4, 5))
    np.testing.assert_allclose(mean_prediction(values), np.log(np.exp(values).mean(1)))


@pytest.mark.parametrize("n_networks", [1, 2])
def test_the_bootstrap_does_not_depend_on_the_size_of_its_chunks(monkeypatch, n_networks):
    values = np.random.default_rng(0).normal(-1, 0.5, (3, n_networks, 60))
    whole = bootstrap_probabilities(values, np.zeros(3), seed=1)
    monkeypatch.setattr("invariantnet.inference.bootstrap.CHUNK", 170)
    np.testing.assert_allclose(bootstrap_probabilities(values, np.zeros(3), seed=1), whole)
    assert whole.sum() == pytest.approx(1)


def test_weights_of_examples_scale_their_evidence():
    values = np.random.default_rng(0).normal(-1, 0.1, (2, 2, 50))
    heavy = bootstrap_probabilities(values, np.zeros(2), 0, weight=np.full(50, 3.0))
    np.testing.assert_allclose(heavy, bootstrap_probabilities(values, np.zeros(2), 0, weight=3.0))
    assert abs(heavy[0] - 0.5) > abs(bootstrap_probabilities(values, np.zeros(2), 0)[0] - 0.5)


def test_of_two_equally_probable_groups_the_verdict_names_the_favourite():
    tied = SymmetryPosterior(("flips", "rot90"), (4, 4), (0.5, 0.5), (-1.0, -1.0), (0.0, 0.0), 10)
    assert f"({tied.favourite})" in tied.verdict


def test_a_single_candidate_says_why_nothing_else_was_compared():
    alone = SymmetryPosterior(
        ("trivial",), (1,), (1.0,), (-9.0,), (0.0,), 100, left_out=("reversal", "time-shift")
    )
    assert alone.strength == "not compared"
    where = "the reverse order of entries (reversal)"
    assert f"examples do not lie where {where} would take them: columns differ in range" in alone.verdict
    assert "time-shift" not in str(alone), "a table has no time"
