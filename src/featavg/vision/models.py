"""Image classifiers: ResNet-18 for small images, and small convolutional networks.

All take images with pixels in [0, 1], shape (images, channels, height, width), and standardise
them themselves, so that radii of attacks on different networks can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from featavg import checks

_CHANNELS_AT_ONCE = 16


@contextmanager
def _drawn_with(rng: np.random.Generator) -> Iterator[None]:
    """Draw initial weights from `rng` and leave the global state of PyTorch unchanged."""
    seed = int(checks.generator(rng).integers(2**63))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def widest_float(device: torch.device) -> torch.dtype:
    """Return the floating-point type of a device with the most bits."""
    return torch.float32 if device.type == "mps" else torch.float64


def memory_format(model: nn.Module) -> torch.memory_format:
    """Return the fastest layout of images that is safe for a network.

    This is channels last. But on a CPU with several threads, PyTorch 2.13 writes beyond the
    end of its arrays where a convolution in this layout has a number of channels that is not a
    multiple of 16 and the batch is odd; such a network gets the default layout.
    """
    convolutions = [m for m in model.modules() if isinstance(m, nn.Conv2d)]
    on_cpu = all(p.device.type == "cpu" for p in model.parameters())
    safe = all(m.out_channels % _CHANNELS_AT_ONCE == 0 for m in convolutions)
    return torch.channels_last if safe or not on_cpu else torch.contiguous_format


def in_layout(images: Tensor, layout: torch.memory_format) -> Tensor:
    """Return images in a memory layout, with strides that leave no doubt about it.

    Images of one channel are contiguous in both layouts at once. `Tensor.contiguous` then keeps
    strides of channels last, by which PyTorch would choose the layout that is not safe.
    """
    images = images.contiguous(memory_format=layout)
    if layout == torch.contiguous_format and images.ndim == 4 and images.shape[1] == 1:
        images = images.squeeze(1).unsqueeze(1)
    return images


class ImageClassifier(nn.Module):
    """Base class: a network with an embedding and a linear layer on top of it.

    ``forward`` is ``head(features(x))``. The buffers ``mean`` and ``std`` (one number for each
    channel) standardise the pixels; `standardise` sets them, and `train` calls it.
    """

    mean: Tensor
    std: Tensor
    head: nn.Linear

    def __init__(self, channels: int, classes: int) -> None:
        super().__init__()
        self.channels = checks.count("channels", channels)
        self.classes = checks.count("classes", classes, minimum=2)
        self.register_buffer("mean", torch.zeros(channels, 1, 1))
        self.register_buffer("std", torch.ones(channels, 1, 1))

    def standardise(self, images: Tensor) -> None:
        """Set `mean` and `std` to those of uint8 images, shape (images, channels, h, w)."""
        flat = images.transpose(0, 1).reshape(self.channels, -1)
        for channel, pixels in enumerate(flat):
            # counts of the 256 values: exact, the same on every machine, and little memory
            shares = torch.bincount(pixels.int(), minlength=256).double() / len(pixels)
            values = torch.arange(256, dtype=torch.float64, device=shares.device) / 255
            mean = (shares * values).sum()
            std = (shares * (values - mean) ** 2).sum().sqrt()
            self.mean[channel] = mean
            self.std[channel] = std.clamp(min=1 / 255)  # a constant channel stays finite

    def features(self, x: Tensor) -> Tensor:
        """Return the embedding below the last layer, shape (images, features)."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, shape (images, classes), of images with pixels in [0, 1]."""
        logits: Tensor = self.head(self.features(x))
        return logits

    def standardised(self, x: Tensor) -> Tensor:
        """Return the standardised images, the input of the first layer."""
        return (x - self.mean) / self.std


class _Block(nn.Module):
    """The basic block: relu(BN(conv(relu(BN(conv(x))))) + shortcut(x)), each conv 3×3."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(ImageClassifier):
    """ResNet-18 as used for images of 32×32 (or 28×28) pixels.

    Paper: Section 6.2 trains it from scratch on MNIST and CIFAR-10. The first convolution is 3×3
    with stride 1 and there is no pooling before the blocks; four stages of two blocks with
    ``width``, 2, 4 and 8 times ``width`` channels, the last three halving the image; then the mean
    over all pixels and a linear layer. ``width=64`` is the paper's network (11.2 million parameters
    for CIFAR-10); the cost falls with the square of the width, and ``width=16`` trains on a CPU.

    Parameters
    ----------
    width : int
        Channels of the first stage.
    channels : int
        3 for colour, 1 for grey.
    classes : int
        Logits; 2 for the coarse labels.
    rng : numpy.random.Generator
        Draws the initial weights (PyTorch's default initialisation).

    Examples
    --------
    >>> import numpy as np, torch
    >>> net = ResNet18(width=4, channels=1, classes=2, rng=np.random.default_rng(0))
    >>> net.eval()(torch.zeros(3, 1, 28, 28)).shape, net.features(torch.zeros(3, 1, 28, 28)).shape
    (torch.Size([3, 2]), torch.Size([3, 32]))
    """

    def __init__(
        self, width: int = 64, channels: int = 3, classes: int = 10, *, rng: np.random.Generator
    ) -> None:
        super().__init__(channels, classes)
        w = self.width = checks.count("width", width)
        with _drawn_with(rng):
            self.stem = nn.Sequential(
                nn.Conv2d(channels, w, 3, padding=1, bias=False), nn.BatchNorm2d(w), nn.ReLU()
            )
            blocks, inputs = [], w
            for outputs, stride in ((w, 1), (2 * w, 2), (4 * w, 2), (8 * w, 2)):
                blocks += [_Block(inputs, outputs, stride), _Block(outputs, outputs, 1)]
                inputs = outputs
            self.blocks = nn.Sequential(*blocks)
            self.head = nn.Linear(8 * w, classes)

    def features(self, x: Tensor) -> Tensor:
        """Return the mean over all pixels of the last stage, shape (images, 8 * width)."""
        pixels: Tensor = self.blocks(self.stem(self.standardised(x)))
        return pixels.mean(dim=(2, 3))


class SmallCNN(ImageClassifier):
    """The small network of the talk: conv-32 5×5, max-pool, conv-64 3×3, max-pool, fc-1024, fc.

    Paper: none; the talk's network for margins on MNIST (Lyu and Li, 2020). Convolutions keep the
    size of the image, each pooling halves it, and a ReLU follows each layer but the last.

    Parameters
    ----------
    channels, classes
        As for `ResNet18`.
    size : int
        Height and width of the images.
    width : int
        Channels of the first layer; the others are 2 and 32 times as wide. 32 is the talk's.
    homogeneous : bool
        Leave out all biases but those of the first layer; then scaling all weights by c scales
        the logits by c⁴, as the theory of margins assumes.
    rng : numpy.random.Generator
        Draws the initial weights (PyTorch's default initialisation).

    Examples
    --------
    >>> import numpy as np
    >>> sum(weights.numel() for weights in SmallCNN(rng=np.random.default_rng(0)).parameters())
    3241866
    """

    def __init__(
        self,
        channels: int = 1,
        classes: int = 10,
        *,
        size: int = 28,
        width: int = 32,
        homogeneous: bool = False,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(channels, classes)
        self.size = checks.count("size", size, minimum=4)
        w = self.width = checks.count("width", width)
        biases = not homogeneous
        with _drawn_with(rng):
            self.conv1 = nn.Conv2d(channels, w, 5, padding=2)
            self.conv2 = nn.Conv2d(w, 2 * w, 3, padding=1, bias=biases)
            self.hidden = nn.Linear(2 * w * (size // 4) ** 2, 32 * w, bias=biases)
            self.head = nn.Linear(32 * w, classes, bias=biases)

    def features(self, x: Tensor) -> Tensor:
        """Return the hidden layer after its ReLU, shape (images, 32 * width)."""
        # pooling and ReLU commute, and pooling first leaves a quarter of the work
        x = torch.relu(nn.functional.max_pool2d(self.conv1(self.standardised(x)), 2))
        x = torch.relu(nn.functional.max_pool2d(self.conv2(x), 2))
        return torch.relu(self.hidden(x.flatten(1)))


class StridedCNN(ImageClassifier):
    """A small network without pooling: conv-16, conv-32 with stride 2, fc-128, fc.

    Paper: none, an extension. Convolutions are 3×3, and a ReLU follows each layer but the last.

    Parameters
    ----------
    channels, classes, size
        As for `SmallCNN`.
    width : int
        Channels of the first layer; the others are 2 and 8 times as wide.
    first_stride : {1, 2}
        The stride of the first convolution; the second has stride 2.
    batch_norm : bool
        Normalise over the batch after each convolution.
    rng : numpy.random.Generator
        Draws the initial weights (PyTorch's default initialisation).

    Examples
    --------
    >>> import numpy as np
    >>> sum(weights.numel() for weights in StridedCNN(rng=np.random.default_rng(0)).parameters())
    809034
    """

    def __init__(
        self,
        channels: int = 1,
        classes: int = 10,
        *,
        size: int = 28,
        width: int = 16,
        first_stride: int = 1,
        batch_norm: bool = False,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(channels, classes)
        self.size = checks.count("size", size, minimum=4)
        w = self.width = checks.count("width", width)
        stride = checks.count("first_stride", first_stride)
        side = (size - 1) // stride // 2 + 1  # after both convolutions
        norms = [nn.BatchNorm2d(c) if batch_norm else nn.Identity() for c in (w, 2 * w)]
        with _drawn_with(rng):
            self.conv1 = nn.Conv2d(channels, w, 3, stride, padding=1)
            self.conv2 = nn.Conv2d(w, 2 * w, 3, 2, padding=1)
            self.hidden = nn.Linear(2 * w * side**2, 8 * w)
            self.head = nn.Linear(8 * w, classes)
        self.norm1, self.norm2 = norms

    def features(self, x: Tensor) -> Tensor:
        """Return the hidden layer after its ReLU, shape (images, 8 * width)."""
        x = torch.relu(self.norm1(self.conv1(self.standardised(x))))
        x = torch.relu(self.norm2(self.conv2(x)))
        return torch.relu(self.hidden(x.flatten(1)))
