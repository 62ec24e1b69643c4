"""Numbers as people write them."""

import math
from importlib import metadata


def count_words(number: int) -> str:
    """A number of elements, short even where no float is large enough.

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
    """Version of this package, as it is installed."""
    return metadata.version("invariantnet")
