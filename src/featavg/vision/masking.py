"""A warning where a network hides its gradient, which every attack here follows."""

from __future__ import annotations

import warnings

import torch

from featavg.arrays import FloatArray
from featavg.errors import GradientMaskingWarning
from featavg.vision.evaluation import evaluating
from featavg.vision.target import Target

_CALLER = 3  # the code that called an attack: above it is the attack, and above that this module


def warn_of_masked_gradients(target: Target, norms: FloatArray, batch: int) -> None:
    """Warn if images that no attack has broken have no gradient that it could have followed.

    Rounded inputs or a flat activation have a gradient of 0 wherever they have one at all. Attacks
    then find nothing, however near the decision boundary is.
    """
    unbroken = target.part(torch.nonzero(torch.isinf(torch.from_numpy(norms)))[:, 0])
    flat = 0
    with evaluating(target.model):
        for index in range(-(-len(unbroken) // batch)):
            part = unbroken.batch(index, batch)
            _, _, slope = part.descent(part.x, "readout")
            flat += int((slope == 0).sum())
    if flat:
        warnings.warn(
            f"The gradient of the network is 0 at {flat} of {len(target)} images, and no attack "
            "broke them: attacks follow gradients, so that these images may only look robust.",
            GradientMaskingWarning,
            stacklevel=_CALLER,
        )
