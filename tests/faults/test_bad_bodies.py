"""Pretrained bodies that cannot be used: one line each, which names the fault and the remedy."""

import numpy as np
import pytest
import torch
from bodies import SHAPE, body, classifier, labelled, pretrained
from torch import nn

from invariantnet import InvariantClassifier
from invariantnet.nn import Pretrained


class Body(nn.Module):
    """Computes whatever a test needs."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.function(self.scale * x)


def nan_for_bright(x):
    return torch.where(x.flatten(1).mean(1, keepdim=True) > 0.9, torch.nan, x.flatten(1))


def longer_for_full_batches(x):
    return x.flatten(1) if len(x) < 32 else x.flatten(1).repeat(1, 2)


BODIES = {
    "batch size": (Body(lambda x: x.reshape(-1, 18)), r"the body made shape \(4, 18\) of 2 inputs: let it keep"),
    "one number": (Body(lambda x: x.mean()), r"the body made shape \(\) of 2 inputs: let it keep the batch"),
    "nan": (Body(nan_for_bright), "gives NaN or infinite features: check its weights and preprocess"),
    "two lengths": (Body(longer_for_full_batches), "features of two lengths, 36 and 72: let it give equally many"),
    "lengths by batch": (Body(lambda x: x.flatten(1)[:, : 10 * len(x)]), "features of two lengths, for one input"),
    "tuple": (Body(lambda x: (x, x)), "the body returned a tuple: let it return one tensor, the batch first"),
    "other shape": (nn.Conv2d(3, 4, 3), r"failed on inputs of shape \(1, 6, 6\) .*pass a preprocess that makes"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_cannot_be_used_is_refused(name, brief_comparison):
    module, said = BODIES[name]
    x, y = labelled()
    x[40:] += 1
    clf = InvariantClassifier(["hflip"], SHAPE, backbone=Pretrained(module), n_networks=1, epochs=1)
    with pytest.raises(ValueError, match=said) as error:
        clf.fit(x, y)
    assert len(str(error.value).splitlines()) == 1


PREPROCESSES = {
    "fails": (lambda x: x.reshape(7, -1), r"preprocess failed on inputs of shape \(1, 6, 6\) \(.*\): mend it"),
    "batch": (lambda x: x[:1], r"preprocess made shape \(1, 1, 6, 6\) of 2 inputs: let it keep the batch"),
    "numpy": (lambda x: x.numpy(), "preprocess returned a ndarray: let it return one tensor, the batch first"),
    "nan": (lambda x: x / 0 * 0, "gives NaN or infinite features: check its weights and preprocess"),
    "small": (lambda x: x[..., :2, :2], r"the body failed on inputs of shape \(1, 2, 2\)"),
}


@pytest.mark.parametrize("name", PREPROCESSES)
def test_a_wrong_preprocess_is_refused(name, annotations_unchecked):
    preprocess, said = PREPROCESSES[name]
    x, y = labelled()
    clf = InvariantClassifier(["hflip"], SHAPE, backbone=Pretrained(body(), preprocess=preprocess))
    with pytest.raises(ValueError, match=said) as error:
        clf.fit(x, y)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"body": "resnet"}, "body is a str: pass a torch module with its weights"),
        ({"head": "fcc"}, "the body has no layer 'fcc': name one of its layers, such as .*fc"),
        ({"head": 3}, "the body has no layer 3: name one of its layers"),
        ({"preprocess": "resize"}, "preprocess is 'resize': pass a function from a batch to a batch"),
        (
            {"body": body().requires_grad_(False), "unfreeze": True},
            r"the body has gradients off: call body\.requires_grad_\(\) first",
        ),
    ],
)
def test_wrong_arguments_are_refused_at_once(arguments, said, annotations_unchecked):
    with pytest.raises(ValueError, match=said):
        Pretrained(**({"body": classifier()} | arguments))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "heldout"}, "is for method 'evidence' and placement 'features'"),
        ({"placement": "outputs"}, "leave method, placement and head alone"),
        ({"head": "fc"}, "names its head itself: leave method, placement and head alone"),
        ({"backbone": classifier()}, r"backbone is a Classifier: pass a function .*or nn\.Pretrained\(body\)"),
        ({"backbone": pretrained(unfreeze=True), "uncertainty": "ensemble"}, "leave out unfreeze"),
        ({"symmetries": ["shifts", "d4"]}, "with shifts, .* more than the 64 copies"),
    ],
)
def test_settings_that_do_not_suit_a_body_are_refused(settings, said):
    x, y = labelled()
    settings = {"symmetries": ["hflip"], "backbone": pretrained()} | settings
    with pytest.raises(ValueError, match=said):
        InvariantClassifier(input_shape=SHAPE, **settings).fit(x, y)


def test_a_head_that_the_body_does_not_call_is_refused():
    module = classifier()
    module.spare = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="layer 'spare' is called 0 times, not once"):
        InvariantClassifier(["hflip"], SHAPE, backbone=Pretrained(module, head="spare")).fit(*labelled())


def test_frozen_bodies_may_have_their_gradients_off(brief_comparison):
    module, (x, y) = body().requires_grad_(False), labelled()
    clf = InvariantClassifier(["hflip"], SHAPE, backbone=Pretrained(module), n_networks=1, epochs=1)
    assert np.isfinite(clf.fit(x, y).predict_proba(x)).all()
