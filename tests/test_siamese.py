"""Points and label texts in one encoder: gradients, batches, auxiliary vectors, unseen labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy.sparse import csr_array
from torch.nn import functional

import longtail
from killing import Batches
from longtail.blend.held_out_lesson import HeldOutLesson
from longtail.data.dataset import Dataset
from longtail.data.input_notes import InputWarning
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.errors import InputError
from longtail.features.token_table import TokenTable
from longtail.features.token_tensors import TokenTensors
from longtail.kernels.half_numbers import of_bfloat16
from longtail.kernels.half_rows import round_rows
from longtail.recipes.dexa import DEXA
from longtail.recipes.ngame import NGAME
from longtail.recipes.siamesexml import SiameseXML
from longtail.siamese import corrections as siamese_corrections
from longtail.siamese import task as siamese_task
from longtail.siamese.corrections import Corrections
from longtail.siamese.encoders import LearntBags
from longtail.siamese.modules import ClassifierModule
from longtail.siamese.pair_losses import DecoupledSoftmax, ProbabilisticContrast, TripletLoss
from longtail.siamese.task import SiameseTask
from longtail.siamese.text_block import TextBlock
from longtail.training.batches import Batch, SharedPool
from longtail.training.neighbourhood_batches import (
    LabelBatches,
    NeighbourhoodBatches,
    RefreshedPool,
)
from longtail.training.schedule import EPOCHS_AGAIN
from longtail.training.state import write_state
from longtail.training.unit_rows import UnitRows

CPU = torch.device("cpu")
TRUTH = torch.tensor([[1, 0, 0, 1, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
ROWS, COLUMNS = torch.nonzero(TRUTH, as_tuple=True)


def triplet(cosines):
    hardest = cosines.masked_fill(TRUTH, -torch.inf).topk(2, dim=1).values
    return (0.3 + hardest[ROWS] - cosines[ROWS, COLUMNS][:, None]).clamp_min(0).sum()


def decoupled(cosines):
    logits = 4 * cosines
    negatives = logits.masked_fill(TRUTH, -torch.inf).logsumexp(dim=1)[ROWS]
    return functional.softplus(negatives - logits[ROWS, COLUMNS]).sum()


def contrast(cosines):
    hardest = cosines.masked_fill(TRUTH, -torch.inf).topk(2, dim=1).values
    chances = 0.9 * (1.5 * (hardest - 1)).exp()
    return (1.5 * (1 - cosines[ROWS, COLUMNS])).sum() - (1 - chances).log().sum()


def contrast_of_labels(cosines):
    hardest = cosines.masked_fill(TRUTH, -torch.inf).topk(2, dim=0).values
    chances = 0.9 * (1.5 * (hardest - 1)).exp()
    return (1.5 * (1 - cosines[ROWS, COLUMNS])).sum() - (1 - chances).log().sum()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda cosines: (1.0, cosines[:, :1]),
            r"shape of the cosines, \(\d+, \d+\), got .*, 1",
        ),
        (lambda cosines: (1.0, None), "shape of the cosines, .* got a NoneType"),
        (lambda cosines: cosines, "must return two things, .* got a Tensor"),
        (lambda cosines: None, "must return two things, .* got a NoneType"),
    ],
)
@pytest.mark.parametrize("module", ["encoder_loss", "classifier_loss"])
def test_what_a_loss_of_ones_own_returns_is_looked_at(module, answer, message):
    class Own:
        def slope(self, cosines, rows, columns):
            return answer(cosines)

    with pytest.raises(InputError, match=f"Own .*{message}"):
        NGAME(**{module: Own()}, n_threads=1).fit(["red wine", "fast car"] * 9, [["a"], ["b"]] * 9)


@pytest.mark.parametrize(
    ("loss", "plain"),
    [
        (TripletLoss(n_hardest=2), triplet),
        (DecoupledSoftmax(scale=4.0), decoupled),
        (ProbabilisticContrast(n_hardest=2), contrast),
        (ProbabilisticContrast(n_hardest=2, of_labels=True), contrast_of_labels),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_slopes_are_those_of_automatic_differentiation(loss, plain):
    cosines = torch.rand(TRUTH.shape, generator=torch.Generator().manual_seed(0)) * 2 - 1
    cosines.requires_grad_()
    value = plain(cosines)
    (expected,) = torch.autograd.grad(value, cosines)
    found, slope = loss.slope(cosines.detach().clone(), ROWS, COLUMNS)
    torch.testing.assert_close(slope, expected.nan_to_num(), atol=1e-5, rtol=1e-5)
    if plain not in {contrast, contrast_of_labels}:  # their loss leaves out a constant
        assert found == pytest.approx(value.item() / len(TRUTH), rel=1e-5)


def test_siamesexml_has_the_hardest_points_of_each_label():
    """Its Module I draws batches over labels, and a label's negatives are points, not labels."""
    cosines = torch.tensor([[0.9, 0.8, 0.1], [0.2, 0.3, 0.9]])
    rows, columns = torch.tensor([0, 1]), torch.tensor([0, 2])
    loss = replace(SiameseXML().encoder_loss, n_hardest=1)
    _, slope = loss.slope(cosines.clone(), rows, columns)
    # Point 1 for label 0, point 0 for labels 1 and 2: each column has one negative.
    assert (slope > 0).tolist() == [[False, True, True], [True, False, False]]
    chance = 0.9 * np.exp(1.5 * (0.8 - 1))
    assert float(slope[0, 1]) == pytest.approx(1.5 * chance / (1 - chance), rel=1e-5)
    assert (slope[rows, columns] == -1.5).all()
    assert not SiameseXML().classifier_loss.of_labels
    assert SiameseXML().dropout == 0


class PlainSteps:
    """Plain gradient descent, so that a step of 1 shows the gradient itself."""

    def __init__(self, table):
        pass

    def step(self, table, rows, gradient, learning_rate):
        table[rows] -= learning_rate * gradient

    def step_by_bags(self, table, rows, bags, slopes, learning_rate, seed):
        numbers = of_bfloat16(table)
        numbers[rows] -= learning_rate * bags.times(of_bfloat16(slopes))
        round_rows(numbers, 0, len(numbers), table)

    def state(self):
        return {}


def random_bags(n_rows, n_tokens, seed):
    dense = np.random.default_rng(seed).random((n_rows, n_tokens)).astype(np.float32)
    return csr_array(np.where(dense < 0.5, 0, dense))


def test_a_step_follows_the_gradient_through_both_sides(monkeypatch):
    monkeypatch.setattr(siamese_task, "product_dtype", lambda _: torch.float32)
    monkeypatch.setattr(siamese_corrections, "RowwiseAdagrad", PlainSteps)
    monkeypatch.setattr("longtail.features.token_table.RowAdagrad", PlainSteps)
    points, labels = random_bags(4, 7, 0), random_bags(6, 7, 1)
    tokens = TokenTensors(TokenTable(7, 3, seed=0, n_threads=1), CPU)
    clusters = np.array([0, 1, 0, 1, 2, 2])
    start = np.random.default_rng(2).standard_normal((3, 3)).astype(np.float32)
    auxiliary = Corrections(start, clusters, CPU)
    task = SiameseTask(
        encoder=LearntBags(tokens, points, labels, dropout=0.0),
        corrections=auxiliary,
        loss=DecoupledSoftmax(scale=4.0),
    )
    pool = np.array([0, 1, 2, 4, 5])  # labels 0 and 2 share a vector, 4 and 5 another
    batch = Batch(np.arange(4), pool, ROWS.numpy(), COLUMNS.numpy())

    before = torch.from_numpy(tokens.table.vectors())
    table = before.clone().requires_grad_()
    added = torch.tensor(start, requires_grad=True)
    x = functional.normalize(torch.from_numpy(points.toarray()) @ table)
    z = functional.normalize(torch.from_numpy(labels[pool].toarray()) @ table)
    w = functional.normalize(z + added[torch.from_numpy(clusters[pool])])
    to_table, to_added = torch.autograd.grad(decoupled(x @ w.T), (table, added))

    task.step(batch, 1.0, 1.0, measure=False)
    # The slopes by the sums are rounded to bfloat16, and so is what they change.
    after = torch.from_numpy(tokens.table.vectors())
    torch.testing.assert_close(before - after, to_table, atol=1e-2, rtol=1e-2)
    torch.testing.assert_close(
        torch.from_numpy(start) - auxiliary.vectors, to_added, atol=1e-4, rtol=1e-4
    )


def two_blobs(n_points=64):
    """Points around two directions, every other one, and one label each."""
    points = np.zeros((n_points, 2), np.float32)
    points[np.arange(n_points), np.arange(n_points) % 2] = 1
    points += np.random.default_rng(0).random(points.shape).astype(np.float32) / 10
    return points, csr_array(np.eye(n_points, dtype=np.float32))


def neighbourhood_batches(points, labels):
    pool = SharedPool.in_batch(labels, batch_size=8)
    return NeighbourhoodBatches(
        pool, lambda: points, refresh_every=1, cluster_size=8, seed=0, n_threads=1
    )


class TestTextBlock:
    def test_passes_the_gradient_on(self):
        torch.manual_seed(0)
        texts, gradient = torch.randn(2, 5, 4).unbind()
        block = TextBlock(4, CPU)
        gates, matrix = (block.state()[name].clone() for name in ("gates", "matrix"))
        plain = texts.clone().requires_grad_()
        kept, added = gates.sigmoid()
        expected = kept * plain + added * torch.relu(plain @ matrix.T)
        torch.testing.assert_close(block.forward(texts), expected.detach())
        (to_texts,) = torch.autograd.grad(expected, plain, gradient)
        torch.testing.assert_close(block.backward(gradient, 0.1), to_texts)

    def test_learns_a_turn_that_all_labels_share(self):
        """Labels lie where a matrix puts their texts; half of them are never seen."""
        random = torch.Generator().manual_seed(0)
        texts = UnitRows.of(torch.randn(400, 8, generator=random)).unit
        wanted = UnitRows.of(texts + 2 * torch.relu(texts.roll(1, dims=1))).unit
        block = TextBlock(8, CPU)

        def cosine():
            found = UnitRows.of(torch.from_numpy(block.apply(texts[200:].numpy()))).unit
            return float((found * wanted[200:]).sum(dim=1).mean())

        before = cosine()
        for _ in range(500):
            found = UnitRows.of(block.forward(texts[:200]))
            block.backward(found.backward(-wanted[:200]), 0.1)
        assert before < 0.75
        assert cosine() > 0.95


class TestNeighbourhoodBatches:
    def test_clusters_grow_until_a_batch_holds_neighbours(self):
        points, labels = two_blobs()
        batches = neighbourhood_batches(points, labels)
        mixed = []
        for epoch in range(4):
            found = list(batches.epoch(np.random.default_rng(epoch)))
            assert len(found) == batches.n_batches()
            seen = np.concatenate([batch.points for batch in found])
            np.testing.assert_array_equal(np.sort(seen), np.arange(64))
            mixed.append(np.mean([len(set(batch.points % 2)) == 2 for batch in found]))
        assert mixed[0] > 0.9
        assert mixed[3] == 0

    def test_a_restored_state_gives_the_same_batches(self):
        points, labels = two_blobs()
        first, second = (neighbourhood_batches(points, labels) for _ in range(2))
        for _ in range(3):
            list(first.epoch(np.random.default_rng(0)))
        write_state(second.state(), first.state())
        for one, other in zip(
            first.epoch(np.random.default_rng(1)),
            second.epoch(np.random.default_rng(1)),
            strict=True,
        ):
            np.testing.assert_array_equal(one.points, other.points)


def test_label_batches_draw_labels_and_know_what_is_true():
    dense = np.random.default_rng(0).random((30, 9)) < 0.2
    dense[:, 4] = False
    labels = csr_array(dense.astype(np.float32))
    batches = LabelBatches(labels=labels, batch_size=4)
    drawn = set()
    for epoch in range(30):
        for batch in batches.epoch(np.random.default_rng(epoch)):
            true = dense[batch.points][:, batch.pool]
            np.testing.assert_array_equal(
                np.nonzero(true), (batch.positive_rows, batch.positive_columns)
            )
            assert true.any(axis=0).all()  # each label has its point
            drawn |= set(batch.pool.tolist())
    assert drawn == set(np.flatnonzero(dense.any(axis=0)).tolist())


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_label_batches_draw_labels_by_a_power_of_their_frequency(power):
    dense = np.zeros((17, 2), np.float32)
    dense[:16, 0] = dense[16, 1] = 1
    batches = LabelBatches(labels=csr_array(dense), batch_size=1, power=power)
    random = np.random.default_rng(0)
    drawn = [int(batch.pool[0]) for _ in range(200) for batch in batches.epoch(random)]
    assert np.mean(drawn) == pytest.approx(1 / (1 + 16**power), abs=0.06)


def test_a_draw_that_is_rounded_up_is_of_the_last_label_with_points():
    class Largest(np.random.Generator):
        def random(self, *_):
            return np.ones(4)

    labels = csr_array(np.array([[1, 1, 0], [1, 0, 0]], np.float32))
    batch = next(LabelBatches(labels=labels, batch_size=4).epoch(Largest(np.random.PCG64(0))))
    assert batch.pool.tolist() == [1]


COLOURS = ["red", "blue", "green", "black", "white", "brown"]
KINDS = ["wine", "car", "rose", "bus", "fern", "oak", "train", "beer"]


def colours(*, unseen):
    """Texts of a kind and a colour; labels are colours, with texts, one never among the labels."""
    texts, rows, columns = [], [], []
    for kind in KINDS:
        for number, colour in enumerate(COLOURS):
            texts.append(f"{kind} which is {colour}")
            if colour != unseen:
                rows.append(len(texts) - 1)
                columns.append(number)
    labels = csr_array((np.ones(len(rows)), (rows, columns)), (len(texts), len(COLOURS)))
    space = LabelSpace(
        len(COLOURS),
        TextColumn.from_strings(f"colour {i}" for i in range(len(COLOURS))),
        TextColumn.from_strings(f"{colour} things" for colour in COLOURS),
    )
    return Dataset(TextColumn.from_strings(texts * 3), None, stacked(labels), space)


def stacked(labels):
    from scipy.sparse import vstack

    return vstack([labels] * 3).tocsr().astype(np.float32)


SMALL = {"dimension": 32, "encoder_epochs": 4, "classifier_epochs": 2, "n_threads": 1}


@pytest.mark.parametrize("recipe", [NGAME, DEXA])
@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("block", [False, True])
def test_a_label_without_points_is_found_by_its_text(recipe, frozen, block, tmp_path):
    model = recipe(**SMALL, freeze_encoder=frozen, text_block=block, held_out=0)
    model.fit_dataset(colours(unseen="red"))
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert loaded.predict("a tram, red", k=1)[0][0] == "colour 0"
    assert loaded.predict("a tram, blue", k=1)[0][0] == "colour 1"


@pytest.mark.parametrize(("relations", "n_sources"), [(True, 6), (False, 4)])
def test_the_blend_also_looks_at_shared_words_and_links(relations, n_sources, tmp_path):
    model = NGAME(**SMALL, relations=relations).fit_dataset(colours(unseen="red"))
    scorer = model.predictor_.scorer
    assert scorer.n_sources == n_sources
    assert (scorer.relations is not None) == relations
    model.save(tmp_path / "model")
    texts = ["a tram, blue", "a rose, white"]
    loaded = longtail.load(tmp_path / "model").predict_topk(texts, 3)
    for found, expected in zip(loaded, model.predict_topk(texts, 3), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("held_out", [0, 0.4])
def test_in_the_end_held_out_points_vote_and_link_as_others_do(frozen, held_out, monkeypatch):
    n_seen, learn = [], HeldOutLesson.learn

    def noted(lesson, *what):
        n_seen.append(lesson.seen.nnz)
        return learn(lesson, *what)

    monkeypatch.setattr(HeldOutLesson, "learn", noted)
    data = colours(unseen="red")
    n_pairs = data.labels.nnz
    settings = {**SMALL, "classifier_epochs": 3, "freeze_encoder": frozen}
    model = DEXA(**settings, held_out=held_out).fit_dataset(data)
    scorer = model.predictor_.scorer
    assert len(scorer.search.label_ids) == n_pairs
    assert (n_pairs > n_seen[0]) == (held_out > 0)  # blend and probabilities were learnt before
    went_on = "again: classifiers" in model.run_.timings
    assert went_on == (frozen and held_out > 0)
    epochs = [e for e in model.run_.history if e["stage"].startswith("again: ")]
    assert len(epochs) == EPOCHS_AGAIN * went_on


@pytest.mark.parametrize(
    ("n_points", "n_held_out"), [(150, 0), (200, 40), (1_000, 200), (45_000, 9_000), (10**6, 9_000)]
)
def test_a_blend_is_learnt_from_many_points_or_from_none_apart(n_points, n_held_out):
    assert NGAME().n_held_out(n_points) == n_held_out
    assert NGAME(held_out=0).n_held_out(n_points) == 0


def test_candidates_are_looked_for_longer_than_hard_negatives():
    assert (
        DEXA().classifier_module(100).sizes.beam_size
        == NGAME(beam_size=64).classifier_module(100).sizes.beam_size
    )
    assert NGAME(beam_size=20).classifier_module(100).sizes.beam_size == 20
    assert DEXA().beam_size > 64


def test_a_tail_adds_to_the_scores_of_rare_labels():
    rare, plain = (
        NGAME(**SMALL, tail=tail).fit_dataset(colours(unseen="red")).predictor_.scorer.tail_weights
        for tail in (0.5, 0.0)
    )
    assert rare[0] > rare[1] > 0  # the first label has no points at all
    assert not plain.any()


def test_hard_negatives_are_looked_for_again_as_the_encoder_moves():
    labels = csr_array(np.eye(4, dtype=np.float32))
    ages = []

    def pool(first):
        shortlists = np.array([[first], [first], [first], [first]], np.int32)
        groups = [np.array([0, 1]), np.array([2, 3])]
        how = {"batch_size": 2, "groups": groups, "n_hard": 1, "n_random": 0}
        return SharedPool(labels=labels, shortlists=shortlists, **how)

    def anew(n_before):
        ages.append(n_before)
        return pool(n_before)

    batches = RefreshedPool(pool(0), anew, refresh_every=2)
    kept = []
    for epoch in range(5):
        assert len([*batches.epoch(np.random.default_rng(epoch))]) == batches.n_batches() == 2
        kept.append(int(batches.state()["pool.shortlists"][0, 0]))
    assert ages == [1, 2]
    assert kept == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(("frozen", "times"), [(True, 1), (False, 3)])
def test_module_two_mines_anew_unless_the_encoder_is_frozen(frozen, times, monkeypatch):
    mined, original = [], ClassifierModule._mined

    def count(*given):
        mined.append(given)
        return original(*given)

    monkeypatch.setattr(ClassifierModule, "_mined", count)
    settings = {**SMALL, "classifier_epochs": 3, "refresh_every": 1, "freeze_encoder": frozen}
    NGAME(**settings).fit_dataset(colours(unseen="red"))
    assert len(mined) == times


@pytest.mark.parametrize("recipe", [NGAME, SiameseXML])
def test_labels_without_known_tokens_become_hard_negatives_once_they_have_vectors(recipe):
    words = [f"word{i}" for i in range(60)]
    texts = TextColumn.from_strings(["word0", "word1", *[""] * 58])
    points = TextColumn.from_strings(f"red {word}" for word in words)
    labels = csr_array(np.eye(60, dtype=np.float32))
    settings = {**SMALL, "classifier_epochs": 3, "refresh_every": 1, "freeze_encoder": False}
    model = recipe(**settings, min_df=1, held_out=0)
    model.fit_dataset(Dataset(points, None, labels, LabelSpace(60, None, texts)))
    assert model.predictor_.predict("red word5", k=1)[0][0] == "5"


def test_patience_without_held_out_points_is_refused_before_anything_is_learnt():
    ended = []

    class Told:
        def on_stage(self, stage, seconds):
            ended.extend([] if seconds is None else [stage])

        def on_batch(self, stage, done, total, loss):
            ended.append(stage)

        def on_epoch(self, report):
            ended.append(report.stage)

    model = DEXA(**SMALL, patience=2, held_out=0)
    with pytest.raises(InputError, match="patience = 2"):
        model.fit_dataset(colours(unseen="red"), callbacks=[Told()])
    assert ended == ["tokens"]


def test_a_number_of_clusters_that_cannot_be_is_told():
    with pytest.warns(InputWarning, match="n_clusters=3 becomes 2"):
        DEXA(**SMALL, n_clusters=3).fit_dataset(colours(unseen="red"))


class TestDEXA:
    def test_a_label_of_which_nothing_is_known_is_no_answer(self):
        data = colours(unseen="red")
        texts = ["", *(f"{colour} things" for colour in COLOURS[1:])]
        space = LabelSpace(len(COLOURS), None, TextColumn.from_strings(texts))
        data = Dataset(data.texts, None, data.labels, space)
        model = DEXA(**SMALL, n_clusters=2, n_private=0, held_out=0).fit_dataset(data)
        assert not (model.predict_topk(["a tram, red"], 6)[0] == 0).any()

    @pytest.mark.parametrize("seed", range(3))
    def test_a_cluster_may_be_of_labels_without_points_alone(self, seed):
        data = colours(unseen="red")
        texts = [f"{colour} things" for colour in COLOURS] + [f"n{i} of m{i}" for i in range(60)]
        space = LabelSpace(len(texts), None, TextColumn.from_strings(texts))
        labels = data.labels.copy()
        labels.resize(len(data.texts), len(texts))
        model = DEXA(**SMALL, n_clusters=32, n_private=0, random_state=seed)
        model.fit_dataset(Dataset(data.texts, None, labels, space))
        assert model.predictor_.predict("a tram, blue", k=1)[0][0] == "1"

    def test_frequent_labels_have_a_vector_of_their_own(self):
        labels = csr_array(np.repeat(np.eye(16), np.arange(16) + 1, axis=0))
        texts = random_bags(16, 30, 0)
        run = model_run()
        clusters = DEXA(n_clusters=4, n_private=3).auxiliary_clusters(labels, lambda: texts, run)
        assert sorted(clusters[-3:]) == [4, 5, 6]
        assert set(clusters[:-3]) <= {0, 1, 2, 3}

    def test_auxiliary_vectors_change_what_module_i_learns(self):
        data = colours(unseen="red")
        with_, without = (recipe(**SMALL).fit_dataset(data) for recipe in (DEXA, NGAME))
        heads = [model.predictor_.scorer.heads[1].vectors for model in (with_, without)]
        assert not np.allclose(*heads)


def model_run():
    from longtail.training.run import TrainingRun

    return TrainingRun(seed=0, n_threads=1)


class Killer:
    """Kills training when so many batches of a stage are behind."""

    def __init__(self, stage, done):
        self.stage, self.done = stage, done

    def on_stage(self, stage, seconds):
        pass

    def on_epoch(self, report):
        pass

    def on_batch(self, stage, done, total, loss):
        if (stage, done) == (self.stage, self.done):
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("stage", "frozen"),
    [
        ("encoder", True),
        ("encoder", False),
        ("classifiers", True),
        ("classifiers", False),
        ("again: classifiers", True),
    ],
)
def test_a_killed_training_goes_on_to_the_same_bits(stage, frozen, tmp_path):
    data = colours(unseen="red")

    def fit(**how):
        settings = {**SMALL, "classifier_epochs": 4, "refresh_every": 1, "held_out": 0.4}
        model = DEXA(**settings, batch_size=32, freeze_encoder=frozen, text_block=not frozen)
        return model.fit_dataset(data, checkpoint_seconds=0, **how).predictor_.scorer.to_arrays()

    all_batches, left = Batches(), Batches()
    expected = fit(callbacks=[all_batches])
    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint_folder=tmp_path, callbacks=[Killer(stage, 7)])
    resumed = fit(checkpoint_folder=tmp_path, callbacks=[left])
    assert left.n < all_batches.n
    for name, array in expected.items():
        np.testing.assert_array_equal(resumed[name], array, err_msg=name)


@pytest.mark.parametrize(("recipe", "kept"), [(NGAME, True), (SiameseXML, False)])
def test_a_checkpoint_keeps_neighbourhoods_where_batches_are_made_of_them(recipe, kept, tmp_path):
    where = {"checkpoint_folder": tmp_path, "checkpoint_seconds": 0}
    recipe(**SMALL).fit_dataset(colours(unseen="red"), **where)
    (checkpoint,) = tmp_path.rglob("encoder.*")
    assert any("neighbourhoods" in name for name in load_file(checkpoint)) == kept
