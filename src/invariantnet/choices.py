"""The words that select behaviour, defined once; importing them loads neither torch nor scikit-learn."""

from collections.abc import Collection
from typing import Literal

Method = Literal["evidence", "heldout", "paper"]
"""How symmetries are compared: by predictions, by π on held-out data, or by the paper's layer."""

Placement = Literal["weights", "features", "outputs"]
"""Where a network is averaged over a symmetry."""

Pool = Literal["mean", "max"]
"""How the features of transformed copies become one feature vector."""

Uncertainty = Literal["none", "ensemble", "bbb", "laplace"]
"""How the uncertainty of the final network is estimated."""

BackboneName = Literal["auto", "mlp", "cnn"]
"""Architectures that the package brings along; `auto` lets all that suit the inputs compete."""

Precision = Literal["32-true", "bf16-mixed"]
"""Numbers that a training step computes with, as lightning-fabric calls them: 32 bits, or matrix products and
convolutions in 16 (bfloat16) and everything else in 32. Weights and predictions always have 32."""

Task = Literal["auto", "classes", "numbers"]
"""What is predicted; `auto` takes labels with fractions for numbers, and any others for classes."""

Color = Literal["auto", "grey", "rgb"]
"""How the images of a folder are read."""

MixtureKind = Literal["point", "dirichlet", "neurons"]
"""What is learned about π on held-out data: its maximum, a Dirichlet, or one scheme per feature."""

MixtureMethod = Literal["variational", "nuts"]
"""How the posterior over π is found: by fitting a Dirichlet to it, or by sampling it."""

Identity = Literal["paper", "full"]
"""What the branch without symmetry of the paper's layer sees: the first inputs, as printed, or all of them."""

Basis = Literal["orthonormal", "indicator"]
"""How long the rows of V are in the paper's layer."""

Draw = Literal["batch", "neuron"]
"""How many draws of π one forward pass of the paper's layer uses."""

Parametrisation = Literal["simplex", "logits"]
"""The coordinates in which the density of π is maximised."""


def require_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Refuse a word that selects nothing.

    Args:
        name: What the word is for, as the argument is called.
        value: The word that was passed.
        choices: The words that exist.

    Raises:
        ValueError: If the word is none of them.

    >>> require_choice("pool", "median", ("mean", "max"))
    Traceback (most recent call last):
    ValueError: pool 'median' is unknown: choose among mean, max.
    """
    if value not in choices:
        raise ValueError(f"{name} {value!r} is unknown: choose among {', '.join(choices)}.")
