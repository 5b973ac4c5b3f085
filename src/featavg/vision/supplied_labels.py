"""Labels of images that are handed in: fine for some images, and the side alone for the others."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from featavg import checks
from featavg.errors import InputError
from featavg.vision.evaluation import checked_labels
from featavg.vision.target import Positive


class SuppliedLabels:
    r"""Labels for `train`: the class of an image where it is known, and elsewhere its side alone.

    Paper: none, an extension. With the softmax p of the logits, an image of the known class c has
    the loss :math:`-\log p_c`, and an image of which only the side s is known has the loss
    :math:`-\log \sum_{j \in J_s} p_j`, as in `featavg.SuppliedLabels`. A class need not be right:
    it may be drawn at random, or be the cluster that the image was found in.

    Parameters
    ----------
    labels : array or tensor of int, shape (images,)
        A class for each image; where it is not `known`, only the side that it is on counts.
    known : array or tensor of bool, shape (images,), optional
        Where the class is known; everywhere by default.
    classes : int
        The number of classes, which is the number of logits of the network.
    positive : int or list of int, optional
        The classes on the positive side, or their number; the first half by default.
    weights : array of float, shape (images,), optional
        The factors of the losses of the images; 1 by default.

    Examples
    --------
    >>> labels = SuppliedLabels([0, 1, 3], [True, False, False], classes=4)
    >>> labels
    SuppliedLabels(1 of 3 images, 4 classes)
    >>> labels.right.int()
    tensor([[1, 0, 0, 0],
            [1, 1, 0, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """

    def __init__(
        self,
        labels: ArrayLike | Tensor,
        known: ArrayLike | Tensor | None = None,
        *,
        classes: int,
        positive: Positive = None,
        weights: ArrayLike | None = None,
    ) -> None:
        checks.count("classes", classes, minimum=2)
        images = len(labels if isinstance(labels, Tensor) else np.asarray(labels))
        own = checked_labels(labels, images)
        if images and int(own.max()) >= classes:
            raise InputError(f"labels must be from 0 to {classes - 1}; got {int(own.max())}.")
        named = np.ones(images, dtype=bool) if known is None else np.asarray(known)
        if named.dtype != bool or named.shape != (images,):
            raise InputError(
                f"known must be True or False for each of the {images} images; "
                f"got {named.dtype} of shape {named.shape}."
            )
        self.known = torch.from_numpy(np.array(named))
        signs = torch.from_numpy(checks.signs_of_partition(positive, classes))
        own_side = signs[own][:, None] == signs
        own_class = own[:, None] == torch.arange(classes)
        self.right = torch.where(self.known[:, None], own_class, own_side)
        factors = np.ones(images) if weights is None else weights
        factors = checks.vector("weights", factors, length=images)
        self.weights = torch.from_numpy(factors.astype(np.float32))
        if not (self.weights > 0).all():
            raise InputError(f"weights must be above 0; got {float(self.weights.min()):g}.")

    def __repr__(self) -> str:
        known = int(self.known.sum())
        return f"SuppliedLabels({known} of {len(self)} images, {self.classes} classes)"

    def __len__(self) -> int:
        return len(self.right)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.right.shape[1]

    @property
    def targets(self) -> Tensor:
        """The weight of each image at the classes that count as right, and 0 at the others."""
        return self.right * self.weights[:, None]
