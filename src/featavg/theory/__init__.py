"""The claims ledger: every measurable statement of the paper, checked, and some of our own."""

from featavg.theory.claim import Claim, Finding
from featavg.theory.evidence import Evidence, ProofQuantities
from featavg.theory.ledger import LEDGER
from featavg.theory.own_claims import OURS

__all__ = ["LEDGER", "OURS", "Claim", "Evidence", "Finding", "ProofQuantities"]
