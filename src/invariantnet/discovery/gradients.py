"""Moments of the gradients of predictors: what a symmetry of the labels leaves alone, whatever the inputs."""

from dataclasses import replace

import numpy as np
from jaxtyping import Float64

from invariantnet.discovery._matching import Moments
from invariantnet.discovery.copies import nothing
from invariantnet.discovery.predictors import AnyPredictor, Function, Labelled

PROBES = 300
"""Inputs at which gradients are taken: their second moments are then known to about 6 %."""

FITS = 4
"""Predictors, each without one of as many parts of the examples; their differences tell the noise."""

MOST_INPUTS = 64
"""Inputs above which no gradients are taken: predictors then say too little about each of them."""

MOST_WITH_SLOPES = 16
"""Inputs above which second derivatives say less than their noise hides."""


def moments_of_gradients(past: Labelled, predictor: AnyPredictor, rng: np.random.Generator) -> Moments | None:
    """First and second moments of gradients, and mean second derivatives, at inputs from a symmetric distribution.

    The entries of the probes are drawn from the values of all inputs together. At the data's own inputs, a
    symmetry of the labels would be hidden by inputs that are not symmetric.

    Args:
        past: Examples to learn from.
        predictor: Kind of predictor.
        rng: Source of randomness.

    Returns:
        The moments in units of their noise; None for too many inputs.
    """
    n, dim = past.x.shape
    if dim > MOST_INPUTS:
        return None
    probes = rng.choice(past.x.ravel(), size=(PROBES, dim))
    part = np.arange(n) % FITS
    means, seconds, slopes = [], [], []
    for k in range(FITS):
        gradients = _gradients(_fitted(past[np.flatnonzero(part != k)], predictor), probes, past.x.std())
        means.append(gradients.mean(axis=1))
        seconds.append(np.einsum("oni,onj->oij", gradients, gradients) / PROBES)
        slopes.append(_slopes(gradients, probes))
    odd = _in_noise_units(np.stack(means))
    pairs = _in_noise_units(np.stack(seconds))
    if dim <= MOST_WITH_SLOPES:
        pairs = np.concatenate([pairs, _in_noise_units(np.stack(slopes))])
    return Moments(np.zeros((0, dim)), odd, pairs / np.sqrt(2))


def _slopes(
    gradients: Float64[np.ndarray, "outputs n dim"], probes: Float64[np.ndarray, "n dim"]
) -> Float64[np.ndarray, "outputs dim dim"]:
    """How gradients change with the probes, by least squares: the mean second derivatives."""
    centred = probes - probes.mean(axis=0)
    found = np.linalg.lstsq(centred, gradients.transpose(1, 0, 2).reshape(len(probes), -1), rcond=None)[0]
    slopes = found.reshape(probes.shape[1], len(gradients), -1).transpose(1, 0, 2)
    return (slopes + slopes.transpose(0, 2, 1)) / 2


def _fitted(past: Labelled, predictor: AnyPredictor) -> Function:
    # The same shift and scale for all inputs: any other would tell them apart.
    return replace(predictor, scaling="all").fit(nothing(past.x.shape[1]), past)[1]


def _gradients(
    function: Function, probes: Float64[np.ndarray, "n dim"], size: float
) -> Float64[np.ndarray, "outputs n dim"]:
    """Differences of predictions a tenth of a standard deviation around each probe."""
    found = []
    for i in range(probes.shape[1]):
        step = np.zeros(probes.shape[1])
        step[i] = size / 10
        found.append(function(probes + step) - function(probes - step))
    return np.stack(found, axis=-1).transpose(1, 0, 2)


def _in_noise_units(values: Float64[np.ndarray, "fits outputs *shape"]) -> Float64[np.ndarray, "outputs *shape"]:
    """Mean over fits, divided by its standard error as the jackknife estimates it."""
    fits = len(values)
    variance = (fits - 1) * values.var(axis=0)
    noise = variance.reshape(len(variance), -1).mean(axis=1)
    return values.mean(axis=0) / np.sqrt(noise + 1e-300).reshape(-1, *[1] * (values.ndim - 2))
