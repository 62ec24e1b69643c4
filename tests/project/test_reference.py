"""The API reference lists what is public, and nothing else."""

import importlib
import re
from pathlib import Path

import invariantnet as inv
from invariantnet import discovery
from invariantnet.inference.by_class import Gain
from invariantnet.inference.findings import ModelEvidence, Price
from invariantnet.inference.mixture_posterior import MixturePosterior
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.range_posterior import RangePosterior

API = Path(__file__).parents[2] / "docs/api.md"
RETURNED = (SymmetryPosterior, ModelEvidence, Price, Gain, RangePosterior, MixturePosterior, discovery.Tested)
"""What users meet as an attribute or a result, without importing it."""
MODULES = (inv.datasets, inv.nn)
"""Modules whose parts are listed one by one; of `metrics`, all are."""


def listed():
    found = []
    for path in re.findall(r"^::: (\S+)", API.read_text(), re.MULTILINE):
        module, _, name = path.rpartition(".")
        found.append(getattr(importlib.import_module(module), name))
    return found


def test_every_public_name_is_in_the_reference_and_no_other():
    names = [getattr(inv, name) for name in inv.__all__ if name != "__version__"]
    parts = [getattr(module, name) for module in MODULES for name in module.__all__]
    public = {id(each) for each in (*names, *parts, *RETURNED) if not any(each is m for m in MODULES)}
    there = {id(each): each for each in listed()}
    assert len(there) == len(listed()), "one is there twice"
    assert not [each for key, each in there.items() if key not in public], "not public"
    missing = public - set(there)
    assert not [each for each in (*names, *parts, *RETURNED) if id(each) in missing], "not in the reference"
