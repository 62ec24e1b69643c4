"""What comes from outside, as the estimators need it."""

from typing import Any

import numpy as np
import torch
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import column_or_1d
from torch import Tensor


def usable_device(name: str) -> torch.device:
    """Where to compute; a ValueError if it is not there."""
    chosen = ("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name
    try:
        return torch.empty(1, device=chosen).device
    except (RuntimeError, AssertionError) as error:
        fault = str(error).splitlines()[0]
        raise ValueError(f"device {name!r} cannot be used ({fault}): pass 'auto' or 'cpu'.") from None


def as_numpy(values: Tensor) -> np.ndarray:
    """An array of the tensor's numbers; numpy does not know half of torch's short types."""
    values = values.detach().cpu()
    return (values.float() if values.is_floating_point() and values.itemsize < 4 else values).numpy()


def as_column(y: Any, examples: int) -> np.ndarray:
    """One finite target per input."""
    values = column_or_1d(as_numpy(y) if isinstance(y, Tensor) else y, warn=True)
    if len(values) != examples:
        raise ValueError(f"{examples} inputs, but {len(values)} targets: pass one target per input.")
    assert_all_finite(values, input_name="y")
    return np.asarray(values)
