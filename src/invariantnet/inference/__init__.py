"""From data to a posterior over symmetries: prequential evidence, or one network and held-out π."""

from invariantnet.inference.evidence import Evidence, gather_evidence
from invariantnet.inference.posterior import Price, SymmetryPosterior

__all__ = ["Evidence", "Price", "SymmetryPosterior", "gather_evidence"]
