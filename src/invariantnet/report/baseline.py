"""The network that the final one is compared with: the same without the symmetry, if there is one."""

from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from invariantnet._system.torch_state import threads
from invariantnet.data.arrays import DiskArray, as_inputs
from invariantnet.data.duplicates import merge_duplicates
from invariantnet.data.examples import Examples
from invariantnet.estimator.validation import seed_from
from invariantnet.nn import Ensemble
from invariantnet.report.answers import Estimator, encoded
from invariantnet.report.network_words import one_network
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.training.loop import device_of


def needs_baseline(clf: Estimator) -> bool:
    """Tell whether the final network has a symmetry to leave out; the paper's layer always mixes some."""
    return clf.symmetry_.name != TRIVIAL or clf.method == "paper"


def other_kind(clf: Estimator) -> str | None:
    """Name the kind of network that the baseline is, if it is another than that of the final network.

    Circular convolutions and sorted inputs have their symmetry by construction: the baseline is then the kind that
    predicted best without a symmetry.

    Args:
        clf: The fitted estimator.

    Returns:
        The name of the baseline's model; None if it is that of the final network.
    """
    plain, ours = clf.without_symmetry().model.name, clf.hypothesis_of(clf.symmetry_).model.name
    return None if plain == ours or clf.method != "evidence" else plain


def fit_baseline(
    clf: Estimator,
    x: np.ndarray | DiskArray,
    y: np.ndarray,
    rows: Shaped[np.ndarray, " n"] | None = None,
) -> nn.Module:
    """Train a network without the symmetry, as the final network was trained.

    Args:
        clf: The fitted estimator.
        x: The inputs that it was fitted to.
        y: Their labels.
        rows: Digests of the inputs, where the caller has them already.

    Returns:
        The trained network; the final network itself if it has no symmetry.
    """
    if not needs_baseline(clf):
        return clf.network_
    device = device_of(clf.network_, torch.device("cpu"))
    values, targets, weights, _ = merge_duplicates(x, np.asarray(y), rows=rows)
    codes = encoded(clf, targets)
    weight = None if weights is None else torch.from_numpy(weights).to(device)
    inputs = as_inputs(values)
    clf.measure_inputs(inputs)
    examples = Examples(inputs.to(device), torch.from_numpy(codes).to(device), weight)
    other = other_kind(clf)
    what = "the same network" if other is None else one_network(other)
    with threads(clf.threads_):
        seed = seed_from(clf.random_state)
        return clf.train_network(
            clf.without_symmetry(), examples, seed, f"{what} without the symmetry, to compare with"
        )[0]


def restore_baseline(clf: Estimator, weights: Mapping[str, Tensor]) -> nn.Module:
    """Rebuild a baseline from its weights.

    Args:
        clf: The fitted estimator that it belongs to.
        weights: Tensors by their names in the network.

    Returns:
        The network.

    Raises:
        RuntimeError: If the weights are those of another network.
    """
    network = Ensemble.for_state(clf.make_network(clf.without_symmetry()), weights, clf.likelihood)
    network.load_state_dict(weights)
    return network.eval()
