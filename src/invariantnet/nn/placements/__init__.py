"""Where a network is averaged over symmetries: one class per placement, one entry each in `PLACEMENTS`."""

from invariantnet.choices import Placement
from invariantnet.nn.placements._split import check_outputs
from invariantnet.nn.placements.base import Averaging, BasePlacement
from invariantnet.nn.placements.features import Features
from invariantnet.nn.placements.outputs import Outputs
from invariantnet.nn.placements.weights import Weights

PLACEMENTS: dict[Placement, type[BasePlacement]] = {
    "weights": Weights,
    "features": Features,
    "outputs": Outputs,
}
"""The class behind each name."""

__all__ = ["PLACEMENTS", "Averaging", "BasePlacement", "Features", "Outputs", "Weights", "check_outputs"]
