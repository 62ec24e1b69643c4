"""The shapes that an input can have."""

import math

Shape = tuple[int, ...]
"""Sizes of one input, without the axis of examples."""

MOST_NUMBERS = 10**8
"""Largest number of values in one input: an index array of this length takes 800 MB."""


def channels_last(shape: Shape) -> bool:
    """Whether a shape looks like (height, width, channels); symmetries need (channels, height, width)."""
    return len(shape) == 3 and shape[2] in (1, 3) and shape[0] > 3


def has_features(shape: Shape) -> bool:
    """Whether a shape looks like (length, features) rather than like an image (height, width).

    Example:
        >>> has_features((100, 3)), has_features((28, 28)), has_features((100, 12))
        (True, False, True)
    """
    return len(shape) == 2 and shape[1] < shape[0] and (shape[1] <= 4 or shape[0] >= 4 * shape[1])


def checked(shape: Shape) -> Shape:
    """Convert a shape to a tuple of integers.

    Args:
        shape: One to three sizes.

    Returns:
        The shape.

    Raises:
        ValueError: No input can have this shape, or it has too many numbers.
    """
    if not 1 <= len(shape) <= 3 or any(int(n) != n or n < 1 for n in shape):
        raise ValueError(
            f"shape {shape} is no input: pass (D,), (H, W), (C, H, W) or (length, features), sizes ≥ 1."
        )
    if math.prod(shape) > MOST_NUMBERS:
        raise ValueError(f"shape {shape} has more than {MOST_NUMBERS:,} numbers: use smaller inputs.")
    return tuple(int(n) for n in shape)
