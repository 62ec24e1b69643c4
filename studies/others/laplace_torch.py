"""What laplace-torch says about a network that was written to a file.

Usage: ORACLE/bin/python studies/others/laplace_torch.py network.npz
"""

import itertools
import json
import sys

import numpy as np
import torch
from torch import nn


def make_network(sizes: tuple[int, ...]) -> nn.Sequential:
    """Make linear layers without bias, tanh between them."""
    layers = [nn.Linear(a, b, bias=False) for a, b in itertools.pairwise(sizes)]
    between: list[nn.Module] = [module for layer in layers for module in (layer, nn.Tanh())]
    return nn.Sequential(*between[:-1])


def main(path: str) -> None:
    """Print the log evidence, and the variances of the last layer's outputs."""
    from laplace import Laplace
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_default_dtype(torch.float64)
    data = np.load(path)
    x, y, shown = (torch.from_numpy(data[name]) for name in ("x", "y", "shown"))
    trained = make_network(tuple(data["sizes"].tolist()))
    with torch.no_grad():
        for i, weight in enumerate(trained.parameters()):
            weight.copy_(torch.from_numpy(data[f"weight{i}"]))
    loader = DataLoader(TensorDataset(x, y), batch_size=len(x))
    precisions = torch.from_numpy(data["precisions"])
    everything = Laplace(trained, "classification", subset_of_weights="all", hessian_structure="kron")
    everything.fit(loader)
    last = Laplace(trained, "classification", subset_of_weights="last_layer", hessian_structure="kron")
    last.fit(loader)
    last.prior_precision = precisions[-1:]
    _, variance = last._glm_predictive_distribution(shown)
    evidence = float(everything.log_marginal_likelihood(prior_precision=precisions))
    print(json.dumps({"evidence": evidence, "variance": variance.diagonal(dim1=-2, dim2=-1).tolist()}))


if __name__ == "__main__":
    main(sys.argv[1])
