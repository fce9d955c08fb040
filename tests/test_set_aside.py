"""Pairs that answers are not judged by: what is learnt from held-out points leaves them out."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array

from command_line import SMALL, files_of, refused, run, write_lines
from longtail.blend.evidence import Evidence
from longtail.blend.level import levelled
from longtail.blend.network_training import NetworkTraining
from longtail.blend.score_network import ScoreNetwork
from longtail.data.dataset import Dataset
from longtail.data.from_python import labels_from, texts_from
from longtail.data.split import held_out_split
from longtail.errors import InputError
from longtail.estimators.calibrating import calibrated
from longtail.metrics.hits import true_among
from longtail.recipes import longtail_training
from longtail.recipes.astec import Astec
from longtail.recipes.fusion_learning import choose_fusion
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.parabel import Parabel
from longtail.scorers.calibration import Calibration
from longtail.scorers.fusion import PartialScores
from longtail.training.run import TrainingData, TrainingRun
from small_labels import NAMES, TEXTS

RUN = TrainingRun(seed=0, n_threads=1)
N_LABELS, SIZE = 12, 6
SAME = np.ones(N_LABELS)


def made_up(n=400, seed=0):
    """Evidence of which source 1 tells what is true, the truth, and a tenth of all pairs."""
    random = np.random.default_rng(seed)
    labels = np.array([random.permutation(N_LABELS)[:SIZE] for _ in range(n)], np.int32)
    values = random.random((n, 2, SIZE), np.float32)
    evidence = Evidence(
        labels, values, random.random(n, np.float32), np.zeros(N_LABELS, np.float32)
    )
    is_true = np.zeros((n, N_LABELS))
    is_true[np.arange(n), labels[np.arange(n), values[:, 1].argmax(axis=1)]] = 1
    return evidence, is_true, (random.random((n, N_LABELS)) < 0.1).astype(float)


def same(first, second):
    parts = [part.name for part in fields(ScoreNetwork)]
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in parts)


def with_pairs(texts=TEXTS, names=NAMES, label="wine"):
    """A data set, and the pairs of all its points with one label."""
    labels, space, _ = labels_from(names, len(texts))
    is_label = np.array(space.names) == label
    pairs = csr_array(np.repeat(is_label[np.newaxis], len(texts), axis=0).astype(np.float32))
    return Dataset(texts_from(texts), None, labels, space), pairs


class TestOfABlend:
    def test_whether_they_are_true_teaches_nothing(self):
        evidence, is_true, aside = made_up()
        without = evidence.setting_aside(csr_array(aside))
        left = csr_array(is_true * (1 - aside))
        true, false = np.maximum(is_true, aside), is_true * (1 - aside)
        said = [true_among(without.judged, csr_array(truth)) for truth in (true, false)]
        networks = [
            NetworkTraining()._taught_by_unseen(without, left, one, SAME, RUN).network
            for one in said
        ]
        assert same(*networks)
        assert not same(networks[0], NetworkTraining().taught(evidence, left, SAME, RUN).network)

    def test_the_rest_is_ranked_as_well(self):
        evidence, is_true, aside = made_up()
        left = is_true * (1 - aside)
        network = (
            NetworkTraining()
            .taught(evidence.setting_aside(csr_array(aside)), csr_array(left), SAME, RUN)
            .network
        )
        other, truth, _ = made_up(seed=1)
        best = network.scores(other).argmax(axis=1)
        rows = np.arange(len(best))
        assert truth[rows, other.labels[rows, best]].mean() > 0.9

    def test_they_set_no_level(self):
        evidence, is_true, aside = made_up()
        without = evidence.setting_aside(csr_array(aside))
        network = ScoreNetwork.of_source(1, 2)
        true, false = np.maximum(is_true, aside), is_true * (1 - aside)
        level, same_level, other = (
            levelled(network, given, true_among(evidence.labels, csr_array(truth))).level[0]
            for given, truth in ((without, true), (without, false), (evidence, true))
        )
        assert level == same_level != other
        everything = evidence.setting_aside(csr_array(np.ones_like(aside)))
        nothing = np.zeros(evidence.labels.shape, bool)
        assert levelled(network, everything, nothing) is network

    def test_rows_keep_theirs(self):
        evidence, _, aside = made_up(20)
        without = evidence.setting_aside(csr_array(aside))
        rows = np.array([3, 0])
        assert np.array_equal(without.of_rows(rows).judged, without.judged[rows])


def test_a_fusion_is_chosen_by_the_others():
    # Nearness puts label 0 first, of which nothing is asked, and is right about the rest of forty
    # points; the classifier is right about ten others.
    labels = np.tile(np.arange(3, dtype=np.int32), (50, 1))
    nearness = np.repeat(np.array([[9, 2, 1], [1, 2, 3]], np.float32), (40, 10), axis=0)
    logits = np.repeat(np.array([[-9, 1, 2], [-9, 2, 1]], np.float32), (40, 10), axis=0)
    parts = PartialScores(labels, nearness, logits, np.empty((50, 0), np.float32))
    truth = csr_array(np.tile([0.0, 1, 0], (50, 1)))
    aside = csr_array(np.tile([1.0, 0, 0], (50, 1)))
    grid = (0.05, 0.95)
    fused = [
        choose_fusion(parts, truth, np.ones(3), grid=grid, set_aside=pairs).alpha
        for pairs in (aside, None)
    ]
    assert fused == [0.05, 0.95]


def test_probabilities_are_learnt_from_the_others():
    random = np.random.default_rng(0)
    ids = np.argsort(random.random((200, 4))).astype(np.int32)
    scores = -np.sort(-random.random((200, 4)).astype(np.float32))
    truth = (random.random((200, 4)) < 0.4).astype(np.float32)
    aside = np.zeros_like(truth)
    aside[:, 2] = 1

    class Fixed:
        def top_k(self, bags, k, n_threads=1):
            return ids[:, :k], scores[:, :k]

        to_arrays = config = dict  # it is not saved

    features = csr_array(np.eye(200, dtype=np.float32))
    held_out = TrainingData(features, csr_array(truth), set_aside=csr_array(aside))
    found = calibrated(Fixed(), held_out, held_out, 1)
    kept = np.argsort(ids == 2, axis=1, kind="stable")  # what is set aside comes last, as padding
    left = np.take_along_axis(ids, kept, axis=1)
    left[:, -1] = -1
    their = np.take_along_axis(scores, kept, axis=1)
    their[:, -1] = -np.inf
    assert found == Calibration.of_answers(left, their, csr_array(truth))


@pytest.mark.parametrize(
    "recipe",
    [
        lambda: LongtailClassifier(dimension=16, n_threads=1),
        lambda: LongtailClassifier(dimension=16, n_threads=1, energy_reranker="icnn"),
        lambda: Parabel(leaf_size=2, n_threads=1),
        lambda: Astec(dimension=16, surrogate_epochs=3, extreme_epochs=3, n_threads=1),
    ],
)
def test_models_answer_with_the_others(recipe):
    dataset, pairs = with_pairs()
    model = recipe().fit_dataset(dataset, set_aside=pairs)
    assert model.evaluate(dataset, ks=[1], set_aside=pairs)["P@1"] > 75


def test_they_do_not_tell_how_further_labels_are_ranked(monkeypatch):
    given = []
    for name in ("learn_further_scale", "learn_further_text_scale"):
        noted = partial(lambda *parts: given.append(parts[3].indices) or 1.0, name)
        monkeypatch.setattr(longtail_training, name, noted)
    dataset, pairs = with_pairs()
    model = LongtailClassifier(dimension=8, epochs=1, n_threads=1)
    model.fit_dataset(dataset, set_aside=pairs)
    assert len(given) == 2
    assert all(len(truth) and pairs.indices[0] not in truth for truth in given)


def test_a_training_with_other_pairs_goes_on_from_no_checkpoint_of_this_one(tmp_path):
    dataset, pairs = with_pairs()
    folders = set()
    for own in (pairs, None, pairs):
        model = LongtailClassifier(dimension=8, epochs=1, n_threads=1)
        model.fit_dataset(dataset, set_aside=own, checkpoint_folder=tmp_path)
        folders.add(model.run_.checkpoints._own)
    assert len(folders) == 2


def test_training_data_cut_and_joined_keep_their_pairs():
    features = csr_array(np.eye(3, dtype=np.float32))
    labels, pairs = csr_array([[1, 0], [1, 1], [0, 1]]), csr_array([[1, 0], [0, 0], [0, 1]])
    data = TrainingData(features, labels, set_aside=pairs)
    assert data.judged_labels.toarray().tolist() == [[0, 0], [1, 1], [0, 0]]
    assert data.of_labels(np.array([1])).judged_labels.toarray().tolist() == [[0], [1], [0]]
    assert data.of_points(np.array([2, 1])).judged_labels.toarray().tolist() == [[0, 0], [1, 1]]
    joined = data.of_points(np.array([0])).with_points_of(data)
    assert joined.set_aside.toarray().tolist() == [[1, 0], [1, 0], [0, 0], [0, 1]]
    assert data._replace(set_aside=None).judged_labels is labels


@pytest.mark.parametrize(
    ("held_out", "most", "expected"),
    [(0.2, 20, 2 * 20 / 300), (0.2, 2_500, 0.2), (0.1, 2_500, 0.1)],
)
def test_more_points_are_held_out_if_few_can_be_judged_by(held_out, most, expected, monkeypatch):
    shares = []

    def noted(points, share, seed):
        shares.append(share)
        return held_out_split(points, share, seed)

    monkeypatch.setattr("longtail.estimators.holding_out.held_out_split", noted)
    monkeypatch.setattr("longtail.estimators.estimator.LARGEST_HELD_OUT", most)
    dataset, _ = with_pairs()
    pairs = dataset.labels.toarray()
    pairs[::2] = 0  # of every second point, nothing is left
    Parabel(held_out=held_out, n_threads=1).fit_dataset(dataset, set_aside=csr_array(pairs))
    assert shares == pytest.approx([expected])  # no larger share than was asked for


def test_pairs_that_cannot_be_used_are_refused():
    dataset, pairs = with_pairs()
    model = LongtailClassifier(dimension=16)
    with pytest.raises(InputError, match=r"`set_aside` has the shape \(299, 8\), but the labels"):
        model.fit_dataset(dataset, set_aside=pairs[1:])
    with pytest.raises(InputError, match="all labels of all training points"):
        model.fit_dataset(dataset, set_aside=dataset.labels)
    with pytest.raises(InputError, match="not a sparse matrix"):
        model.fit_dataset(dataset, set_aside=pairs.toarray())


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("set_aside")
    ids = {name: label for label, name in enumerate(sorted({n for row in NAMES for n in row}))}
    points = [
        json.dumps({"text": text, "labels": [ids[name] for name in names]})
        for text, names in zip(TEXTS, NAMES, strict=True)
    ]
    return {
        "train": write_lines(place / "train.jsonl", points),
        "labels": write_lines(place / "labels.txt", list(ids)),
        "filter": write_lines(place / "filter.txt", [f"{i} 0" for i in range(len(TEXTS))]),
        "outside": write_lines(place / "outside.txt", ["0 0", "300 0"]),
    }


class TestOnTheCommandLine:
    def test_they_are_taken_from_a_file(self, files, capsys, tmp_path):
        ids = "train", files["train"], "--labels", files["labels"]
        for name, filters in (("a", ("--filter", files["filter"])), ("b", ())):
            assert run(capsys, *ids, "--model", tmp_path / name, *filters, *SMALL)[0] == 0
        assert files_of(tmp_path / "a") != files_of(tmp_path / "b")
        told = [run(capsys, "inspect", tmp_path / name)[1].splitlines()[0] for name in "ab"]
        assert [" judged by 300 pairs" in line for line in told] == [True, False]
        filters = "--filter", files["filter"]
        _, out, err = run(capsys, "evaluate", tmp_path / "a", *ids[1:], *filters)
        assert float(out.splitlines()[1].split()[1]) > 75
        assert "in training" not in err
        assert "do not count" in run(capsys, "evaluate", tmp_path / "a", *ids[1:])[2]
        assert "was not told" in run(capsys, "evaluate", tmp_path / "b", *ids[1:], *filters)[2]
        assert "in training" not in run(capsys, "evaluate", tmp_path / "b", *ids[1:])[2]

    def test_a_file_of_other_points_is_refused(self, files, capsys, tmp_path):
        ids = "train", files["train"], "--labels", files["labels"], "--model", tmp_path / "m"
        message = refused(capsys, *ids, "--filter", files["outside"])
        assert "outside.txt, line 2: Point 300, label 0 is out of range" in message
        assert not (tmp_path / "m").exists()

    def test_ids_mean_nothing_where_labels_have_names(self, place, files, capsys, tmp_path):
        named = "train", place / "train.jsonl", "--model", tmp_path / "m"
        message = refused(capsys, *named, "--filter", files["filter"])
        assert "have ids of labels, but the labels of" in message
        assert "--labels FILE" in message
