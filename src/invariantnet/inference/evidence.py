r"""One network per hypothesis, compared by prequential evidence.

The data comes in blocks that grow. A network trained on all blocks so far predicts the labels of the next, so
every label but those of the first block is predicted once, never by a network that saw it. The sum of the log
probabilities, $\sum_b \log p(y_b \mid x_b, D_{<b})$, is the log evidence given the first block. It rewards a
constraint that helps to generalise, which the training likelihood never does.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import joblib
import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from invariantnet.groups import Group, transform
from invariantnet.inference.posterior import Price, SymmetryPosterior, bootstrap_probabilities, log_prior_of
from invariantnet.measures import Measure
from invariantnet.training import Training, log_probabilities, train

MakeNetwork = Callable[[Group], nn.Module]

PER_BLOCK = Training(
    epochs=25,
    batch_size=64,
    learning_rate=3e-3,
    weight_decay=1e-2,
    validation=0.0,
    schedule="one-cycle",
    min_steps=200,
)
"""No validation split: the next block is the judge."""


@dataclass(frozen=True)
class Evidence:
    """How the evidence is gathered."""

    seeds: int = 2
    """Networks per hypothesis."""
    first_block: int | None = None
    """Examples that are only learned from; by default 1/16 of the data, within 16 and 500."""
    growth: float = 2.0
    """Each training set is so many times the one before it."""
    doubt: float = 0.01
    """Share of a uniform prediction mixed into every network's: one surprise costs a bounded number of nats."""
    margin: float = 10.0
    """A hypothesis this many nats, plus four standard errors, behind the leader is dropped; infinity keeps all."""
    training: Training = PER_BLOCK
    jobs: int = 1
    """Processes that train networks at the same time."""


def gather_evidence(
    make_network: MakeNetwork,
    groups: Sequence[Group],
    x: Float[Tensor, "n dim"],
    y: Int[Tensor, " n"],
    *,
    config: Evidence,
    alpha: float | Sequence[float] = 1.0,
    seed: int = 0,
    on_block: Callable[[dict[str, object]], None] | None = None,
) -> SymmetryPosterior:
    """Race the hypotheses over the blocks and return the posterior."""
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    x, y = x[order], y[order]
    ends = block_ends(len(x), config)
    log_prior = log_prior_of(alpha, len(groups))
    alive = list(range(len(groups)))
    scored = np.zeros((len(groups), config.seeds, len(x) - ends[0]))
    dropped: dict[int, int] = {}
    race: list[dict[str, object]] = []
    networks: dict[int, nn.Module] = {}
    for block, (start, end) in enumerate(itertools.pairwise(ends)):
        jobs = [(k, s) for k in alive for s in range(config.seeds)]
        finished = joblib.Parallel(n_jobs=config.jobs)(
            joblib.delayed(_predict_block)(make_network, groups[k], x, y, start, end, config, _mix(seed, s, block))
            for k, s in jobs
        )
        for (k, s), (network, values) in zip(jobs, finished, strict=True):
            scored[k, s, start - ends[0] : end - ends[0]] = values
            networks[k] = network if s == 0 else networks[k]
        seen = scored[:, :, : end - ends[0]]
        race.append({"examples": end - ends[0], **{groups[k].name: float(seen[k].mean(0).sum()) for k in alive}})
        if on_block:
            on_block(race[-1])
        for k in _hopeless(seen, alive, config.margin):
            alive.remove(k)
            dropped[k] = end - ends[0]
    last = ends[-2] - ends[0]
    leader = max(alive, key=lambda k: scored[k].mean(0).sum())
    for k, until in dropped.items():
        # From where it was dropped a hypothesis is taken to do as well as the leader: an upper bound.
        scored[k, :, until:] = scored[leader, :, until:]
    totals = scored.sum(-1)
    prices = _prices(groups, networks, scored, last, dropped, x[ends[-2] :], y[ends[-2] :])
    return SymmetryPosterior(
        names=tuple(g.name for g in groups),
        orders=tuple(g.order for g in groups),
        probabilities=tuple(bootstrap_probabilities(scored, log_prior, seed).tolist()),
        log_evidence=tuple(totals.mean(1).tolist()),
        log_evidence_spread=tuple((totals.std(1, ddof=1) if config.seeds > 1 else totals.std(1)).tolist()),
        examples=scored.shape[-1],
        dropped=tuple(groups[k].name for k in sorted(dropped)),
        prices=tuple(prices),
        race=tuple(race),
    )


def block_ends(n: int, config: Evidence) -> list[int]:
    """Sizes of the training sets, each `growth` times the one before; the last is all of the data."""
    first = config.first_block or min(500, max(16, n // 16))
    if not 0 < first < n:
        raise ValueError(f"a first block of {first} leaves none of {n} examples to predict: pass more data.")
    ends = [first]
    while ends[-1] < n:
        ends.append(min(n, max(ends[-1] + 1, round(ends[-1] * config.growth))))
    # A last block much smaller than its training set would cost a full training for few predictions.
    if len(ends) > 2 and n - ends[-2] < 0.25 * ends[-2]:
        del ends[-2]
    return ends


def pointwise(network: nn.Module, x: Tensor, y: Tensor, doubt: float) -> Float[np.ndarray, " n"]:
    r"""$\log\big((1-\epsilon)\, p(y_i \mid x_i) + \epsilon / C\big)$ for each example."""
    log_p = log_probabilities(network, x)
    p = log_p.gather(1, y[:, None]).squeeze(1).double().exp()
    return ((1 - doubt) * p + doubt / log_p.shape[1]).log().numpy()


def _predict_block(
    make_network: MakeNetwork,
    group: Group,
    x: Tensor,
    y: Tensor,
    start: int,
    end: int,
    config: Evidence,
    seed: int,
) -> tuple[nn.Module, np.ndarray]:
    network, _ = train(lambda: make_network(group), x[:start], y[:start], config.training, seed)
    return network, pointwise(network, x[start:end], y[start:end], config.doubt)


def _hopeless(seen: np.ndarray, alive: list[int], margin: float) -> list[int]:
    pooled = seen.mean(1)
    leader = max(alive, key=lambda k: pooled[k].sum())
    found = []
    for k in alive:
        gap = pooled[leader] - pooled[k]
        error = np.sqrt(len(gap)) * gap.std()
        if gap.sum() > margin + 4 * error:
            found.append(k)
    return found


def _prices(
    groups: Sequence[Group],
    networks: dict[int, nn.Module],
    scored: np.ndarray,
    last: int,
    dropped: dict[int, int],
    x: Tensor,
    y: Tensor,
) -> list[Price]:
    """Cost and benefit of each group, on the last block that it took part in."""
    moved = {g.name: _moved_at_random(g, x) for g in groups}
    prices = []
    pooled = scored.mean(1)
    for k, group in enumerate(groups):
        until = dropped.get(k, scored.shape[-1])
        part = slice(last if k not in dropped else 0, until)
        best = pooled[:, part].sum(1).max()
        accuracy = {
            name: float((log_probabilities(networks[k], inputs).argmax(-1) == y).double().mean())
            for name, inputs in moved.items()
        }
        loss = float(best - pooled[k, part].sum()) / (part.stop - part.start)
        prices.append(Price(group.name, group.order, loss, accuracy))
    return prices


def _moved_at_random(group: Group, x: Tensor) -> Tensor:
    elements = Measure.of([group], sampled=64).elements
    drawn = torch.randint(len(elements), (len(x),), generator=torch.Generator().manual_seed(0))
    moved = torch.empty_like(x)
    for g in drawn.unique():
        moved[drawn == g] = transform(x[drawn == g], elements[g])
    return moved


def _mix(seed: int, replica: int, block: int) -> int:
    """A seed of its own for every network; equal for all hypotheses, so that they are compared in pairs."""
    return int(np.random.SeedSequence([seed, replica, block]).generate_state(1)[0])
