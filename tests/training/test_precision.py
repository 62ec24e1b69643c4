"""Mixed precision: matrix products in 16 bits, everything that is kept in 32."""

import numpy as np
import pytest
import torch
from bodies import SHAPE, labelled, pretrained
from torch import nn

import invariantnet as inv
from invariantnet import InvariantClassifier, InvariantRegressor
from invariantnet._system.torch_state import seeded
from invariantnet.data.examples import Examples
from invariantnet.nn import Symmetrized, mlp
from invariantnet.training.config import Training
from invariantnet.training.loop import train

FLIPS = [inv.symmetry("hflip", shape=(4, 4))]
CLOSE = 0.1
"""Nats by which a training in 16 bits may differ; a product in bfloat16 is right to one part in 256."""


def examples():
    with seeded(0):
        x = torch.rand(96, 16)
    return Examples(x, (x[:, :8].mean(1) > x[:, 8:].mean(1)).long())


class Dtypes(nn.Module):
    """Remembers the types of numbers that passed."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def forward(self, x):
        self.seen.add((self.training, x.dtype))
        return x


@pytest.mark.parametrize(
    ("placement", "symmetries"),
    [
        ("weights", FLIPS),
        ("features", FLIPS),
        ("outputs", FLIPS),
        ("outputs", [inv.symmetry("rotation:30", shape=(4, 4))]),
        ("features", [inv.symmetry("trivial", shape=(4, 4)), *FLIPS]),
    ],
    ids=["weights", "features", "outputs", "range", "mixture"],
)
def test_training_in_16_bits_comes_close(placement, symmetries):
    found = {}
    for precision in ("32-true", "bf16-mixed"):
        config = Training(epochs=10, batch_size=16, learning_rate=1e-2, validation=0.0, precision=precision)
        network, history = train(
            lambda: Symmetrized(mlp((4, 4), 2, 8), symmetries, placement), examples(), config, 0
        )
        assert all(p.dtype == torch.float32 and bool(p.isfinite().all()) for p in network.parameters())
        found[precision] = history.epochs[-1]["log_likelihood"]
    assert found["bf16-mixed"] != found["32-true"]
    assert found["bf16-mixed"] == pytest.approx(found["32-true"], abs=CLOSE)


def test_steps_compute_in_16_bits_and_predictions_in_32():
    spy = Dtypes()
    network = nn.Sequential(nn.Linear(16, 4), spy, nn.Linear(4, 2))
    config = Training(epochs=1, batch_size=16, validation=0.25, precision="bf16-mixed")
    train(lambda: network, examples(), config, 0)
    assert spy.seen == {(True, torch.bfloat16), (False, torch.float32)}


@pytest.mark.parametrize("backbone", ["mlp", "cnn", pretrained(), pretrained(unfreeze=True)], ids=str)
def test_a_classifier(backbone, tmp_path, brief_comparison):
    x, y = labelled()
    settings = {"backbone": backbone, "n_networks": 1, "epochs": 2, "hidden": 8, "random_state": 0}
    clf, plain = (
        InvariantClassifier(["hflip"], SHAPE, precision=precision, **settings).fit(x, y)
        for precision in ("bf16-mixed", "32-true")
    )
    assert {t.precision for t in (clf.trainings.final, *clf.trainings.compared.values())} == {"bf16-mixed"}
    np.testing.assert_allclose(clf.predict_proba(x), plain.predict_proba(x), atol=CLOSE)
    assert not np.array_equal(clf.predict_proba(x), plain.predict_proba(x))
    clf.save(tmp_path)
    again = InvariantClassifier.load(tmp_path, backbone=backbone if callable(backbone) else None)
    assert again.precision == again.trainings.final.precision == "bf16-mixed"
    np.testing.assert_array_equal(again.predict_proba(x), clf.predict_proba(x))


def test_numbers(brief_comparison):
    x, y = labelled()
    settings = {"backbone": "mlp", "n_networks": 1, "epochs": 2, "hidden": 8, "random_state": 0}
    reg = InvariantRegressor(["hflip"], SHAPE, precision="bf16-mixed", **settings).fit(x, y + x[:, 0, 0, 0])
    assert np.isfinite(reg.predict(x)).all()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"precision": "16"}, "precision '16' is unknown: choose among 32-true, bf16-mixed"),
        ({"precision": "bf16-mixed", "method": "heldout"}, "precision is for method 'evidence': leave it out"),
    ],
)
def test_what_cannot_be_is_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        InvariantClassifier(["hflip"], SHAPE, **settings).fit(*labelled())
