"""What comes from outside, as the estimators need it."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import torch
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import column_or_1d, validate_data
from torch import Tensor, nn

from invariantnet.choices import BackboneName, Placement, Pool, Precision, Uncertainty
from invariantnet.data.arrays import DiskArray, not_finite
from invariantnet.inference.models import MODEL_NAMES
from invariantnet.nn.pretrained import Pretrained
from invariantnet.symmetries.group import Group
from invariantnet.symmetries.ranges import Range
from invariantnet.symmetries.shapes import channels_last

COMPLEX = "Complex data not supported: pass real numbers, such as np.concatenate([X.real, X.imag], 1)."
"""What users are told about complex inputs; scikit-learn's checks look for its first words."""
NOT_FINITE = "X holds NaN or infinite values: clean or drop those examples."
"""What users are told about missing values."""


def usable_device(name: str) -> torch.device:
    """Where to compute; a ValueError if it is not there."""
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
    try:
        return torch.empty(1, device=chosen).device
    except (RuntimeError, AssertionError) as error:
        fault = str(error).splitlines()[0]
        if "Expected one of" in fault:  # and then a list of twenty kinds
            raise ValueError(f"there is no device {name!r}: pass 'auto', 'cpu' or 'cuda'.") from None
        raise ValueError(f"device {name!r} cannot be used ({fault}): pass 'auto' or 'cpu'.") from None


def seed_from(random_state: Any) -> int:
    """Draw the seed of a fit from what scikit-learn takes for randomness."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def as_numpy(values: Tensor) -> np.ndarray:
    """An array of the tensor's numbers; numpy does not know half of torch's short types."""
    values = values.detach().cpu()
    return (values.float() if values.is_floating_point() and values.itemsize < 4 else values).numpy()


def checked_inputs(estimator: Any, X: Any, *, reset: bool) -> np.ndarray | DiskArray:
    """Inputs as flat rows of finite numbers; those of a fit set the shape, and later ones must have it."""
    if isinstance(X, Tensor):
        X = as_numpy(X)
    elif not hasattr(X, "shape"):
        X = np.asarray(X)
    shape = tuple(X.shape[1:])
    rows = DiskArray.of(X)
    if rows is None and np.iscomplexobj(X):
        raise ValueError(COMPLEX)
    if rows is not None:
        if not_finite(rows)[0]:
            raise ValueError(NOT_FINITE)
        X = np.asarray(rows[:2])
    elif len(shape) > 1:
        X = np.asarray(X).reshape(len(X), -1)
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and not np.isfinite(X).all():
        raise ValueError(NOT_FINITE)
    with np.errstate(over="ignore"):  # what becomes infinite is refused
        values = validate_data(estimator, X, reset=reset, dtype=np.float32, ensure_min_samples=2 if reset else 1)
    if reset:
        if estimator.input_shape is None and channels_last(shape):
            raise ValueError(
                f"inputs of shape {shape} seem to have the channels last: np.moveaxis(X, -1, 1), "
                "or name input_shape."
            )
        estimator.input_shape_ = tuple(int(n) for n in estimator.input_shape or shape or values.shape[1:])
        if int(np.prod(estimator.input_shape_)) != values.shape[1]:
            raise ValueError(
                f"inputs of {values.shape[1]} numbers do not have the shape {estimator.input_shape_}: "
                "pass another input_shape."
            )
    if len(shape) > 1 and not _same_shape(shape, estimator.input_shape_):
        raise ValueError(
            f"inputs of shape {shape}, not {estimator.input_shape_}: transpose them, or pass them flat if their "
            "numbers are in the right order."
        )
    # Zero has two signs, and an array of the caller's may be locked: take a copy of our own.
    return values + np.float32(0) if rows is None else rows


def _same_shape(a: Sequence[int], b: Sequence[int]) -> bool:
    """Up to axes of length 1: a grey image may have a channel."""
    return [n for n in a if n != 1] == [n for n in b if n != 1]


def as_column(y: Any, examples: int) -> np.ndarray:
    """One finite target per input."""
    values = column_or_1d(as_numpy(y) if isinstance(y, Tensor) else y, warn=True)
    if len(values) != examples:
        raise ValueError(f"{examples} inputs, but {len(values)} targets: pass one target per input.")
    assert_all_finite(values, input_name="y")
    return np.asarray(values)


def as_numbers(y: Any, examples: int) -> np.ndarray:
    """One finite number per input, or a row of several."""
    values = as_numpy(y) if isinstance(y, Tensor) else np.asarray(y)
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError("y holds words, not numbers: use InvariantClassifier, or encode them.") from None
    if values.ndim != 2 or values.shape[1] < 2:
        return as_column(y, examples)
    if len(values) != examples:
        raise ValueError(f"{examples} inputs, but {len(values)} targets: pass one row of targets per input.")
    assert_all_finite(values, input_name="y")
    return values


def _check_backbone(estimator: Any) -> None:
    backbone = estimator.backbone
    if isinstance(backbone, nn.Module):
        raise ValueError(
            f"backbone is a {type(backbone).__name__}: pass a function of input shape and outputs that makes a "
            "network, or nn.Pretrained(body) for one that is trained already."
        )
    if not isinstance(backbone, Pretrained):
        return
    if estimator.method != "evidence" or estimator.placement != "features" or estimator.head is not None:
        raise ValueError(
            "a pretrained body is for method 'evidence' and placement 'features', and names its head itself: "
            "leave method, placement and head alone."
        )
    if backbone.unfreeze and estimator.uncertainty != "none":
        raise ValueError("a body that is trained further has no uncertainty here: leave out unfreeze.")


def check_parameters(estimator: Any) -> None:
    """A ValueError for the first parameter that cannot be."""
    choices: dict[str, tuple[Any, ...]] = {
        "method": estimator.methods,
        "placement": get_args(Placement),
        "pool": get_args(Pool),
        "precision": get_args(Precision),
        "uncertainty": ("none",) if estimator.method == "paper" else get_args(Uncertainty),
        "backbone": (estimator.backbone,)
        if callable(estimator.backbone)
        else (*get_args(BackboneName), *MODEL_NAMES),
    }
    for name, allowed in choices.items():
        if getattr(estimator, name) not in allowed:
            raise ValueError(f"{name} {getattr(estimator, name)!r} is unknown: choose among {', '.join(allowed)}.")
    for name in ("hidden", "n_networks", "epochs"):
        value = getattr(estimator, name)
        if not (value is None and name == "epochs") and (not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{name} is {value!r}: pass a whole number, at least 1.")
    if not isinstance(estimator.n_jobs, int | np.integer) or estimator.n_jobs == 0:
        raise ValueError(f"n_jobs is {estimator.n_jobs!r}: pass a whole number of processes, at least 1.")
    _check_backbone(estimator)
    if estimator.head is not None and (not callable(estimator.backbone) or estimator.placement != "features"):
        raise ValueError(
            "head names a layer of your own backbone, for placement 'features': leave it out, or pass a backbone."
        )
    symmetries = estimator.symmetries
    for symmetry in symmetries if isinstance(symmetries, Sequence) else [symmetries]:
        if not isinstance(symmetry, str | Group | Range):
            raise ValueError(f"{symmetry!r} is not a symmetry: pass names of the catalogue, a Group or a Range.")
    if isinstance(symmetries, str) and symmetries == "discover" and estimator.method != "evidence":
        raise ValueError("symmetries='discover' is for method 'evidence': leave method out, or name candidates.")
    shape = (1,) if estimator.input_shape is None else estimator.input_shape
    if not isinstance(shape, tuple | list) or not all(isinstance(n, int | np.integer) for n in shape):
        raise ValueError(f"input_shape is {shape!r}: pass whole numbers, such as (28, 28).")
    if np.asarray(estimator.prior).dtype.kind not in "iuf":
        raise ValueError(f"prior is {estimator.prior!r}: pass a positive number, or one for each hypothesis.")
    if estimator.method == "paper" and estimator.backbone not in ("auto", "mlp"):
        raise ValueError("method 'paper' has the layer of the paper: leave backbone at 'auto'.")
    if estimator.method != "evidence" and (estimator.tolerance or estimator.second_opinion):
        raise ValueError("tolerance and second_opinion are for method 'evidence': leave them out.")
    if estimator.method != "evidence" and estimator.precision != "32-true":
        raise ValueError("precision is for method 'evidence': leave it out.")
    if estimator.method == "paper" and np.any(np.asarray(estimator.prior) != 1):
        raise ValueError("method 'paper' has the prior of the paper: leave prior at 1, or use nn.InvariantLinear.")
    if not isinstance(estimator.tolerance, int | float | np.number) or not 0 <= estimator.tolerance < np.inf:
        raise ValueError(f"tolerance is {estimator.tolerance!r}: pass a number of nats, at least 0.")
