"""Audits of classifiers trained on coarse labels: how much they average, and what that costs.

`featavg.audit` audits a feature matrix, `featavg.audit_model` a trained network.
"""
