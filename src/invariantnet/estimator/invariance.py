"""How invariant a fitted network is, measured; and how it becomes less so."""

from torch import Tensor, nn

from invariantnet.data.arrays import DiskArray, read
from invariantnet.likelihoods import Likelihood
from invariantnet.nn import Ensemble, Symmetrized
from invariantnet.symmetries.catalogue import TRIVIAL
from invariantnet.symmetries.deviation import Deviation, affordable_positions, deviation
from invariantnet.symmetries.plain import both_names
from invariantnet.symmetries.ranges import AnySymmetry, Range
from invariantnet.training.loop import predict

INPUTS = 50
"""Inputs to measure on: enough to find a typical change, and few enough to move each of them dozens of times."""


def network_deviation(
    network: nn.Module, symmetry: AnySymmetry, x: Tensor | DiskArray, likelihood: Likelihood
) -> Deviation | None:
    """Measure how far a network is from being invariant inside the range that it pools over.

    Args:
        network: A fitted network.
        symmetry: What it was made invariant to.
        x: Flat inputs; evenly spaced ones of them are used.
        likelihood: Says what the outputs mean.

    Returns:
        The change of probabilities, or of predictions in standard deviations of the target; None for groups, to
        which networks are exactly invariant, and without inputs.
    """
    if not isinstance(symmetry, Range) or not len(x):
        return None

    def predicted(inputs: Tensor) -> Tensor:
        output = predict(network, inputs, likelihood)
        return output.exp() if likelihood.averages_probabilities else output.tensor_split(2, dim=-1)[0]

    inputs = read(x[:: max(1, len(x) // INPUTS)])[:INPUTS]
    return deviation(predicted, symmetry, inputs, affordable_positions(symmetry, len(inputs)))


def restricted(network: nn.Module, symmetry: AnySymmetry) -> nn.Module:
    """Average a network over a part of its symmetry only, with the same weights.

    Args:
        network: A fitted network; the result reuses its parts.
        symmetry: A part of its symmetry.

    Returns:
        The network that is invariant to this part alone.

    Raises:
        ValueError: If it cannot be restricted.
    """
    if isinstance(network, Ensemble):
        network.network = restricted(network.network, symmetry)
        return network
    assert isinstance(network, Symmetrized)
    return network.restricted_to(symmetry)


def restriction_words(whole: AnySymmetry, part: AnySymmetry) -> str:
    """Say what changes when a network is restricted to a part of its symmetry."""
    if whole <= part:
        return f"nothing changes: {both_names(whole.name)} was all the network had"
    now = both_names(part.name) if part.name == TRIVIAL else f"invariant to {both_names(part.name)}"
    return (
        f"{now} instead of {both_names(whole.name)}, with the same weights: {part.copies:,} instead of "
        f"{whole.copies:,} copies of an input; inputs that only {whole.name} relates may get different predictions"
    )
