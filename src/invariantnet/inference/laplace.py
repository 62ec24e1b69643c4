r"""Laplace's approximation with Kronecker factors: evidence of a trained network, and draws of its last layer.

The curvature of the log likelihood in one layer's weights is approximated by $A \otimes B$: see `_kronecker`.
With a prior $\mathcal{N}(0, 1/\delta)$ per layer,

$$\log p(D) \approx \log p(D \mid \theta) + \sum_l \tfrac12 \Big(P_l \log \delta_l
- \delta_l \lVert\theta_l\rVert^2 - \sum_{ij} \log(\alpha_i \beta_j + \delta_l)\Big)$$

with α and β the eigenvalues of A and B, and δ where its derivative vanishes (MacKay 1992).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import joblib
import torch
from jaxtyping import Float
from torch import Tensor, nn

from invariantnet.data.arrays import DiskArray, read
from invariantnet.data.examples import Examples
from invariantnet.inference._kronecker import Layer, kronecker_factors, layers_of
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.likelihoods import Likelihood
from invariantnet.training.loop import predict, train

LITTLE_DECAY = 1e-2
"""Weight decay of the networks: Laplace's approximation finds the right prior by itself."""

ROUNDS = 100
"""Fixed-point iterations for δ: cheap enough to do without a test of convergence."""

SMALLEST_PRECISION, LARGEST_PRECISION = 1e-6, 1e12
"""Bounds of δ: without them, a layer of zero weights or zero curvature drives it to infinity or to 0."""


@dataclass(frozen=True, eq=False)
class LayerPosterior:
    """The Gaussian posterior of one layer's weights and biases, outputs × (inputs + 1, if biased)."""

    mean: Float[Tensor, "outputs inputs1"]
    """The trained weights, with the biases as the last column."""
    input_values: Float[Tensor, " inputs1"]
    """Eigenvalues α of A."""
    input_vectors: Float[Tensor, "inputs1 inputs1"]
    """Eigenvectors of A."""
    output_values: Float[Tensor, " outputs"]
    """Eigenvalues β of B."""
    output_vectors: Float[Tensor, "outputs outputs"]
    """Eigenvectors of B."""
    precision: float
    """Precision δ of the prior."""

    @classmethod
    def of(cls, mean: Tensor, A: Tensor, B: Tensor) -> "LayerPosterior":
        """Combine the two factors, with the δ that maximises the evidence.

        Args:
            mean: The trained weights, with the biases as the last column.
            A: Factor of the inputs.
            B: Factor of the outputs.

        Returns:
            The posterior of the layer.
        """
        alpha, U = torch.linalg.eigh(A)
        beta, V = torch.linalg.eigh(B)
        alpha, beta = alpha.clamp_min(0), beta.clamp_min(0)
        curvature = torch.outer(beta, alpha)
        norm = float(mean.square().sum())
        precision = 1.0
        for _ in range(ROUNDS):
            # MacKay's update: the number of weights that the data determines, over their squared norm.
            precision = float((curvature / (curvature + precision)).sum()) / max(norm, 1e-12)
            precision = min(max(precision, SMALLEST_PRECISION), LARGEST_PRECISION)
        return cls(mean, alpha, U, beta, V, precision)

    @property
    def total_precision(self) -> Float[Tensor, "outputs inputs1"]:
        """Posterior precision of every weight, in the basis of the eigenvectors."""
        return torch.outer(self.output_values, self.input_values) + self.precision

    @property
    def log_occam(self) -> float:
        """Log Occam factor: the layer's share of the log evidence besides the log likelihood."""
        prior = self.precision * self.mean.square() - torch.tensor(self.precision, dtype=torch.float64).log()
        return -0.5 * float(prior.sum() + self.total_precision.log().sum())

    def draw(self, count: int, generator: torch.Generator) -> Float[Tensor, "draws outputs inputs1"]:
        """Draw samples of the layer's weights and biases.

        Args:
            count: Number of samples.
            generator: Source of randomness.

        Returns:
            The samples, shaped like `mean`.
        """
        noise = torch.randn(count, *self.mean.shape, generator=generator, dtype=self.mean.dtype)
        return self.mean + self.output_vectors @ (noise / self.total_precision.sqrt()) @ self.input_vectors.mT


def log_marginal_likelihood(network: nn.Module, examples: Examples, likelihood: Likelihood) -> float:
    """Laplace's approximation of log p(D), over all linear and convolutional layers that learn.

    Args:
        network: A trained network.
        examples: The examples that it was trained on.
        likelihood: Log density of the targets.

    Returns:
        The log likelihood at the trained weights, plus the Occam factor of every layer.
    """
    each = likelihood.log_prob(predict(network, examples.x, likelihood), examples.y).double()
    log_likelihood = float((each if examples.weight is None else each * examples.weight).sum())
    layers = posterior(network, examples.x, likelihood, examples.weight).values()
    return log_likelihood + sum(layer.log_occam for layer in layers)


def laplace_evidence(
    make_network: Callable[[Hypothesis], nn.Module],
    hypotheses: Sequence[Hypothesis],
    examples: Examples,
    *,
    likelihood: Likelihood,
    seed: int = 0,
    n_jobs: int = 1,
) -> tuple[float, ...]:
    """Approximate the log evidence of every hypothesis: a second opinion on the prequential evidence.

    Args:
        make_network: Makes the untrained network of a hypothesis.
        hypotheses: One per symmetry.
        examples: The data; every network is trained on all of it.
        likelihood: Log density of the targets.
        seed: Seed of every network.
        n_jobs: Processes that train networks at the same time.

    Returns:
        The approximate log marginal likelihood of each hypothesis.
    """

    def one(hypothesis: Hypothesis) -> float:
        training = replace(hypothesis.model.training, weight_decay=LITTLE_DECAY)
        network, _ = train(lambda: make_network(hypothesis), examples, training, seed, likelihood=likelihood)
        return log_marginal_likelihood(network, examples, likelihood)

    return tuple(joblib.Parallel(n_jobs=n_jobs)(joblib.delayed(one)(hypothesis) for hypothesis in hypotheses))


def posterior(
    network: nn.Module,
    x: Float[Tensor, "n dim"] | DiskArray,
    likelihood: Likelihood,
    weight: Float[Tensor, " n"] | None = None,
    *,
    last_only: bool = False,
) -> dict[str, LayerPosterior]:
    """Compute the posterior of every trainable layer, in the order of their calls.

    Args:
        network: A trained network.
        x: The inputs it was trained on.
        likelihood: Log density of the targets.
        weight: Weight of each example.
        last_only: Whether to compute only that of the last layer.

    Returns:
        The Gaussian posterior of each layer, by the layer's name.
    """
    chosen = layers_of(network, read(x[:1]))
    if last_only:
        chosen = dict(list(chosen.items())[-1:])
    factors = kronecker_factors(network, x, likelihood, chosen.values(), weight)
    return {
        name: LayerPosterior.of(_matrix(layer), factors[layer].input_factor, factors[layer].output_factor)
        for name, layer in chosen.items()
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
        seed: Seed of the draws.
        weight: Weight of each example.

    Returns:
        The draws, by the names of the parameters.

    Raises:
        ValueError: The network does not end with a linear layer that has a bias.
    """
    layers = layers_of(network, read(x[:1]))
    name, layer = list(layers.items())[-1] if layers else ("", None)
    if not isinstance(layer, nn.Linear) or layer.bias is None:
        raise ValueError(
            "Laplace needs a network that ends with nn.Linear, with a bias: use uncertainty='ensemble'."
        )
    found = posterior(network, x, likelihood, weight, last_only=True)[name]
    drawn = found.draw(count, torch.Generator().manual_seed(seed)).to(layer.weight)
    return {f"{name}.weight": drawn[..., :-1].contiguous(), f"{name}.bias": drawn[..., -1].contiguous()}


def _matrix(layer: Layer) -> Float[Tensor, "outputs inputs1"]:
    """Return the weights as a matrix, with the biases as its last column."""
    parts = [layer.weight.flatten(1)] if layer.bias is None else [layer.weight.flatten(1), layer.bias[:, None]]
    return torch.cat(parts, dim=1).detach().double().cpu()
