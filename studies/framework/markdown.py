"""Records as Markdown tables."""

from collections.abc import Iterable, Sequence

import numpy as np


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def spread(values: Sequence[float]) -> str:
    """Format the mean and standard deviation of a sample."""
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):.1f} ± {deviation:.1f}"
