"""The one training loop: Adam, early stopping on a validation split, best weights restored."""

import copy
import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from invariantnet._system.torch_state import seeded
from invariantnet.data.arrays import DiskArray, blocks, read
from invariantnet.data.examples import Examples
from invariantnet.likelihoods import Categorical, Likelihood
from invariantnet.nn.mixture import Mixture
from invariantnet.objectives import HasKL, LogPosterior, total
from invariantnet.training._performance import keep_freed_memory, transpose_moved_weights
from invariantnet.training.config import History, Training
from invariantnet.training.distributed import processes
from invariantnet.training.preparation import prepared

EVALUATION_BATCH = 4096
"""Examples per batch where no gradient is needed, so that memory does not grow with the data."""


def train(
    make_network: Callable[[], nn.Module],
    examples: Examples,
    config: Training,
    seed: int,
    *,
    likelihood: Likelihood | None = None,
    on_step: Callable[[nn.Module], None] | None = None,
    skip: Sequence[str] = (),
) -> tuple[nn.Module, History]:
    """Make a network and fit it to the examples; the seed decides everything that is drawn.

    Args:
        make_network: Makes the untrained network.
        examples: What to learn from; a share of it is held out if `config.validation` says so.
        config: Epochs, rates, batches.
        seed: Seed of the initial weights, the validation split and the batches.
        likelihood: Log density of the targets; classes by default.
        on_step: Called with the network after every step.
        skip: Names of parameters that the optimizer leaves alone.

    Returns:
        The trained network in evaluation mode, and what happened epoch by epoch.

    """
    with seeded(seed):
        network = make_network().to(examples.device)
        order = torch.randperm(len(examples)).to(examples.device)
        size = round(config.validation * len(examples))
        held_out, kept = order.split([size, len(examples) - size])
        trainable, examples = prepared(network, examples)
        objective = LogPosterior(trainable, len(kept), likelihood, config.precision)
        transposed = transpose_moved_weights(trainable) if trainable is network else []
        report = None if on_step is None else partial(on_step, network)
        run = TrainingRun(objective, examples[kept], examples[held_out], config, report, skip)
        history = run.run()
        for weight in transposed:
            weight.data, weight.grad = weight.data.contiguous(), None
    return network.eval(), history


class TrainingRun:
    """One training: what is learned from, what decides when to stop, and the best weights so far."""

    def __init__(
        self,
        objective: LogPosterior,
        learned: Examples,
        held_out: Examples,
        config: Training,
        on_step: Callable[[], None] | None,
        skip: Sequence[str],
    ) -> None:
        self.objective, self.network, self.likelihood = objective, objective.network, objective.likelihood
        self.learned, self.held_out, self.config, self.on_step = learned, held_out, config, on_step
        self.processes = processes()
        self.parameters = [p for name, p in self.network.named_parameters() if name not in skip]
        self.optimizer = torch.optim.AdamW(
            self.parameters, config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        self.schedule: OneCycleLR | None = None
        if config.schedule == "one-cycle":
            self.schedule = OneCycleLR(
                self.optimizer,
                config.learning_rate,
                total_steps=config.steps(len(learned)),
                cycle_momentum=False,
            )
        mixtures = (m for m in self.network.modules() if isinstance(m, Mixture) and m.learns_pi)
        self.mixture = next(mixtures, None)
        self.history = History(scheme_names=self.mixture.names if self.mixture else ())
        self.best = -math.inf
        # Without a validation split the last weights are the best: no copies are needed.
        self.best_weights: dict[str, Tensor] | None = self._weights() if len(held_out) else None

    def run(self) -> History:
        """Train epoch by epoch, until validation stops improving or the epochs are used up."""
        keep_freed_memory()
        self._record_mixture()
        for epoch in range(1, self.config.all_epochs(len(self.learned)) + 1):
            terms = self.train_epoch()
            if self.diverged(terms):
                # A non-finite loss cannot recover: stop.
                self.history.epochs.append(terms)
                self.history.best_epoch, self.best_weights = epoch, None
                break
            scores = terms | self.validate()
            self.history.epochs.append(scores)
            self._record_mixture()
            if self.should_stop(epoch, scores):
                break
        if self.best_weights is not None:
            self.network.load_state_dict(self.best_weights)
        return self.history

    def train_epoch(self) -> dict[str, float]:
        """One pass over the examples; returns the mean of every term of the objective."""
        n = len(self.learned)
        several = n > 1  # a single example cannot be normalised by its batch
        if self.network.training != several:
            self.network.train(several)
        sizes = self.config.batch_sizes(n)
        steps = [self.step(batch) for batch in torch.randperm(n).to(self.learned.device).split(sizes)]
        share = torch.tensor(sizes) / n
        totals = {name: torch.stack([terms[name] for terms in steps]).cpu() @ share for name in steps[0]}
        self.processes.average_buffers(self.network)
        return {name: float(value) for name, value in totals.items()}

    def step(self, batch: Tensor) -> dict[str, Tensor]:
        """One step of the optimizer on a batch; returns the terms of the objective."""
        ours = self.processes.share(batch)
        share = len(ours) / len(batch)
        part = self.learned[ours if len(ours) else batch[:1]]
        terms = self.objective.terms(read(part.x), part.y, part.weight)
        if self.processes.size > 1:
            # Shares may be uneven, or empty; the priors count once.
            terms = {
                k: v * (share if k == "log_likelihood" else 1 / self.processes.size) for k, v in terms.items()
            }
        for parameter in self.parameters:
            parameter.grad = None  # zero_grad() takes ten times as long where steps are short
        (-total(terms.values())).backward()
        self.processes.sum_gradients(self.parameters)
        self.optimizer.step()
        if self.schedule:
            self.schedule.step()
        if self.on_step:
            self.on_step()
        return {name: value.detach() for name, value in terms.items()}

    def diverged(self, terms: dict[str, float]) -> bool:
        """Whether the objective is no longer finite; processes that train together must not disagree."""
        return self.processes.size == 1 and not math.isfinite(sum(terms.values()))

    def validate(self) -> dict[str, float]:
        """Scores on the held-out examples; empty without a validation split."""
        if not len(self.held_out):
            return {}
        outputs = predict(self.network, self.held_out.x, self.likelihood, samples=self.config.samples)
        each = self.likelihood.log_prob(outputs, self.held_out.y)
        return {
            "validation_log_likelihood": float(self.held_out.weighted_mean(each)),
            "validation_accuracy": self.likelihood.score(outputs, self.held_out.y),
        }

    def should_stop(self, epoch: int, scores: dict[str, float]) -> bool:
        """Remember the best weights, and stop when validation has not improved for `patience` epochs."""
        score = scores.get("validation_log_likelihood", float(epoch))
        if score > self.best:
            self.best, self.history.best_epoch = score, epoch
            if len(self.held_out):
                self.best_weights = self._weights()
            return False
        return epoch - self.history.best_epoch >= self.config.patience

    def _weights(self) -> dict[str, Tensor]:
        return copy.deepcopy(self.network.state_dict())

    def _record_mixture(self) -> None:
        if self.mixture:
            self.history.schemes.append(self.mixture.probabilities.tolist())


@torch.no_grad()
def predict(
    network: nn.Module, x: Float[Tensor, "n dim"] | DiskArray, likelihood: Likelihood, samples: int = 1
) -> Tensor:
    """Normalised outputs, on the device of the network; averaged over draws if its weights are stochastic.

    Args:
        network: The trained network; it is put into evaluation mode.
        x: Inputs, on any device.
        likelihood: Says what the outputs mean.
        samples: Number of draws of stochastic weights.

    Returns:
        One row of outputs per input.

    """
    network.eval()
    device = device_of(network, x.device)

    def once() -> Tensor:
        return in_batches(lambda part: likelihood.normalised(network(part.to(device))), x)

    if not any(isinstance(m, HasKL) for m in network.modules()):
        return once()
    return likelihood.combined(torch.stack([once() for _ in range(samples)]))


def log_probabilities(
    network: nn.Module, x: Float[Tensor, "n dim"] | DiskArray, samples: int = 1
) -> Float[Tensor, "n classes"]:
    """Log of the predicted class probabilities."""
    return predict(network, x, Categorical(), samples)


def device_of(network: nn.Module, default: torch.device) -> torch.device:
    """Device of a network's parameters."""
    return next((p.device for p in network.parameters()), default)


def in_batches(
    function: Callable[[Tensor], Tensor], x: Tensor | DiskArray, size: int = EVALUATION_BATCH
) -> Tensor:
    """Apply a function to slices of the data, so that memory stays bounded."""
    if not len(x):
        # Some layers refuse an empty batch.
        return function(read(x[:0]).new_zeros(1, x.shape[1]))[:0]
    parts = [function(part) for part in blocks(x, size)]
    return parts[0] if len(parts) == 1 else torch.cat(parts)
