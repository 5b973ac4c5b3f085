"""The playground: a web page on which both networks are trained step by step.

`featavg play` starts it. The engine of this package computes everything that the page shows.
"""
