"""Plain names: what a symmetry is called without group theory. Nothing here imports torch."""

from invariantnet.symmetries.catalogue import CATALOGUE, TRIVIAL
from invariantnet.symmetries.families import FAMILIES


def plain_name(name: str) -> str:
    """Say a symmetry in plain words.

    Args:
        name: Name of a symmetry, of a range, of a whole family of ranges, or of a join of several.

    Returns:
        The words; of a symmetry of your own, its name.

    Example:
        >>> plain_name("d4"), plain_name("hflip+rotation:30"), plain_name("swap")
        ('quarter turns and mirror images', 'left-right mirror images and rotations up to 30°', 'swap')
        >>> plain_name("translation:1"), plain_name("translation:2")
        ('shifts up to 1 pixel', 'shifts up to 2 pixels')
    """
    return " and ".join(dict.fromkeys(_of_part(part) for part in name.split("+")))


def both_names(name: str) -> str:
    """Say a symmetry in plain words, with its name in brackets if that is another.

    Args:
        name: Name of a symmetry.

    Returns:
        The words, and the name unless it says the same.

    Example:
        >>> both_names("rot90"), both_names("trivial"), both_names("swap")
        ('quarter turns (rot90)', 'no symmetry', 'swap')
    """
    plain = plain_name(name)
    return plain if plain == " and ".join(name.split("+")) or name == TRIVIAL else f"{plain} ({name})"


def plain_hypothesis(name: str) -> str:
    """Say a hypothesis in plain words: a symmetry, and after a dot the model, if there is one.

    Args:
        name: Name of a hypothesis, or of a symmetry.

    Returns:
        The words.

    Example:
        >>> plain_hypothesis("rot90 · plain cnn")
        'quarter turns, plain cnn'
    """
    symmetry, *model = name.split(" · ", 1)
    return ", ".join([plain_name(symmetry), *model])


def _of_part(part: str) -> str:
    if part in CATALOGUE:
        return CATALOGUE[part].plain
    family, colon, value = part.partition(":")
    if family not in FAMILIES:
        return part
    if not colon:
        return FAMILIES[family].plain
    said, unit = FAMILIES[family].words(float(value)), FAMILIES[family].unit
    return said.removesuffix("s") if said.endswith(f" 1 {unit}") else said
