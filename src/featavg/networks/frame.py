"""Which coordinates the weights of a network are in."""

from __future__ import annotations

from typing import Self


class Framed:
    """A network that knows whether its points have span coordinates."""

    in_span = False
    """Whether points have span coordinates, whose axes are those of no law: only L2 makes sense."""

    def in_span_if(self, in_span: bool) -> Self:
        """Mark this new network as one of span coordinates, or not, and return it."""
        object.__setattr__(self, "in_span", in_span)
        return self
