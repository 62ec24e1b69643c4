"""How long a comparison will take, from timing a few steps of each model before it starts."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import joblib
import torch

from invariantnet._system.progress import Work, say, working
from invariantnet._system.torch_state import seeded
from invariantnet.choices import Uncertainty
from invariantnet.data.arrays import read
from invariantnet.data.examples import Examples
from invariantnet.estimator.networks import DRAWN
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.kinds import kind_of
from invariantnet.inference.race import Evidence
from invariantnet.inference.rules import expected_share, may_end, plan_blocks
from invariantnet.inference.scoring import MakeNetwork
from invariantnet.likelihoods import Likelihood
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.objectives import LogPosterior, total
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.plain import plain_name
from invariantnet.symmetries.ranges import Range
from invariantnet.training.calibrated import FOLDS
from invariantnet.training.config import Training
from invariantnet.training.heat import Heat, Untrained
from invariantnet.uncertainty import training_steps

TIMED_STEPS = 3
"""Steps of the optimizer that are timed for a model; the quickest counts, as the first ones fill caches."""
SHARE, SHARE_OF_RANGES, SHARE_OF_ONE_MODEL = 0.45, 0.65, 0.75
"""Share of the networks that a race trains in the end: hopeless models and symmetries are dropped on the way, open
verdicts get more networks, and small networks of one shape share their steps. Of nine sets of 300 to 700 images,
sequences and rows (seed 7), the shares were 0.24 to 0.72. Neighbouring rungs of a ladder are hardly ever dropped
(of three sets of 150 to 300, 0.55 to 1), and where one model is compared, no model is."""
LONG = 300.0
"""CPU seconds of a comparison from which on it is said how to shorten it."""

WORTH_PROCESSES = 30.0
"""CPU seconds of a comparison from which on `n_jobs=-1` starts processes, which takes each of them several."""


@dataclass(frozen=True)
class Estimate:
    """Processor time that lies ahead, in seconds."""

    symmetries: int
    models: int
    hypotheses: int
    comparison: float
    longest: float
    """Of the comparison, if the first examples do not decide."""
    final: tuple[float, float]
    """Of the final network: at the median over what may win, and at most."""
    dearest: str = ""
    """The symmetry whose final network takes that long."""
    step_seconds: Mapping[str, float] = field(default_factory=dict)
    """Of a training step of each hypothesis, by its name."""

    @property
    def words(self) -> str:
        """What will be compared, and how long that and the final network will take."""
        usual, most = (duration(seconds) for seconds in self.final)
        final = f"{usual} for the final network"
        if usual != most:
            final += f", or {most} with {self.dearest}"
        open_verdict = f" ({duration(self.longest)} if the first examples do not decide)"
        longest = open_verdict if self.longest > 2 * self.comparison else ""
        if self.symmetries > 1 and not longest:
            longest = " (up to four times that if luck of networks leaves the verdict open)"
        models = f"{self.models} kinds of networks" if self.models > 1 else "one kind of network"
        shorter = " To shorten it, name fewer symmetries, or one backbone." if self.comparison > LONG else ""
        symmetries = f"{self.symmetries} symmetries" if self.symmetries > 1 else "one symmetry"
        both = self.symmetries > 1 and self.models > 1
        each = ", each a symmetry in a kind of network that suits it" if both else ""
        them = "them" if self.hypotheses > 1 else "it"
        return (
            f"{symmetries}, {models}: {_hypotheses(self.hypotheses)}{each}. Estimated from a few steps of each: "
            f"{duration(self.comparison)} of CPU time to compare {them}{longest}, then {final}.{shorter}"
        )


def _hypotheses(number: int) -> str:
    return f"{number:,} hypotheses" if number > 1 else "one hypothesis"


def considered(symmetries: Iterable[str]) -> str:
    """Say what is compared, in plain words: ranges by their kind, and joins by what they combine.

    Args:
        symmetries: Names of all symmetries that are compared.

    Returns:
        One sentence.

    Example:
        >>> considered(["trivial", "rot90", "rotation:15", "rotation:30", "rot90+rotation:15"])
        'Candidates: no symmetry, quarter turns, rotations, and combinations of these.'
    """
    kinds = dict.fromkeys(kind_of(name) for name in symmetries)
    parts = dict.fromkeys(part for kind in kinds for part in kind.split("+"))
    words = ", ".join(plain_name(part) for part in parts)
    combined = ", and combinations of these" if any("+" in kind for kind in kinds) else ""
    return f"Candidates: {words}{combined}."


def duration(seconds: float) -> str:
    """Say a time in words.

    >>> duration(4.2), duration(47.0), duration(200.0), duration(9000.0)
    ('about 5 seconds', 'about 50 seconds', 'about 3 minutes', 'about 2.5 hours')
    """
    if seconds < 90:
        step = 5 if seconds < 20 else 10
        return f"about {max(step, round(seconds / step) * step)} seconds"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} minutes"
    return f"about {seconds / 3600:.2g} hours"


@dataclass(frozen=True, eq=False)
class Final:
    """How the network of the hypothesis that wins will be trained.

    Args:
        make_network: Makes it, untrained.
        training: How it is trained.
        uncertainty: How it estimates its doubts.
    """

    make_network: MakeNetwork
    training: Callable[[Hypothesis], Training]
    uncertainty: Uncertainty


@dataclass(frozen=True, eq=False)
class Ahead:
    """A comparison that lies ahead.

    Args:
        make_network: Makes the untrained network of a hypothesis.
        hypotheses: What will be compared.
        examples: The data.
        likelihood: Log density of the targets.
        final: What comes after it.
    """

    make_network: MakeNetwork
    hypotheses: Sequence[Hypothesis]
    examples: Examples
    likelihood: Likelihood
    final: Final


@dataclass(frozen=True)
class Announced:
    """What was announced.

    Args:
        config: How the evidence is gathered, with the number of processes.
        work: The work that lies ahead.
        step_seconds: CPU seconds of a training step by the name of a hypothesis; none if nothing was said.
    """

    config: Evidence
    work: Work
    step_seconds: Mapping[str, float] = field(default_factory=dict)


def announced(ahead: Ahead, config: Evidence, *, visible: bool) -> Announced:
    """Say what will be compared and how long it will take, and start processes only where they are worth it.

    Args:
        ahead: What will be compared.
        config: How the evidence is gathered.
        visible: Whether to say anything.

    Returns:
        What was announced.
    """
    if not visible and config.n_jobs > 0:
        return Announced(config, Work("comparing"))
    with working("timing a few steps of each model", visible=visible):
        estimate = estimate_cost(ahead, config)
    names = [h.symmetry.name for h in ahead.hypotheses]
    if TRIVIAL in names and estimate.symmetries > 1:  # else these are joins of what was said before
        say(considered(names), visible=visible)
    say(estimate.words, visible=visible)
    worth = config.n_jobs > 0 or estimate.longest > WORTH_PROCESSES
    config = replace(config, n_jobs=config.n_jobs if worth else 1)
    what = f"comparing {_hypotheses(estimate.hypotheses)}"
    work = Work(what, estimate.comparison / joblib.effective_n_jobs(config.n_jobs))
    return Announced(config, work, estimate.step_seconds)


def estimate_cost(ahead: Ahead, config: Evidence) -> Estimate:
    """Time a few steps of each model with its smallest and its largest symmetry, and add up.

    Args:
        ahead: What will be compared.
        config: How the evidence is gathered.

    Returns:
        The estimate. Nothing that is drawn later depends on it.
    """
    hypotheses, examples = ahead.hypotheses, ahead.examples
    blocks = plan_blocks(len(examples), config.first_block, config.growth)
    starts = [max(1, block.start * (FOLDS - 1) // FOLDS) for block in blocks]
    seconds = _seconds_per_step(ahead, starts[-1])
    shares = _shares_trained(hypotheses)
    every = [
        config.n_networks * sum(shares[h] * seconds[h] * h.model.training.steps(n) for h in hypotheses)
        for n in starts
    ]
    predicted = [block.start - blocks[0].start for block in blocks]
    usual = next((block.number for block in blocks if may_end(block, blocks)), blocks[-1].number) + 1
    final, dearest = _seconds_of_the_final_network(ahead, seconds)
    return Estimate(
        symmetries=len({h.symmetry.name for h in hypotheses}),
        models=len({h.model.name for h in hypotheses}),
        hypotheses=len(hypotheses),
        # With a tolerance nothing is dropped.
        comparison=sum(every) if config.tolerance else until_decided(every[:usual], predicted[:usual]),
        longest=sum(every),
        final=final,
        dearest=dearest,
        step_seconds={h.name: value for h, value in seconds.items()},
    )


def _shares_trained(hypotheses: Sequence[Hypothesis]) -> dict[Hypothesis, float]:
    """Share of the networks of each hypothesis that a race trains in the end."""
    models = Counter(h.symmetry for h in hypotheses)
    among = {h: SHARE_OF_RANGES if isinstance(h.symmetry, Range) else SHARE for h in hypotheses}
    return {h: share if models[h.symmetry] > 1 else SHARE_OF_ONE_MODEL for h, share in among.items()}


def until_decided(every: Sequence[float], predicted: Sequence[int]) -> float:
    """What the blocks of a race cost if a clear verdict drops hypotheses, beside what is dropped in any case.

    Args:
        every: What each block costs with all hypotheses.
        predicted: Labels that were predicted before each block.

    Returns:
        The cost of what is expected to be trained.
    """
    return sum(cost * expected_share(labels) for cost, labels in zip(every, predicted, strict=True))


def _seconds_of_the_final_network(
    ahead: Ahead, seconds: dict[Hypothesis, float]
) -> tuple[tuple[float, float], str]:
    """Time steps of two final networks, at the median over the hypotheses and at most; its batches are larger.

    Returns:
        The seconds of both, and the symmetry of the second in words.
    """

    def rough(h: Hypothesis) -> float:
        return seconds[h] * h.model.final.batch_size / h.model.training.batch_size * steps(h)

    def steps(h: Hypothesis) -> int:
        return training_steps(ahead.final.training(h), len(ahead.examples), ahead.final.uncertainty)

    def told(h: Hypothesis) -> float:
        return _time_step(
            ahead, ahead.final.make_network, h, ahead.final.training(h), len(ahead.examples)
        ) * steps(h)

    ranked = sorted(ahead.hypotheses, key=rough)
    usual, most = told(ranked[len(ranked) // 2]), told(ranked[-1])
    return (min(usual, most), max(usual, most)), plain_name(ranked[-1].symmetry.name)


def _seconds_per_step(ahead: Ahead, learned: int) -> dict[Hypothesis, float]:
    """Seconds of one step for every hypothesis; between two timed numbers of copies by interpolation."""
    found: dict[Hypothesis, float] = {}
    for name in dict.fromkeys(h.model.name for h in ahead.hypotheses):
        ours = sorted((h for h in ahead.hypotheses if h.model.name == name), key=_copies)
        ends = [ours[0], ours[-1]] if _copies(ours[-1]) > _copies(ours[0]) else [ours[0]]
        timed = [_time_step(ahead, ahead.make_network, h, h.model.training, learned) for h in ends]
        slope = (timed[-1] - timed[0]) / max(1, _copies(ours[-1]) - _copies(ours[0]))
        found |= {h: timed[0] + slope * (_copies(h) - _copies(ours[0])) for h in ours}
    return found


def _copies(hypothesis: Hypothesis) -> int:
    """Copies of an example that a training step learns from."""
    return min(hypothesis.copies, DRAWN if isinstance(hypothesis.symmetry, Range) else SAMPLED)


def _time_step(
    ahead: Ahead, make_network: MakeNetwork, hypothesis: Hypothesis, training: Training, learned: int
) -> float:
    """Time a step of one network, or of two that are trained side by side, which then share the time.

    Args:
        ahead: What will be compared.
        make_network: Makes the network.
        hypothesis: Its symmetry and model.
        training: How it is trained.
        learned: Examples that it learns from, of which a batch is a part.
    """
    part = ahead.examples[torch.arange(min(training.full_batch(learned), len(ahead.examples)))]
    make = partial(make_network, hypothesis)
    heat = None
    if hypothesis.is_small(part.x.shape[1]) and make_network is ahead.make_network:
        heat = Heat.of([Untrained(make, part, seed) for seed in range(2)], training, ahead.likelihood)
    if heat is not None:
        return _quickest_step(heat.objective, heat.examples) / len(heat.networks)
    with seeded(0):
        network = make().to(part.device).train()
    return _quickest_step(LogPosterior(network, len(part), ahead.likelihood, training.precision), part)


def _quickest_step(objective: LogPosterior, part: Examples) -> float:
    optimizer = torch.optim.AdamW(objective.network.parameters(), lr=1e-6)
    x, times = read(part.x), []
    with torch.enable_grad(), seeded(0):
        for _ in range(TIMED_STEPS + 1):
            start = time.process_time()
            optimizer.zero_grad()
            (-total(objective.terms(x, part.y).values())).backward()
            optimizer.step()
            times.append(time.process_time() - start)
    return min(times[1:])
