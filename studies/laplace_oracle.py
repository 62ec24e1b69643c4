"""Our Laplace approximation beside laplace-torch: evidence, and variances of the last layer's outputs.

Usage: python3 -m venv ORACLE && ORACLE/bin/pip install torch==2.13.0 && ORACLE/bin/pip install --no-deps \
           laplace-torch torchmetrics lightning-utilities curvlinops-for-pytorch backpack-for-pytorch asdfghjkl \
           linear_operator einconv unfoldNd && ORACLE/bin/pip install numpy einops opt_einsum tqdm packaging \
           jaxtyping
       .venv/bin/python benchmarks/laplace_oracle.py ORACLE/bin/python [--seeds 3] [--out results]

laplace-torch asks for torchvision, so it runs in an environment of its own, without what it asks for and does not
use: this script trains networks, writes them down, and calls itself there. The layers have no bias, because
laplace-torch takes biases as layers of their own; both use the same prior precisions.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

SIZES = {"784-30-10": (784, 30, 10), "784-30-20-10": (784, 30, 20, 10)}
EXAMPLES, SHOWN = 500, 50


def network(sizes: tuple[int, ...]) -> nn.Sequential:
    """Linear layers without bias, tanh between them."""
    layers = [nn.Linear(a, b, bias=False) for a, b in itertools.pairwise(sizes)]
    between = [module for layer in layers for module in (layer, nn.Tanh())]
    return nn.Sequential(*between[:-1])


def oracle(path: Path) -> None:
    """What laplace-torch says of the network in the file."""
    from laplace import Laplace
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_default_dtype(torch.float64)
    data = np.load(path)
    x, y, shown = (torch.from_numpy(data[name]) for name in ("x", "y", "shown"))
    trained = network(tuple(data["sizes"].tolist()))
    with torch.no_grad():
        for i, weight in enumerate(trained.parameters()):
            weight.copy_(torch.from_numpy(data[f"weight{i}"]))
    loader = DataLoader(TensorDataset(x, y), batch_size=len(x))
    delta = torch.from_numpy(data["precisions"])
    everything = Laplace(trained, "classification", subset_of_weights="all", hessian_structure="kron")
    everything.fit(loader)
    last = Laplace(trained, "classification", subset_of_weights="last_layer", hessian_structure="kron")
    last.fit(loader)
    last.prior_precision = delta[-1:]
    _, variance = last._glm_predictive_distribution(shown)
    found = {
        "evidence": float(everything.log_marginal_likelihood(prior_precision=delta)),
        "variance": variance.diagonal(dim1=-2, dim2=-1).tolist(),
    }
    print(json.dumps(found))


def compare(name: str, seed: int, python: str) -> dict[str, object]:
    """Train one network, and ask both."""
    import invariantnet as inv
    from invariantnet.inference.laplace import layers_of, log_marginal_likelihood, posterior
    from invariantnet.likelihoods import Categorical
    from invariantnet.training.config import Training
    from invariantnet.training.loop import train

    data = inv.datasets.load("mnist:plain", seed=seed)
    keep = np.random.default_rng(seed).permutation(len(data.x_train))[:EXAMPLES]
    x, y = torch.from_numpy(data.x_train[keep]), torch.from_numpy(data.y_train[keep])
    sizes = SIZES[name]
    trained, _ = train(lambda: network(sizes), x, y, Training(epochs=20, validation=0.0, batch_size=64), seed)
    trained, x = trained.double(), x.double()
    shown = torch.from_numpy(data.x_test[:SHOWN]).double()
    layers = posterior(trained, x, Categorical())
    ours = log_marginal_likelihood(trained, x, y, Categorical())
    *_, last = layers.values()
    with torch.no_grad():
        phi = trained[:-1](shown)
        scale = (phi @ last.input_vectors).square() @ (1 / last.total_precision).mT
        variance = scale @ last.output_vectors.square().mT
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.npz"
        weights = {
            f"weight{i}": m.weight.detach().numpy() for i, m in enumerate(layers_of(trained, x[:1]).values())
        }
        precisions = np.array([layer.precision for layer in layers.values()])
        np.savez(path, x=x, y=y, shown=shown, sizes=np.array(sizes), precisions=precisions, **weights)
        asked = subprocess.run([python, __file__, "--oracle", path], check=True, stdout=subprocess.PIPE, text=True)
    theirs = json.loads(asked.stdout.splitlines()[-1])
    apart = float((variance / torch.tensor(theirs["variance"]).double() - 1).abs().max())
    return {
        "network": name,
        "seed": seed,
        "log_evidence": round(ours, 3),
        "log_evidence_laplace_torch": round(theirs["evidence"], 3),
        "variance_apart": float(f"{apart:.2g}"),
    }


def main() -> None:
    """Compare, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="?", help="interpreter of the environment with laplace-torch")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--oracle", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.oracle:
        oracle(arguments.oracle)
        return
    if not arguments.python:
        parser.error("name the interpreter that has laplace-torch.")
    from invariantnet._system.files import write_json

    records = [compare(name, seed, arguments.python) for name in SIZES for seed in range(arguments.seeds)]
    for record in records:
        print(record, file=sys.stderr)
    write_json(arguments.out / "laplace.json", records)


if __name__ == "__main__":
    main()
