"""Whether a classifier trained on your coarse labels averages features, and what that costs.

`featavg.audit` looks at a feature matrix, `featavg.audit_model` into a network of yours.
"""
