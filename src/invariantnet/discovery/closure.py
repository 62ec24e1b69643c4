r"""The largest group that a model cannot tell from a given one.

A polynomial of degree 2 that is invariant to the turns of a ring is invariant to its reflections too: $x_i x_j$
does not say which of the two comes first. So "exactly the turns" is impossible for such a model, and evidence for
turns is evidence for their *closure*: all permutations that map every pair of inputs to a pair of the same orbit
of pairs.
"""

import numpy as np
from jaxtyping import Int64

from invariantnet.symmetries._closure import Indices
from invariantnet.symmetries._orbits import signed_orbits


def closure(generators: Indices) -> Int64[np.ndarray, "found dim"]:
    """Find the largest group with the same orbits of inputs and of unordered pairs of inputs.

    Args:
        generators: Index arrays without changes of sign.

    Returns:
        Generators of that group.

    Example:
        >>> len(closure(np.array([[1, 2, 3, 4, 0]])))  # turns of a ring: with its reflections
        2
    """
    colors = orbits_of_pairs(generators)
    dim = len(colors)
    found: list[Int64[np.ndarray, " dim"]] = []
    # Elements that leave the first inputs alone, from the last place to the first, generate the group.
    reached = np.arange(dim)
    for place in reversed(range(dim)):
        for image in range(place + 1, dim):
            if colors[place, place] == colors[image, image] and reached[place] != reached[image]:
                element = _element(colors, [*range(place), image])
                if element is not None:
                    found.append(element)
                    reached = signed_orbits(np.stack(found))[0]
    return np.array(found, dtype=np.int64).reshape(-1, dim)


def orbits_of_pairs(generators: Indices) -> Int64[np.ndarray, "dim dim"]:
    """Number of the orbit of every unordered pair of inputs, and of every input on the diagonal."""
    dim = generators.shape[1]
    first, second = np.triu_indices(dim)
    number = np.zeros((dim, dim), np.int64)
    number[first, second] = number[second, first] = np.arange(len(first))
    moved = number[generators[:, first], generators[:, second]]
    orbit = signed_orbits(moved)[0]
    return orbit[number]


def _element(colors: Int64[np.ndarray, "dim dim"], images: list[int]) -> Int64[np.ndarray, " dim"] | None:
    """Complete the images of the first inputs to an element that keeps the colors of pairs, if one does."""
    place, used = len(images), set(images)
    last = images[-1] if images else -1
    if place and not np.array_equal(colors[place - 1, :place], colors[last, images]):
        return None
    if place == len(colors):
        return np.array(images, dtype=np.int64)
    for image in range(len(colors)):
        if image not in used:
            found = _element(colors, [*images, image])
            if found is not None:
                return found
    return None
