"""Scores of finished networks in a folder, so that an interrupted comparison goes on where it stopped."""

import hashlib
import json
from collections.abc import Iterator, MutableMapping
from pathlib import Path

import safetensors
import safetensors.numpy

from invariantnet.inference.evidence import BlockScore
from invariantnet.storage import write_bytes


class FolderStore(MutableMapping[str, BlockScore]):
    """One file per network, written at once; a file that cannot be read counts as absent.

    Iterates over what was read or written so far: file names do not tell their keys.

    Args:
        folder: where the files are; it is made when the first is written.
        writes: whether new scores become files.

    """

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        self.folder, self.writes = folder, writes
        self.read: dict[str, BlockScore] = {}

    def __getitem__(self, key: str) -> BlockScore:
        if key not in self.read:
            try:
                with safetensors.safe_open(self._path(key), framework="numpy") as file:
                    accuracy = json.loads(file.metadata()["accuracy"])
                    self.read[key] = BlockScore(file.get_tensor("log_likelihood"), accuracy)
            except (OSError, safetensors.SafetensorError, KeyError, TypeError, ValueError):
                raise KeyError(key) from None
        return self.read[key]

    def __setitem__(self, key: str, score: BlockScore) -> None:
        self.read[key] = score
        if not self.writes:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        content = safetensors.numpy.save(
            {"log_likelihood": score.log_likelihood}, {"accuracy": json.dumps(score.accuracy)}
        )
        write_bytes(self._path(key), content)

    def __delitem__(self, key: str) -> None:
        self.read.pop(key, None)
        self._path(key).unlink()

    def __iter__(self) -> Iterator[str]:
        return iter(self.read)

    def __len__(self) -> int:
        return len(self.read)

    def __contains__(self, key: object) -> bool:
        try:
            self[str(key)]
        except KeyError:
            return False
        return True

    def _path(self, key: str) -> Path:
        # Names of groups are the user's: a digest is a safe file name.
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.safetensors"
