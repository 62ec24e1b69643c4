"""InvariantNet: which symmetries does my data have, and a network that is exactly invariant to them.

>>> import invariantnet as inv
>>> rotations = inv.symmetry("rot90", shape=(28, 28))
>>> rotations.order, len(rotations.orbits().unique())
(4, 196)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from invariantnet import data as _data
    from invariantnet import metrics as metrics
    from invariantnet import nn as nn
    from invariantnet.discovery import Discovery as Discovery
    from invariantnet.discovery import discover as discover
    from invariantnet.estimator import InvariantClassifier as InvariantClassifier
    from invariantnet.estimator import InvariantRegressor as InvariantRegressor
    from invariantnet.symmetries.deviation import deviation as deviation
    from invariantnet.symmetries.group import Group as Group
    from invariantnet.symmetries.lifting import lift as lift
    from invariantnet.symmetries.lookup import register_symmetry as register_symmetry
    from invariantnet.symmetries.named import join as join
    from invariantnet.symmetries.named import ladder as ladder
    from invariantnet.symmetries.named import register_range as register_range
    from invariantnet.symmetries.named import symmetry as symmetry
    from invariantnet.symmetries.ranges import Range as Range
    from invariantnet.symmetries.reynolds import check_invariance as check_invariance
    from invariantnet.symmetries.reynolds import complement_basis as complement_basis
    from invariantnet.symmetries.reynolds import invariant_basis as invariant_basis
    from invariantnet.symmetries.reynolds import reynolds_operator as reynolds_operator

    datasets = _data

# Names are imported at first use: the command line answers `--help` without loading torch.
_HOME = {
    "Group": "symmetries.group",
    "Range": "symmetries.ranges",
    "symmetry": "symmetries.named",
    "join": "symmetries.named",
    "ladder": "symmetries.named",
    "lift": "symmetries.lifting",
    "register_symmetry": "symmetries.lookup",
    "register_range": "symmetries.named",
    "deviation": "symmetries.deviation",
    "check_invariance": "symmetries.reynolds",
    "complement_basis": "symmetries.reynolds",
    "invariant_basis": "symmetries.reynolds",
    "reynolds_operator": "symmetries.reynolds",
    "discover": "discovery",
    "Discovery": "discovery",
    "InvariantClassifier": "estimator",
    "InvariantRegressor": "estimator",
}
_MODULES = {"datasets": "data", "metrics": "metrics", "nn": "nn"}
"""Where each public module is."""

__all__ = [*_HOME, *_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from invariantnet._system.words import package_version

        value: Any = package_version()
    elif name in _MODULES:
        value = importlib.import_module(f"invariantnet.{_MODULES[name]}")
    elif name in _HOME:
        value = getattr(importlib.import_module(f"invariantnet.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'invariantnet' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
