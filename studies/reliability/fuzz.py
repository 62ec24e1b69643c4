"""Does any damaged file make a reader raise something other than ValueError?

Every reader gets mutated bytes of a good file. Mutations are random; where atheris is installed (`pip install
atheris`), another part of the study lets coverage lead them. The bytes that crashed a reader are written to the
working folder, for a test.
"""

import importlib.util
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from studies.framework import Claim, Part, Study
from studies.framework.markdown import markdown
from studies.reliability.readers import NAMES, Target, targets

SECONDS = 60.0
"""Time for each reader."""
LONGEST = 300
"""Characters of a fault that are printed."""
INTERESTING = (
    b"\0",
    b"\xff" * 4,
    b"\x80",
    b"\x7f\xff\xff\xff",
    b"9" * 30,
    b"-1",
    b"NaN",
    b"null",
    b"[[[[",
    b"1e999",
    b'"',
)
"""Bytes that are often handled wrongly."""


@dataclass(frozen=True)
class FuzzRecipe:
    """One reader, for some time."""

    reader: str
    seed: int
    mutations: Literal["at random", "led by coverage"] = "led by coverage"
    seconds: float = SECONDS


@dataclass(frozen=True)
class Record:
    """What came of it."""

    mutations: str
    reader: str
    files: int
    crashes: int


def led_by_coverage(seed: int) -> list[FuzzRecipe]:
    """Every reader, with mutations that reach new lines."""
    return [FuzzRecipe(name, seed) for name in NAMES]


def at_random(seed: int) -> list[FuzzRecipe]:
    """Every reader, with random mutations."""
    return [FuzzRecipe(name, seed, "at random") for name in NAMES]


def lacks_atheris() -> str:
    """Say what is missing."""
    return "" if importlib.util.find_spec("atheris") else "pip install atheris"


def run(recipe: FuzzRecipe) -> list[Record]:
    """Fuzz one reader."""
    files, crashes = (_at_random if recipe.mutations == "at random" else _led_by_coverage)(recipe)
    return [Record(recipe.mutations, recipe.reader, files, crashes)]


def _at_random(recipe: FuzzRecipe) -> tuple[int, int]:
    rng, files, crashes = random.Random(recipe.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        target = targets(Path(folder))[recipe.reader]
        end = time.monotonic() + recipe.seconds
        while time.monotonic() < end:
            content = mutate(target.good, rng)
            files += 1
            if fault := crash(target, content):
                crashes += 1
                Path(f"crash-{recipe.reader.replace(' ', '-')}-{files}").write_bytes(content)
                print(f"{recipe.reader}: {fault[-LONGEST:]}", file=sys.stderr, flush=True)
    return files, crashes


def _led_by_coverage(recipe: FuzzRecipe) -> tuple[int, int]:
    """Run libFuzzer in a process of its own, which it ends at the first crash."""
    command = [sys.executable, "-m", "studies.reliability.fuzz_with_atheris", recipe.reader, str(recipe.seconds)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    counts = re.findall(r"^(?:#|stat::number_of_executed_units: )(\d+)", done.stderr, re.MULTILINE)
    if not counts:
        raise ValueError(f"{' '.join(command)} fails: {done.stderr[-LONGEST:]}")
    if done.returncode:
        print(f"{recipe.reader}: {done.stderr[-LONGEST:]}", file=sys.stderr, flush=True)
    return int(counts[-1]), int(done.returncode != 0)


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Make a few random changes: bits, bytes, numbers, pieces cut, doubled or moved."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        length = min(rng.choice((1, 1, 2, 4, 16, 64)), len(data) - at)
        kind = rng.randrange(6)
        if kind == 0 and length:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + length] = rng.randbytes(length)
        elif kind == 2:
            word = rng.choice(INTERESTING)
            data[at : at + len(word) * rng.randrange(2)] = word
        elif kind == 3:
            del data[at : at + length]
        elif kind == 4:
            other = rng.randrange(len(data) + 1)
            data[at:at] = data[other : other + length]
        elif rng.random() < 0.1:
            del data[at:]
    return bytes(data)


def crash(target: Target, content: bytes) -> str | None:
    """Read the bytes; return what came out other than a ValueError with a message, if anything did."""
    try:
        target.read(content)
    except ValueError as error:
        return None if str(error).strip() else "a ValueError that says nothing"
    except Exception:
        return traceback.format_exc()
    return None


def table(records: Sequence[Record]) -> str:
    """Files and crashes of every reader."""
    rows = [[r.reader, f"{r.files:,}", f"{r.crashes:,}"] for r in records]
    return markdown(["reader", "mutated files", "crashes"], rows)


def claims(records: Sequence[Record]) -> dict[str, Claim]:
    """What the page says."""
    files = sum(r.files for r in records)
    return {"no crash": Claim(f"None of {files:,} files crashed a reader.", not any(r.crashes for r in records))}


STUDY = Study(
    file=__file__,
    question=__doc__,
    record=Record,
    parts={"led by coverage": Part(led_by_coverage, lacks=lacks_atheris), "at random": Part(at_random)},
    run=run,
    quick=lambda recipe: replace(recipe, seconds=1.0),
    table=table,
    claims=claims,
    depends_on=("data", "estimator", "inference.cache", "studies.reliability.readers"),
)
