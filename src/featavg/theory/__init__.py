"""The claims ledger: every measurable statement of the paper, checked."""

from featavg.theory import (
    appendix_a,
    appendix_b,
    appendix_c,
    appendix_d,
    assumptions,
    section_4,
    section_5,
)
from featavg.theory.claim import Claim, Finding
from featavg.theory.evidence import Evidence, Learned

LEDGER: dict[str, Claim] = {
    claim.id: claim
    for section in (
        assumptions,
        appendix_a,
        section_5,
        appendix_b,
        appendix_c,
        section_4,
        appendix_d,
    )
    for claim in vars(section).values()
    if isinstance(claim, Claim)
}
"""Every claim by its id, in the order of the argument."""

__all__ = ["LEDGER", "Claim", "Evidence", "Finding", "Learned"]
