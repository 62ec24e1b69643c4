r"""Laplace's approximation with Kronecker factors: evidence of a trained network, and draws of its last layer.

The curvature of the log likelihood in one layer's weights is taken as $A \otimes B$: A the mean of $a a^\top$ over
the layer's inputs (with a 1 for the bias), B the sum of $b b^\top$ over what comes back to its outputs. A layer
that is applied to several copies of an input counts each. With a prior $\mathcal{N}(0, 1/\delta)$ per layer,

$$\log p(D) \approx \log p(D \mid \theta) + \sum_l \tfrac12 \Big(P_l \log \delta_l
- \delta_l \lVert\theta_l\rVert^2 - \sum_{ij} \log(\alpha_i \beta_j + \delta_l)\Big)$$

with α and β the eigenvalues of A and B, and δ where its derivative vanishes (MacKay 1992).
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from invariantnet.data.arrays import DiskArray, blocks, read
from invariantnet.data.examples import Examples
from invariantnet.likelihoods import Likelihood
from invariantnet.symmetries.group import Group
from invariantnet.training.config import Training
from invariantnet.training.loop import predict, train

BATCH = 256
ROUNDS = 100
Layer = nn.Linear | nn.Conv2d


@dataclass(frozen=True, eq=False)
class LayerPosterior:
    """The Gaussian posterior of one layer's weights and biases, outputs × (inputs + 1, if biased)."""

    mean: Float[Tensor, "outputs inputs1"]
    input_values: Float[Tensor, " inputs1"]
    input_vectors: Float[Tensor, "inputs1 inputs1"]
    output_values: Float[Tensor, " outputs"]
    output_vectors: Float[Tensor, "outputs outputs"]
    precision: float
    """δ of the prior."""

    @classmethod
    def of(cls, mean: Tensor, A: Tensor, B: Tensor) -> "LayerPosterior":
        """From the two factors; δ by maximising the evidence."""
        alpha, U = torch.linalg.eigh(A)
        beta, V = torch.linalg.eigh(B)
        alpha, beta = alpha.clamp_min(0), beta.clamp_min(0)
        curvature = torch.outer(beta, alpha)
        norm = float(mean.square().sum())
        precision = 1.0
        for _ in range(ROUNDS):
            # As many weights as the data determines, over their squared length.
            precision = float((curvature / (curvature + precision)).sum()) / max(norm, 1e-12)
            precision = min(max(precision, 1e-6), 1e12)
        return cls(mean, alpha, U, beta, V, precision)

    @property
    def total_precision(self) -> Float[Tensor, "outputs inputs1"]:
        """Of every weight in the basis of the eigenvectors."""
        return torch.outer(self.output_values, self.input_values) + self.precision

    @property
    def log_occam(self) -> float:
        """What the layer adds to the log likelihood: a negative number, the cost of its freedom."""
        prior = self.precision * self.mean.square() - torch.tensor(self.precision, dtype=torch.float64).log()
        return -0.5 * float(prior.sum() + self.total_precision.log().sum())

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "draws outputs inputs1"]:
        """Samples of the matrix."""
        noise = torch.randn(count, *self.mean.shape, generator=generator, dtype=self.mean.dtype)
        return self.mean + self.output_vectors @ (noise / self.total_precision.sqrt()) @ self.input_vectors.mT


def log_marginal_likelihood(network: nn.Module, examples: Examples, likelihood: Likelihood) -> float:
    """Laplace's approximation of log p(D), over all linear and convolutional layers that learn.

    Args:
        network: A trained network.
        examples: What it was trained on.
        likelihood: Log density of the targets.

    Returns:
        The log likelihood at the trained weights, plus the Occam factor of every layer.
    """
    each = likelihood.log_prob(predict(network, examples.x, likelihood), examples.y).double()
    log_likelihood = float((each if examples.weight is None else each * examples.weight).sum())
    layers = posterior(network, examples.x, likelihood, examples.weight).values()
    return log_likelihood + sum(layer.log_occam for layer in layers)


def laplace_evidence(
    make_network: Callable[[Group], nn.Module],
    symmetries: Sequence[Group],
    examples: Examples,
    training: Training,
    *,
    likelihood: Likelihood,
    seed: int = 0,
    n_jobs: int = 1,
) -> tuple[float, ...]:
    """Of every hypothesis, with a network trained on everything: a second opinion on the prequential evidence."""

    def one(symmetry: Group) -> float:
        network, _ = train(lambda: make_network(symmetry), examples, training, seed, likelihood=likelihood)
        return log_marginal_likelihood(network, examples, likelihood)

    return tuple(joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(one)(symmetry) for symmetry in symmetries))


def posterior(
    network: nn.Module,
    x: Float[Tensor, "n dim"] | DiskArray,
    likelihood: Likelihood,
    weight: Float[Tensor, " n"] | None = None,
    *,
    last_only: bool = False,
) -> dict[str, LayerPosterior]:
    """The posterior of every layer that learns, in the order of their calls.

    Args:
        network: A trained network.
        x: The inputs it was trained on.
        likelihood: Log density of the targets.
        weight: Weight of each example.
        last_only: Whether only the last layer is wanted.

    Returns:
        The Gaussian posterior of each layer, by the layer's name.
    """
    chosen = layers_of(network, read(x[:1]))
    if last_only:
        chosen = dict([list(chosen.items())[-1]]) if chosen else {}
    factors = _factors(network, x, likelihood, chosen, weight)
    return {
        name: LayerPosterior.of(_matrix(layer), A.double().cpu(), B.double().cpu())
        for (name, layer), (A, B) in zip(chosen.items(), factors, strict=True)
    }


def draw_last_layer(
    network: nn.Module,
    x: Float[Tensor, "n dim"] | DiskArray,
    likelihood: Likelihood,
    count: int,
    seed: int,
    weight: Float[Tensor, " n"] | None = None,
) -> dict[str, Float[Tensor, "draws ..."]]:
    """Draw the weights and biases of the last layer from their posterior.

    Args:
        network: A trained network that ends with `nn.Linear`.
        x: The inputs it was trained on.
        likelihood: Log density of the targets.
        count: Number of draws.
        seed: Decides the draws.
        weight: Weight of each example.

    Returns:
        The draws, by the parameters' names.

    Raises:
        ValueError: If the network does not end with a linear layer that has a bias.
    """
    layers = layers_of(network, read(x[:1]))
    name, layer = list(layers.items())[-1] if layers else ("", None)
    if not isinstance(layer, nn.Linear) or layer.bias is None:
        raise ValueError("Laplace needs a network that ends with nn.Linear: use uncertainty='ensemble'.")
    found = posterior(network, x, likelihood, weight, last_only=True)[name]
    drawn = found.draw(count, torch.Generator().manual_seed(seed)).to(layer.weight)
    return {f"{name}.weight": drawn[..., :-1].contiguous(), f"{name}.bias": drawn[..., -1].contiguous()}


def layers_of(network: nn.Module, x: Float[Tensor, "n dim"]) -> dict[str, Layer]:
    """The linear and convolutional layers that learn and that `x` passes, by name, in the order of their calls."""
    names = {m: name for name, m in network.named_modules() if isinstance(m, nn.Linear | nn.Conv2d)}
    with _calls(network.eval(), list(names)) as calls, torch.no_grad():
        network(x)
    return {names[layer]: layer for layer, *_ in calls if layer.weight.requires_grad}


@contextlib.contextmanager
def _calls(network: nn.Module, layers: Sequence[Layer]) -> Iterator[list[tuple[Layer, Tensor, Tensor]]]:
    """Inside, every call of a layer is noted with its input and its output."""
    calls: list[tuple[Layer, Tensor, Tensor]] = []

    def remember(layer: Any, inputs: Any, output: Tensor) -> None:
        calls.append((layer, inputs[0].detach(), output))

    hooks = [layer.register_forward_hook(remember) for layer in layers]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


@torch.enable_grad()
def _factors(
    network: nn.Module,
    x: Tensor | DiskArray,
    likelihood: Likelihood,
    layers: Mapping[str, Layer],
    weight: Tensor | None,
) -> list[tuple[Tensor, Tensor]]:
    network.eval()
    A: dict[nn.Module, Any] = dict.fromkeys(layers.values(), 0)
    B: dict[nn.Module, Any] = dict.fromkeys(layers.values(), 0)
    rows: dict[nn.Module, Any] = dict.fromkeys(layers.values(), 0)
    start = 0
    for part in blocks(x, BATCH):
        w = None if weight is None else weight[start : start + len(part)].to(part)
        start += len(part)
        with _calls(network, list(layers.values())) as calls:
            outputs = network(part)
        for layer, given, _ in calls:
            a = _input_rows(layer, given)
            # The copies and patches of an example stand together, and count by its weight.
            each = None if w is None else w.repeat_interleave(len(a) // len(w))[:, None]
            A[layer] = A[layer] + (a if each is None else a * each).mT @ a
            rows[layer] += len(a) if each is None else each.sum()
        for root in likelihood.curvature_roots(outputs.detach()):
            root = (root if w is None else root * w.sqrt()[:, None]).to(outputs)
            ends = [output for *_, output in calls]
            back = torch.autograd.grad(outputs, ends, root, retain_graph=True, materialize_grads=True)
            for (layer, *_), gradient in zip(calls, back, strict=True):
                b = _output_rows(layer, gradient)
                B[layer] = B[layer] + b.mT @ b
    return [(A[layer] / rows[layer], B[layer]) for layer in layers.values()]


def _input_rows(layer: Layer, x: Tensor) -> Float[Tensor, "rows inputs1"]:
    if isinstance(layer, nn.Conv2d):
        mode = "constant" if layer.padding_mode == "zeros" else layer.padding_mode
        x = F.pad(x, layer._reversed_padding_repeated_twice, mode)  # whatever was asked for: "same", 1, (0, 2)
        each = x.unflatten(1, (layer.groups, -1)).flatten(0, 1)  # groups of channels share the factor of inputs
        x = F.unfold(each, layer.kernel_size, layer.dilation, 0, layer.stride).mT
    x = x.flatten(0, -2)
    return x if layer.bias is None else torch.cat([x, torch.ones_like(x[:, :1])], dim=1)


def _output_rows(layer: Layer, gradient: Tensor) -> Float[Tensor, "rows outputs"]:
    return (gradient.movedim(1, -1) if isinstance(layer, nn.Conv2d) else gradient).flatten(0, -2)


def _matrix(layer: Layer) -> Float[Tensor, "outputs inputs1"]:
    parts = [layer.weight.flatten(1)] if layer.bias is None else [layer.weight.flatten(1), layer.bias[:, None]]
    return torch.cat(parts, dim=1).detach().double().cpu()
