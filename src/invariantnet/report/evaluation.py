"""What the report shows of a network beyond its posterior: how it does on data it has not seen."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from invariantnet.estimator import FINAL, InvariantClassifier
from invariantnet.groups import Group, transform
from invariantnet.inference.evidence import predict_moved
from invariantnet.likelihoods import Categorical
from invariantnet.measures import Measure
from invariantnet.nn import Symmetrized, mlp
from invariantnet.progress import training_bar
from invariantnet.rows import Rows, as_inputs, read
from invariantnet.training import log_probabilities, train

EPOCHS = 50
SHOWN = 8
COPIES = 8
BINS = 10


def evaluate(clf: InvariantClassifier, plain: nn.Module, x: np.ndarray | Rows, y: np.ndarray) -> dict[str, Any]:
    """Accuracies under every candidate's transformations, calibration, and examples; on test data."""
    known = np.isin(y, clf.classes_)
    x, y = x[known], np.searchsorted(clf.classes_, y[known])
    inputs, labels = as_inputs(x), torch.from_numpy(y)
    log_p = log_probabilities(clf.network_, inputs)
    networks = {"chosen": clf.network_, "plain": plain}
    accuracy = {
        which: {g.name: _accuracy(network, g, inputs, labels) for g in clf.hypotheses_}
        for which, network in networks.items()
    }
    return {
        "test_examples": len(x),
        "accuracy": accuracy,
        "calibration": calibration(log_p.exp().numpy(), y),
        "examples": [_example(clf, plain, read(inputs[i : i + 1]), int(y[i])) for i in _one_of_each(y)],
    }


def fit_plain(clf: InvariantClassifier, x: np.ndarray | Rows, y: np.ndarray, seed: int) -> nn.Module:
    """A plain network of the same width, trained for as long, for comparison."""
    codes = np.searchsorted(clf.classes_, y)
    trivial = next(g for g in clf.hypotheses_ if g.order == 1)

    def make() -> nn.Module:
        return Symmetrized(mlp(clf.input_shape_, clf.outputs_, clf.hidden), [trivial], scale=clf.scale_)

    config = replace(FINAL, epochs=clf.epochs or EPOCHS)
    with training_bar(config.steps(len(x)), "a plain network, to compare", visible=clf.verbose > 0) as on_step:
        network, _ = train(make, as_inputs(x), torch.from_numpy(codes), config, seed, on_step=on_step)
    assert isinstance(network, Symmetrized)
    return network.fold().eval()


def calibration(probabilities: np.ndarray, y: np.ndarray) -> list[dict[str, float]]:
    """Stated and observed, in bins that hold equally many examples."""
    stated = probabilities.max(1)
    right = probabilities.argmax(1) == y
    parts = np.array_split(np.argsort(stated, kind="stable"), max(1, min(BINS, len(y))))
    return [
        {"stated": float(stated[part].mean()), "observed": float(right[part].mean()), "count": len(part)}
        for part in parts
        if len(part)
    ]


def _accuracy(network: nn.Module, group: Group, x: torch.Tensor | Rows, y: torch.Tensor) -> float:
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
    return clf.group_ if clf.group_.order > 1 else clf.hypotheses_[-1]


def _copies(group: Group, x: torch.Tensor) -> torch.Tensor:
    elements = Measure.of([group], sampled=COPIES).elements[:COPIES]
    copies: torch.Tensor = transform(x, elements)[0]
    return copies
