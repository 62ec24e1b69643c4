"""From data to a posterior over symmetries: prequential evidence, or one network and held-out π."""

from invariantnet.inference.evidence import Records, gather_evidence
from invariantnet.inference.findings import Price
from invariantnet.inference.heldout import HeldOut, HeldOutResult, fit_heldout
from invariantnet.inference.posterior import SymmetryPosterior
from invariantnet.inference.race import Evidence

__all__ = [
    "Evidence",
    "HeldOut",
    "HeldOutResult",
    "Price",
    "Records",
    "SymmetryPosterior",
    "fit_heldout",
    "gather_evidence",
]
