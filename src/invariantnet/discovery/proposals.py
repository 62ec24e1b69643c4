"""Which symmetries are worth a test: permutations that leave moments of data, or of predictors, almost alone."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Int64
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from invariantnet.discovery._beam import beam_search
from invariantnet.discovery._matching import (
    Limits,
    Moments,
    anchored,
    as_start,
    improve,
    match,
    square_distances,
    starts,
)
from invariantnet.discovery._tabu import Tabu
from invariantnet.discovery.gradients import moments_of_gradients
from invariantnet.discovery.moments import moments_given_labels, parts_of
from invariantnet.discovery.predictors import AnyPredictor, Labelled
from invariantnet.discovery.ranking import (
    Found,
    exchange_misfits,
    first_of_each_kind,
    ranked,
    without_powers,
    without_versions,
)
from invariantnet.symmetries._closure import Indices, TooManyElementsError, close_indices

FEW_INPUTS = 16
"""Inputs up to which groups are weighed on all labels, and every pair is tried: which permutation brings one
input to the place of another?"""

STARTS, MORE_STARTS, FURTHER_STARTS = 40, 160, 10
"""Random starts of the search among many inputs, with an anchor each: a pair of inputs that look alike. There are
more where they are cheap, and fewer beyond a known group, whose moments have less noise."""

ALIKE = 6
"""Inputs most alike to a given one, among which an anchor is drawn."""

KEPT = 5
"""Permutations of each source that become proposals: each further one costs every other a little power."""

SURPRISING, KEPT_OF_FEW = 12, 24
"""The same among few inputs, where a prior pays for every group: the most surprising permutations, and the first
of each number of inputs that move. A true cycle of five among seven inputs was the 7th and the 36th."""

LEVELS = 3
"""Partitions into exchangeable inputs that become proposals, at the widest gaps of the clustering."""

HOPELESS = 10.0
"""Misfit above which exchanges within parts of many inputs are not tested, as it takes long: noise makes 2."""

NEARLY_AS_GOOD = 1.3
"""Ratio of misfits up to which permutations are also proposed together, as the group that they generate."""

LARGEST_JOIN = 4096
"""Elements of a joint proposal at most: noisy permutations soon generate nearly all permutations."""

SIGN_FITS = 1.5
"""Misfit up to which a change of sign fits: 1 is what noise makes of a true one."""

IMPROVED = 40
"""Best permutations that are searched again, from their best part, where that is cheap."""

PATIENCE, MORE_PATIENCE = 4, 8
"""Attempts without success after which a permutation is left as it is."""

EXCHANGED, EXCHANGES = 16, 200
"""Best permutations that are improved by exchanges of two images, and how many exchanges."""

CHEAP = 100
"""Inputs up to which a start takes milliseconds."""

Source = Literal["inputs", "predictions"]
"""Moments of inputs given labels, or of the gradients of a predictor."""

Kind = Literal["permutation", "together", "exchanges", "signs"]
"""One permutation, several together, exchanges of inputs within parts, or changes of sign."""


@dataclass(frozen=True, eq=False)
class Proposal:
    """A symmetry that is worth a test.

    Args:
        generators: Index arrays, signs included.
        source: Where it comes from.
        kind: One permutation, several together, exchanges of inputs within parts, or changes of sign.
        misfit: Mean squared change of the moments, in units of noise.
        weight: How willingly it is accepted: less for the second best of its kind than for the best.
    """

    generators: Indices
    source: Source
    kind: Kind
    misfit: float
    weight: float = 1.0


def propose(past: Labelled, predictor: AnyPredictor, rng: np.random.Generator, *, signed: bool) -> list[Proposal]:
    """Propose symmetries of the labels, and of inputs and labels.

    Args:
        past: Examples that no test uses.
        predictor: A predictor without symmetry, whose gradients are used.
        rng: Source of randomness.
        signed: Whether to propose changes of sign too.

    Returns:
        The proposals, each group once.
    """
    moments = moments_by_source(past, predictor, rng)
    found = [proposal for source, own in moments.items() for proposal in _from_moments(own, source, rng)]
    if signed:
        found += sign_changes(moments["inputs"])
    return _distinct(found)


def moments_by_source(past: Labelled, predictor: AnyPredictor, rng: np.random.Generator) -> dict[Source, Moments]:
    """Measure what a symmetry leaves alone.

    A symmetry of inputs and labels leaves the gradients of a predictor alone too. Among few inputs, the two
    sources are kept apart, because a prior pays for every proposal.

    Args:
        past: Examples.
        predictor: A predictor without symmetry.
        rng: Source of randomness.

    Returns:
        Moments of inputs given labels, and of gradients unless there are too many inputs.
    """
    of_inputs = moments_given_labels(past.x, parts_of(past.y, classes=past.classes is not None))
    of_gradients = moments_of_gradients(past, predictor, rng)
    if of_gradients is None:
        return {"inputs": of_inputs}
    few = of_inputs.dim <= FEW_INPUTS
    return {"inputs": of_inputs if few else of_inputs.and_also(of_gradients), "predictions": of_gradients}


def sign_changes(moments: Moments) -> list[Proposal]:
    """Propose changes of sign: of the input that fits best, of each that fits, and of all at once.

    Args:
        moments: What a change of sign leaves almost alone.

    Returns:
        The proposals.
    """
    dim = moments.dim
    flips = np.tile(np.arange(dim), (dim, 1)) + dim * np.eye(dim, dtype=np.int64)
    misfits = np.array([moments.misfit(flip) for flip in flips])
    best = int(misfits.argmin())
    fitting = misfits <= max(NEARLY_AS_GOOD * misfits[best], SIGN_FITS)
    everything = np.arange(dim)[None] + dim
    return [
        Proposal(flips[[best]], "inputs", "signs", float(misfits[best])),
        Proposal(flips[fitting], "inputs", "signs", float(misfits[fitting].max())),
        Proposal(everything, "inputs", "signs", moments.misfit(everything[0])),
    ]


def search(
    moments: Moments,
    rng: np.random.Generator,
    *,
    signed: bool,
    beyond: Int64[np.ndarray, " dim"] | None = None,
) -> list[Found]:
    """Find permutations that leave moments almost alone.

    Args:
        moments: What to leave alone.
        rng: Source of randomness.
        signed: Whether signs may change.
        beyond: Orbits of a known group: look for permutations that bring an input to another orbit.

    Returns:
        Misfits and index arrays, the best first; none is a power of another, nor among many inputs nearly one.
    """
    dim = moments.dim
    if dim < 2 and not signed:
        return []
    if dim <= FEW_INPUTS:
        best = ranked(moments, beam_search(moments))
        return without_powers([*best[:SURPRISING], *first_of_each_kind(best)])
    tried = list(_attempts(moments, rng, signed=signed, beyond=beyond))
    best = ranked(moments, [index for _, index in tried])
    limits = {index.tobytes(): within for within, index in tried}

    def searched_again(some: Sequence[Found], patience: int) -> list[Int64[np.ndarray, " dim"]]:
        return [improve(moments, limits[index.tobytes()], index, rng, patience) for _, index in some]

    if dim > CHEAP:
        different = without_versions(best)[:KEPT]
        return without_versions(ranked(moments, [*searched_again(different, PATIENCE), *_indices(different)]))
    found = ranked(moments, [*searched_again(best[:IMPROVED], MORE_PATIENCE), *_indices(best)])
    tabu = Tabu(moments, rng)
    exchanged = [tabu.improved(index, EXCHANGES) for _, index in found[:EXCHANGED]]
    return without_powers(ranked(moments, [*exchanged, *_indices(found)]))


def _indices(found: Sequence[Found]) -> list[Int64[np.ndarray, " dim"]]:
    return [index for _, index in found]


def _attempts(
    moments: Moments, rng: np.random.Generator, *, signed: bool, beyond: Int64[np.ndarray, " dim"] | None
) -> Iterator[tuple[Limits, Int64[np.ndarray, " dim"]]]:
    """Search from several starts, within the limits of each."""
    dim = moments.dim
    for i, j, negative in _anchors(moments, rng, signed=signed, beyond=beyond):
        limits = Limits.one_moves(dim, i, j, negative=negative, signed=signed)
        first = starts(limits, rng, 1)[0] if negative else anchored(moments, i, j, limits, rng)
        yield limits, match(moments, limits, first)
    if beyond is None:
        everything = Limits.all_move(dim, signed=signed)
        for start in starts(everything, rng, STARTS // 2):
            yield everything, match(moments, everything, start)


def _anchors(
    moments: Moments, rng: np.random.Generator, *, signed: bool, beyond: Int64[np.ndarray, " dim"] | None
) -> list[tuple[int, int, bool]]:
    """Pairs of a place and the input that takes it, among inputs that look alike."""
    dim = moments.dim
    own = moments.pairs[:, np.arange(dim), np.arange(dim)]
    profile = np.concatenate([moments.even, np.abs(moments.odd), np.abs(moments.pairs).sum(axis=2), own])
    distance = square_distances(profile.T, profile.T)
    np.fill_diagonal(distance, np.inf)
    if beyond is not None:
        distance[beyond[:, None] == beyond] = np.inf
    found = []
    count = MORE_STARTS if dim <= CHEAP else STARTS if beyond is None else FURTHER_STARTS
    for _ in range(count):
        i = int(rng.integers(dim))
        nearest = np.argsort(distance[i], kind="stable")[:ALIKE]
        found.append((i, int(rng.choice(nearest)), signed and rng.random() < 0.5))
    return found


def exchanges(moments: Moments) -> list[tuple[float, Indices]]:
    """Find partitions of the inputs into parts whose members can all be exchanged.

    Args:
        moments: What exchanges leave almost alone.

    Returns:
        Misfit of the worst exchange and transpositions of neighbours within parts, for the partitions at the
        widest gaps of a clustering by misfit.
    """
    dim = moments.dim
    if dim < 2:
        return []
    distance = exchange_misfits(moments)
    tree = linkage(squareform(distance, checks=False), "complete")
    heights = np.append(tree[:, 2], np.inf)
    ratios = np.log(heights[1:].clip(1e-9, 1e9) / heights[:-1].clip(1e-9))
    levels = np.argsort(-ratios[:-1], kind="stable")[:LEVELS] if dim > 2 else np.array([], int)
    # All inputs exchangeable is always worth a test: the labels of sets are like that.
    found = []
    fitting = levels if dim <= CHEAP else levels[heights[levels] <= HOPELESS]
    for level in sorted({*fitting.tolist(), dim - 2}):
        labels = fcluster(tree, heights[level] + 1e-12, "distance").astype(np.int64)
        generators = _neighbour_exchanges(labels)
        found.append((float(heights[level]), generators))
    return found


def _from_moments(moments: Moments, source: Source, rng: np.random.Generator) -> list[Proposal]:
    found = search(moments, rng, signed=False)[: KEPT_OF_FEW if moments.dim <= FEW_INPUTS else KEPT]
    proposals = [
        Proposal(index[None], source, "permutation", misfit, 1 / (1 + rank))
        for rank, (misfit, index) in enumerate(found)
    ]
    proposals += [
        Proposal(generators, source, "exchanges", misfit, 1 / (1 + rank))
        for rank, (misfit, generators) in enumerate(sorted(exchanges(moments), key=lambda pair: pair[0]))
        if len(generators)
    ]
    return proposals + _together(found, source)


def _together(found: Sequence[Found], source: Source) -> list[Proposal]:
    """Propose groups that several permutations generate."""
    proposals = []
    good = [(m, index) for m, index in found if m <= NEARLY_AS_GOOD * found[0][0]]
    for count in sorted({2, len(good)}):
        if 2 <= count <= len(good):
            generators = np.stack([index for _, index in good[:count]])
            if order_of(generators, LARGEST_JOIN) is not None:
                proposals.append(Proposal(generators, source, "together", good[count - 1][0]))
    return proposals


def order_of(generators: Indices, most: int) -> int | None:
    """Number of elements of a group; None if there are too many."""
    try:
        return len(close_indices(generators, most, "the group"))
    except TooManyElementsError:
        return None


def _distinct(proposals: Iterable[Proposal]) -> list[Proposal]:
    """Keep the first of equal groups, where that can be told."""
    kept: list[Proposal] = []
    keys: set[bytes | frozenset[bytes]] = set()
    for proposal in proposals:
        key: bytes | frozenset[bytes]
        try:
            elements = close_indices(proposal.generators, 128, "the proposal")
            key = frozenset(element.tobytes() for element in elements)
        except TooManyElementsError:
            key = np.unique(proposal.generators, axis=0).tobytes()
        if key not in keys:
            keys.add(key)
            kept.append(proposal)
    return kept


def refine(moments: Moments, index: Int64[np.ndarray, " dim"], *, signed: bool) -> Int64[np.ndarray, " dim"]:
    """Improve a permutation on better moments, starting where it is; its fixed points may begin to move."""
    dim = moments.dim
    free = Limits(np.ones((dim, dim), bool), np.full((dim, dim), signed))
    return match(moments, free, as_start(index))


def _neighbour_exchanges(labels: Int64[np.ndarray, " dim"]) -> Indices:
    dim, found = len(labels), []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        for a, b in pairwise(members.tolist()):
            exchange = np.arange(dim)
            exchange[[a, b]] = b, a
            found.append(exchange)
    return np.array(found, dtype=np.int64).reshape(-1, dim)
