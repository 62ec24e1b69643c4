"""Numbers, versions and names as text."""

import math
from importlib import metadata

READABLE = 1e-4, 1e9
"""Sizes of numbers that are read more easily without an exponent."""


def count_words(number: int) -> str:
    """Format a whole number: with commas below a billion, in scientific notation above.

    Args:
        number: A number of any size, even beyond the range of floats.

    Returns:
        The number as text.

    Example:
        >>> count_words(5040), count_words(10**400 * 7)
        ('5,040', '7.0e+400')
    """
    if number < 10**9:
        return f"{number:,}"
    # Python prints no more than 4,300 digits of a number, and the logarithm may be off by one.
    exponent = math.floor(math.log10(number)) - 2
    leading = number // 10**exponent
    while leading >= 100:
        leading, exponent = leading // 10, exponent + 1
    return f"{leading // 10}.{leading % 10}e+{exponent + 1}"


def round_words(number: float, digits: int = 3) -> str:
    """Round a number to its first digits, with commas and, where that can be read, without an exponent.

    Args:
        number: Any number.
        digits: How many digits to keep.

    Returns:
        The number as text.

    Example:
        >>> round_words(407786.9), round_words(3.14159), round_words(-0.5), round_words(2e-7), round_words(3e12)
        ('408,000', '3.14', '-0.5', '2e-07', '3e+12')
    """
    rounded = float(f"{number:.{digits}g}")
    if not READABLE[0] <= abs(rounded) < READABLE[1]:
        return f"{rounded:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def package_version() -> str:
    """Version of the installed package."""
    return metadata.version("invariantnet")


def with_article(name: str) -> str:
    """Put the indefinite article before a name.

    Example:
        >>> with_article("averaging mlp"), with_article("plain cnn")
        ('an averaging mlp', 'a plain cnn')
    """
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
