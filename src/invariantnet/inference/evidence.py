r"""Networks of every hypothesis, compared by prequential evidence.

A hypothesis is a symmetry with a model. The data comes in blocks that grow. A network trained on all blocks so
far, and calibrated on a part of them that its weights did not see, predicts the labels of the next. So every label
but those of the first block is predicted once, never by a network that saw it. A hypothesis predicts with the
average of its networks. The sum of the log probabilities, $\sum_b \log p(y_b \mid x_b, D_{<b})$, is the log
evidence given the first block. It rewards a constraint that helps to generalise, which the training likelihood
never does. The evidence of a symmetry is the mean over its models.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import torch

from invariantnet._system.progress import Step
from invariantnet._system.words import package_version
from invariantnet.data.examples import Examples
from invariantnet.data.fingerprint import fingerprint
from invariantnet.inference.cache import NetworkKey, ScoreCache
from invariantnet.inference.heats import Heats
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.kinds import log_prior_of_kinds, probabilities_of_kinds
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.prices import predict_moved
from invariantnet.inference.race import Evidence, Race
from invariantnet.inference.race_progress import RaceProgress
from invariantnet.inference.scoring import MakeNetwork, PredictMoved, Scorer
from invariantnet.inference.standings import Contest
from invariantnet.likelihoods import Categorical, Likelihood
from invariantnet.priors import log_prior_of
from invariantnet.symmetries.ranges import AnySymmetry, Range

MOST_NETWORKS = 4
"""An open verdict gets at most this many times the number of networks that was asked for."""


@dataclass(frozen=True, eq=False)
class Records:
    """What a race is told beforehand, and what it reports to.

    Args:
        cache: Scores of finished networks: what is there is not trained again, and new scores go into it.
        about: What the scores depend on beyond the other arguments, such as the backbone's settings and a digest
            of the data; it becomes part of the keys in the cache.
        on_network: Called after every finished network.
        step_seconds: CPU seconds of a training step by the name of a hypothesis, if they were measured.
        class_names: Names of the classes.
        predict_moved: Predicts inputs that are moved by a symmetry, where examples are not what symmetries act on.
        probes: Ranges by which first networks are tried, for `strain`.
        planned: Networks that earlier races with the same cache have planned; those of this race are added.
        alpha: Parameters of the Dirichlet prior over symmetries; a single one gives `trivial` half of the
            probability, and all other kinds equal shares of the rest.
    """

    cache: ScoreCache | None = None
    about: Mapping[str, object] | None = None
    on_network: Callable[[Step], None] | None = None
    step_seconds: Mapping[str, float] | None = None
    class_names: Sequence[str] | None = None
    predict_moved: PredictMoved = predict_moved
    probes: Sequence[Range] = ()
    planned: set[NetworkKey] = field(default_factory=set)
    alpha: float | Sequence[float] = 1.0


def gather_evidence(
    make_network: MakeNetwork,
    hypotheses: Sequence[Hypothesis],
    examples: Examples,
    *,
    config: Evidence,
    likelihood: Likelihood | None = None,
    seed: int = 0,
    records: Records | None = None,
) -> SymmetryPosterior:
    """Race the hypotheses over the blocks until one symmetry is left or sure, or the data is used up.

    Args:
        make_network: Makes the untrained network of a hypothesis.
        hypotheses: Symmetries with their models.
        examples: The data, in any order.
        config: How the evidence is gathered.
        likelihood: Log density of the targets; classes by default.
        seed: Decides the order of the examples and every network.
        records: What is known beforehand and told on the way; nothing by default.

    Returns:
        The posterior over the symmetries.
    """
    records = records or Records()
    order = torch.randperm(len(examples), generator=torch.Generator().manual_seed(seed))
    symmetries = list(dict.fromkeys(h.symmetry for h in hypotheses))
    names = [s.name for s in symmetries]
    log_prior = log_prior_of(records.alpha, len(symmetries))
    if not isinstance(records.alpha, Sequence):
        log_prior = log_prior_of_kinds(names)
    contest = Contest(symmetries, hypotheses, log_prior)
    scorer = Scorer(make_network, likelihood or Categorical(), config.doubt, records.predict_moved, records.probes)
    race = Race(scorer, contest, examples[order], config, seed)
    race.class_names = records.class_names
    race.heats = Heats(hypotheses, examples.x.shape[1], records.planned)
    if records.cache is not None:
        facts = records.about or {"data": fingerprint(examples.x, examples.y.cpu().numpy())}
        race.cache, race.digests = records.cache, {h.name: network_digest(race, h, facts) for h in hypotheses}
    if records.on_network is not None:
        race.progress = RaceProgress(hypotheses, race.blocks, records.on_network, records.step_seconds)
    posterior = race.run(config.n_networks)
    # Networks differ by their starts. Where that leaves the verdict open, the average of more of them says more.
    for networks in range(config.n_networks + 1, most_networks(config) + 1):
        if posterior.certainty >= config.sure or not posterior.learned:
            break
        expected = probabilities_of_kinds(names, list(race.probabilities_with(most_networks(config))))
        if max(expected.values()) < config.sure:
            break  # more networks cannot replace examples
        posterior = race.run(networks)
    return posterior


def network_digest(race: Race, hypothesis: Hypothesis, about: Mapping[str, object]) -> str:
    """Digest of everything that the scores of a hypothesis depend on, the version included."""
    settings = asdict(race.config)
    for name in ("n_jobs", "n_networks", "sure", "margin", "tolerance"):
        settings.pop(name)  # these decide which networks are trained, not how
    model = hypothesis.model
    facts = [
        package_version(),
        settings,
        repr(race.scorer.likelihood),
        _digest(hypothesis.symmetry),
        [model.name, repr(model.training)],
        race.seed,
        len(race.examples),
    ]
    text = json.dumps([facts, dict(about)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _digest(symmetry: AnySymmetry) -> str:
    group = symmetry.group if isinstance(symmetry, Range) else symmetry
    about = b"" if group is None else group.generators.tobytes()
    return hashlib.sha256(about + hex(symmetry.copies).encode()).hexdigest()


def most_networks(config: Evidence) -> int:
    """Number of networks per hypothesis that an open verdict may get."""
    grows = config.n_networks > 1 and config.sure > 0 and not config.tolerance
    return MOST_NETWORKS * config.n_networks if grows else config.n_networks
