"""Read `.csv` tables: a header with the names of the columns, then one example per line.

Every fault is a ValueError that names the file, the line, the column and the remedy.
"""

import csv
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from invariantnet._system.sizes import must_fit
from invariantnet.choices import Task
from invariantnet.data.conversion import LabelledArrays, are_whole, have_fractions, to_dataset, to_inputs
from invariantnet.data.records import Dataset, NewInputs

LABEL_COLUMNS = ("label", "class", "target", "y")
"""Names by which the label column is found if no name is given; the first that exists counts."""

BYTES_PER_CHARACTER = 10
"""Memory that a character of the file takes: a cell of about six characters becomes a string of sixty bytes."""

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
"""What other programs write between cells instead of commas, with its name."""

MISSING = ("", "na", "n/a", "nan", "null", "none", "?", "-")
"""What people and programs write for a value that is not known, in lower case."""

MOST_LINES_BY_CHANCE = 10
"""Lines from which on a column that counts them is no chance."""

MOST_NAMES = 12
"""Largest number of column names that a message lists in full."""


def read_csv(
    path: Path,
    *,
    label: str | None = None,
    without: Sequence[str] = (),
    shape: tuple[int, ...] | None = None,
    task: Task = "auto",
) -> Dataset:
    """Read a table with labels; every column but that of the labels holds numbers.

    Args:
        path: The file.
        label: Name of the label column; None finds it by its usual names.
        without: Names of columns that are no inputs, such as an identifier.
        shape: Shape of one input; None makes it flat.
        task: Whether labels are classes or numbers.

    Returns:
        The data set.

    Raises:
        ValueError: The file is no such table.
    """
    table = Table.read(path)
    position = table.label_position(label)
    if position is None:
        wanted = (label,) if label else LABEL_COLUMNS
        names = table.names if len(table.names) <= MOST_NAMES else (*table.names[:6], "…", *table.names[-5:])
        if sum(map(_is_number, table.names)) > len(table.names) / 2:
            raise ValueError(
                f"{path}: line 1 holds numbers, so the header is missing: write the names of the columns above it."
            )
        raise ValueError(
            f"{path}: no label column {' or '.join(map(repr, wanted))} among {', '.join(names)}: "
            "name it with label=… or --label."
        )
    if unknown := [name for name in without if name not in table.names]:
        raise ValueError(f"{path}: no column {unknown[0]!r} to leave out: correct without=… or --without.")
    inputs = [j for j, name in enumerate(table.names) if j != position and name not in without]
    if not inputs:
        raise ValueError(f"{path}: no column is left to be an input: leave fewer out.")
    x = table.numbers(inputs)
    data = to_dataset(path, LabelledArrays(x, table.labels(position, task)), shape or (x.shape[1],), task)
    return replace(data, columns=tuple(table.names[j] for j in inputs))


def row_numbers(data: Dataset) -> tuple[str, ...]:
    """Name the columns of a table that only count its rows, as identifiers do.

    Args:
        data: A data set, in the order in which it was read.

    Returns:
        The names; none if the data is no table, or a short one.
    """
    if data.columns is None or len(data.x_train) < MOST_LINES_BY_CHANCE:
        return ()
    counts = (np.diff(np.asarray(data.x_train), axis=0) == 1).all(axis=0)
    return tuple(name for name, yes in zip(data.columns, counts.tolist(), strict=True) if yes)


def read_csv_inputs(
    path: Path, *, shape: tuple[int, ...], label: str | None = None, columns: Sequence[str] | None = None
) -> NewInputs:
    """Read a table of inputs to predict, with labels or without.

    Args:
        path: The file.
        shape: Shape of one input.
        label: Name of the label column, which is no input; None finds it by its usual names.
        columns: Names of the columns to read, in this order; None reads all but the label.

    Returns:
        The inputs, with labels if there are any; named by a column that is not read, if its cells all differ.

    Raises:
        ValueError: The file is no such table.
    """
    table = Table.read(path)
    position = table.label_position(label)
    if columns is None:
        positions = [j for j in range(len(table.names)) if j != position]
    else:
        if missing := [name for name in columns if name not in table.names]:
            shown = ", ".join(map(repr, missing[:5])) + ("" if len(missing) <= 5 else ", …")
            raise ValueError(f"{path}: no column {shown}, which the model was fitted with: add it, with a header.")
        positions = [table.names.index(name) for name in columns]
    x = to_inputs(path, "x", table.numbers(positions), shape)
    known = position is not None and position not in positions
    cells = table.cells(position) if known and position is not None else [""]
    return NewInputs(table.row_names({*positions, position}), x, np.array(cells) if all(cells) else None)


@dataclass(frozen=True)
class Table:
    """The cells of a file.

    Args:
        path: The file.
        names: Names of the columns.
        rows: The cells of every line that is not empty, by the number of the line.
    """

    path: Path
    names: tuple[str, ...]
    rows: dict[int, list[str]]

    @classmethod
    def read(cls, path: Path) -> "Table":
        """Read a file, and check that the names of its columns are distinct and every line is complete."""
        must_fit(BYTES_PER_CHARACTER * path.stat().st_size, str(path), "split the file, or save it as .npz")
        try:
            with path.open(newline="", encoding="utf-8-sig") as lines:
                reader = csv.reader(lines)
                rows = {reader.line_num: row for row in reader if row}  # noqa: B035 - it moves with the rows
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ValueError(f"{path}: cannot be read as CSV ({error}): save it as UTF-8 with a header.") from None
        header = next(iter(rows), 0)
        names = [name.strip() for name in rows.pop(header, [])]
        _check_names(path, header, names)
        if not rows:
            raise ValueError(f"{path}: only a header: write a line per example below it.")
        for line, row in rows.items():
            if len(row) != len(names):
                surplus = f"field {len(names) + 1} belongs to no column"
                fault = surplus if len(row) > len(names) else f"column {names[len(row)]!r} is missing"
                raise ValueError(
                    f"{path}: line {line} has {len(row)} fields, the header {len(names)}: {fault}, mend the line."
                )
        return cls(path, tuple(names), rows)

    def cells(self, position: int) -> list[str]:
        """The cells of a column."""
        return [row[position].strip() for row in self.rows.values()]

    def row_names(self, used: Collection[int | None]) -> Sequence[str | int]:
        """Names of the lines: the first other column whose cells all differ, such as an identifier; or numbers."""
        others = (self.cells(j) for j in range(len(self.names)) if j not in used)
        return next((c for c in others if all(c) and len(set(c)) == len(c)), range(len(self.rows)))

    def label_position(self, label: str | None) -> int | None:
        """Position of the column with this name, or with one of the usual names; None if there is none."""
        wanted = (label,) if label else LABEL_COLUMNS
        return next((self.names.index(name) for name in wanted if name in self.names), None)

    def numbers(self, positions: Sequence[int]) -> np.ndarray:
        """The cells of some columns, in this order, as numbers."""
        values = np.empty((len(self.rows), len(positions)), np.float64)
        for i, (line, row) in enumerate(self.rows.items()):
            try:
                values[i] = [float(row[j]) for j in positions]
            except ValueError:
                wrong = next(j for j in positions if not _is_number(row[j]))
                raise self._fault(line, wrong, self._why_no_number(line, wrong)) from None
        with np.errstate(over="ignore"):
            bad = np.argwhere(~np.isfinite(values.astype(np.float32)))
        if len(bad):
            line, position = list(self.rows)[bad[0][0]], positions[bad[0][1]]
            if self._is_missing(line, position):
                raise self._fault(line, position, self._why_no_number(line, position))
            raise self._fault(line, position, "is not a finite 32-bit number: replace it, or leave the line out")
        return values

    def labels(self, position: int, task: Task = "auto") -> np.ndarray:
        """The cells of the label column, as texts or as numbers.

        Args:
            position: Number of the column.
            task: Whether labels are classes or numbers; `auto` takes numbers if some have a fraction.

        Returns:
            One label per line.
        """
        labels = np.array(self.cells(position))
        for line, label in zip(self.rows, labels.tolist(), strict=True):
            if not label:
                raise ValueError(
                    f"{self.path}: line {line}, column {self.names[position]!r}: the label is missing: "
                    "fill it in, or leave the line out."
                )
        if task == "numbers":
            if not any(map(_is_number, labels.tolist())):
                raise self._fault(next(iter(self.rows)), position, "is not a number: use --task classes")
            return self.numbers([position])[:, 0]
        known = [float(label) for label in labels.tolist() if _is_number(label)]
        if task == "auto" and len(labels) / 2 < len(known) < len(labels) and have_fractions(np.array(known)):
            line, label = next(
                (k, label) for k, label in zip(self.rows, labels, strict=True) if not _is_number(label)
            )
            what = "a missing value" if self._is_missing(line, position) else "not a number, as most labels are"
            raise self._fault(line, position, f"is {what}: fill it in, leave the line out, or use --task classes")
        if len(known) == len(labels):
            numbers = np.array(known)
            if have_fractions(numbers) and task == "auto":
                return numbers
            whole = are_whole(numbers)
            if not whole.all():
                raise self._fault(
                    list(self.rows)[whole.argmin()],
                    position,
                    "is not a class: name another column, or use --task numbers",
                )
        return labels

    def _why_no_number(self, line: int, position: int) -> str:
        """What to do about a cell that is no number: leave a column of words out, but mend a slip."""
        if self._is_missing(line, position):
            return "is a missing value: fill it in, or leave the line out"
        if any(_is_number(row[position]) for row in self.rows.values()):
            return "is not a number: encode it, or leave the line out"
        encode = "encode it, as pandas.get_dummies does"
        return (
            f"is not a number: leave the column out (fit: --without), {encode}, or name it with --label if it "
            "holds the labels"
        )

    def _is_missing(self, line: int, position: int) -> bool:
        return self.rows[line][position].strip().lower() in MISSING

    def _fault(self, line: int, position: int, fault: str) -> ValueError:
        cell = self.rows[line][position].strip()
        return ValueError(f"{self.path}: line {line}, column {self.names[position]!r}: {cell!r} {fault}.")


def _check_names(path: Path, line: int, names: list[str]) -> None:
    if not any(names):
        raise ValueError(
            f"{path}: the file is empty: write a header with the columns' names and a line per example."
        )
    if len(names) == 1 and (separator := next((each for each in SEPARATORS if each in names[0]), None)):
        decimals = ", with points in decimals" if separator == ";" else ""
        raise ValueError(f"{path}: {SEPARATORS[separator]} between the columns: save it with commas{decimals}.")
    if not all(names):
        raise ValueError(
            f"{path}: line {line}, column {names.index('') + 1} has no name: name it, or leave it out "
            "(pandas: index=False)."
        )
    for second, name in enumerate(names, 1):
        if (first := names.index(name) + 1) < second:
            raise ValueError(
                f"{path}: line {line}: columns {first} and {second} are both called {name!r}: rename one of them."
            )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
