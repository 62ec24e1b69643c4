"""The final network: how the chosen hypothesis is trained on all examples."""

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor, nn

from invariantnet._system.progress import meter, timed, training_bar
from invariantnet._system.torch_state import computing_in
from invariantnet.data.arrays import read
from invariantnet.data.examples import Examples
from invariantnet.estimator.heads import attached, head_maker, on_features, pooled_examples
from invariantnet.estimator.invariance import network_deviation
from invariantnet.estimator.networks import NetworkMaker
from invariantnet.inference.cache import ScoreCache
from invariantnet.inference.hypotheses import Hypothesis
from invariantnet.inference.models import UNFROZEN
from invariantnet.inference.seen import SeenCopies
from invariantnet.nn import Symmetrized
from invariantnet.nn.pretrained import Pretrained, set_frozen
from invariantnet.symmetries.copies import Copies
from invariantnet.symmetries.plain import plain_name
from invariantnet.symmetries.ranges import AnySymmetry
from invariantnet.training.config import History, Training
from invariantnet.uncertainty import train_uncertain, training_steps


class FinalTrainer(NetworkMaker):
    """An estimator that trains the network of a hypothesis on all examples, or a head on a frozen body."""

    cpu_seconds_: dict[str, float]
    """CPU seconds of each part of a fit."""

    verbose: int

    def _train_final(self, chosen: str, examples: Examples, seed: int) -> None:
        """The network that is invariant to the chosen group: calibrated on a fifth, then trained on everything."""
        self.symmetry_ = next(g for g in self.candidates_ if g.name == chosen)
        what = f"the network with {plain_name(self.symmetry_.name)}"
        self.network_, self.history_ = self.train_network(self._chosen, examples, seed, what)
        self.deviation_ = network_deviation(self.network_, self.symmetry_, examples.x, self.likelihood)

    def train_network(
        self, hypothesis: Hypothesis, examples: Examples, seed: int, what: str
    ) -> tuple[nn.Module, History]:
        """Train the network of a hypothesis as the final network is trained.

        Args:
            hypothesis: A symmetry and a model.
            examples: What to learn from.
            seed: Seed of everything that is drawn.
            what: What the progress bar calls it.

        Returns:
            The network from inputs to outputs, and its history.
        """
        if isinstance(self.backbone, Pretrained):
            return self._train_head(hypothesis, examples, seed, what)
        return self._train(lambda: self.make_network(hypothesis), examples, self.trainings.final, seed, what)

    def _train(
        self, make: Callable[[], nn.Module], examples: Examples, config: Training, seed: int, what: str
    ) -> tuple[nn.Module, History]:
        steps = training_steps(config, len(examples), self.uncertainty)
        with training_bar(steps, what, visible=self.verbose > 0) as on_step:
            return train_uncertain(
                make,
                examples,
                config,
                seed,
                uncertainty=self.uncertainty,
                likelihood=self.likelihood,
                on_step=on_step,
            )

    def _train_head(
        self, hypothesis: Hypothesis, examples: Examples, seed: int, what: str
    ) -> tuple[nn.Module, History]:
        """Train a head on features that are averaged over the copies, and put it on the body."""
        assert isinstance(self.backbone, Pretrained)
        seen: SeenCopies | None = getattr(self, "_seen", None)
        if seen is not None and seen.examples == len(examples):
            pooled = pooled_examples(seen, hypothesis.symmetry, examples)
        else:  # nothing was compared, or not the examples that have discovered the candidates
            self._forget_features()
            pooled = pooled_examples(self._see([hypothesis.symmetry], examples), hypothesis.symmetry, examples)
            self._forget_features()
        make_head = head_maker(hypothesis.model, self.hidden)
        features = read(pooled.x)

        def on_pooled() -> nn.Module:
            return on_features(make_head(features.shape[1], self.outputs_), features, self.outputs_)

        trained, history = self._train(on_pooled, pooled, self.trainings.final, seed, what)
        whole = self.make_network(hypothesis)
        assert isinstance(whole, Symmetrized)
        network = attached(trained, whole, self.likelihood)
        if not self.backbone.unfreeze:
            return network, history
        weights = {name: v for name, v in network.state_dict().items() if not name.startswith("calibrate.")}
        network, history = self._train(
            lambda: self._unfrozen(hypothesis, weights),
            examples,
            replace(UNFROZEN, precision=self.precision),
            seed,
            f"{what}, body and head together",
        )
        return set_frozen(network, frozen=True), history

    def _unfrozen(self, hypothesis: Hypothesis, weights: dict[str, Tensor]) -> nn.Module:
        network = self.make_network(hypothesis)
        network.load_state_dict(weights, strict=False)
        return set_frozen(network, frozen=False)

    def _see(
        self, symmetries: Sequence[AnySymmetry], examples: Examples, cache: ScoreCache | None = None
    ) -> SeenCopies:
        """Let all copies of all examples pass through the body; parts that were seen before are not repeated."""
        assert isinstance(self.backbone, Pretrained)
        copies = Copies.of(symmetries)
        with computing_in(self.precision, examples.device):
            about = self.backbone.digest(self.input_shape_)
        if (folder := getattr(cache, "folder", None)) is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="invariantnet")
            folder = self._scratch.name
        data = hashlib.sha256(f"{self.fingerprint_}, {len(examples)} of them".encode()).hexdigest()[:16]
        folder = Path(folder) / f"{copies.digest}-{about}-{data}"
        seen = SeenCopies(folder, len(examples), copies)
        what = f"passing {len(examples) * copies.count:,} copies of {len(examples):,} inputs through the body"
        body = self.backbone.extractor(examples.device)
        with (
            meter(what, visible=self.verbose > 0) as update,
            timed(self.__dict__.setdefault("cpu_seconds_", {}), "body"),
            computing_in(self.precision, examples.device),
        ):
            seen.compute(body, examples.x, self.input_shape_, lambda done: update(done, ""))
        return seen

    def _forget_features(self) -> None:
        """Remove the features of copies, unless they are kept to resume."""
        self.__dict__.pop("_seen", None)
        if scratch := self.__dict__.pop("_scratch", None):
            scratch.cleanup()
