"""From data to a posterior over symmetries: prequential evidence, or one network and held-out π."""

from invariantnet.inference.evidence import Evidence, gather_evidence
from invariantnet.inference.heldout import HeldOut, HeldOutResult, fit_heldout
from invariantnet.inference.posterior import Price, SymmetryPosterior

__all__ = ["Evidence", "HeldOut", "HeldOutResult", "Price", "SymmetryPosterior", "fit_heldout", "gather_evidence"]
