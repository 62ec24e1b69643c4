"""The one training loop: Adam, early stopping on a validation split, best weights restored."""

import contextlib
import copy
import itertools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from invariantnet.likelihoods import Categorical, Likelihood
from invariantnet.nn.invariant import InvariantLinear
from invariantnet.nn.scheme import Scheme
from invariantnet.nn.symmetrized import transpose_moved_weights
from invariantnet.objectives import HasKL, LogPosterior, total
from invariantnet.rows import Rows, blocks, read
from invariantnet.team import our_team

EVALUATION_BATCH = 4096
KEPT = 31 * 2**20
Part = tuple[Tensor | Rows, Tensor, Tensor | None]
"""Inputs, targets, and how often each counts."""
_DRAWING = threading.RLock()


@dataclass(frozen=True)
class Training:
    """How to train."""

    epochs: int = 100
    """At most so many passes over the data."""
    patience: int = 5
    """Stop after so many epochs without a better validation log-likelihood."""
    batch_size: int = 256
    learning_rate: float = 1e-3
    validation: float = 0.1
    """Share of the examples that is held out to decide when to stop."""
    weight_decay: float = 0.0
    schedule: Literal["constant", "one-cycle"] = "constant"
    """Learning rate: as it is, or rising to it and falling to nothing over all epochs."""
    min_steps: int = 0
    """More epochs, if need be, to make so many steps: small data sets need them."""
    samples: int = 10
    """Draws that predictions of stochastic networks are averaged over."""

    def all_epochs(self, examples: int) -> int:
        """Epochs, with those that `min_steps` adds."""
        return max(self.epochs, -(-self.min_steps // self.batches(examples)))

    def steps(self, examples: int) -> int:
        """Steps in all, if it is not stopped early."""
        return self.all_epochs(examples) * self.batches(examples)

    def batches(self, examples: int) -> int:
        """Steps of one epoch. A single example left over joins the last batch: alone it cannot be normalised."""
        alone = examples > self.batch_size > 1 and examples % self.batch_size == 1
        return -(-examples // self.batch_size) - alone


@dataclass
class History:
    """What happened, epoch by epoch: every term of the objective, validation scores, and π."""

    epochs: list[dict[str, float]] = field(default_factory=list)
    scheme_names: tuple[str, ...] = ()
    schemes: list[list[float]] = field(default_factory=list)
    """π before training and after every epoch, of the first layer that learns one."""
    best_epoch: int = 0


def train(
    make_network: Callable[[], nn.Module],
    x: Float[Tensor, "n dim"] | Rows,
    y: Shaped[Tensor, " n"],
    config: Training,
    seed: int,
    *,
    likelihood: Likelihood | None = None,
    weight: Float[Tensor, " n"] | None = None,
    on_step: Callable[[nn.Module], None] | None = None,
    skip: Sequence[str] = (),
) -> tuple[nn.Module, History]:
    """Make a network and fit it to the data; the seed decides everything that is drawn.

    By default the targets are classes. Examples count by their `weight`, which is 1 on average. Parameters named
    in `skip` are left to `on_step`, which is called with the network after every step.
    """
    with seeded(seed):
        network = make_network().to(x.device)
        order = torch.randperm(len(x)).to(x.device)
        held_out, kept = order.split(
            [round(config.validation * len(x)), len(x) - round(config.validation * len(x))]
        )
        trainable = network
        if not isinstance(x, Rows):
            prepare, trainable = split_preparation(network)
            with torch.no_grad():
                x = in_batches(prepare, x)
        objective = LogPosterior(trainable, len(kept), likelihood)
        learned, judged = (
            (x[part], y[part], None if weight is None else weight[part]) for part in (kept, held_out)
        )
        moved = transpose_moved_weights(trainable)
        history = _fit(objective, learned, judged, config, on_step, skip)
        for weight in moved:
            weight.data, weight.grad = weight.data.contiguous(), None
    return network.eval(), history


def _fit(
    objective: LogPosterior,
    learned: Part,
    judged: Part,
    config: Training,
    on_step: Callable[[nn.Module], None] | None,
    skip: Sequence[str],
) -> History:
    keep_memory()
    network, likelihood, team = objective.network, objective.likelihood, our_team()
    (x, y, weight), (x_held_out, y_held_out, weight_held_out) = learned, judged
    epochs, batches = config.all_epochs(len(x)), config.batches(len(x))
    sizes = [config.batch_size] * (batches - 1)
    sizes.append(len(x) - sum(sizes))
    parameters = [p for name, p in network.named_parameters() if name not in skip]
    optimizer = torch.optim.AdamW(parameters, config.learning_rate, weight_decay=config.weight_decay, fused=True)
    rates: Iterator[float] = itertools.repeat(config.learning_rate)
    if config.schedule == "one-cycle":
        rates = iter(one_cycle(config.learning_rate, config.steps(len(x))))
    layer = next((m for m in network.modules() if isinstance(m, Scheme) and m.learns_scheme), None)
    history = History(scheme_names=layer.names if layer else ())
    # Without a validation split the last weights are the best, and no copies are needed.
    best, best_weights = -torch.inf, copy.deepcopy(network.state_dict()) if len(x_held_out) else None
    if layer:
        history.schemes.append(layer.probabilities.tolist())
    for epoch in range(1, epochs + 1):
        network.train(len(x) > 1)  # a single example cannot be normalised by its batch
        totals: dict[str, Tensor] = {}
        for batch in torch.randperm(len(x)).to(x.device).split(sizes):
            ours = team.share(batch)
            share = len(ours) / len(batch)
            ours = ours if len(ours) else batch[:1]
            terms = objective.terms(read(x[ours]), y[ours], None if weight is None else weight[ours])
            if team.size > 1:
                # Shares may be uneven, or empty; the priors count once.
                terms = {k: v * (share if k == "log_likelihood" else 1 / team.size) for k, v in terms.items()}
            optimizer.param_groups[0]["lr"] = next(rates)
            optimizer.zero_grad()
            (-total(terms.values())).backward()
            team.sum_gradients(parameters)
            optimizer.step()
            if on_step:
                on_step(network)
            for name, value in terms.items():
                totals.setdefault(name, torch.zeros_like(value)).add_(value.detach(), alpha=len(batch) / len(x))
        team.average_buffers(network)
        record = {name: float(value) for name, value in totals.items()}
        if team.size == 1 and not math.isfinite(sum(record.values())):
            # No further step mends it; whoever asked for the network finds that it knows nothing.
            history.epochs.append(record)
            history.best_epoch, best_weights = epoch, network.state_dict()
            break
        if len(x_held_out):
            outputs = predict(network, x_held_out, likelihood, samples=config.samples)
            each = likelihood.log_prob(outputs, y_held_out)
            each = each if weight_held_out is None else each * weight_held_out
            record["validation_log_likelihood"] = float(each.mean())
            record["validation_accuracy"] = likelihood.score(outputs, y_held_out)
        history.epochs.append(record)
        if layer:
            history.schemes.append(layer.probabilities.tolist())
        score = record.get("validation_log_likelihood", float(epoch))
        if score > best:
            best, history.best_epoch = score, epoch
            if len(x_held_out):
                best_weights = copy.deepcopy(network.state_dict())
        elif epoch - history.best_epoch >= config.patience:
            break
    if best_weights:
        network.load_state_dict(best_weights)
    return history


def keep_memory() -> None:
    """Let the arrays of one step lie where those of the last did.

    The C library of Linux returns free memory to the system where there is more than twice the largest block that
    was returned before, and the next step waits for new pages. So one block is returned that nobody has touched.
    """
    torch.empty(KEPT, dtype=torch.uint8, device="cpu")


def one_cycle(rate: float, steps: int) -> list[float]:
    """Learning rates that rise to `rate` in three tenths of the steps, then fall to nothing, along cosines."""
    low, top, last = rate / 25, 0.3 * steps - 1, steps - 1

    def between(start: float, end: float, share: float) -> float:
        return end + (start - end) / 2 * (math.cos(math.pi * share) + 1)

    return [
        between(low, rate, i / top) if i <= top else between(rate, low / 1e4, (i - top) / (last - top))
        for i in range(steps)
    ]


@torch.no_grad()
def predict(
    network: nn.Module, x: Float[Tensor, "n dim"] | Rows, likelihood: Likelihood, samples: int = 1
) -> Tensor:
    """Normalised outputs, averaged over draws if the weights are stochastic."""
    network.eval()

    def once() -> Tensor:
        return in_batches(lambda part: likelihood.normalised(network(part)), x)

    if not any(isinstance(m, HasKL) for m in network.modules()):
        return once()
    return likelihood.combined(torch.stack([once() for _ in range(samples)]))


def log_probabilities(
    network: nn.Module, x: Float[Tensor, "n dim"] | Rows, samples: int = 1
) -> Float[Tensor, "n classes"]:
    """Log of the predicted class probabilities."""
    return predict(network, x, Categorical(), samples)


def split_preparation(network: nn.Module) -> tuple[Callable[[Tensor], Tensor], nn.Module]:
    """The part of a network that no parameter touches, to be computed once per data set; and the rest."""
    if isinstance(network, nn.Sequential) and isinstance(network[0], InvariantLinear):
        return network[0].sums, nn.Sequential(_FromSums(network[0]), *list(network)[1:])
    return nn.Identity(), network


class _FromSums(nn.Module):
    def __init__(self, layer: InvariantLinear) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, sums: Tensor) -> Tensor:
        return self.layer.combine(sums)


def in_batches(function: Callable[[Tensor], Tensor], x: Tensor | Rows, size: int = EVALUATION_BATCH) -> Tensor:
    """Apply a function to slices of the data, so that memory stays bounded."""
    parts = [function(part) for part in blocks(x, size)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    """Inside, torch computes with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, torch draws from the seed; outside, its state is as before. One thread at a time."""
    with _DRAWING, torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
