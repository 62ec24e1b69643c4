r"""One network per hypothesis, compared by prequential evidence.

The data comes in blocks that grow. A network trained on all blocks so far predicts the labels of the next, so
every label but those of the first block is predicted once, never by a network that saw it. A hypothesis predicts
with the average of its networks. The sum of the log probabilities, $\sum_b \log p(y_b \mid x_b, D_{<b})$, is the
log evidence given the first block. It rewards a constraint that helps to generalise, which the training likelihood
never does.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import joblib
import numpy as np
import torch
from jaxtyping import Float

from invariantnet._system.processes import watched
from invariantnet._system.progress import Step
from invariantnet._system.words import package_version
from invariantnet.data.examples import Examples
from invariantnet.data.fingerprint import fingerprint
from invariantnet.inference.bootstrap import bootstrap_probabilities, mean_prediction
from invariantnet.inference.cache import NetworkKey, ScoreCache
from invariantnet.inference.models import DECAYED
from invariantnet.inference.posterior import Stage, SymmetryPosterior
from invariantnet.inference.prices import affordable
from invariantnet.inference.race_progress import RaceProgress
from invariantnet.inference.rules import (
    Block,
    Drop,
    error_of_networks,
    hopeless,
    plan_blocks,
)
from invariantnet.inference.scoring import BlockScore, MakeNetwork, Scorer
from invariantnet.inference.standings import Standings
from invariantnet.likelihoods import Categorical, Likelihood
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.priors import log_prior_of
from invariantnet.symmetries.group import Group
from invariantnet.training.config import Training

PILOTS, CHEAP = 4, 8
"""With at least 4 groups of at most 8 elements, estimate the variance between networks on those first: larger
groups that are far behind then need no more than one network."""

COMMON_COST = 8
"""What a training step costs besides the copies of an example, in copies: as much as 8 of them, for an MLP."""

MOST_NETWORKS = 4
"""An open verdict gets at most this many times the number of networks that was asked for."""


@dataclass(frozen=True)
class Evidence:
    """How the evidence is gathered."""

    n_networks: int = 2
    """Networks per hypothesis. A hypothesis far behind after one network gets no more networks."""
    sure: float = 0.95
    """Grow to twice as many networks until a hypothesis reaches this probability, to four times if only the
    variance between networks prevents it; one network never grows."""
    first_block: int | None = None
    """Examples that are only learned from; by default 1/16 of all, within 16 and 500, at most half."""
    growth: float | None = None
    """Ratio of successive training sets; by default 4, or 2 with fewer than 1,000 examples."""
    doubt: float = 0.01
    """Share of a uniform prediction mixed into every network's: one surprise costs a bounded number of nats."""
    margin: float = 10.0
    """Nats, beyond four standard errors, that a hypothesis must be behind a rival with no more elements before it
    is dropped. Infinity keeps all."""
    tolerance: float = 0.0
    """If positive, nothing is dropped, and the race ends when two blocks in a row agree surely which prices are
    below it: prices grow and shrink with the data, and one block of few examples says little about more."""
    training: Training = DECAYED.training
    n_jobs: int = 1
    """Processes that train networks at the same time."""


def gather_evidence(
    make_network: MakeNetwork,
    symmetries: Sequence[Group],
    examples: Examples,
    *,
    config: Evidence,
    likelihood: Likelihood | None = None,
    alpha: float | Sequence[float] = 1.0,
    seed: int = 0,
    cache: ScoreCache | None = None,
    about: Mapping[str, object] | None = None,
    on_network: Callable[[Step], None] | None = None,
) -> SymmetryPosterior:
    """Race the hypotheses over the blocks until one is left or the data is used up.

    Args:
        make_network: Makes the untrained network of a symmetry.
        symmetries: The hypotheses.
        examples: The data, in any order.
        config: How the evidence is gathered.
        likelihood: Log density of the targets; classes by default.
        alpha: Parameters of the Dirichlet prior over hypotheses.
        seed: Decides the order of the examples and every network.
        cache: Scores of finished networks: what is there is not trained again, and new scores go into it.
        about: What the scores depend on beyond the other arguments, such as the backbone's settings and a digest
            of the data; it becomes part of the keys in the cache.
        on_network: Called after every finished network.

    Returns:
        The posterior over the symmetries.
    """
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
    scorer = Scorer(make_network, likelihood or Categorical(), config.training, config.doubt)
    race = Race(scorer, symmetries, examples[order], config, log_prior_of(alpha, len(symmetries)), seed)
    if cache is not None:
        facts = about or {"data": fingerprint(examples.x, examples.y.cpu().numpy())}
        race.cache, race.name = cache, race_digest(race, facts)
    if on_network is not None:
        race.progress = RaceProgress(config.n_networks, most_networks(config), len(race.blocks), on_network)
    posterior = race.run(config.n_networks)
    # Networks differ by their starts. Where that leaves the verdict open, the average of more of them says more.
    for networks in range(config.n_networks + 1, most_networks(config) + 1):
        if max(posterior.probabilities) >= config.sure:
            break
        if networks > 2 * config.n_networks and max(race.probabilities_by_examples()) < config.sure:
            break
        posterior = race.run(networks)
    return posterior


def race_digest(race: "Race", about: Mapping[str, object]) -> str:
    """Digest of everything that the scores of a race depend on, the version included."""
    settings = asdict(race.config)
    for name in ("n_jobs", "n_networks", "sure", "margin", "tolerance"):
        settings.pop(name)  # these decide which networks are trained, not how
    groups = [(g.name, hashlib.sha256(g.generators.tobytes()).hexdigest()) for g in race.symmetries]
    facts = [package_version(), settings, repr(race.scorer.likelihood), groups, race.seed, len(race.examples)]
    text = json.dumps([facts, dict(about)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Race:
    """A comparison of hypotheses, block by block.

    Args:
        scorer: Trains and scores networks.
        symmetries: The hypotheses.
        examples: The data, in the order in which it is predicted.
        config: How the evidence is gathered.
        log_prior: Log prior probability of each hypothesis.
        seed: Decides every network.
    """

    def __init__(
        self,
        scorer: Scorer,
        symmetries: Sequence[Group],
        examples: Examples,
        config: Evidence,
        log_prior: Float[np.ndarray, " hypotheses"],
        seed: int,
    ) -> None:
        self.scorer, self.symmetries, self.examples = scorer, symmetries, examples
        self.config, self.log_prior, self.seed = config, log_prior, seed
        self.blocks = plan_blocks(len(examples), config.first_block, config.growth)
        self.first = self.blocks[0].start
        self.cache: ScoreCache = {}
        self.name = ""
        self.progress: RaceProgress | None = None
        self.now: Standings

    def run(self, networks: int) -> SymmetryPosterior:
        """Run the whole race with this many networks per hypothesis."""
        self.now = Standings.empty(len(self.symmetries), networks, self.examples, self.first)
        if self.progress:
            self.progress.start(networks, self._missing(networks))
        for block in self.blocks:
            self.score_first_networks(block)
            self.estimate_network_error(block)
            behind = self.hopeless_by_first_networks(block)
            self.score_remaining_networks(block, behind)
            self.update_posterior(block)
            if self.prices_are_settled(block):
                break
            self.drop_hopeless(block, behind)
            if len(self.now.alive) == 1:
                break
        return self.now.posterior(self.symmetries, [block.start - self.first for block in self.blocks])

    def score_first_networks(self, block: Block) -> None:
        """Let the first network of every hypothesis predict the block; it stands for the others until they do."""
        now = self.now
        for key, score in self._scores(block, now.alive, range(1)):
            k = self._index(key)
            now.scores[k, :, self._labels(block)] = score.log_likelihood
            now.accuracy[k] = score.accuracy
        now.labels = block.end - self.first

    def estimate_network_error(self, block: Block) -> None:
        """Estimate the variance between networks on small groups first, where there are enough of them."""
        now = self.now
        pilots = [k for k in now.alive if self.symmetries[k].order <= CHEAP]
        if now.network_error is None and self.now.networks > 1 and PILOTS <= len(pilots) < len(now.alive):
            self._score_others(block, pilots)
            self._update_network_error(block, pilots)

    def hopeless_by_first_networks(self, block: Block) -> dict[int, int]:
        """Map each hypothesis that needs no more networks to the rival that beats it."""
        now, here = self.now, self._labels(block)
        if now.network_error is None:
            return {}
        seen = mean_prediction(now.scores[:, :, : now.labels]) * now.counts[: now.labels]
        trained = [k for k in now.alive if not self.scorer.diverged(now.scores[k, 0, here])]
        return hopeless(seen, trained, self._orders(block), self._margin, now.network_error * len(block))

    def score_remaining_networks(self, block: Block, behind: Iterable[int]) -> None:
        """Let the other networks of all but the hopeless predict the block."""
        going = [k for k in self.now.alive if k not in behind]
        self.now.first_only[self._labels(block)] = len(going) < len(self.now.alive)
        if len(going) > 1:
            self._score_others(block, going)
            if self.now.networks > 1:
                self._update_network_error(block, going)

    def update_posterior(self, block: Block) -> None:
        """Add a stage: evidence and probabilities after this block."""
        now = self.now
        bounded, counts = now.bounded, now.counts[: now.labels]
        past, here = self._split(block)
        now.guessing += float(self.scorer.guess(past, here) @ now.counts[self._labels(block)])
        probabilities = bootstrap_probabilities(bounded, self.log_prior, self.seed, counts)
        total = (mean_prediction(bounded) * counts).sum(1)
        names = [g.name for g in self.symmetries]
        now.stages.append(
            Stage(
                examples=now.labels,
                log_evidence={names[k]: float(total[k]) for k in now.alive},
                probabilities=dict(zip(names, probabilities.tolist(), strict=True)),
            )
        )

    def prices_are_settled(self, block: Block) -> bool:
        """Whether two blocks in a row agree on which symmetries are affordable; only with a tolerance."""
        if not self.config.tolerance:
            return False
        now = self.now
        seen = mean_prediction(now.bounded) * now.counts[: now.labels]
        before, now.affordable = now.affordable, affordable(seen[:, self._labels(block)], self.config.tolerance)
        return now.affordable is not None and now.affordable == before

    def drop_hopeless(self, block: Block, behind: dict[int, int]) -> None:
        """Take the hopeless out of the race, unless it is over anyway."""
        now = self.now
        if block is self.blocks[-1]:
            return
        seen = mean_prediction(now.bounded) * now.counts[: now.labels]
        going = [k for k in now.alive if k not in behind]
        out = behind | hopeless(seen, going, self._orders(block), self._margin)
        now.drops |= {k: Drop(rival, now.labels) for k, rival in out.items()}
        now.alive = [k for k in now.alive if k not in out]

    def probabilities_by_examples(self) -> Float[np.ndarray, " hypotheses"]:
        """Probabilities after the last run if only the examples were a sample, and not the networks."""
        now = self.now
        average = mean_prediction(now.bounded)[:, None]
        return bootstrap_probabilities(average, self.log_prior, self.seed, now.counts[: now.labels])

    @property
    def _margin(self) -> float:
        return np.inf if self.config.tolerance else self.config.margin

    def _orders(self, block: Block) -> list[int]:
        """Orders of the groups; all equal after the last block, when no hypothesis can catch up any more."""
        return [1 if block is self.blocks[-1] else g.order for g in self.symmetries]

    def _labels(self, block: Block) -> slice:
        return slice(block.start - self.first, block.end - self.first)

    def _split(self, block: Block) -> tuple[Examples, Examples]:
        return self.examples[: block.start], self.examples[block.start : block.end]

    def _index(self, key: NetworkKey) -> int:
        return next(k for k, g in enumerate(self.symmetries) if g.name == key.hypothesis)

    def _update_network_error(self, block: Block, hypotheses: list[int]) -> None:
        here = self._labels(block)
        self.now.network_error = error_of_networks(self.now.scores[hypotheses][:, :, here] * self.now.counts[here])

    def _score_others(self, block: Block, hypotheses: list[int]) -> None:
        """Let all but the first networks of some hypotheses predict the block."""
        for key, score in self._scores(block, hypotheses, range(1, self.now.networks)):
            self.now.scores[self._index(key), key.network, self._labels(block)] = score.log_likelihood

    def _scores(
        self, block: Block, hypotheses: list[int], networks: range
    ) -> Iterable[tuple[NetworkKey, BlockScore]]:
        """Scores of some networks on one block; networks that the cache lacks are trained."""
        wanted = [self._key(k, network, block) for k in hypotheses for network in networks]
        missing = [key for key in wanted if key not in self.cache]
        past, here = self._split(block)
        finished = joblib.Parallel(n_jobs=self.config.n_jobs, return_as="generator")(
            joblib.delayed(watched(self.scorer.score))(
                self.symmetries[self._index(key)],
                past,
                here,
                network_seed(self.seed, key.network, block.number),
                self.symmetries if key.network == 0 else (),
            )
            for key in missing
        )
        for key, score in zip(missing, finished, strict=True):
            self.cache[key] = score
            if self.progress:
                alive = {self.symmetries[k].name for k in self.now.alive}
                self.progress.trained(key, alive, self.now.stages[-1].log_evidence if self.now.stages else {})
        return [(key, self.cache[key]) for key in wanted]

    def _missing(self, networks: int) -> dict[NetworkKey, float]:
        """Map every network that is not in the cache to its cost: the number of copies that it learns from."""
        epochs = self.config.training.all_epochs
        keys = {
            self._key(k, network, block): (COMMON_COST + min(symmetry.order, SAMPLED))
            * float(epochs(block.start) * block.start)
            for k, symmetry in enumerate(self.symmetries)
            for network in range(networks)
            for block in self.blocks
        }
        return {key: cost for key, cost in keys.items() if key not in self.cache}

    def _key(self, hypothesis: int, network: int, block: Block) -> NetworkKey:
        return NetworkKey(self.name, self.symmetries[hypothesis].name, network, block.number)


def most_networks(config: Evidence) -> int:
    """Number of networks per hypothesis that an open verdict may get."""
    grows = config.n_networks > 1 and config.sure > 0 and not config.tolerance
    return MOST_NETWORKS * config.n_networks if grows else config.n_networks


def network_seed(seed: int, network: int, block: int) -> int:
    """Seed of one network; equal for all hypotheses, so that they are compared in pairs."""
    return int(np.random.SeedSequence([seed, network, block]).generate_state(1)[0])
