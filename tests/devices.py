"""A pretended GPU, for machines without one: mixing its tensors with those of the CPU is an error."""

from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakTensorKeyDictionary

CPU, GPU = torch.device("cpu"), torch.device("cuda")
MOVES = (Tensor.to, Tensor.cpu, Tensor.cuda)
LEAVES_TORCH = (Tensor.numpy, Tensor.__array__)
# The second argument of these may be elsewhere: torch copies it, or only looks at it.
LIKE_THE_FIRST = (Tensor.copy_, Tensor.data.__set__, Tensor.__deepcopy__, torch._has_compatible_shallow_copy_type)
INDEXES = (Tensor.__getitem__, Tensor.__setitem__)

_storages: set[StorageWeakRef] = set()
_sparse = WeakTensorKeyDictionary()


class MixedDevicesError(RuntimeError):
    """An operation got tensors from both devices."""


class PretendedGPU(TorchFunctionMode):
    """Inside, tensors on "cuda" are tensors of the CPU that say otherwise.

    Every call of torch from Python is checked: all its tensors must be on one device, apart from numbers (tensors
    without axes) and indices, which torch moves by itself. The result of a call is where its arguments are.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None) -> Any:
        kwargs = dict(kwargs or {})
        if function == Tensor.device.__get__:
            return device_of(args[0])
        if function in LEAVES_TORCH and device_of(args[0]) == GPU:
            raise TypeError("can't convert cuda device type tensor to numpy: use Tensor.cpu() first.")
        if function in MOVES:
            return _moved(function, *args, **kwargs)
        device = torch.device(kwargs["device"]) if kwargs.get("device") else _common_device(function, args, kwargs)
        result = function(*args, **(kwargs | ({"device": CPU} if "device" in kwargs else {})))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                _put(tensor, device)
        return result


def device_of(tensor: Tensor) -> torch.device:
    """Where a tensor says that it is."""
    is_there = tensor in _sparse if tensor.layout != torch.strided else _storage(tensor) in _storages
    return GPU if is_there else CPU


def _common_device(function, args, kwargs) -> torch.device:
    if function in LIKE_THE_FIRST or (function in INDEXES and device_of(args[0]) == GPU):
        return device_of(args[0])
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
    devices = {device_of(t) for t in tensors if t.ndim or device_of(t) == GPU}
    in_backward = torch._C._current_graph_task_id() != -1
    if len(devices) > 1 and not in_backward:
        raise MixedDevicesError(
            f"{function.__name__} got tensors on {', '.join(str(device_of(t)) for t in tensors)}"
        )
    return max(devices, key=str, default=CPU)


def _moved(function, tensor, *args, **kwargs) -> Tensor:
    device = {Tensor.cpu: CPU, Tensor.cuda: GPU}.get(function, device_of(tensor))
    for value in (*args, *kwargs.values()):
        if isinstance(value, str | torch.device):
            device = torch.device(value)
        elif isinstance(value, Tensor):
            device = device_of(value)

    def here(value):
        return CPU if isinstance(value, str | torch.device) else value

    args, kwargs = [here(value) for value in args], {name: here(value) for name, value in kwargs.items()}
    result = tensor if function == Tensor.cuda else function(tensor, *args, **kwargs)
    if device != device_of(tensor) and result is tensor:
        result = tensor.clone()
    return _put(result, device)


def _put(tensor: Tensor, device: torch.device) -> Tensor:
    if tensor.layout != torch.strided:
        _sparse.pop(tensor, None)
        if device == GPU:
            _sparse[tensor] = True
    elif device == GPU:
        _storages.add(_storage(tensor))
    else:
        _storages.discard(_storage(tensor))
    return tensor


def _storage(tensor: Tensor) -> StorageWeakRef:
    return StorageWeakRef(tensor.untyped_storage())
