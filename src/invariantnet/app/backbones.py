"""Backbones of the user's own, named on the command line as `package.module:function`.

Code is imported only because the user has named it in this command: names in stored files are never followed.
"""

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from torch import nn

from invariantnet.estimator.stored import Backbone
from invariantnet.nn import Pretrained

LONGEST_FAULT = 300
"""Characters of the user's own error that a message repeats: about four lines."""


def resolve_backbone(name: str) -> str | Backbone:
    """Find the backbone that was asked for.

    Args:
        name: Name of a backbone of the package, which is returned as it is; or `package.module:function`. A
            function without arguments gives a trained body, or `Pretrained`; a function of input shape and
            outputs makes networks.

    Returns:
        The name of a backbone of the package, or the user's own.

    Raises:
        ValueError: If the function cannot be imported, fails, or gives something else.
    """
    if ":" not in name:
        return name
    make = _imported(name)
    try:
        signature = inspect.signature(make)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is no function: name one that makes a network.") from None
    if not _takes(signature):
        if _takes(signature, (), 0):
            own: Backbone = make
            return own
        raise ValueError(f"{name}{signature} takes other arguments: let it take none, or input shape and outputs.")
    try:
        body = make()
    except Exception as error:
        # Weights that do not fit are listed on many lines.
        fault = " ".join(str(error).split())[:LONGEST_FAULT].rstrip(".")
        raise ValueError(f"{name}() failed ({type(error).__name__}: {fault}): mend it.") from error
    if isinstance(body, nn.Module):
        return Pretrained(body)
    if not isinstance(body, Pretrained):
        raise ValueError(f"{name}() gives a {type(body).__name__}: let it give a torch module or Pretrained.")
    return body


def resolve_own_backbone(name: str | None) -> Backbone | None:
    """Find a backbone of the user's own to load a model with; None if none was named."""
    found = None if name is None else resolve_backbone(name)
    if isinstance(found, str):
        raise ValueError(f"{name} is no backbone of your own: write package.module:function, or leave it out.")
    return found


def _imported(name: str) -> Any:
    module, _, function = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python -m` does
    try:
        found = importlib.import_module(module)
    except Exception as error:
        fault = " ".join(str(error).split())[:LONGEST_FAULT]
        raise ValueError(f"{module} cannot be imported ({fault}): install it, or run in its folder.") from None
    try:
        return getattr(found, function)
    except AttributeError:
        raise ValueError(f"{module} has no {function!r}: name one of its functions.") from None


def _takes(signature: inspect.Signature, *arguments: object) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True
