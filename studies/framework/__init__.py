"""What all studies share: recipes, records that know how they were made, runs that survive a kill, and drawing."""

from studies.framework.study import Claim, Part, Study

__all__ = ["Claim", "Part", "Study"]
