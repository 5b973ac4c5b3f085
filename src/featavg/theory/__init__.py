"""The claims ledger: every measurable statement of the paper, checked."""

from featavg.theory.claim import Claim, Finding
from featavg.theory.evidence import Evidence, ProofQuantities
from featavg.theory.ledger import LEDGER

__all__ = ["LEDGER", "Claim", "Evidence", "Finding", "ProofQuantities"]
