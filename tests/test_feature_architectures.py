"""Feature architectures: what is served is what was trained, and the wrong input is refused."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import longtail
from longtail.data.bags import Bags
from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError
from longtail.features.convolutions import XMLCNN, KimCNN
from longtail.features.encoder import encoder_from
from longtail.features.hashed_mlp import HashedMLP
from longtail.features.precomputed import Precomputed
from longtail.features.word_table import WordTable
from longtail.recipes.attentionxml import AttentionXML
from longtail.recipes.deepxml import DeepXML
from longtail.recipes.end_to_end import KimCNNClassifier, XMLCNNClassifier
from longtail.recipes.mach import MACH
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.run import TrainingData, TrainingRun
from longtail.training.schedule import Schedule

N_POINTS, N_TOKENS = 30, 25
CPU = torch.device("cpu")
ARCHITECTURES = {
    "HashedMLP": HashedMLP(hidden_layers=(8,), n_token_buckets=10, dropout=0.0),
    "HashedMLP of two layers": HashedMLP(hidden_layers=(8, 6), n_token_buckets=10, dropout=0.0),
    "KimCNN": KimCNN(dimension=8, widths=(1, 2, 4), n_filters=3, dropout=0.0),
    "XMLCNN": XMLCNN(
        dimension=10,
        widths=(2, 3),
        n_filters=4,
        n_words=7,
        bottleneck=6,
        along_embedding=True,
        dropout=0.0,
    ),
    "XMLCNN along the words": XMLCNN(
        dimension=8, n_filters=4, n_chunks=3, bottleneck=6, dropout=0.0
    ),
}


@pytest.fixture(params=ARCHITECTURES.values(), ids=ARCHITECTURES.keys())
def architecture(request):
    return request.param


@pytest.fixture(scope="module")
def data():
    """Texts of 0 to 6 words and their labels."""
    random = np.random.default_rng(0)
    words = random.integers(0, N_TOKENS, (N_POINTS, 6)).astype(np.int32)
    words[np.arange(6) >= random.integers(0, 7, N_POINTS)[:, None]] = -1
    bags = np.zeros((N_POINTS, N_TOKENS), np.float32)
    for row, own in zip(bags, words, strict=True):
        row[own[own >= 0]] = 0.5
    labels = sp.csr_array((random.random((N_POINTS, 5)) < 0.4).astype(np.float32))
    return TrainingData(sp.csr_array(bags), labels, words=words)


def run():
    return TrainingRun(seed=0, n_threads=1)


def trained(architecture, data, n_steps=3):
    network = architecture.network(data, data.labels, run())
    for _ in range(n_steps):
        features = network.forward(np.arange(N_POINTS))
        (features - 1).square().sum().backward()
        network.step(0.1, 1.0)
    return network


def test_the_encoder_has_the_features_that_were_trained(architecture, data):
    network = trained(architecture, data)
    encoder = architecture.frozen(network)
    expected = network.forward(np.arange(N_POINTS)).detach().numpy()
    found = encoder.encode(data.bags())
    assert found.shape == (N_POINTS, network.dimension)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    is_empty = (data.words < 0).all(axis=1)
    assert is_empty.any()
    assert not found[is_empty].any()
    assert found[~is_empty].any(axis=1).all()


def test_a_text_is_its_row_of_a_batch(architecture, data):
    encoder = architecture.frozen(trained(architecture, data))
    bags = data.bags()
    whole = encoder.encode(bags, n_threads=3)
    for i in range(N_POINTS):
        assert encoder.encode(bags.rows(i, i + 1)).tobytes() == whole[i].tobytes()


def test_training_moves_every_part(architecture, data):
    before = architecture.frozen(trained(architecture, data, 0)).to_arrays()
    after = architecture.frozen(trained(architecture, data, 2)).to_arrays()
    for name, array in before.items():
        assert np.array_equal(array, after[name]) == (name == "bucket_of_token"), name


def test_can_be_made_again(architecture, data):
    encoder = architecture.frozen(trained(architecture, data))
    again = encoder_from(encoder.config(), encoder.to_arrays())
    np.testing.assert_array_equal(again.encode(data.bags()), encoder.encode(data.bags()))


def test_can_start_from_a_trained_one(architecture, data):
    encoder = architecture.frozen(trained(architecture, data))
    network = architecture.network(data, data.labels, run(), start=encoder)
    again = architecture.frozen(network)
    np.testing.assert_array_equal(again.encode(data.bags()), encoder.encode(data.bags()))


def test_word_vectors_get_the_gradient_of_autograd():
    start = np.random.default_rng(0).standard_normal((5, 3), np.float32)

    class PlainSteps(RowwiseAdagrad):
        def step(self, table, rows, gradient, learning_rate):
            table[rows] -= learning_rate * gradient

    ours = WordTable(start, PlainSteps, CPU)
    words = torch.tensor([[1, 3, 1], [3, -1, -1]])
    slope = torch.randn(2, 3, 3, generator=torch.Generator().manual_seed(0))
    ours.read(words).backward(slope)
    ours.step(1.0)
    theirs = torch.tensor(start).requires_grad_()
    padded = torch.cat([theirs, torch.zeros(1, 3)])
    padded[words].backward(slope)
    np.testing.assert_allclose(start - ours.table.numpy(), theirs.grad, rtol=1e-5, atol=1e-6)


class TestWrongInput:
    @pytest.mark.parametrize("name", ["KimCNN", "XMLCNN"])
    def test_bags_for_a_network_of_words(self, name, data):
        architecture = ARCHITECTURES[name]
        with pytest.raises(InputError, match="these points are bags"):
            architecture.network(data._replace(words=None), data.labels, run())
        encoder = architecture.frozen(trained(architecture, data))
        with pytest.raises(InputError, match="these points are bags"):
            encoder.encode(Bags.of(data.features))

    def test_texts_for_a_model_of_rows(self):
        with pytest.raises(InputError, match="reads rows of numbers, but it was given texts"):
            DeepXML(features=Precomputed()).fit(["a text"], [["label"]])

    def test_a_matrix_for_a_model_of_words(self):
        model = DeepXML(features=KimCNN(), char_ngrams=None)
        with pytest.raises(InputError, match="reads the words of a text in their order"):
            model.fit(np.eye(4), np.eye(4, dtype=int))

    @pytest.mark.parametrize("recipe", [KimCNNClassifier, XMLCNNClassifier, AttentionXML])
    def test_pieces_of_words_for_a_model_of_words(self, recipe):
        """Of words that are each in one text, only pieces are in two."""
        texts = [f"label{i}" for i in range(80)]
        with pytest.raises(InputError, match="none of the tokens that are kept is a word"):
            recipe(char_ngrams=(3, 4)).fit(texts, [[text] for text in texts])

    def test_images_of_another_shape(self):
        reads = PointInput(InputKind.IMAGES, image_shape=(3, 4, 4))
        assert reads.matrix(np.ones((2, 3, 4, 4))).shape == (2, 48)
        with pytest.raises(InputError, match=r"given an array \(2, 4, 4, 3\)"):
            reads.matrix(np.ones((2, 4, 4, 3)))
        for unreadable in (torch.ones(2, 3, 4, 4, requires_grad=True), [[1], [1, 2]]):
            with pytest.raises(InputError, match="cannot be read as an array of images"):
                reads.matrix(unreadable)

    def test_word_vectors_of_another_model(self, data):
        n_tokens = data.features.shape[1]
        for wrong in (np.ones((n_tokens - 1, 8)), np.ones((n_tokens, 9)), np.ones(8)):
            with pytest.raises(InputError, match=rf"must have \({n_tokens}, 8\): a row of"):
                KimCNN(dimension=8, word_vectors=wrong).network(data, data.labels, run())
        for wrong in (np.full((n_tokens, 8), np.nan), np.full((n_tokens, 8), "a")):
            with pytest.raises(InputError, match="must hold finite numbers"):
                KimCNN(dimension=8, word_vectors=wrong).network(data, data.labels, run())
        KimCNN(dimension=8, word_vectors=np.ones((n_tokens, 8))).network(data, data.labels, run())

    def test_filters_wider_than_the_vectors(self, data):
        with pytest.raises(InputError, match="width 8 does not fit along word vectors of 4"):
            XMLCNN(dimension=4, along_embedding=True).network(data, data.labels, run())


def test_an_input_is_made_again_from_its_config():
    reads = PointInput(InputKind.IMAGES, image_shape=(3, 4, 4))
    assert PointInput.from_config(reads.config()) == reads


def test_ready_made_vectors_from_end_to_end(tmp_path):
    """Points around eight directions, as a sentence encoder would give; classes are directions."""
    random = np.random.default_rng(0)
    classes = np.repeat(np.arange(8), 20)
    vectors = 5 * np.eye(8, 16)[classes] + random.standard_normal((160, 16))
    no_epochs = MetaLabelTask(schedule=Schedule(epochs=0, learning_rate=0.1))
    model = DeepXML(features=Precomputed(), surrogate=no_epochs, n_threads=1)
    model.fit(vectors, classes)
    assert model.score(vectors, classes) > 0.95
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    found, expected = loaded.predict_topk(vectors, 3), model.predict_topk(vectors, 3)
    np.testing.assert_array_equal(found[0], expected[0])
    assert loaded.reads.kind is InputKind.ROWS


ORDERED = {
    "KimCNN": partial(KimCNNClassifier, dimension=16, n_filters=16),
    "XMLCNN": partial(XMLCNNClassifier, dimension=16, n_filters=16, bottleneck=64),
    "XMLCNN along the embedding": partial(
        XMLCNNClassifier,
        dimension=32,
        n_filters=32,
        n_words=8,
        bottleneck=64,
        along_embedding=True,
    ),
}


@pytest.fixture(scope="module")
def ordered():
    """Texts, and which of two words comes first in each."""
    random = np.random.default_rng(0)
    is_swapped, fillers = random.random(200) < 0.5, random.integers(0, 5, 200)
    pairs = zip(fillers, np.where(is_swapped, "b a", "a b"), strict=True)
    return [f"f{filler} {words}" for filler, words in pairs], is_swapped


@pytest.mark.parametrize("make", ORDERED.values(), ids=ORDERED.keys())
def test_networks_of_words_learn_what_no_bag_can_hold(make, ordered):
    model = make(epochs=15, batch_size=32, dropout=0.1, n_threads=1).fit(*ordered)
    assert model.score(*ordered) > 0.9


def test_every_hash_puts_labels_together_in_its_own_way():
    texts, names = [f"word{i}" for i in range(40)], [[f"label{i}"] for i in range(40)]
    model = MACH(n_hashes=3, n_buckets=8, dimension=4, epochs=1, n_threads=1).fit(texts, names)
    hashes = model.predictor_.scorer.bucket_of_label
    assert len(np.unique(hashes, axis=0)) == 3


def test_a_bag_cannot_hold_it(ordered):
    model = MACH(n_hashes=2, dimension=16, epochs=3, char_ngrams=None, n_threads=1).fit(*ordered)
    assert model.score(*ordered) < 0.75
