"""Layers and networks: the paper's probabilistic layer, Bayes by Backprop, and the networks compared."""

from invariantnet.nn.architectures import cnn, convnet, invariant_net, mlp
from invariantnet.nn.bayesian import BayesianConv2d, BayesianLinear, bayesian
from invariantnet.nn.ensemble import Ensemble
from invariantnet.nn.invariant import InvariantLinear
from invariantnet.nn.pretrained import Pretrained
from invariantnet.nn.symmetrized import Symmetrized

__all__ = [
    "BayesianConv2d",
    "BayesianLinear",
    "Ensemble",
    "InvariantLinear",
    "Pretrained",
    "Symmetrized",
    "bayesian",
    "cnn",
    "convnet",
    "invariant_net",
    "mlp",
]
