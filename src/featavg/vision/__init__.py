"""What needs PyTorch: the extra `vision`. Nothing else in the package imports it.

The data sets, `featavg.datasets`, do without.
"""
