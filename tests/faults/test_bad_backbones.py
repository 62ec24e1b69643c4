"""Networks of a user's own that cannot be used: one line each, before anything is trained."""

import numpy as np
import pytest
import torch
from torch import nn

from invariantnet import InvariantClassifier


class Returning(nn.Module):
    """Returns whatever a test needs."""

    def __init__(self, function):
        super().__init__()
        self.body, self.function = nn.Linear(16, 3), function

    def forward(self, x):
        return self.function(self.body(x.flatten(1)))


NETWORKS = {
    "dictionary": (
        Returning(lambda x: {"logits": x}),
        "network of your backbone returned a dict: let it return one",
    ),
    "tuple": (
        Returning(lambda x: (x, x)),
        "returned a tuple: let it return one tensor, with a row of 3 outputs per",
    ),
    "no rows": (Returning(lambda x: x.mean()), r"made shape \(\) of 3 inputs: let it return a row of 3 outputs"),
    "outputs": (
        Returning(lambda x: x[:, :2]),
        r"made shape \(3, 2\) of 3 inputs: let it return a row of 3 outputs",
    ),
    "shape": (nn.Linear(7, 3), r"failed on inputs of shape \(4, 4\) \(.*\): let it take a batch of these"),
    "function": (torch.relu, "the backbone made a builtin_function_or_method: let it make a torch module"),
}


@pytest.mark.parametrize("placement", ["features", "outputs"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_that_cannot_be_used_is_refused(name, placement, annotations_unchecked):
    network, said = NETWORKS[name]
    x = np.random.default_rng(0).normal(size=(40, 4, 4))
    clf = InvariantClassifier(["rot90"], (4, 4), backbone=lambda shape, outputs: network, placement=placement)
    with pytest.raises(ValueError, match=said) as error:
        clf.fit(x, np.arange(40) % 3)
    assert len(str(error.value).splitlines()) == 1
