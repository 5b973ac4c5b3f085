"""The playground: a page on which feature averaging happens before one's eyes.

`featavg play` starts it. The page asks this package's own engine for everything it shows.
"""
