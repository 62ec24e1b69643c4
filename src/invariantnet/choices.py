"""The words that select behaviour, defined once; importing them loads neither torch nor scikit-learn."""

from typing import Literal

Method = Literal["evidence", "heldout", "paper"]
"""How symmetries are compared: by predictions, by π on held-out data, or by the paper's layer."""

Placement = Literal["weights", "features", "outputs"]
"""Where a network is averaged over a symmetry."""

Pool = Literal["mean", "max"]
"""How the features of transformed copies become one feature vector."""

Uncertainty = Literal["none", "ensemble", "bbb", "laplace"]
"""How the uncertainty of the final network is estimated."""

BackboneName = Literal["mlp", "cnn"]
"""Architectures that the package brings along."""

Color = Literal["auto", "grey", "rgb"]
"""How the images of a folder are read."""
