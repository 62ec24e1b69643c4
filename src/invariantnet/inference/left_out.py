"""What `auto` did not compare, in words, with how to ask for it."""

from collections.abc import Sequence

from invariantnet.symmetries.families import FAMILIES
from invariantnet.symmetries.plain import both_names


def why_alone(left_out: Sequence[str]) -> str:
    """Say why `auto` found nothing to compare.

    Args:
        left_out: Names of what it left out.

    Returns:
        The end of a sentence; empty if nothing but ranges was left out.
    """
    groups = [name for name in left_out if name not in FAMILIES]
    if not groups:
        return ""
    moves = " or ".join(map(both_names, groups))
    return (
        f", because examples do not lie where {moves} would take them: columns differ in range, "
        "or values and their negatives are distributed differently. Name a symmetry to compare it all the same"
    )


def left_out_words(left_out: Sequence[str], favourite: str, beside: str | None) -> str:
    """Say what was not compared, why, and how to ask for it.

    Args:
        left_out: Names of joins of the favourite, of groups, and of families of ranges.
        favourite: Name of the favourite.
        beside: Name of the group that a range should be compared with; None for the range alone.

    Returns:
        Some sentences.
    """
    ranges = [name for name in left_out if name in FAMILIES]
    joins = [name for name in left_out if name.startswith(f"{favourite}+")]
    groups = [name for name in left_out if name not in (*ranges, *joins)]
    listed = []
    if joins:
        listed.append(f"{', '.join(map(both_names, joins))}, which would take long on inputs of this size")
    if groups:
        listed.append(
            f"{', '.join(map(both_names, groups))}, because no example looks like one that was changed so, and "
            "none could refute it"
        )
    if ranges:
        listed.append(f"ranges of {', '.join(ranges)}")
    said = f"Not compared: {'; '.join(listed)}."
    if joins:
        said += f" To ask for {joins[0]}, {_passing(joins[0].split('+'))}."
    if ranges:
        first = ranges[0]
        said += f" To ask how far {first} reaches, {_passing([beside, first] if beside else [first])}."
    return said


def _passing(symmetries: Sequence[str]) -> str:
    return f"pass symmetries={[*symmetries]}, or --symmetries {','.join(symmetries)}"
