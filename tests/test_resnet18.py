"""ResNet-18 on small images made here."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import longtail
from longtail import Dataset
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.errors import InputError
from longtail.features.resnet18 import ResNet18
from longtail.features.resnet18_module import ResNet18Module
from longtail.recipes.deepxml import DeepXML
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.schedule import Schedule

SHAPE = (3, 16, 16)


@pytest.fixture(scope="module")
def images():
    """Bright stripes, upright or level, in noise; the direction is the class."""
    random = np.random.default_rng(0)
    upright = np.arange(16) % 8 < 4
    stripes = np.stack([np.tile(upright, (16, 1)), np.tile(upright[:, None], (1, 16))])
    classes = np.arange(24) % 2
    noise = random.standard_normal((24, *SHAPE))
    return (2 * stripes[classes][:, None] + 0.3 * noise).astype(np.float32), classes


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A file as torchvision would give it, with a classifier that is not wanted."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "resnet18.safetensors"
    state = {name: v.clone() for name, v in ResNet18Module(3).state_dict().items()}
    save_file({**state, "fc.weight": torch.zeros(4, 512)}, path)
    return str(path)


def test_has_the_names_and_sizes_of_the_published_weights():
    state = ResNet18Module(3).state_dict()
    assert state["conv1.weight"].shape == (64, 3, 7, 7)
    assert state["layer2.0.downsample.0.weight"].shape == (128, 64, 1, 1)
    assert "layer1.0.downsample.0.weight" not in state
    trained = sum(p.numel() for p in ResNet18Module(3).parameters())
    assert trained == 11_689_512 - 513_000  # all of torchvision's but the classifier's


def test_learns_and_is_saved(images, weights, tmp_path):
    pictures, classes = images
    brief = Schedule(epochs=3, learning_rate=0.05)
    model = DeepXML(
        features=ResNet18(image_shape=SHAPE, weights=weights, learning_rate=1e-3),
        surrogate=MetaLabelTask(schedule=brief, batch_size=10),
        classifier=ShortlistedOneVsAll(training=ShortlistTraining(schedule=brief)),
        n_threads=1,
    ).fit(pictures, classes)
    assert model.score(pictures, classes) > 0.9
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    expected = model.predict_topk(pictures[:5], 2)
    for mine, saved in zip(expected, loaded.predict_topk(pictures[:5], 2), strict=True):
        np.testing.assert_array_equal(saved, mine)
    masked = np.ma.masked_array(pictures[:1], mask=pictures[:1] > 0)
    with pytest.raises(InputError, match="X is a masked array"):
        model.predict(masked)
    with pytest.raises(InputError, match=r"reads images \(3, 16, 16\)"):
        loaded.predict(pictures.transpose(0, 2, 3, 1))
    with pytest.raises(InputError, match="trained on ready-made features"):
        loaded.predict(["a text"])


def test_a_data_set_of_images_is_learnt_from_and_evaluated(images):
    pictures, classes = images
    dataset = Dataset.of(pictures, classes)
    assert dataset.features.shape == (24, 3 * 16 * 16)
    brief = Schedule(epochs=1, learning_rate=0.05)
    model = DeepXML(
        features=ResNet18(image_shape=SHAPE),
        surrogate=MetaLabelTask(schedule=brief, batch_size=10),
        classifier=ShortlistedOneVsAll(training=ShortlistTraining(schedule=brief)),
        n_threads=1,
    ).fit_dataset(dataset)
    answers = model.predictor_.predict(dataset.features, k=1)
    right = 100 * np.mean([int(answer[0][0]) for answer in answers] == classes)
    of_tensor = Dataset.of(torch.tensor(pictures), classes)
    for one in (dataset, of_tensor):
        assert model.predictor_.evaluate(one, ks=[1])["P@1"] == pytest.approx(right)
    with pytest.raises(InputError, match="`features` has 3 dimensions, not 2"):
        Dataset.of(pictures[0], classes)


def test_weights_of_another_network(tmp_path, images):
    save_file({"conv1.weight": torch.zeros(1)}, tmp_path / "other.safetensors")
    (tmp_path / "broken.safetensors").write_bytes(b"no weights")
    for name, message in [
        ("other", "has no 'bn1.bias'"),
        ("broken", "cannot be read as a safetensors file"),
        ("missing", "cannot be read as a safetensors file"),
    ]:
        architecture = ResNet18(image_shape=SHAPE, weights=str(tmp_path / f"{name}.safetensors"))
        with pytest.raises(InputError, match=message):
            DeepXML(features=architecture).fit(*images)
