r"""One network per hypothesis, compared by prequential evidence.

The data comes in blocks that grow. A network trained on all blocks so far predicts the labels of the next, so
every label but those of the first block is predicted once, never by a network that saw it. A hypothesis predicts
with the average of its networks. The sum of the log probabilities, $\sum_b \log p(y_b \mid x_b, D_{<b})$, is the
log evidence given the first block. It rewards a constraint that helps to generalise, which the training likelihood
never does.
"""

import itertools
import math
import warnings
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import joblib
import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from invariantnet.groups import Group
from invariantnet.inference.compared import DECAYED
from invariantnet.inference.posterior import (
    SymmetryPosterior,
    bootstrap_probabilities,
    log_prior_of,
    mean_prediction,
)
from invariantnet.inference.prices import PRICED, affordable, predict_moved, prices
from invariantnet.inference.race import Scored, block_ends, error_of_networks, hopeless, with_bounds
from invariantnet.likelihoods import Categorical, Likelihood
from invariantnet.nn.symmetrized import SAMPLED
from invariantnet.progress import Step
from invariantnet.rows import Rows
from invariantnet.training import Training, predict, train
from invariantnet.workers import watched

MakeNetwork = Callable[[Group], nn.Module]
"""Of a hypothesis."""


PILOTS, CHEAP = 4, 8
"""How much networks differ is learned from those of small groups first, where so many have so few elements. Then
larger ones that are far behind need no more than one."""


@dataclass(frozen=True)
class Evidence:
    """How the evidence is gathered."""

    seeds: int = 2
    """Networks per hypothesis, at most: who is far behind after the first of them gets no others."""
    sure: float = 0.95
    """Up to twice as many networks are trained while no hypothesis is as probable as this, and up to four times
    as many where one would be, if the networks' average were all that could be drawn; but one stays one."""
    first_block: int | None = None
    """Examples that are only learned from; by default 1/16 of all, within 16 and 500, at most half."""
    growth: float | None = None
    """Each training set is so many times the one before it: by default 4, or 2 with fewer than 1,000 examples."""
    doubt: float = 0.01
    """Share of a uniform prediction mixed into every network's: one surprise costs a bounded number of nats."""
    margin: float = 10.0
    """A hypothesis this many nats, plus four standard errors, behind one with no more elements is dropped. A
    smaller group is never dropped for a larger one while there is more data: it could still catch up. From the
    second block on first networks judge first, and who is far behind gets no others. Infinity keeps all."""
    tolerance: float = 0.0
    """If positive, nothing is dropped, and the race ends when two blocks in a row agree surely which prices are
    below it: prices grow and shrink with the data, and one block of few examples says little about more."""
    training: Training = DECAYED.training
    jobs: int = 1
    """Processes that train networks at the same time."""


@dataclass(frozen=True, eq=False)
class BlockScore:
    """How one network predicted its block."""

    log_likelihood: Float[np.ndarray, " n"]
    """Of every label in the block."""
    accuracy: dict[str, float]
    """On inputs of the block moved by each hypothesis' transformations, of the first network of its kind."""


def gather_evidence(
    make_network: MakeNetwork,
    groups: Sequence[Group],
    x: Float[Tensor, "n dim"] | Rows,
    y: Shaped[Tensor, " n"],
    *,
    config: Evidence,
    likelihood: Likelihood | None = None,
    weight: Float[Tensor, " n"] | None = None,
    alpha: float | Sequence[float] = 1.0,
    seed: int = 0,
    store: MutableMapping[str, BlockScore] | None = None,
    on_network: Callable[[Step], None] | None = None,
) -> SymmetryPosterior:
    """Race the hypotheses over the blocks, until one is left or the data is used up, and return the posterior.

    What is in `store` is not computed again, and every finished network's score goes into it.
    """
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    race = _Race(
        make_network,
        groups,
        _Examples(x[order], y[order], None if weight is None else weight[order]),
        config,
        likelihood or Categorical(),
        log_prior_of(alpha, len(groups)),
        seed,
        {} if store is None else store,
        on_network,
    )
    posterior = race.run(config.seeds)
    # Networks differ by their starts. Where that leaves it open, the average of more of them says more.
    most = 4 * config.seeds if config.seeds > 1 else 1
    for networks in range(config.seeds + 1, most + 1):
        if config.tolerance or max(posterior.probabilities) >= config.sure:
            break
        if networks > 2 * config.seeds and max(race.by_examples()) < config.sure:
            break
        posterior = race.run(networks)
    return posterior


@dataclass
class _Race:
    make_network: MakeNetwork
    groups: Sequence[Group]
    data: "_Examples"
    config: Evidence
    likelihood: Likelihood
    log_prior: Float[np.ndarray, " schemes"]
    seed: int
    store: MutableMapping[str, BlockScore]
    on_network: Callable[[Step], None] | None
    spent: float = 0.0
    """Cost of the networks trained so far."""
    compared: tuple[Scored, Float[np.ndarray, " n"]] = field(init=False)
    """What the last run judged by, and how often each label counts."""

    def run(self, networks: int) -> SymmetryPosterior:
        """The whole race, with so many networks per hypothesis."""
        groups, config = self.groups, self.config
        ends = block_ends(len(self.data.x), config.first_block, config.growth)
        blocks = list(itertools.pairwise(ends))
        alive = list(range(len(groups)))
        scored = np.zeros((len(groups), networks, ends[-1] - ends[0]))
        weight = self.data.weight
        counts = np.ones(scored.shape[-1]) if weight is None else weight[ends[0] :].double().cpu().numpy()
        dropped: dict[int, int] = {}
        beaten_by: dict[int, int] = {}
        stages: list[dict[str, Any]] = []
        accuracy: dict[int, dict[str, float]] = {}
        before: list[bool] | None = None
        guessing = 0.0
        # Unknown until several networks have predicted a block.
        network_error: float | None = None
        by_first = np.zeros(scored.shape[-1], dtype=bool)
        for block, (start, end) in enumerate(blocks):
            so_far = stages[-1]["log_evidence"] if stages else {}
            here, until = slice(start - ends[0], end - ends[0]), end - ends[0]
            for (k, _), score in self._scores(blocks, block, networks, so_far, alive, alive, range(1)).items():
                scored[k, :, here] = score.log_likelihood
                accuracy[k] = score.accuracy
            # After the last block nobody can catch up any more.
            orders = [g.order if end < ends[-1] else 1 for g in groups]
            margin = np.inf if config.tolerance else config.margin
            ask = partial(self._add_networks, scored[:, :, here], blocks, block, networks, so_far)
            pilots = [k for k in alive if groups[k].order <= CHEAP]
            if network_error is None and networks > 1 and PILOTS <= len(pilots) < len(alive):
                ask(alive, pilots)
                network_error = error_of_networks(scored[pilots][:, :, here] * counts[here])
            behind: dict[int, int] = {}
            if network_error is not None:
                seen = mean_prediction(scored[:, :, :until]) * counts[:until]
                trained = [k for k in alive if not self._diverged(scored[k, 0, here])]
                behind = hopeless(seen, trained, orders, margin, network_error * (end - start))
            going = [k for k in alive if k not in behind]
            by_first[here] = bool(behind)
            if len(going) > 1:
                ask(going, going)
                if networks > 1:
                    network_error = error_of_networks(scored[going][:, :, here] * counts[here])
            bounded = with_bounds(scored, dropped, beaten_by)[:, :, :until]
            probabilities = bootstrap_probabilities(bounded, self.log_prior, self.seed, counts[:until])
            seen = mean_prediction(bounded) * counts[:until]
            guessing += float(self._guess(start, end) @ counts[here])
            stages.append(
                {
                    "examples": until,
                    "log_evidence": {groups[k].name: float(seen[k].sum()) for k in alive},
                    "probabilities": {g.name: float(p) for g, p in zip(groups, probabilities, strict=True)},
                }
            )
            if config.tolerance:
                now = affordable(seen[:, start - ends[0] :], config.tolerance)
                if now is not None and now == before:
                    break
                before = now
            if end < ends[-1]:
                out = behind | hopeless(seen, going, orders, margin)
                dropped |= dict.fromkeys(out, until)
                beaten_by |= out
                alive = [k for k in alive if k not in out]
            if len(alive) == 1:
                break
        self.compared = bounded, counts[:until]
        totals = (bounded * counts[:until]).sum(-1)
        by_all = min(dropped.values(), default=until)
        return SymmetryPosterior(
            names=tuple(g.name for g in groups),
            orders=tuple(g.order for g in groups),
            probabilities=tuple(stages[-1]["probabilities"].values()),
            log_evidence=tuple(seen.sum(1).tolist()),
            log_evidence_spread=tuple(totals.std(1, ddof=int(networks > 1)).tolist()),
            examples=until,
            dropped=tuple(groups[k].name for k in sorted(dropped)),
            prices=tuple(
                prices(groups, accuracy, seen, [past - ends[0] for past, _ in blocks[: block + 1]], dropped)
            ),
            race=tuple(stages),
            guessing=guessing,
            # Where some have one network, all are compared by one.
            pointwise=np.where(by_first[:until], bounded[:, 0], mean_prediction(bounded))[:, :by_all],
            counts=counts[:by_all],
        )

    def by_examples(self) -> Float[np.ndarray, " schemes"]:
        """Probabilities after the last run, if only its examples were a sample and not its networks."""
        scored, counts = self.compared
        return bootstrap_probabilities(mean_prediction(scored)[:, None], self.log_prior, self.seed, counts)

    def _guess(self, start: int, end: int) -> Float[np.ndarray, " block"]:
        """Log probability of the labels of a block, for one who knows those before it and no input."""
        _, y, weight = self.data.part(0, end)
        weight = torch.ones(end, device=y.device) if weight is None else weight
        output = self.likelihood.guess(y[:start], weight[:start], y[start:])
        return pointwise(output, y[start:].to(output.device), self.likelihood, self.config.doubt)

    def _diverged(self, log_likelihood: Float[np.ndarray, " block"]) -> bool:
        """Whether no label was thought more probable than by one who knows nothing."""
        return bool(log_likelihood.max() <= (math.log(self.config.doubt) if self.config.doubt else -math.inf))

    def _add_networks(
        self,
        scored: Scored,
        blocks: list[tuple[int, int]],
        block: int,
        networks: int,
        so_far: dict[str, float],
        alive: list[int],
        asked: list[int],
    ) -> None:
        """Put in what all but the first networks of some hypotheses say."""
        more = self._scores(blocks, block, networks, so_far, alive, asked, range(1, networks))
        for (k, s), score in more.items():
            scored[k, s] = score.log_likelihood

    def _scores(
        self,
        blocks: list[tuple[int, int]],
        block: int,
        networks: int,
        so_far: dict[str, float],
        alive: list[int],
        asked: list[int],
        replicas: range,
    ) -> dict[tuple[int, int], BlockScore]:
        """Of some networks on one block, by hypothesis and number; those that the store lacks are trained."""
        (start, end), groups, config = blocks[block], self.groups, self.config
        keys = {(k, s): f"{groups[k].name}-{s}-{block}" for k in alive for s in range(networks)}
        wanted = {job: key for job, key in keys.items() if job[0] in asked and job[1] in replicas}
        missing = {job: key for job, key in wanted.items() if key not in self.store}
        finished = joblib.Parallel(n_jobs=config.jobs, return_as="generator")(
            joblib.delayed(watched(_predict_block))(
                self.make_network,
                groups[k],
                groups if s == 0 else (),
                self.data.part(0, end),
                start,
                self.likelihood,
                config,
                _mix(self.seed, s, block),
            )
            for k, s in missing
        )
        for (job, key), score in zip(missing.items(), finished, strict=True):
            self.store[key] = score
            self.spent += _cost(groups[job[0]], start)
            if self.on_network:
                ahead = sum(_cost(groups[k], start) for (k, _), later in keys.items() if later not in self.store)
                ahead += networks * sum(_cost(groups[k], past) for k in alive for past, _ in blocks[block + 1 :])
                done = self.spent / (self.spent + ahead)
                self.on_network(Step(groups[job[0]].name, job[1], networks, block, len(blocks), done, so_far))
        return {job: self.store[key] for job, key in wanted.items()}


def pointwise(
    output: Float[Tensor, "n outputs"], y: Shaped[Tensor, " n"], likelihood: Likelihood, doubt: float
) -> Float[np.ndarray, " n"]:
    r"""$\log\big((1-\epsilon)\, p(y_i \mid x_i) + \epsilon\, p_0(y_i)\big)$ for each example."""
    output = output.double()
    y = y.double() if y.is_floating_point() else y
    # A network that diverged knows nothing: its hypothesis loses, and the others go on.
    known = likelihood.log_prob(output, y).nan_to_num(nan=-math.inf) + math.log1p(-doubt)
    unknown = likelihood.background(output, y) + (math.log(doubt) if doubt else -math.inf)
    return torch.logaddexp(known, unknown).cpu().numpy()


class _Examples(NamedTuple):
    x: Tensor | Rows
    y: Tensor
    weight: Tensor | None

    def part(self, start: int, end: int) -> "_Examples":
        weight = None if self.weight is None else self.weight[start:end]
        return _Examples(self.x[start:end], self.y[start:end], weight)


def _predict_block(
    make_network: MakeNetwork,
    group: Group,
    priced: Sequence[Group],
    data: _Examples,
    start: int,
    likelihood: Likelihood,
    config: Evidence,
    seed: int,
) -> BlockScore:
    past, block = data.part(0, start), data.part(start, len(data.x))
    network, _ = train(
        lambda: make_network(group),
        past.x,
        past.y,
        config.training,
        seed,
        likelihood=likelihood,
        weight=past.weight,
    )
    outputs = predict(network, block.x, likelihood)
    if not bool(outputs.isfinite().all()):
        warnings.warn(
            f"a network of {group.name} diverged on {start} examples, so this hypothesis falls behind: "
            "look for extreme values in the data, or use another backbone.",
            RuntimeWarning,
            stacklevel=2,
        )
    values = pointwise(outputs, block.y, likelihood, config.doubt)
    shown = block.part(0, PRICED)
    accuracy = {g.name: likelihood.score(predict_moved(network, g, shown.x, likelihood), shown.y) for g in priced}
    return BlockScore(values, accuracy)


def _cost(group: Group, examples: int) -> float:
    return min(group.order, SAMPLED) * float(examples)


def _mix(seed: int, replica: int, block: int) -> int:
    """A seed of its own for every network; equal for all hypotheses, so that they are compared in pairs."""
    return int(np.random.SeedSequence([seed, replica, block]).generate_state(1)[0])
