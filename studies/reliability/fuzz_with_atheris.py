"""Fuzz one reader, led by coverage, until its time is up or it crashes.

Usage: python -m studies.reliability.fuzz_with_atheris READER SECONDS
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["invariantnet"]):
    from studies.reliability.fuzz import crash
    from studies.reliability.readers import targets

LONGEST_FILE = 4096
"""Bytes of a mutated file: the good ones are smaller."""


def main(reader: str, seconds: float) -> None:
    """Let libFuzzer mutate the reader's good file; it ends the process."""
    with tempfile.TemporaryDirectory() as folder:
        target = targets(Path(folder))[reader]

        def once(content: bytes) -> None:
            if fault := crash(target, content):
                raise RuntimeError(fault)

        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        (corpus / "good").write_bytes(target.good)
        limits = [f"-max_total_time={int(seconds)}", f"-max_len={LONGEST_FILE}", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], str(corpus), *limits], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
