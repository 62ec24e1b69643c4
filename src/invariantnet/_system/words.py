"""Numbers, versions and names as text."""

import math
from importlib import metadata


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
