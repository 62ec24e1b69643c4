"""Scores of finished networks in a folder, so that an interrupted comparison goes on where it stopped."""

import hashlib
import json
from collections.abc import Iterator, MutableMapping
from dataclasses import astuple, dataclass
from pathlib import Path

import safetensors
import safetensors.numpy

from invariantnet._system.files import write_bytes
from invariantnet.inference.scoring import BlockScore

MOVED = "moved by "
"""Beginning of the names of arrays that belong to moved inputs."""


@dataclass(frozen=True)
class NetworkKey:
    """Identifies one trained network of a race."""

    digest: str
    """Digest of the data, the hypothesis, the settings and the version: other scores are never mixed in. It does
    not depend on what else is compared, so that a larger comparison takes over the scores of a smaller one."""
    hypothesis: str
    network: int
    block: int


ScoreCache = MutableMapping[NetworkKey, BlockScore]
"""Scores of finished networks."""


class FolderCache(ScoreCache):
    """One file per network, written atomically; a file that cannot be read counts as absent.

    Iterates over what was read or written so far: file names do not tell their keys.

    Args:
        folder: Where the files are; it is made when the first is written.
        writes: Whether new scores become files.
    """

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        self.folder, self.writes = folder, writes
        self.read: dict[NetworkKey, BlockScore] = {}

    @property
    def kept(self) -> int:
        """Number of files that earlier work left."""
        return sum(1 for _ in self.folder.iterdir()) if self.folder.is_dir() else 0

    def __getitem__(self, key: NetworkKey) -> BlockScore:
        if key not in self.read:
            try:
                with safetensors.safe_open(self._path(key), framework="numpy") as file:
                    accuracy, strain = (json.loads(file.metadata()[name]) for name in ("accuracy", "strain"))
                    names = (name for name in file.keys() if name.startswith(MOVED))  # noqa: SIM118
                    moved = {name.removeprefix(MOVED): file.get_tensor(name) for name in names}
                    self.read[key] = BlockScore(file.get_tensor("log_likelihood"), accuracy, moved, strain)
            except (OSError, safetensors.SafetensorError, KeyError, TypeError, ValueError):
                raise KeyError(key) from None
        return self.read[key]

    def __setitem__(self, key: NetworkKey, score: BlockScore) -> None:
        self.read[key] = score
        if not self.writes:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        moved = {MOVED + name: values for name, values in score.moved.items()}
        content = safetensors.numpy.save(
            {"log_likelihood": score.log_likelihood, **moved},
            {"accuracy": json.dumps(score.accuracy), "strain": json.dumps(score.strain)},
        )
        write_bytes(self._path(key), content)

    def __delitem__(self, key: NetworkKey) -> None:
        self.read.pop(key, None)
        self._path(key).unlink()

    def __iter__(self) -> Iterator[NetworkKey]:
        return iter(self.read)

    def __len__(self) -> int:
        return len(self.read)

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except KeyError:
            return False
        return True

    def _path(self, key: NetworkKey) -> Path:
        # Names of groups are the user's: a digest is a safe file name.
        digest = hashlib.sha256(json.dumps(astuple(key)).encode()).hexdigest()
        return self.folder / f"{digest[:24]}.safetensors"
