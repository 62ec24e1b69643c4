"""The race: hypotheses predict block after block, and the hopeless are dropped."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

import joblib
import numpy as np
from jaxtyping import Float

from invariantnet._system.processes import watched
from invariantnet.data.examples import Examples
from invariantnet.inference.answer import answer
from invariantnet.inference.bootstrap import bootstrap_probabilities, mean_prediction
from invariantnet.inference.cache import NetworkKey, ScoreCache
from invariantnet.inference.comparison import STRONG
from invariantnet.inference.findings import Stage
from invariantnet.inference.heats import Heats
from invariantnet.inference.luck import luck_of_kinds
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.prices import affordable
from invariantnet.inference.race_progress import RaceProgress
from invariantnet.inference.rules import (
    MATURE,
    MODEL_FAR_BEHIND,
    MODEL_MARGIN,
    SCREEN_FAR_BEHIND,
    SCREEN_MARGIN,
    Block,
    error_of_networks,
    far_behind,
    has_learned,
    hopeless,
    may_end,
    outclassed,
    plan_blocks,
)
from invariantnet.inference.scoring import BlockScore, Entry, Scorer, network_seed
from invariantnet.inference.standings import Contest, Standings


@dataclass(frozen=True)
class Evidence:
    """How the evidence is gathered."""

    n_networks: int = 2
    """Networks per hypothesis. A hypothesis far behind after one network gets no more networks. Where they are
    trained side by side with the first, because that costs little, they do not count."""
    sure: float = STRONG
    """Grow to up to four times as many networks until a symmetry reaches this probability, while only the luck of
    networks prevents it; one network never grows."""
    first_block: int | None = None
    """Examples that are only learned from; by default 1/16 of all, or 1/8 of fewer than 2,000, at least 32 or 1/4,
    within 16 and 500, at most half."""
    growth: float | None = None
    """Ratio of successive training sets; by default 4, or 2 with fewer than 2,000 examples."""
    doubt: float = 0.01
    """Share of a uniform prediction mixed into every network's: one surprise costs a bounded number of nats."""
    margin: float = 10.0
    """Nats, beyond four standard errors, that a hypothesis must be behind a rival with no more elements before it
    is dropped. Infinity keeps all."""
    tolerance: float = 0.0
    """If positive, nothing is dropped, and the race ends when two blocks in a row agree surely which prices are
    below it: prices grow and shrink with the data, and one block of few examples says little about more."""
    n_jobs: int = 1
    """Processes that train networks at the same time."""


class Race:
    """A comparison of hypotheses, block by block.

    Args:
        scorer: Trains and scores networks.
        contest: What is compared, and what is believed beforehand.
        examples: The data, in the order in which it is predicted.
        config: How the evidence is gathered.
        seed: Decides every network.
    """

    def __init__(self, scorer: Scorer, contest: Contest, examples: Examples, config: Evidence, seed: int) -> None:
        self.scorer, self.contest, self.examples = scorer, contest, examples
        self.config, self.seed = config, seed
        self.blocks = plan_blocks(len(examples), config.first_block, config.growth)
        self.first = self.blocks[0].start
        self.cache: ScoreCache = {}
        self.heats = Heats(contest.hypotheses, examples.x.shape[1], set())
        self.digests: dict[str, str] = {}
        self.progress: RaceProgress | None = None
        self.class_names: Sequence[str] | None = None
        self.now: Standings

    def run(self, networks: int) -> SymmetryPosterior:
        """Run the whole race with this many networks per hypothesis."""
        self.now = Standings.empty(len(self.contest.hypotheses), networks, self.examples, self.first)
        if self.progress:
            self.progress.start(networks, self._missing(networks))
        for block in self.blocks:
            self.screen_models(block)
            self.score_first_networks(block)
            self.drop_models()
            behind = self.hopeless_by_first_networks(block)
            self.score_remaining_networks(block, behind)
            self.update_posterior(block)
            if self.prices_are_settled(block) or self.is_settled(block):
                break
            self.drop_hopeless(block, behind)
            # A single candidate goes on all the same, to find its best model.
            if self._symmetries_alive() == 1 < len(self.contest.symmetries):
                break
        starts = [block.start - self.first for block in self.blocks]
        labels = self.examples.y[self.first :].cpu().numpy()
        return answer(self.contest, self.now, starts, labels, self.class_names)

    def screen_models(self, block: Block) -> None:
        """Compare the models without symmetry by one network each; drop a hopeless one for every symmetry."""
        now = self.now
        smallest = min(range(len(self.contest.symmetries)), key=lambda s: self.contest.symmetries[s].copies)
        plain = [k for k in self.contest.members[smallest] if k in now.alive]
        if len(plain) < 2:
            return
        self._score_first(block, plain)
        since, until = self._mature(), block.end - self.first
        seen = mean_prediction(now.scores[:, :1, since:until]) * now.counts[since:until]
        worse = outclassed(seen, plain, SCREEN_MARGIN, SCREEN_FAR_BEHIND)
        if not worse:
            return
        names = {self.contest.hypotheses[k].model.name for k in worse}
        now.drop(worse, until)
        total = now.seen.sum(1)
        for ours in self.contest.members:
            screened = [k for k in ours if self.contest.hypotheses[k].model.name in names]
            # The last model of a symmetry stays, and the best of several stands for models that were dropped.
            left = [k for k in ours if k in now.alive and k not in screened]
            if left:
                best = max(left, key=lambda k: total[k])
                now.drop({k: best for k in screened if k in now.alive}, now.labels)
                now.exclude(screened)

    def score_first_networks(self, block: Block) -> None:
        """Let the first network of every hypothesis predict the block; it stands for the others until they do."""
        self._score_first(block, self.now.alive)
        self.now.labels = block.end - self.first

    def drop_models(self) -> None:
        """Drop models that are clearly behind another with the same symmetry."""
        now = self.now
        seen = now.seen[:, self._mature() :]
        for ours in self.contest.members:
            going = [k for k in ours if k in now.alive]
            now.drop(outclassed(seen, going, MODEL_MARGIN, MODEL_FAR_BEHIND), now.labels)

    def hopeless_by_first_networks(self, block: Block) -> dict[int, int]:
        """Map each hypothesis that needs no more networks to the rival that beats it."""
        now, here = self.now, self._labels(block)
        if now.network_error is None:
            return {}
        trained = [k for k in now.alive if not self.scorer.diverged(now.scores[k, 0, here])]
        return self._hopeless(now.seen, trained, block, now.network_error * len(block))

    def score_remaining_networks(self, block: Block, behind: Collection[int]) -> None:
        """Let the other networks of all but the hopeless predict the block."""
        now = self.now
        here = self._labels(block)
        going = [k for k in now.alive if k not in behind]
        now.alone[[k for k in now.alive if k in behind], here] = True
        if len(going) < 2:
            return
        keys = [self._key(k, network, block) for k in going for network in range(1, now.networks)]
        self._train(block, keys)
        for key in keys:
            now.scores[self._index(key), key.network, here] = self.cache[key].log_likelihood
        if now.networks > 1:
            now.network_error = error_of_networks(now.scores[going][:, :, here] * now.counts[here])

    def update_posterior(self, block: Block) -> None:
        """Add a stage: evidence and probabilities after this block."""
        now, contest = self.now, self.contest
        past, here = self._split(block)
        now.guess[self._labels(block)] = self.scorer.guess(past, here)
        now.background[self._labels(block)] = self.scorer.background(past, here)
        bounded, counts, total = now.bounded, now.counts[: now.labels], now.seen.sum(1)
        log_prior = contest.log_prior_of_hypotheses(now.excluded)
        best = max(now.included, key=lambda k: total[k])
        # Frequencies of few labels in many classes predict worse than none at all.
        blind = (now.guess[: now.labels] * counts, now.background[: now.labels] * counts)
        # Networks of few examples may lose more against a guess than those of most examples gain.
        parts = (slice(None), self._labels(block))
        now.learned = any(all(has_learned(now.seen[best][p], guess[p]) for guess in blind) for p in parts)
        now.luck = luck_of_kinds(contest, now, [self._labels(b) for b in self.blocks[: block.number + 1]])
        # Where nothing was learned, the data says nothing.
        now.probabilities = (
            bootstrap_probabilities(bounded, log_prior, self.seed, counts, spread=now.luck, kinds=contest.kinds)
            if now.learned
            else np.exp(log_prior)
        )
        names = [g.name for g in contest.symmetries]
        evidence = contest.log_evidence(total, now.excluded)
        alive = {self._symmetry_of(k) for k in now.alive}
        now.stages.append(
            Stage(
                examples=now.labels,
                log_evidence={names[s]: float(evidence[s]) for s in sorted(alive)},
                probabilities=dict(zip(names, contest.of_symmetries(now.probabilities).tolist(), strict=True)),
            )
        )

    def prices_are_settled(self, block: Block) -> bool:
        """Whether two blocks in a row agree on which symmetries are affordable; only with a tolerance."""
        if not self.config.tolerance:
            return False
        now, seen = self.now, self.now.seen
        best = [k for k in self.contest.best(seen.sum(1), now.included) if k is not None]
        here = seen[best][:, self._labels(block)]
        before, now.affordable = now.affordable, affordable(here, self.config.tolerance)
        return now.affordable is not None and now.affordable == before

    def is_settled(self, block: Block) -> bool:
        """Whether all others in the race are far behind the favourite of two blocks, in the last block alone too.

        A smaller group that catches up with more examples gains there before it leads in all.
        """
        now, contest = self.now, self.contest
        if self.config.tolerance or len(contest.symmetries) == 1 or not may_end(block, self.blocks):
            return False
        before, last = (max(s.probabilities, key=s.probabilities.__getitem__) for s in now.stages[-2:])
        seen, error = now.seen, (now.network_error or 0.0) * len(block)
        best = [k for k in contest.best(seen.sum(1), now.alive) if k is not None]
        leader = next((k for k in best if before == last == contest.hypotheses[k].symmetry.name), None)
        if leader is None:
            return False
        gaps = seen[leader] - seen[[k for k in best if k != leader]]
        since = block.start - self.first
        return all(far_behind(part, self.config.margin, error) for gap in gaps for part in (gap, gap[since:]))

    def drop_hopeless(self, block: Block, behind: dict[int, int]) -> None:
        """Take the hopeless out of the race, unless it is over anyway."""
        now = self.now
        if block is not self.blocks[-1]:
            going = [k for k in now.alive if k not in behind]
            now.drop(behind | self._hopeless(now.seen, going, block), now.labels)

    def probabilities_with(self, networks: int) -> Float[np.ndarray, " symmetries"]:
        """Expect the probabilities after a run with more networks, from what the last run found.

        Args:
            networks: Networks per hypothesis. Their average predicts as now, and less of it is luck.

        Returns:
            One probability per symmetry.
        """
        now, contest = self.now, self.contest
        average, counts = mean_prediction(now.bounded)[:, None], now.counts[: now.labels]
        log_prior = contest.log_prior_of_hypotheses(now.excluded)
        luck = now.luck * np.sqrt(now.networks / networks)
        found = bootstrap_probabilities(average, log_prior, self.seed, counts, spread=luck, kinds=contest.kinds)
        return contest.of_symmetries(found)

    def _hopeless(
        self, seen: Float[np.ndarray, "hypotheses n"], alive: list[int], block: Block, network_error: float = 0.0
    ) -> dict[int, int]:
        """Map the hypotheses of each hopeless symmetry to the best of the symmetry that beats it.

        Symmetries are compared by their best models; only a symmetry with no more elements beats another, unless
        this is the last block, after which no symmetry can catch up any more.
        """
        if self.config.tolerance:
            return {}
        best = self.contest.best(seen.sum(1), alive)
        there = [s for s, k in enumerate(best) if k is not None]
        rows = np.stack([seen[k] if k is not None else np.zeros(seen.shape[1]) for k in best])
        orders = [1] * len(best) if block is self.blocks[-1] else self.contest.orders
        beaten = hopeless(rows, there, orders, self.config.margin, network_error)
        found: dict[int, int] = {}
        for s, rival in beaten.items():
            champion = best[rival]
            assert champion is not None
            found |= {k: champion for k in self.contest.members[s] if k in alive}
        return found

    def _mature(self) -> int:
        """Labels predicted before networks learned from enough examples to be judged by."""
        enough = min(MATURE, len(self.examples) // 5)
        return next((b.start for b in self.blocks if b.start >= enough), len(self.examples)) - self.first

    def _symmetries_alive(self) -> int:
        return len({self._symmetry_of(k) for k in self.now.alive})

    def _symmetry_of(self, hypothesis: int) -> int:
        return next(s for s, ours in enumerate(self.contest.members) if hypothesis in ours)

    def _labels(self, block: Block) -> slice:
        return slice(block.start - self.first, block.end - self.first)

    def _split(self, block: Block) -> tuple[Examples, Examples]:
        return self.examples[: block.start], self.examples[block.start : block.end]

    def _index(self, key: NetworkKey) -> int:
        return next(k for k, h in enumerate(self.contest.hypotheses) if h.name == key.hypothesis)

    def _score_first(self, block: Block, hypotheses: Sequence[int]) -> None:
        """Let the first network of some hypotheses predict the block, for all networks.

        Where that costs little, the others are trained side by side with the first, in case they are needed.
        """
        compared = self.contest.hypotheses
        at_once = [k for k in hypotheses if self.heats.second_costs_little(compared[k], block.start)]
        others = [self._key(k, network, block) for k in at_once for network in range(1, self.now.networks)]
        firsts = {k: self._key(k, 0, block) for k in hypotheses}
        tried = [firsts[k] for k in self.now.leading(self.contest, hypotheses)]
        self._train(block, [*firsts.values(), *others], tried)
        found = {k: self.cache[key] for k, key in firsts.items()}
        for k, score in found.items():
            self.now.scores[k, :, self._labels(block)] = score.log_likelihood
        self.now.note_tried(self.contest, found)

    def _train(self, block: Block, keys: Sequence[NetworkKey], tried: Collection[NetworkKey] = ()) -> None:
        """Train the networks whose scores of a block the cache lacks, heat by heat; some are tried by moves."""
        past, here = self._split(block)
        missing = [heat for heat in self.heats.plan(keys, len(past)) if any(key not in self.cache for key in heat)]
        finished = joblib.Parallel(n_jobs=self.config.n_jobs, return_as="generator")(
            joblib.delayed(watched(self.scorer.score))(
                [self._entry(key, key in tried) for key in heat], past, here, self.contest.symmetries
            )
            for heat in missing
        )
        for heat, scores in zip(missing, finished, strict=True):
            self._note(heat, scores)

    def _note(self, heat: Sequence[NetworkKey], scores: Sequence[BlockScore]) -> None:
        """Remember the scores of a heat, and tell how far the race is."""
        alive = {self.contest.hypotheses[k].name for k in self.now.alive}
        for key, score in zip(heat, scores, strict=True):
            self.cache[key] = score
            if self.progress:
                self.progress.trained(key, alive, self.now.stages[-1].log_evidence if self.now.stages else {})

    def _entry(self, key: NetworkKey, tried: bool) -> Entry:
        seed = network_seed(self.seed, key.network, key.block)
        return Entry(self.contest.hypotheses[self._index(key)], key.network, seed, tried)

    def _missing(self, networks: int) -> list[NetworkKey]:
        """Every network that is not in the cache."""
        numbered = product(range(len(self.contest.hypotheses)), range(networks), self.blocks)
        keys = [self._key(k, network, block) for k, network, block in numbered]
        return [key for key in keys if key not in self.cache]

    def _key(self, hypothesis: int, network: int, block: Block) -> NetworkKey:
        name = self.contest.hypotheses[hypothesis].name
        return NetworkKey(self.digests.get(name, ""), name, network, block.number)
