"""What discovery found, in numbers and in words."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Int64

from invariantnet.discovery.structure import describe
from invariantnet.symmetries.group import Group

SURE = 0.95
"""Probability from which a verdict calls the group exact: then one in twenty may be wrong, as is asked for."""

Test = Literal["all labels", "unseen labels"]
"""Groups are weighed on all labels against their prior, or proposed on one half and tested on the other."""


@dataclass(frozen=True, eq=False)
class Tested:
    """One proposal and its test.

    Args:
        generators: Index arrays, signs included.
        source: What it was proposed from: the inputs, or predictions.
        kind: One permutation, several together, or exchanges within parts.
        log_prior: Log of its share of the prior, or of the weights of all tests: what naming it costs.
        log_e_value: Log evidence against "symmetrising gains nothing"; log 20 = 3 is level 0.05 for a single test.
            Of few inputs, a lower bound for groups that are far behind the best one.
        accepted: Whether the null hypothesis was rejected, all tests considered.
    """

    generators: Int64[np.ndarray, "generators dim"]
    source: str
    kind: str
    log_prior: float
    log_e_value: float
    accepted: bool


@dataclass(frozen=True, eq=False)
class Discovery:
    """The outcome of `discover`.

    Args:
        group: The symmetry that was found; trivial if none was.
        tested: Every proposal with its e-value.
        test: Of few inputs, groups are weighed on all labels against their prior; of many, half of the examples
            propose and the labels of the other half judge.
        log_e_value: Of few inputs, against "there is no symmetry"; of many, of the group itself, on the same
            labels.
        exact_probability: Probability that it is exactly this group, among the candidates that were compared; 0 if
            nothing was found.
        of_inputs: Whether the inputs themselves have the symmetry, so that copies occur in the data.
        log_e_value_against_inputs: Log evidence against that, from inputs alone, without any network.
        set_aside: Inputs that vary too little, or whose places cannot be told; the group leaves them alone.
        repeated: Inputs that equal an earlier one in all examples. They follow it if every input of its orbit has
            equally many copies, and stay otherwise.
        examples: Number of examples.
        judged: Number of labels that judged.
        alpha: Level of the tests.
        room: Whether a larger group may hold, because most inputs look like one of another orbit.
        explained: Share of the labels that predictions with the group explain, each from all others; of numbers
            their variance, of classes their log loss. None if it was not asked.
        enough: Share from which on they tell one group from another.
        repeatedly: Whether two searches came to this group, where there were several.
    """

    group: Group
    tested: tuple[Tested, ...]
    test: Test
    log_e_value: float
    exact_probability: float
    of_inputs: bool
    log_e_value_against_inputs: float
    set_aside: tuple[int, ...]
    repeated: tuple[int, ...]
    examples: int
    judged: int
    alpha: float
    room: bool = False
    explained: float | None = None
    enough: float = 0.0
    repeatedly: bool = True

    @property
    def generators(self) -> Int64[np.ndarray, "generators dim"]:
        """Generators of the group, as index arrays."""
        return np.asarray(self.group.generators)

    @property
    def found(self) -> bool:
        """Whether there is a symmetry."""
        return self.group.order > 1

    @property
    def exact(self) -> bool:
        """Whether the verdict calls the group exactly right."""
        sure = self.exact_probability >= SURE and self.repeatedly
        return self.found and sure and not self.room and self.understood

    @property
    def understood(self) -> bool:
        """Whether predictions explain enough of the labels to tell one group from another."""
        return self.explained is None or self.explained >= self.enough

    @property
    def verdict(self) -> str:
        """What was found, how sure it is, and what could not be seen."""
        return " ".join([*self._claim(), *self._limits()])

    def _claim(self) -> list[str]:
        if not self.found:
            return [*self._nothing(), "There may still be one that these examples are too few to show."]
        words = [*self._something(), f"The group is {describe(self.group)}."]
        dim = self.group.dim
        if (self.generators >= dim).any():
            words.append(f"It changes signs too: in a generator, an index of {dim} + i stands for minus input i.")
        if self.exact and self.test == "all labels":
            words.append(f"It is exactly this group with probability {self.exact_probability:.3f}.")
        elif not self.understood:
            share = f"{self.explained:.0%}"
            words.append(
                f"It need not be this group: with it, predictions explain only {share} of the labels. Where so "
                "much is left, averaging over a wrong group may predict better too. Pass more examples."
            )
        elif self.exact:
            words.append(
                f"Among the groups that were proposed, it is exactly this one with probability "
                f"{self.exact_probability:.3f}; a larger one that no proposal contained may hold too."
            )
        elif self.room and self.exact_probability >= SURE:
            words.append(
                "At least this group holds. It need not be all: most inputs look like one of another orbit, so a "
                "larger group may hold that no proposal contained."
            )
        elif not self.repeatedly:
            words.append(
                "It need not be exactly this group: searches that began elsewhere came to others. Pass more "
                "examples."
            )
        else:
            words.append(
                f"It is exactly this group with probability {self.exact_probability:.2f} only: a similar one "
                "explains the data about as well."
            )
        if self.of_inputs:
            words.append("Inputs have it too: nothing tells them from their copies.")
            if self.test == "unseen labels":
                words.append("Labels alone may have more, which inputs do not have.")
        else:
            words.append("Only the labels have it: inputs can be told from their copies.")
        return words

    def _nothing(self) -> list[str]:
        if self.test == "all labels":
            return [
                f"No symmetry found: of {len(self.tested)} groups, weighed by their prior, none explains the "
                f"labels enough better than no symmetry (log e-value {self.log_e_value:.1f} of all together, "
                f"{-np.log(self.alpha):.1f} needed)."
            ]
        most = max((t.log_e_value for t in self.tested), default=0.0)
        if accepted := sum(t.accepted for t in self.tested):
            return [
                f"No symmetry found: {accepted} of {len(self.tested)} proposals predict unseen labels better "
                f"(largest log e-value {most:.1f}), but their cycles are irregular, unlike those of a symmetry. "
                "They exchange inputs that are alike, which predicts better without being true."
            ]
        return [
            f"No symmetry found: none of {len(self.tested)} proposals predicts unseen labels better than no "
            f"symmetry (largest log e-value {most:.1f})."
        ]

    def _something(self) -> list[str]:
        if self.test == "all labels":
            return [
                f"There is a symmetry: log e-value {self.log_e_value:.1f} against none, over {len(self.tested)} "
                f"groups weighed by their prior ({-np.log(self.alpha):.1f} is the level {self.alpha:g})."
            ]
        accepted = sum(t.accepted for t in self.tested)
        return [
            f"There is a symmetry: {accepted} of {len(self.tested)} proposals predict unseen labels better "
            f"(largest log e-value {max(t.log_e_value for t in self.tested):.1f}, false discovery rate at most "
            f"{self.alpha:g})."
        ]

    def _limits(self) -> list[str]:
        words = [f"Judged on {self.judged:,} labels of {self.examples:,} examples."]
        if self.set_aside:
            words.append(
                f"{len(self.set_aside)} of {self.group.dim} inputs were set aside: they vary too rarely, or their "
                "places cannot be told."
            )
        if self.repeated:
            words.append(
                f"{len(self.repeated)} of {self.group.dim} inputs repeat earlier ones in all examples: equal "
                "inputs count once, because no label can tell whether they were exchanged."
            )
        return words

    def __str__(self) -> str:
        return self.verdict
