"""Features of all copies of all examples: computed once, in parts that are kept on disk."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from invariantnet._system.files import write_bytes
from invariantnet._system.sizes import must_fit
from invariantnet.data.arrays import DiskArray, read
from invariantnet.inference.models import COMPONENTS
from invariantnet.nn.pretrained import Body
from invariantnet.symmetries.copies import Copies
from invariantnet.training._performance import keep_freed_memory

COPIES_IN_A_PART = 512
"""Copies whose features one file holds: what an interruption loses is a few seconds of work."""
SAMPLE = 2000
"""Copies that the principal components are taken from: thirty times as many as there are components."""

FEATURES = "features"
"""Name of the tensor in each file."""


@dataclass(frozen=True, eq=False)
class SeenCopies:
    """What a body has seen: the features of every copy of every example.

    Args:
        folder: Where the parts are.
        examples: Number of examples.
        copies: Which copies there are of each.
    """

    folder: Path
    examples: int
    copies: Copies

    @property
    def rows(self) -> int:
        """Number of examples in a part."""
        return max(1, COPIES_IN_A_PART // self.copies.count)

    def compute(
        self, body: Body, x: Tensor | DiskArray, shape: tuple[int, ...], on_part: Callable[[float], None]
    ) -> None:
        """Let the copies that were not seen yet pass through the body.

        Args:
            body: The frozen body.
            x: Flat inputs.
            shape: Shape of one input.
            on_part: Called with the share that is done.

        Raises:
            ValueError: If the body fails, or features differ in length.
        """
        keep_freed_memory()
        self.folder.mkdir(parents=True, exist_ok=True)
        features = body.count_features(shape)
        starts = range(0, self.examples, self.rows)
        for done, start in enumerate(starts, 1):
            count = min(self.rows, self.examples - start)
            if not self._is_there(start, (count, self.copies.count, features)):
                part = read(x[start : start + self.rows]).to(body.device)
                seen = self._seen(body, part, shape, features)
                write_bytes(self._path(start), safetensors.torch.save({FEATURES: seen.contiguous()}))
            on_part(done / len(starts))

    def parts(self) -> Iterator[Float[Tensor, "n copies features"]]:
        """Read the features part by part."""
        for start in range(0, self.examples, self.rows):
            yield safetensors.torch.load_file(self._path(start))[FEATURES]

    def mean_over(self, numbers: tuple[int, ...]) -> Float[Tensor, "n features"]:
        """Average the features of each example over some of its copies."""
        return torch.cat([part[:, list(numbers)].mean(1) for part in self.parts()])

    def compressed(self) -> Float[Tensor, "n dim"]:
        """Features of all copies, as a few principal components each.

        The components are the same for all copies, so that exchanging copies stays exchanging components. They are
        found without the labels.

        Raises:
            ValueError: If they do not fit into memory.
        """
        mean, components = self._components()
        size = 4 * self.examples * self.copies.count * components.shape[1]
        must_fit(size, "the features of all copies", "pass fewer candidates or examples")
        return torch.cat([((part - mean) @ components).flatten(1) for part in self.parts()])

    def _components(self) -> tuple[Float[Tensor, " features"], Float[Tensor, "features components"]]:
        step = max(1, self.examples * self.copies.count // SAMPLE)
        # Copies at equal steps that share no factor with their number, so that every copy is among them.
        while np.gcd(step, self.copies.count) > 1:
            step += 1
        rows, skipped = [], 0
        for part in self.parts():
            flat = part.flatten(0, 1)
            rows.append(flat[skipped::step])
            skipped = (skipped - len(flat)) % step
        sample = torch.cat(rows).double()
        mean = sample.mean(0)
        centred = sample - mean
        # Principal components from the smaller of two Gram matrices: an SVD takes twice the time.
        if centred.shape[1] <= len(centred):
            return mean.float(), _leading_eigenvectors(centred.mT @ centred).float()
        directions = F.normalize(centred.mT @ _leading_eigenvectors(centred @ centred.mT), dim=0)
        return mean.float(), directions.float()

    def _seen(
        self, body: Body, x: Float[Tensor, "n dim"], shape: tuple[int, ...], features: int
    ) -> Float[Tensor, "n copies features"]:
        copies = self.copies.act(x)
        seen = body(copies.flatten(0, 1).unflatten(-1, shape))
        if seen.shape[1] != features:
            raise ValueError(
                f"the body gives features of two lengths, {features} and {seen.shape[1]}: let it give equally "
                "many for every input."
            )
        return seen.unflatten(0, copies.shape[:2]).cpu()

    def _is_there(self, start: int, shape: tuple[int, ...]) -> bool:
        """Whether a part can be read; a damaged one counts as absent."""
        try:
            with safetensors.safe_open(self._path(start), framework="pt") as file:
                return tuple(file.get_slice(FEATURES).get_shape()) == shape
        except (OSError, safetensors.SafetensorError):
            return False

    def _path(self, start: int) -> Path:
        return self.folder / f"{start}.safetensors"


def _leading_eigenvectors(gram: Float[Tensor, "n n"]) -> Float[Tensor, "n components"]:
    return torch.linalg.eigh(gram).eigenvectors.flip(1)[:, :COMPONENTS]
