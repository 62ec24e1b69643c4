"""Does our Laplace approximation agree with laplace-torch: evidence, and variances of the last layer's outputs?

laplace-torch asks for torchvision, which breaks the CPU build of torch, so it needs an environment of its own
without what it asks for and does not use:

    python3 -m venv ORACLE
    ORACLE/bin/pip install torch==2.13.0 numpy einops opt_einsum tqdm packaging jaxtyping
    ORACLE/bin/pip install --no-deps laplace-torch torchmetrics lightning-utilities curvlinops-for-pytorch \
        backpack-for-pytorch asdfghjkl linear_operator einconv unfoldNd
    LAPLACE_PYTHON=ORACLE/bin/python python -m studies run laplace_oracle

The layers have no bias, because laplace-torch takes biases as layers of their own; both use the same prior
precisions.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from invariantnet.data.examples import Examples
from invariantnet.inference._kronecker import layers_of
from invariantnet.inference.laplace import LayerPosterior, log_marginal_likelihood, posterior
from invariantnet.likelihoods import Categorical
from invariantnet.training.config import Training
from invariantnet.training.loop import train
from studies.datasets import draw_examples, load
from studies.framework import Claim, Part, Study
from studies.framework.freshness import NETWORKS
from studies.others import laplace_torch

SIZES = {"784-30-10": (784, 30, 10), "784-30-20-10": (784, 30, 20, 10)}
"""Units of each layer."""

EXAMPLES, SHOWN = 500, 50
"""Examples to train on, and test images whose variances are compared."""

TRAINING = Training(epochs=20, validation=0.0, batch_size=64)
"""Short, without a validation split: both judge the same weights on all examples."""
SEEDS = 3
"""The two agree to rounding with every seed, so few will do."""
CLOSE = 0.01
"""Nats: agreement up to rounding, as evidence is recorded with three digits."""


@dataclass(frozen=True)
class OracleRecipe:
    """One network, to be judged by both."""

    network: str
    seed: int


@dataclass(frozen=True)
class Record:
    """What both say."""

    network: str
    seed: int
    log_evidence: float
    log_evidence_laplace_torch: float
    variance_apart: float
    """Largest relative difference of a variance."""


def recipes(seed: int) -> list[OracleRecipe]:
    """Every network, once."""
    return [OracleRecipe(name, seed) for name in SIZES]


def lacks() -> str:
    """Say what is missing."""
    return "" if os.environ.get("LAPLACE_PYTHON") else "set LAPLACE_PYTHON to a Python that has laplace-torch"


def run(recipe: OracleRecipe) -> list[Record]:
    """Train a network and ask both."""
    data = load("mnist:plain", recipe.seed)
    x, y = map(torch.from_numpy, draw_examples(data, EXAMPLES, recipe.seed))
    sizes = SIZES[recipe.network]
    trained, _ = train(lambda: laplace_torch.make_network(sizes), Examples(x, y), TRAINING, recipe.seed)
    assert isinstance(trained, nn.Sequential)
    examples, shown = Examples(x.double(), y), torch.from_numpy(data.x_test[:SHOWN]).double()
    trained.double()
    layers = posterior(trained, x.double(), Categorical())
    ours = log_marginal_likelihood(trained, examples, Categorical())
    variance = _variance(trained, [*layers.values()][-1], shown)
    precisions = np.array([layer.precision for layer in layers.values()])
    evidence, theirs = _ask(trained, examples, shown, precisions, sizes)
    apart = float((variance / theirs - 1).abs().max())
    return [Record(recipe.network, recipe.seed, round(ours, 3), round(evidence, 3), float(f"{apart:.2g}"))]


def _variance(network: nn.Sequential, last: LayerPosterior, shown: Tensor) -> Tensor:
    with torch.no_grad():
        features = network[:-1](shown)
        scale = (features @ last.input_vectors).square() @ (1 / last.total_precision).mT
        return scale @ last.output_vectors.square().mT


def _ask(
    network: nn.Sequential, examples: Examples, shown: Tensor, precisions: np.ndarray, sizes: tuple[int, ...]
) -> tuple[float, Tensor]:
    """Evidence and variances by laplace-torch, in its own environment."""
    assert isinstance(examples.x, Tensor)
    layers = layers_of(network, examples.x[:1]).values()
    arrays = {f"weight{i}": np.asarray(layer.weight.detach()) for i, layer in enumerate(layers)}
    arrays |= {"x": examples.x.numpy(), "y": examples.y.numpy(), "shown": shown.numpy()}
    arrays |= {"sizes": np.array(sizes), "precisions": precisions}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.npz"
        np.savez(path, allow_pickle=False, **arrays)
        command = [os.environ["LAPLACE_PYTHON"], laplace_torch.__file__, str(path)]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = json.loads(said.splitlines()[-1])
    return found["evidence"], torch.tensor(found["variance"]).double()


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    apart = max(abs(r.log_evidence - r.log_evidence_laplace_torch) for r in records)
    variance = max(r.variance_apart for r in records)
    return {
        "agrees": Claim(
            f"On {len(records)} networks with the same priors, it differs from laplace-torch by less than "
            f"{apart + 0.001:.3f} nats, and the variances of the last layer's outputs by a share of "
            f"{variance:.0e}.",
            apart < CLOSE,
        )
    }


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"laplace-torch": Part(recipes, SEEDS, lacks)},
    run=run,
    claims=claims,
    depends_on=(*NETWORKS, "inference.laplace", "inference._kronecker", "studies.others.laplace_torch"),
)
