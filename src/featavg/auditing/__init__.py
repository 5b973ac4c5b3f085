"""Whether a classifier trained on your coarse labels averages features, and what that costs."""

from __future__ import annotations

from featavg.auditing.audit import Audit, audit
from featavg.auditing.model import ModelAudit, audit_model

__all__ = ["Audit", "ModelAudit", "audit", "audit_model"]
