"""The claims ledger: every measurable statement of the paper, checked."""

from featavg.theory import appendix_a, appendix_d, assumptions, dynamics, section_4
from featavg.theory.claim import Claim, Finding
from featavg.theory.evidence import Evidence, ProofQuantities

_CLAIMS = [
    *(
        claim
        for module in (assumptions, appendix_a, section_4, appendix_d)
        for claim in vars(module).values()
        if isinstance(claim, Claim)
    ),
    *dynamics.CLAIMS,
]
_SECTIONS = (
    assumptions.ASSUMPTIONS,
    appendix_a.DATA,
    dynamics.SKETCH,
    dynamics.COARSE,
    dynamics.FINE,
    section_4.THEOREMS,
    appendix_d.REFERENCES,
)
LEDGER: dict[str, Claim] = {
    claim.id: claim for claim in sorted(_CLAIMS, key=lambda claim: _SECTIONS.index(claim.section))
}
"""Every claim by its id, in the order of the argument."""

__all__ = ["LEDGER", "Claim", "Evidence", "Finding", "ProofQuantities"]
