"""From data to a posterior over symmetries: prequential evidence, or one network and held-out π."""

from invariantnet.inference.heldout import HeldOut, HeldOutResult, fit_heldout
from invariantnet.inference.posterior import Price, SymmetryPosterior
from invariantnet.inference.race import Evidence, gather_evidence

__all__ = ["Evidence", "HeldOut", "HeldOutResult", "Price", "SymmetryPosterior", "fit_heldout", "gather_evidence"]
