"""Every recipe on a GPU: the same seed gives the ranking that the CPU gives, to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from killing import Killer
from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.features.hashed_mlp import HashedMLP
from longtail.features.resnet18 import ResNet18
from longtail.features.transformer import Transformer, read_transformer
from longtail.features.tuned_transformer import texts_that_fit
from longtail.metrics import precision_at_k
from longtail.recipes.astec import Astec
from longtail.recipes.attentionxml import AttentionXML
from longtail.recipes.deepxml import DeepXML
from longtail.recipes.dexa import DEXA
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.ngame import NGAME
from longtail.recipes.one_vs_all import OneVsAll
from longtail.recipes.parabel import Parabel
from longtail.recipes.siamesexml import SiameseXML
from longtail.recipes.spen import SPEN
from longtail.recipes.xtransformer import XTransformer
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.dropout import dropped, kept_units
from longtail.training.schedule import Schedule
from longtail.transfer.plain import FullyConnected
from small_recipes import NAMES, RECIPES, TEXTS
from small_transformer import BERT, saved
from small_transformer import LABELS as KINDS
from small_transformer import TEXTS as THINGS
from small_wordnet import small_wordnet
from test_resnet18 import SHAPE

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]

CPU = torch.device("cpu")
SMALL_NGAME = {"dimension": 64, "encoder_epochs": 5, "classifier_epochs": 3}
ON_REAL_DATA = {
    "longtail": lambda: LongtailClassifier(dimension=64, epochs=4),
    "longtail, some texts alone": lambda: LongtailClassifier(
        dimension=64, epochs=4, texts_alone=0.3
    ),
    "astec": lambda: Astec(
        dimension=64,
        surrogate_epochs=5,
        extreme_epochs=5,
        reranker_epochs=3,
        batch_size=256,
        n_near_labels=100,
        n_near_points=30,
        shortlist_size=120,
    ),
    "dexa": lambda: DEXA(**SMALL_NGAME),
    "ngame": lambda: NGAME(**SMALL_NGAME, encoder_loss="triplet"),
    "siamesexml": lambda: SiameseXML(**SMALL_NGAME),
    "xtransformer": lambda: XTransformer(dimension=64, leaf_size=10, epochs=5),
    "one-vs-all": lambda: OneVsAll(dimension=64, batch_size=128, epochs=5, learning_rate=0.1),
    "spen": lambda: SPEN(dimension=32, n_hidden=8),
    "attentionxml": lambda: AttentionXML(dimension=32, n_hidden=32, epochs=4, leaf_size=20),
}
# What they learn from next, near points and hard labels, turns on the last bits of vectors: a start
# that differs by 1e-7 changes the first label of 3 to 10 test points in a hundred, on a CPU too.
CHOOSE = {"longtail", "longtail, some texts alone", "dexa", "ngame", "siamesexml"}


def on(device, recipe):
    """A recipe that trains on that device, without threads whose order could matter."""
    return recipe().set_params(device=device, n_threads=1)


@pytest.fixture
def of_float32(monkeypatch):
    """Products of float32 on both: rounded to bfloat16, they let other labels come first."""
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)


@pytest.fixture(scope="module")
def data():
    return small_wordnet(1500, 400)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT of two layers with random weights, and no dropout, which it draws on its device."""
    transformers = pytest.importorskip("transformers", reason="needs the extra 'transformers'")
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(**BERT, **without)
    return str(saved(tmp_path_factory.mktemp("transformer"), config))


@pytest.mark.parametrize(
    ("recipe", "least"),
    [(recipe, 0.8 if name in CHOOSE else 0.99) for name, recipe in ON_REAL_DATA.items()],
    ids=ON_REAL_DATA.keys(),
)
@pytest.mark.usefixtures("of_float32")
def test_ranks_as_the_cpu_does(data, recipe, least):
    train, test = data
    own, other = (on(device, recipe).fit_dataset(train) for device in ("cpu", "cuda"))
    first, found = (model.run_.history[0]["loss"] for model in (own, other))
    assert found == pytest.approx(first, rel=1e-3)
    ids, others = (model.predict_topk(test.texts, 1)[0] for model in (own, other))
    assert np.mean(ids == others) >= least
    found, expected = (precision_at_k(best, test.labels, 1) for best in (others, ids))
    assert found == pytest.approx(expected, abs=0.04)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_every_recipe_learns_as_on_the_cpu(recipe):
    own, other = (on(device, recipe).fit(TEXTS, NAMES) for device in ("cpu", "cuda"))
    assert other.score(TEXTS, NAMES) == pytest.approx(own.score(TEXTS, NAMES), abs=0.03)


PARTS = {
    "hashed MLP": {"features": HashedMLP(hidden_layers=(32, 16), n_token_buckets=64)},
    "fully connected": {"transfer": FullyConnected()},
    "features that stay": {
        "classifier": ShortlistedOneVsAll(
            training=ShortlistTraining(schedule=Schedule(epochs=10, learning_rate=0.1))
        )
    },
}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS.keys())
def test_parts_learn_as_on_the_cpu(parts):
    own, other = (
        DeepXML(**parts, device=device, n_threads=1).fit(TEXTS, NAMES) for device in ("cpu", "cuda")
    )
    assert other.score(TEXTS, NAMES) == pytest.approx(own.score(TEXTS, NAMES), abs=0.03)


@pytest.mark.parametrize("reranker", ["spen", "icnn"])
def test_an_energy_re_ranks(data, reranker):
    train, test = data
    model = Parabel(leaf_size=20, energy_reranker=reranker, device="cuda")
    ids, _ = model.fit_dataset(train).predict_topk(test.texts, 1)
    assert precision_at_k(ids, test.labels, 1) > 0.2


def test_images_are_read(tmp_path):
    random = np.random.default_rng(0)
    classes = np.arange(24) % 2
    pictures = classes[:, None, None, None] + 0.1 * random.standard_normal((24, *SHAPE))
    brief = Schedule(epochs=3, learning_rate=0.05)
    model = DeepXML(
        features=ResNet18(image_shape=SHAPE, learning_rate=1e-3),
        surrogate=MetaLabelTask(schedule=brief, batch_size=10),
        device="cuda",
    ).fit(pictures.astype(np.float32), classes)
    assert model.score(pictures.astype(np.float32), classes) > 0.9


TUNED = {"fine_tune": True, "fine_tune_learning_rate": 0.005}
AROUND_TRANSFORMERS = {
    "dexa": lambda folder, more: DEXA(
        encoder=folder, encoder_epochs=10, classifier_epochs=2, **more
    ),
    "xtransformer": lambda folder, more: XTransformer(
        encoder=folder, epochs=5, leaf_size=1, **more
    ),
    "xtransformer, neural": lambda folder, more: XTransformer(
        encoder=folder, epochs=5, leaf_size=1, matcher="neural", **more
    ),
}


@pytest.mark.parametrize("tuned", [{}, TUNED], ids=["as it is", "fine-tuned"])
@pytest.mark.parametrize("make", AROUND_TRANSFORMERS.values(), ids=AROUND_TRANSFORMERS.keys())
def test_transformers_are_read_and_tuned(folder, tmp_path, make, tuned):
    model = make(folder, tuned | {"device": "cuda"}).fit(THINGS, KINDS)
    assert model.score(THINGS, KINDS) == 1.0
    model.save(tmp_path / "model")


def test_deepxml_tunes_a_transformer(folder):
    model = DeepXML(
        features=Transformer(folder=folder, fine_tune=True, learning_rate=0.003),
        surrogate=MetaLabelTask(schedule=Schedule(epochs=20, learning_rate=0.05)),
        device="cuda",
    ).fit(THINGS, KINDS)
    assert model.score(THINGS, KINDS) == 1.0


@pytest.mark.parametrize("epoch", [2, 4])
def test_goes_on_where_it_was_killed(data, tmp_path, epoch):
    def fitted(folder, *callbacks):
        return on("cuda", ON_REAL_DATA["dexa"]).fit_dataset(
            data[0], callbacks=callbacks, checkpoint_folder=folder, checkpoint_seconds=0
        )

    whole = fitted(None)
    with pytest.raises(KeyboardInterrupt):
        fitted(tmp_path, Killer(epoch))
    resumed = fitted(tmp_path)
    ids, others = (model.predict_topk(data[1].texts, 1)[0] for model in (whole, resumed))
    assert np.mean(ids == others) > 0.97


def test_drops_the_same_units():
    rows = torch.randn(30, 7)
    for draw in (lambda some: dropped(some, 0.3), lambda some: kept_units(some, 0.3)):
        torch.manual_seed(1)
        expected = draw(rows)
        torch.manual_seed(1)
        torch.testing.assert_close(draw(rows.to("cuda")).cpu(), expected)


def test_as_many_texts_as_fit(folder):
    encoder = read_transformer(folder, 8)
    assert texts_that_fit(encoder, torch.device("cuda")) > texts_that_fit(encoder, CPU) == 64
