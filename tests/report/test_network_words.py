"""What a page says of the kinds of networks."""

import pytest

from invariantnet.inference import models
from invariantnet.report.network_words import network_words

EXCHANGING = tuple(model for model, _ in models.EXCHANGING)
EVERY = (
    models.LINEAR,
    *models.MLPS,
    *models.CNNS,
    *models.NATIVE.values(),
    *EXCHANGING,
    *models.HEADS,
    models.OWN,
)


@pytest.mark.parametrize("name", sorted({m.name for m in EVERY} | {m.in_shared_units().name for m in EVERY}))
def test_every_kind_of_network_is_explained(name):
    assert len(network_words(name)) > len(name)
