"""The command that lists symmetries."""

from dataclasses import dataclass

from invariantnet.app.cli.output import make_table, parse_shape, show
from invariantnet.symmetries.families import Family


@dataclass(frozen=True)
class Symmetries:
    """List the symmetries that data can have.

    Try:
    - `invariantnet symmetries`
    - `invariantnet symmetries --shape 3,32,32`
    """

    shape: str | None = None
    """Shape of one input, such as 28,28 or 3,32,32: adds order, orbits and whether the symmetry applies."""

    def run(self) -> None:
        """Print the table."""
        from invariantnet._system.words import count_words
        from invariantnet.symmetries.catalogue import CATALOGUE
        from invariantnet.symmetries.families import FAMILIES
        from invariantnet.symmetries.shapes import checked

        table = make_table("name", "what it does", "input shapes")
        if self.shape is not None:
            from invariantnet.symmetries.lookup import symmetry

            shape = checked(parse_shape(self.shape))
            table = make_table("name", "order", "orbits", "what it does")
        for entry in CATALOGUE.values():
            if self.shape is None:
                table.add_row(entry.name, entry.description, entry.shapes)
                continue
            try:
                found = symmetry(entry.name, shape)
            except ValueError as error:
                table.add_row(entry.name, "–", "–", f"does not act: {error}", style="dim")
                continue
            orbits = f"{int(found.orbits().max()) + 1:,}" if found.is_permutation_group else "–"
            table.add_row(found.name, count_words(found.order), orbits, entry.description)
        for family in FAMILIES.values():
            if self.shape is None:
                table.add_row(f"{family.name}:VALUE", _with_unit(family), family.shapes)
            elif len(shape) in family.axes:
                rungs = ", ".join(f"{value:g}" for value in family.ladder(shape))
                table.add_row(f"{family.name}:VALUE", "–", "–", f"{_with_unit(family)}; ladder {rungs}")
        show(table)


def _with_unit(family: Family) -> str:
    return f"{family.description}, in {family.counts}"
