"""The error that bad input raises."""

from __future__ import annotations


class InputError(ValueError):
    """What was handed in cannot be used; the message is one sentence for the user.

    Examples
    --------
    >>> from featavg import InputError, MultiCluster
    >>> try:
    ...     MultiCluster(clusters=4, dim=50, noise=-1)
    ... except InputError as error:
    ...     print(error)
    noise must be at least 0; got -1.
    """
