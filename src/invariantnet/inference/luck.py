"""How much of the evidence is luck of networks: others, from other starts, would have given another number."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from invariantnet.inference.standings import Contest, Standings


def network_spread(total: Float[np.ndarray, "hypotheses networks"]) -> float:
    r"""Standard deviation of the log evidence of a hypothesis that comes from the choice of its networks.

    Networks of one number share their seed, so what all hypotheses gain from it does not count: with residuals
    $r_{ks}$ beyond the means of hypothesis k and of network s, $\sigma^2 = \sum r_{ks}^2 / ((K-1)(S-1))$.
    Averaging S networks divides it by S.

    Args:
        total: Log evidence of each hypothesis by each of its networks alone.

    Returns:
        The standard deviation in nats; 0 where it cannot be known, with one network or one hypothesis.
    """
    hypotheses, networks = total.shape
    if min(hypotheses, networks) < 2:
        return 0.0
    rest = total - total.mean(1, keepdims=True) - total.mean(0) + total.mean()
    return float(np.sqrt((rest**2).sum() / ((hypotheses - 1) * (networks - 1)) / networks))


def luck_of_kinds(contest: Contest, now: Standings, blocks: Sequence[slice]) -> Float[np.ndarray, " kinds"]:
    """Estimate how much of the log evidence of each kind of symmetry comes from the choice of its networks.

    Every block has networks of its own, so that each adds to what is known. Networks of one model are alike: a
    linear function has one solution, wherever its training starts, and deep networks have many. So the luck of a
    kind is that of the model that predicts best with it, estimated from the best hypotheses of all symmetries that
    have this model, or from all that have it, or from all symmetries if there is no other.

    Args:
        contest: What is compared.
        now: The scores.
        blocks: The labels of each block.

    Returns:
        The standard deviation in nats, for every kind.
    """
    total = now.seen.sum(1)
    best = [k for k in contest.best(total, now.included) if k is not None]
    models = [h.model.name for h in contest.hypotheses]
    found = np.zeros(max(contest.kinds) + 1)
    for kind in range(len(found)):
        ours = max((k for k in best if contest.kinds[k] == kind), key=lambda k: total[k])
        alike = [[k for k in among if models[k] == models[ours]] for among in (best, now.included)]
        found[kind] = np.sqrt(sum(_variance(now, [*alike, best], here) for here in blocks))
    return found


def _variance(now: Standings, choices: Sequence[Sequence[int]], here: slice) -> float:
    """Variance in one block, from the first choice of hypotheses of which two have several networks there."""
    for hypotheses in choices:
        there = [k for k in hypotheses if k not in now.drops or now.drops[k].labels >= here.stop]
        several = [k for k in there if np.ptp(now.scores[k, :, here], axis=0).any()]
        if len(several) > 1:
            return network_spread((now.scores[several][:, :, here] * now.counts[here]).sum(-1)) ** 2
    return 0.0
