"""What the report shows of a network beyond its posterior: how it does on data it has not seen."""

from typing import Any

import numpy as np
import torch
from torch import nn

from invariantnet import metrics
from invariantnet._system.progress import training_bar
from invariantnet.data.arrays import DiskArray, as_inputs, read
from invariantnet.data.examples import Examples
from invariantnet.estimator import InvariantClassifier, final_training
from invariantnet.inference.prices import predict_moved
from invariantnet.likelihoods import Categorical
from invariantnet.nn import Draws, Symmetrized, mlp
from invariantnet.symmetries.group import Group, transform
from invariantnet.symmetries.measure import Measure
from invariantnet.training.loop import log_probabilities, train

EPOCHS = 50
SHOWN = 8
COPIES = 8
BINS = 10


def evaluate(
    clf: InvariantClassifier, plain: nn.Module, x: np.ndarray | DiskArray, y: np.ndarray
) -> dict[str, Any]:
    """Accuracies under every candidate's transformations, calibration, and examples; on test data."""
    known = np.isin(y, clf.classes_)
    x, y = x[known], np.searchsorted(clf.classes_, y[known])
    inputs, labels = as_inputs(x), torch.from_numpy(y)
    p = log_probabilities(clf.network_, inputs).double().exp().numpy()
    networks = {"chosen": clf.network_, "plain": plain}
    accuracy = {
        which: {g.name: _accuracy(network, g, inputs, labels) for g in clf.hypotheses_}
        for which, network in networks.items()
    }
    return {
        "test_examples": len(x),
        "accuracy": accuracy,
        "scores": metrics.scores(p, y) if len(y) else {},
        "calibration": metrics.calibration_bins(p, y, BINS),
        "doubtful": _doubtful(clf, inputs, p, y),
        "examples": [_example(clf, plain, read(inputs[i : i + 1]), int(y[i])) for i in _one_of_each(y)],
    }


def fit_plain(clf: InvariantClassifier, x: np.ndarray | DiskArray, y: np.ndarray, seed: int) -> nn.Module:
    """A plain network of the same width, trained for as long, for comparison."""
    codes = np.searchsorted(clf.classes_, y)
    trivial = next(g for g in clf.hypotheses_ if g.order == 1)

    def make() -> nn.Module:
        return Symmetrized(mlp(clf.input_shape_, clf.outputs_, clf.hidden), [trivial], scale=clf.scale_)

    config = final_training(clf.epochs, EPOCHS)
    with training_bar(config.steps(len(x)), "a plain network, to compare", visible=clf.verbose > 0) as on_step:
        network, _ = train(make, Examples(as_inputs(x), torch.from_numpy(codes)), config, seed, on_step=on_step)
    assert isinstance(network, Symmetrized)
    return network.fold().eval()


def _doubtful(
    clf: InvariantClassifier, x: torch.Tensor | DiskArray, p: np.ndarray, y: np.ndarray
) -> list[dict[str, Any]]:
    """The inputs it is least sure of, what it says of them, and what is true."""
    doubt = metrics.entropy(p)
    split = clf.predict_uncertainty(x) if isinstance(clf.network_, Draws) and len(p) else {}
    found = []
    for i in np.argsort(-doubt, kind="stable")[:SHOWN].tolist():
        first, second = np.argsort(-p[i])[:2].tolist()
        found.append(
            {
                "input": [round(v, 4) for v in read(x[i : i + 1])[0].tolist()],
                "label": int(y[i]),
                "classes": [first, second],
                "probabilities": [round(float(p[i, c]), 4) for c in (first, second)],
                "entropy": round(float(doubt[i]), 4),
                "epistemic": round(float(split["epistemic"][i]), 4) if split else None,
            }
        )
    return found


def _accuracy(network: nn.Module, group: Group, x: torch.Tensor | DiskArray, y: torch.Tensor) -> float:
    return Categorical().score(predict_moved(network, group, x, Categorical()), y)


def _one_of_each(y: np.ndarray) -> list[int]:
    """The first example of each class, up to so many."""
    _, first = np.unique(y, return_index=True)
    return sorted(first.tolist())[:SHOWN]


def _example(clf: InvariantClassifier, plain: nn.Module, x: torch.Tensor, label: int) -> dict[str, Any]:
    """An input, its copies under the group of the report, and what both networks say of each."""
    copies = _copies(orbit_group(clf), x)
    said = {
        which: log_probabilities(network, copies).exp()
        for which, network in (("chosen", clf.network_), ("plain", plain))
    }
    return {
        "label": label,
        "copies": [[round(v, 4) for v in copy] for copy in copies.tolist()],
        **{
            which: [{"class": int(p.argmax()), "probability": round(float(p.max()), 4)} for p in probabilities]
            for which, probabilities in said.items()
        },
    }


def orbit_group(clf: InvariantClassifier) -> Group:
    """The group whose copies are shown: the chosen one, or the largest candidate if none was chosen."""
    return clf.symmetry_ if clf.symmetry_.order > 1 else clf.hypotheses_[-1]


def _copies(group: Group, x: torch.Tensor) -> torch.Tensor:
    elements = Measure.of([group], sampled=COPIES).elements[:COPIES]
    copies: torch.Tensor = transform(x, elements)[0]
    return copies
