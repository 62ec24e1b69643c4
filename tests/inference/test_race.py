"""The race: which hypotheses it drops, how many networks it takes, and its progress."""

import re
from dataclasses import replace

import numpy as np
import pytest
from problems import BRIEF, ONE, candidates, corner_problem, hypotheses, make_network
from races import scripted, words

from invariantnet._system import progress
from invariantnet.data.examples import Examples
from invariantnet.inference import Evidence, Records, gather_evidence, race
from invariantnet.inference.bootstrap import bootstrap_probabilities, mean_prediction
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.race_progress import OTHERS
from invariantnet.inference.scoring import Scorer
from invariantnet.inference.standings import Contest, Standings
from invariantnet.likelihoods import Categorical


def test_a_hypothesis_beaten_by_a_loser_does_not_weaken_the_winner():
    """With few examples rot90 leads and d4 is dropped for it; then no symmetry wins, by far."""
    names = ("rot90", "d4")
    groups = [g.name for g in candidates(*names)]
    first, later = {"trivial": -1.3, "rot90": -1.0, "d4": -3.0}, {"trivial": -0.5, "rot90": -2.0, "d4": -2.0}
    rng = np.random.default_rng(0)
    means = np.array([[*[first[n]] * 10, *[later[n]] * 60] for n in groups])
    scores = means[:, None] + rng.normal(0, 0.01, size=(len(groups), 2, 70))
    found = scripted(scores, names)
    assert "d4" in found.dropped
    assert found.favourite == "trivial"
    assert max(found.probabilities) > 0.99
    assert found.log_evidence[groups.index("d4")] < found.log_evidence[groups.index("trivial")] - 50


@pytest.fixture
def open_by_networks(monkeypatch):
    """Let only the networks leave a verdict open, never the examples."""
    monkeypatch.setattr(race.Race, "probabilities_with", lambda race, _: [np.inf] * len(race.contest.symmetries))


def test_networks_are_added_one_by_one(open_by_networks):
    scores = np.full((2, 4, 30), -5.0)
    scores[0, 2:] = 0.0  # the third network predicts every label
    posterior = scripted(scores, n_networks=2, sure=0.95, margin=np.inf)
    assert posterior.log_evidence == pytest.approx(mean_prediction(scores[:, :3]).sum(1).tolist())
    undecided = scripted(np.full((2, 8, 30), -5.0), n_networks=2, sure=0.95)
    assert undecided.probabilities == pytest.approx([0.5, 0.5])
    scores[0, 1] = 0.0
    alone = scripted(scores, n_networks=1, sure=0.95, margin=np.inf)
    assert alone.log_evidence == pytest.approx([-150, -150]), "one network never grows"


def test_a_race_with_a_tolerance_ends_when_two_blocks_agree_on_the_prices():
    scores = np.zeros((2, 1, 150))  # blocks of 10, 20, 40 and 80
    scores[1, 0, :10] = np.tile([-2.0, 1.0], 5)  # about half a nat, with a large error
    scores[1, 0, 10:] = -0.5
    posterior = scripted(scores, tolerance=0.3)
    assert posterior.examples == 70
    assert [price.nats_per_example for price in posterior.prices] == pytest.approx([0, 0.5])
    assert not posterior.dropped
    assert scripted(scores, tolerance=0.5).examples == 150, "a price at the tolerance is never known"


def test_a_price_that_grows_beyond_the_tolerance_is_noticed():
    scores = np.zeros((2, 1, 70))  # blocks of 10, 20 and 40
    scores[1, 0, 10:] = -0.5  # with few examples nothing is lost
    posterior = scripted(scores, tolerance=0.3)
    assert posterior.examples == 70
    assert posterior.within(0.3) == "trivial"


def sure_from(labels, later=0.0):
    """Scores of no symmetry and rot90: rot90 leads by a tenth of a nat a label, after some labels by `later`."""
    scores = np.full((2, 1, 16_000), -1.0) + np.random.default_rng(0).normal(0, 0.3, size=(1, 1, 16_000))
    scores[1, 0, :labels] += 0.1
    scores[1, 0, labels:] += later
    return scores


@pytest.mark.parametrize(
    ("labels", "later", "examples"),
    [
        (16_000, 0.0, 7_000),  # blocks end after 1,000, 3,000, 7,000 and 16,000 labels
        (2_500, 0.0, 16_000),  # rot90 has no lead in the block that ends after 7,000: others may catch up
        (2_500, -0.01, 16_000),
    ],
)
def test_a_race_ends_when_the_favourite_is_sure_and_nothing_catches_up(labels, later, examples):
    found = scripted(sure_from(labels, later), first=1000)
    assert found.examples == examples


def test_a_race_goes_on_where_the_favourite_has_just_changed():
    scores = sure_from(0)
    scores[0, 0, :3_000] += 0.002
    scores[1, 0, 3_000:] += 0.5
    assert scripted(scores, first=1000).examples == 16_000


def test_a_race_of_few_examples_or_with_one_candidate_uses_all_of_them():
    few = scripted(sure_from(16_000)[:, :, :5_999], first=1000)
    assert few.examples == 5_999
    alone = scripted(sure_from(16_000)[:1], names=("trivial",), first=1000)
    assert alone.examples == 16_000, "its models are still compared"


def test_weights_count_in_the_evidence_and_in_its_spread():
    scores = -np.linspace(1, 2, 2 * 2 * 30).reshape(2, 2, 30)
    weight = 40 * [1.0]
    plain = scripted(scores, weight=weight, margin=np.inf)
    heavy = scripted(scores, weight=[2 * w for w in weight], margin=np.inf)
    assert heavy.log_evidence == pytest.approx([2 * v for v in plain.log_evidence])
    assert heavy.log_evidence_spread == pytest.approx([2 * v for v in plain.log_evidence_spread])
    assert plain.log_evidence_spread == pytest.approx(scores.sum(-1).std(1, ddof=1).tolist())
    assert plain.log_evidence == scripted(scores, margin=np.inf).log_evidence
    one = scripted(scores[:, :1], margin=np.inf)
    assert one.log_evidence_spread == (0.0, 0.0)


def test_hopeless_hypotheses_are_dropped_and_the_race_ends_with_the_last_rival():
    scores = np.zeros((4, 1, 70))
    scores[1:, 0] = np.array([-3.0, -2.0, -1.0])[:, None]
    posterior = scripted(scores, ("rot90", "flips"))
    assert posterior.names == ("trivial", "flips", "rot90", "d4")
    assert posterior.dropped == ("flips", "rot90", "d4")
    assert [sorted(stage.log_evidence) for stage in posterior.race] == [
        ["d4", "flips", "rot90", "trivial"],
        ["d4", "trivial"],
    ]
    assert posterior.examples == 30, "d4 was ten nats behind after ten labels, and is dropped after thirty"
    assert posterior.pointwise.shape == (4, 10), "labels that all of them predicted"
    assert posterior.favourite == "trivial"
    assert posterior.log_evidence == pytest.approx([0, -30, -20, -30]), "bounds of what was dropped"


def test_a_hypothesis_far_behind_after_one_network_gets_no_more_networks():
    """Blocks of 10 and 20, four hypotheses, three networks: two are far behind on the last block."""
    scores = np.zeros((4, 3, 30)) - np.linspace(0, 0.1, 3)[:, None]
    scores[[0, 3], 0, 10:] -= 4.0
    scores[[0, 3], 1:, 10:] = 0.0  # would have done well
    asked = set()
    posterior = scripted(scores, ("rot90", "flips"), asked=asked)
    both = {f"{name}-{s}-1" for name in ("flips", "rot90") for s in range(3)} | {"trivial-0-1", "d4-0-1"}
    assert {key for key in asked if key.endswith("-1")} == both
    assert len(asked) == 12 + len(both), "the first block measures how much networks differ"
    assert posterior.probabilities == pytest.approx([0, 0.5, 0.5, 0], abs=1e-6)
    assert not posterior.dropped, "they have predicted every label"
    np.testing.assert_allclose(posterior.pointwise[:, 10:], scores[:, 0, 10:], err_msg="all by one network")
    np.testing.assert_allclose(posterior.pointwise[:, :10], mean_prediction(scores)[:, :10])
    everything = set()
    scripted(scores, ("rot90", "flips"), asked=everything, margin=np.inf)
    assert len(everything) == 24


def test_a_smaller_group_that_is_behind_stays_until_the_last_block():
    scores = np.zeros((2, 2, 70))  # blocks of 10, 20 and 40
    scores[0] = -3.0
    asked = set()
    posterior = scripted(scores, asked=asked)
    early = {f"{name}-{s}-{block}" for name in ("trivial", "rot90") for s in range(2) for block in range(2)}
    assert asked == early | {"trivial-0-2", "rot90-0-2"}
    assert posterior.examples == 70
    assert posterior.log_evidence == pytest.approx([-210, 0])
    scores[0, :, 30:] = 3.0  # caught up
    assert scripted(scores).favourite == "trivial"


def test_a_network_that_learned_badly_does_not_decide():
    scores = np.zeros((4, 2, 30))
    scores[0] = -0.05
    scores[0, 0, :10] = -7.0
    scores[1:] = np.array([-1.5, -1.2, -4.0])[:, None, None]
    quick, slow = (scripted(scores, ("rot90", "flips"), margin=margin) for margin in (10.0, np.inf))
    assert quick.favourite == slow.favourite == "trivial"
    assert quick.probabilities == pytest.approx(slow.probabilities, abs=0.05)


def test_a_network_that_diverged_does_not_decide():
    """On the last block, the other network of its hypothesis predicts as well."""
    scores = np.full((2, 2, 70), -0.05)
    scores[1], scores[1, :, 30:] = -0.3, -1.2
    scores[0, 0, 30:] = np.log(Evidence.doubt / 10)
    quick, slow = (scripted(scores, margin=margin) for margin in (10.0, np.inf))
    assert quick.favourite == "trivial"
    assert quick.probabilities == pytest.approx(slow.probabilities)


def test_one_network_does_not_decide_where_networks_differ():
    """The gap is 40 nats over 20 labels, and the margin 10; differences between networks may explain the rest."""
    for spread, asked_for in ((0.1, 6), (1.0, 8)):
        scores = np.zeros((2, 2, 30))
        scores[0, :, 10:] = -2.0
        scores[:, 1, :10] = -spread
        asked = set()
        scripted(scores, asked=asked)
        assert len(asked) == asked_for


def test_a_lead_by_the_luck_of_networks_is_not_sure():
    """The lead is 21 nats; networks of one hypothesis differ by 42."""
    scores = np.full((2, 2, 70), -1.0)
    scores[0] += 0.3
    assert max(scripted(scores).probabilities) > 0.99
    luck = 0.3 * np.array([[1, -1], [-1, 1]])[:, :, None]
    assert max(scripted(scores + luck).probabilities) < 0.9
    assert max(scripted(scores + luck[:1]).probabilities) > 0.99, "luck that all hypotheses share decides nothing"


def test_an_early_verdict_agrees_with_that_of_all_networks():
    """Also where networks of one hypothesis differ; fewer networks tell less well by how much."""
    rng = np.random.default_rng(0)
    fewer = 0
    for _ in range(30):
        level = -rng.uniform(0, 3, (4, 1, 1)) + rng.normal(0, 0.2, (4, 2, 1))
        scores = level + rng.normal(0, 1, (4, 2, 70)) + rng.normal(0, 1, (1, 1, 70))
        asked, everything = set(), set()
        quick = scripted(scores, ("rot90", "flips"), asked=asked)
        slow = scripted(scores, ("rot90", "flips"), asked=everything, margin=np.inf)
        assert quick.favourite == slow.favourite
        assert quick.probabilities == pytest.approx(slow.probabilities, abs=0.1)
        fewer += len(asked) < len(everything)
    assert fewer > 15


@pytest.mark.parametrize(
    ("path", "expected", "networks"),
    [
        ((0.96,), 0.99, 2),
        ((0.5, 0.96), 0.5, 2),
        ((0.5, 0.96), 0.99, 3),
        ((0.6, 0.7, 0.8, 0.96), 0.96, 5),
        ((0.6,) * 7, 0.96, 8),
    ],
)
def test_the_number_of_networks_grows_while_networks_rather_than_examples_leave_the_verdict_open(
    monkeypatch, path, expected, networks
):
    """Not where examples would leave it open all the same, and to four times as many at most."""
    asked = []

    def run(_, count):
        asked.append(count)
        p = path[count - 2]
        return SymmetryPosterior(("a", "b"), (1, 2), (p, 1 - p), (0.0, 0.0), (0.0, 0.0), 10)

    monkeypatch.setattr(race.Race, "run", run)
    monkeypatch.setattr(race.Race, "probabilities_with", lambda *_: (expected, 1 - expected))
    x, y = corner_problem(20, 0, symmetric=True)
    gather_evidence(make_network, hypotheses("rot90"), Examples(x, y), config=Evidence(n_networks=2))
    assert asked == list(range(2, networks + 1))


def test_uncertainty_from_networks_is_told_from_uncertainty_from_examples():
    """One network of rot90 is good and one bad; their average is better than no symmetry on every example."""
    networks = np.log([[0.4, 0.4], [0.9, 0.05]])[:, :, None] * np.ones(200)
    examples = np.log(np.where(np.arange(200) < 101, [[0.4], [0.9]], [[0.9], [0.4]]))[:, None] * np.ones((2, 1))
    x, y = corner_problem(80, 0, symmetric=True)
    for scored, sure in ((networks, True), (examples, False)):
        contest = Contest(candidates("rot90"), [], np.log([0.5, 0.5]))
        contest = replace(contest, hypotheses=[Hypothesis(s, BRIEF) for s in contest.symmetries])
        running = race.Race(Scorer(make_network, Categorical(), 0.01), contest, Examples(x, y), ONE, 0)
        running.now = Standings(
            scored, np.ones(200), [0, 1], np.zeros((2, 200), bool), np.zeros(200), np.zeros(200), labels=200
        )
        assert max(bootstrap_probabilities(scored, contest.log_prior, 0)) < 0.9
        assert bool(max(running.probabilities_with(8)) > 0.99) is sure
        running.now.luck = 60.0
        assert max(running.probabilities_with(8)) < 0.9, "a lead of 34 nats or less, and luck of 30"
        assert bool(max(running.probabilities_with(800)) > 0.99) is sure


def test_progress_is_the_share_of_the_work_that_is_expected():
    """Two blocks, two networks; a step costs what it was measured to take, or its copies and eight more."""
    x, y = corner_problem(120, 0, symmetric=True)
    config = replace(ONE, n_networks=2, sure=0.0, growth=2.0, margin=np.inf)
    compared = hypotheses("rot90", model=BRIEF)
    learned = [BRIEF.training.steps(n * 4 // 5) for n in (40, 80)]
    for seconds, cost in ((None, (9, 12)), ({"trivial · brief": 1.0, "rot90 · brief": 5.0}, (1, 5))):
        steps = []
        records = Records(on_network=steps.append, step_seconds=seconds)
        gather_evidence(make_network, compared, Examples(x, y), config=config, records=records)
        # Of networks after the first, and of the second block, half are expected to be trained in the end.
        costs = [share * steps * c for steps in learned for share in (1.0, OTHERS) for c in cost]
        assert steps[0].done == pytest.approx(costs[0] / sum(costs))
        assert steps[1].done == pytest.approx(sum(costs[:2]) / sum(costs))
        assert [step.done for step in steps] == sorted(step.done for step in steps)
        assert steps[-1].done == 1
    assert [(s.hypothesis, s.network, s.block, s.blocks) for s in steps[:3]] == [
        ("trivial · brief", 0, 0, 2), ("rot90 · brief", 0, 0, 2), ("trivial · brief", 1, 0, 2)
    ]  # fmt: skip
    assert not steps[3].log_evidence
    assert set(steps[4].log_evidence) == {"trivial", "rot90"}


def test_more_networks_are_announced_and_progress_never_falls(capsys, monkeypatch, open_by_networks):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(progress, "RARER", 0.0)
    x, y = corner_problem(120, 0, symmetric=True)
    config = replace(ONE, n_networks=2, sure=1.1, growth=2.0, margin=np.inf)
    monkeypatch.setattr(race, "has_learned", lambda *_: True)
    with progress.evidence_bar(progress.Work("comparing 2 symmetries"), visible=True) as on_network:
        compared, records = hypotheses("rot90", model=BRIEF), Records(on_network=on_network)
        gather_evidence(make_network, compared, Examples(x, y), config=config, records=records)
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(progress.INDENT)]
    told = [re.fullmatch(r"(.*): (\d+)%.*", line) for line in lines]
    shares = {
        what: [int(line[2]) for line in told if line[1] == what] for what in dict.fromkeys(t[1] for t in told)
    }
    more = [f"still open: network {number} of each hypothesis" for number in range(3, 9)]
    assert list(shares) == ["comparing 2 symmetries", *more]
    for part in shares.values():
        assert part == sorted(part)
        assert (part[0], part[-1]) == (0, 100)


@pytest.mark.parametrize(("sure", "networks"), [(0.0, 2), (1.1, 8)])
def test_more_networks_are_trained_only_while_the_verdict_is_open(sure, networks, monkeypatch, open_by_networks):
    monkeypatch.setattr(race, "has_learned", lambda *_: True)
    x, y = corner_problem(80, 1, symmetric=True)
    store, steps = {}, []
    config = replace(ONE, n_networks=2, sure=sure)
    compared, records = hypotheses("rot90", model=BRIEF), Records(store, on_network=steps.append)
    posterior = gather_evidence(make_network, compared, Examples(x, y), config=config, records=records)
    assert {words(key) for key in store} == {f"{name}-{s}-0" for name in posterior.names for s in range(networks)}
    assert len(steps) == len(store), "none is trained twice"
    assert all(step.done <= 1 for step in steps)
    assert steps[-1].done == 1
    assert steps[-1].networks == networks
    again = gather_evidence(
        make_network,
        compared,
        Examples(x, y),
        config=replace(config, n_networks=networks, sure=0.0),
        records=Records(store),
    )
    assert posterior == again, "the same as with this many from the start"


def test_a_hypothesis_that_predicted_the_last_block_was_not_dropped():
    scores = np.zeros((2, 1, 30))  # blocks of 10 and 20
    scores[1, 0, 10:] = -100.0
    posterior = scripted(scores)
    assert posterior.dropped == ()
    assert "≤" not in str(posterior)
    scores[1, 0, :10] = -100.0
    assert scripted(scores).dropped == ("rot90",)
