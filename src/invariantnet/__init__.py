"""InvariantNet: which symmetries does my data have, and a network that is exactly invariant to them.

>>> import invariantnet as inv
>>> rotations = inv.group("rot90", shape=(28, 28))
>>> rotations.order, len(rotations.orbits().unique())
(4, 196)
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from invariantnet import datasets as datasets
    from invariantnet import metrics as metrics
    from invariantnet import nn as nn
    from invariantnet.catalogue import group as group
    from invariantnet.catalogue import join as join
    from invariantnet.catalogue import register_group as register_group
    from invariantnet.estimator import InvariantClassifier as InvariantClassifier
    from invariantnet.estimator import InvariantRegressor as InvariantRegressor
    from invariantnet.groups import Group as Group
    from invariantnet.reynolds import check_invariance as check_invariance
    from invariantnet.reynolds import complement_basis as complement_basis
    from invariantnet.reynolds import invariant_basis as invariant_basis
    from invariantnet.reynolds import reynolds_operator as reynolds_operator

# Names are imported at first use: the command line answers `--help` without loading torch.
_HOME = {
    "Group": "groups",
    "group": "catalogue",
    "join": "catalogue",
    "register_group": "catalogue",
    "check_invariance": "reynolds",
    "complement_basis": "reynolds",
    "invariant_basis": "reynolds",
    "reynolds_operator": "reynolds",
    "InvariantClassifier": "estimator",
    "InvariantRegressor": "estimator",
    "datasets": "",
    "metrics": "",
    "nn": "",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'invariantnet' has no attribute {name!r}")
    home = _HOME[name]
    if not home:
        return importlib.import_module(f"invariantnet.{name}")
    value = getattr(importlib.import_module(f"invariantnet.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
