"""Labels added to and removed from trained models."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

import longtail
from command_line import refused, stdin_of
from longtail import LongtailClassifier
from longtail.blend import links as made_links
from longtail.blend import relations
from longtail.blend.candidates import CandidateSearch, SearchSizes
from longtail.cli import main
from longtail.compiled.expanded import expanded
from longtail.compiled.scorer import CompiledScorer
from longtail.data.dataset import Dataset
from longtail.data.input_notes import InputWarning
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError, ModelFolderError
from longtail.index import stored
from longtail.index.stored import search_bias_of, search_rows_of
from longtail.kernels.coded_graph import n_edges
from longtail.label_changes import changed_index
from longtail.label_changes.kept_labels import _kept_search
from longtail.label_changes.new_labels import UNDECIDED
from longtail.model_folder import ModelFolder
from longtail.recipes.parabel import Parabel
from longtail.row_store import float_rows
from small_labels import EXAMPLES, NAMES, NEW, TEXTS, WORDS, texts_and_labels

TEST_TEXTS, TEST_NAMES = texts_and_labels(100, 1)


def fit(texts=TEXTS, names=NAMES, **settings):
    """Train; of so few held-out points no network is learnt: sources are weighed alone."""
    settings = {"dimension": 16, "n_threads": 1, "held_out": 0.06, **settings}
    return LongtailClassifier(**settings).fit(texts, names).predictor_


@pytest.fixture(scope="module")
def whole():
    return fit()


@pytest.fixture(scope="module")
def lacking():
    """A model that was trained without one of the labels."""
    return fit(names=[[name for name in names if name != NEW] for names in NAMES])


def share_found(model, name, k=2):
    """Return how many of the test texts with a label have it among the best two, and of others."""
    answers = model.predict(TEST_TEXTS, k)
    found = np.array([name in {n for n, _ in answer} for answer in answers])
    has = np.array([name in names for names in TEST_NAMES])
    return found[has].mean(), found[~has].mean()


@pytest.fixture(scope="module")
def precise():
    """Numbers as they were learnt, and a label that is known by its text alone."""
    names = [[name for name in names if name != NEW] for names in NAMES]
    dataset = Dataset.of(TEXTS, names)
    columns = [*dataset.label_space.names, "hedges"]
    pairs = dataset.labels.copy()
    pairs.resize((dataset.n_points, len(columns)))
    dataset = Dataset(dataset.texts, None, pairs, LabelSpace.from_names(columns))
    settings = {"dimension": 16, "n_threads": 1, "storage": "float32"}
    return LongtailClassifier(**settings).fit_dataset(dataset).predictor_


def line_through(common, values, at):
    """What a straight line through the labels with points says of another label."""
    has_points = common > 0
    slope, level = np.polyfit(common[has_points], values[has_points], 1)
    return slope * at + level


@pytest.mark.parametrize("n_examples", [0, len(EXAMPLES), 200])
def test_a_new_label_starts_as_labels_as_common_are(precise, n_examples):
    texts = [text for text, names in zip(TEXTS, NAMES, strict=True) if NEW in names] * 4
    examples = {NEW: texts[:n_examples]} if n_examples else {}
    before = expanded(precise.scorer)
    after = expanded(precise.with_labels([NEW], examples).scorer)
    counts = np.expm1(before.commonness)
    common = np.log1p(max(n_examples, counts[counts > 0].mean()))
    assert after.commonness[-1] == pytest.approx(common, rel=1e-5)
    pairs = [(one.bias, other.bias) for one, other in zip(before.heads, after.heads, strict=True)]
    for own, longer in (*pairs, (before.tail_weights, after.tail_weights)):
        np.testing.assert_array_equal(longer[:-1], own)
        expected = line_through(before.commonness, own, common)
        assert longer[-1] == pytest.approx(expected, rel=1e-3, abs=1e-3)
    assert after.linear.bias[-1] == np.float32(UNDECIDED)
    text = before.encoder.encode(precise.bags([NEW]))[0]
    mean = np.zeros(16)
    if n_examples:
        mean = before.encoder.encode(precise.bags(texts[:n_examples])).mean(axis=0)
        mean /= np.linalg.norm(mean)
    both = (mean + text) / np.linalg.norm(mean + text)
    for head, expected in zip(after.heads, (both, mean, text), strict=True):
        np.testing.assert_allclose(head.vectors_of_labels()[-1], expected, atol=1e-5)
    links = after.relations
    weights = links.link_weights[links.link_starts[-2] :]
    assert len(weights) == np.count_nonzero(weights)
    assert bool(len(weights)) == bool(n_examples)


def test_labels_that_stay_keep_all_that_was_learnt(precise):
    names = list(precise.label_space.names)
    gone = [names.index("cars"), names.index("wine")]
    before = expanded(precise.scorer)
    after = expanded(precise.without_labels(["cars", "wine"]).scorer)
    pairs = [(one.bias, other.bias) for one, other in zip(before.heads, after.heads, strict=True)]
    vectors = [(scorer.vectors_of_labels()) for scorer in (before, after)]
    for own, fewer in (
        *pairs,
        (before.tail_weights, after.tail_weights),
        (before.commonness, after.commonness),
        (before.linear.bias, after.linear.bias),
        vectors,
    ):
        np.testing.assert_array_equal(np.delete(own, gone, axis=0), fewer)
    hedges = after.search.n_labels - 1  # no point has it, so not every point is to ask for it
    assert sorted(after.search.popular.tolist()) == list(range(hedges))


def test_changes_are_counted(whole):
    model = whole.with_labels(["lawn", "garden"], {"lawn": EXAMPLES, "garden": EXAMPLES})
    model = model.with_labels(["hedge"], {"hedge": EXAMPLES}).without_labels(["lawn"])
    assert model.description["label_changes"] == {"added": 3, "removed": 1}


def test_labels_of_one_vector_are_kept_with_their_bias(monkeypatch):
    monkeypatch.setattr("longtail.index.stored.EXACT_BELOW", 0)
    vectors = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = csr_array(np.eye(60, dtype=np.float32))
    of_vector, bias = np.arange(60) % 40, np.arange(60, dtype=np.float32) % 40 / 40
    search = CandidateSearch.build(
        vectors[of_vector],
        vectors,
        labels[:40],
        sizes=SearchSizes(),
        seed=0,
        n_threads=1,
        bias=bias,
    )
    kept = np.setdiff1d(np.arange(60), [0, 3, 50])
    fewer = _kept_search(search, kept, np.ones(57, np.float32), 1)
    _, places = search_rows_of(fewer.label_index)
    np.testing.assert_array_equal(fewer.label_of_row, np.arange(57))
    np.testing.assert_array_equal(search_bias_of(fewer.label_index)[places], bias[kept])


@pytest.mark.parametrize(
    "storage", ["float32", pytest.param("float16", marks=pytest.mark.thorough), "int8"]
)
def test_graphs_of_labels_and_points_are_changed(storage, tmp_path, monkeypatch):
    """What is saved answers as what was changed, and much as a model with graphs built anew."""
    monkeypatch.setattr(stored, "EXACT_BELOW", 2)
    monkeypatch.setattr(changed_index, "EXACT_BELOW", 2)
    monkeypatch.setattr(changed_index, "LARGEST_SHARE", 1.0)
    names = [[name for name in names if name != NEW] for names in NAMES]
    lacking = fit(names=names, storage=storage)
    model = lacking.with_labels({NEW: NEW}, {NEW: EXAMPLES}).without_labels(["wine"])
    assert all(n_edges(graph) for graph in (model.scorer.parts.labels, model.scorer.parts.points))
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    monkeypatch.setattr(changed_index, "LARGEST_SHARE", -1.0)
    built = lacking.with_labels({NEW: NEW}, {NEW: EXAMPLES}).without_labels(["wine"])
    assert model.predict(TEST_TEXTS, 3) == loaded.predict(TEST_TEXTS, 3)
    best = [[answer[0][0] for answer in one.predict(TEST_TEXTS, 1)] for one in (model, built)]
    assert np.mean(np.array(best[0]) == best[1]) > 0.95
    for one, other in zip(model.scorer.parts.heads, built.scorer.parts.heads, strict=True):
        np.testing.assert_array_equal(one.bias, other.bias)
        np.testing.assert_array_equal(
            float_rows(one.rows)[one.row_of_label], float_rows(other.rows)[other.row_of_label]
        )


def test_a_new_label_has_no_more_links_than_others(lacking, monkeypatch):
    counts = []
    for most in (made_links.MOST_LINKS, 1):
        monkeypatch.setattr(made_links, "MOST_LINKS", most)
        links = expanded(lacking.with_labels([NEW], {NEW: EXAMPLES}).scorer).relations
        counts.append(int(links.link_starts[-1] - links.link_starts[-2]))
    assert counts[0] > counts[1] == 1


def test_a_word_that_few_labels_are_left_with_finds_them(monkeypatch):
    monkeypatch.setattr(relations, "MOST_POSTINGS", 2)
    model = fit(names=[[f"old {name}" for name in names] for names in NAMES])
    few = model.without_labels([f"old {word}" for word in WORDS[2:]])
    for one, found in ((model, set()), (few, {0, 1})):
        matches = expanded(one.scorer).relations.matches(one.bags(["old"]))
        assert {*matches.labels[0].tolist()} - {-1} == found


@pytest.mark.parametrize("dtype", [None, "float32", "int8"])
@pytest.mark.parametrize("examples", [{}, {NEW: EXAMPLES}], ids=["text", "text and examples"])
def test_a_new_label_is_found_where_it_belongs(lacking, dtype, examples, tmp_path):
    own = lacking if dtype is None else lacking.compressed(dtype)
    model = own.with_labels([NEW], examples)
    assert (own.n_labels, model.n_labels) == (7, 8)
    right, wrong = share_found(model, NEW)
    assert right > 0.7
    assert wrong < 0.2
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert loaded.predict(TEST_TEXTS) == model.predict(TEST_TEXTS)
    assert loaded.train_label_counts[-1] == len(examples.get(NEW, []))
    if dtype is None:
        assert loaded.compressed("int8").predict(TEST_TEXTS[0])
        assert NEW in {n for n, _ in loaded.predict(f"{NEW} in the garden", 8, allowed=[NEW])}


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["labels/commonness", "head1/bias"])
def test_a_damaged_model_gets_no_new_labels(whole, tmp_path, name, value):
    whole.save(tmp_path)
    numbers = np.array(ModelFolder.open(tmp_path).arrays[name])
    file = tmp_path / f"{name.partition('/')[0]}.safetensors"
    broken = np.where(np.arange(len(numbers)) == 0, np.float32(value), numbers)
    file.write_bytes(file.read_bytes().replace(numbers.tobytes(), broken.tobytes()))
    with pytest.raises(ModelFolderError, match=r"is damaged: .* Copy the model again"):
        longtail.load(tmp_path).with_labels([NEW + "s"], {NEW + "s": EXAMPLES})


def test_a_model_that_reads_no_label_texts_needs_examples():
    names = [[name for name in names if name != NEW] for names in NAMES]
    model = fit(names=names, label_texts=False)
    with pytest.raises(InputError, match="does not read label texts"):
        model.with_labels([NEW])
    right, wrong = share_found(model.with_labels([NEW], {NEW: EXAMPLES}), NEW)
    assert right > 0.25
    assert wrong < 0.2


def test_features_instead_of_texts():
    features = csr_array(np.eye(8, dtype=np.float32)[np.arange(80) % 8])
    labels = csr_array(np.eye(8, dtype=np.float32)[np.arange(80) % 8])
    space = LabelSpace.from_names(WORDS)
    estimator = LongtailClassifier(dimension=8, n_threads=1)
    model = estimator.fit_dataset(Dataset(None, features, labels, space)).predictor_
    model = model.with_labels(["new"], {"new": features[[3]]})
    assert "new" in {name for name, _ in model.predict(features[[3]], 2)[0]}


@pytest.mark.parametrize("dtype", [None, "float32", "int8"])
def test_a_removed_label_never_appears_again(whole, dtype, tmp_path):
    own = whole if dtype is None else whole.compressed(dtype)
    model = own.without_labels([NEW, "cars"])
    kept = [name for name in WORDS if name not in (NEW, "cars")]
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    answers = loaded.predict([*TEST_TEXTS, NEW], 8)
    assert {name for answer in answers for name, _ in answer} == set(kept)
    with pytest.raises(InputError, match="None of the 6 labels"):
        loaded.predict("cars", allowed=["cars"])
    before, after = own.predict(TEST_TEXTS, 1), model.predict(TEST_TEXTS, 1)
    rest = [b == a for (b,), (a,) in zip(before, after, strict=True) if b[0] in kept]
    assert sum(b[0] in kept for (b,) in before) > 30
    assert len(rest) > 30
    assert {NEW, "cars"} <= {name for answer in own.predict(TEST_TEXTS, 8) for name, _ in answer}


def test_popular_labels_that_go_are_followed_by_the_next():
    """They are candidates of every point."""
    numbers = np.repeat(np.arange(14), 5 + np.arange(14))
    names = [f"thing{number}" for number in numbers]
    model = fit([f"{name} noise{i % 30}" for i, name in enumerate(names)], [[n] for n in names])
    bias = model.scorer.parts.labels.bias
    assert bias.argmax() == model.scorer.parts.heads[0].row_of_label[model.scorer.parts.popular[0]]
    model = model.without_labels(["thing13", "thing10"])
    popular = [model.label_space.name(label) for label in model.scorer.parts.popular.tolist()]
    assert popular == [f"thing{number}" for number in (12, 11, 9, 8, 7, 6, 5, 4, 3, 2)]


def test_points_that_have_no_label_left_go_with_their_last(lacking):
    model = lacking.with_labels([NEW], {NEW: EXAMPLES})
    n_points = [len(m.scorer.parts.point_starts) - 1 for m in (lacking, model)]
    assert n_points[1] == n_points[0] + len(EXAMPLES)
    again = model.without_labels([NEW])
    assert len(again.scorer.parts.point_starts) - 1 == n_points[0]
    ids, probabilities = lacking.predict_topk(TEST_TEXTS, 3)
    own_ids, own = again.predict_topk(TEST_TEXTS, 3)
    # Bytes of other rows are rounded anew, so a tie may turn out otherwise.
    assert (own_ids == ids).mean() > 0.99
    np.testing.assert_allclose(own, probabilities, rtol=0.1)
    few = lacking.without_labels([name for name in WORDS if name not in ("wine", NEW)])
    assert {name for answer in few.predict(TEST_TEXTS) for name, _ in answer} == {"wine"}


def test_labels_are_searched_by_their_logits_whatever_came_and_went(whole):
    changed = whole.without_labels(["cars"]).with_labels([NEW + "s"], {NEW + "s": EXAMPLES})
    for model in (whole, whole.compressed("int8"), changed):
        parts = model.scorer.parts
        first, rows = parts.heads[0], parts.heads[0].row_of_label
        assert (rows >= 0).all()
        np.testing.assert_allclose(parts.labels.bias[rows], first.bias / first.scale, rtol=1e-6)
        assert len(parts.points.bias) == 0


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_labels_that_stay_are_searched_by_the_same_codes_when_others_come_and_go(dtype):
    model = fit(storage="float32").compressed(dtype)
    changed = model.with_labels(["other"], {"other": EXAMPLES}).without_labels(["cars"])
    codes = []
    for one in (model, changed):
        parts, ids = one.scorer.parts, {one.label_space.name(i): i for i in range(one.n_labels)}
        nodes = parts.heads[0].row_of_label[[ids[name] for name in WORDS if name != "cars"]]
        codes.append(parts.labels.codes[nodes])
    np.testing.assert_array_equal(codes[1], codes[0])


def test_a_label_can_be_removed_and_added_again(whole):
    model = whole.without_labels([NEW]).with_labels({NEW: "roses, flowers"}, {NEW: EXAMPLES})
    right, wrong = share_found(model, NEW)
    assert right > 0.7
    assert wrong < 0.2


def test_points_stay_where_they_are_however_often_labels_come_and_go(whole):
    """Points in four bits a number are taken out and put away each time."""
    model, bag = whole.compressed("int8"), whole.bags(TEST_TEXTS[:1])
    nearest = [model.scorer.near_points(bag, 5)[1]]
    for _ in range(10):
        model = model.with_labels(["other"], {"other": EXAMPLES}).without_labels(["other"])
        nearest.append(model.scorer.near_points(bag, 5)[1])
    np.testing.assert_array_equal(nearest[-1], nearest[0])


@pytest.mark.parametrize(
    ("dtype", "atol"),
    [("float32", 0), pytest.param("float16", 1e-4, marks=pytest.mark.thorough), ("int8", 0.2)],
)
def test_a_compiled_model_expands_to_itself(whole, dtype, atol):
    compiled = CompiledScorer.of(expanded(whole.scorer), dtype)
    again = CompiledScorer.of(expanded(compiled), dtype)
    bags = whole.bags(TEST_TEXTS)
    (ids, scores), (expected_ids, expected) = again.top_k(bags, 3), compiled.top_k(bags, 3)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=atol)  # bytes are rounded anew
    assert (ids == expected_ids).mean() > 0.99  # and labels with as good scores change places


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.with_labels([]), "no label to add"),
        (lambda m: m.with_labels(["wine"]), "a label named 'wine' already"),
        (lambda m: m.with_labels(["new", "a wine", "new"]), "'new' is among .* more than once"),
        (lambda m: m.with_labels([""]), "cannot be named ''"),
        (lambda m: m.with_labels({" \t": "wine"}), r"cannot be named ' \\t'"),
        (lambda m: m.with_labels(["a\ud800"]), r"cannot be named 'a\\ud800'"),
        (lambda m: m.with_labels("new"), r"Pass \['new'\]"),
        (lambda m: m.with_labels(None), "list of label names, got None"),
        (lambda m: m.with_labels([["new"]]), r"strings, got \['new'\]"),
        (lambda m: m.with_labels({5: "new"}), "strings, got 5"),
        (lambda m: m.with_labels(["new"], ["wine"]), "must be a dictionary .* got a list"),
        (lambda m: m.without_labels(5), "list of label names, got 5"),
        (lambda m: m.without_labels([]), "no label to remove"),
        (lambda m: m.with_labels(["qqq"]), "knows no word of its text"),
        (lambda m: m.with_labels(["new"], {"other": ["wine"]}), "examples of 'other'"),
        (lambda m: m.without_labels(["qqq"]), "is named 'qqq'"),
        (lambda m: m.without_labels(WORDS), "all 8 labels"),
    ],
)
def test_what_cannot_be_meant_is_refused(whole, change, message):
    with pytest.raises(InputError, match=message):
        change(whole)


def test_other_recipes_and_labels_without_names_say_so(whole):
    tree = Parabel(n_learners=1, n_threads=1).fit(TEXTS, NAMES).predictor_
    with pytest.raises(InputError, match="default recipe"):
        tree.without_labels(["wine"])
    numbers = fit(names=[[len(names)] for names in NAMES])
    with pytest.raises(InputError, match="have numbers and no names"):
        numbers.with_labels(["new"])
    assert {name for name, _ in numbers.without_labels(["2"]).predict(TEXTS[0])} <= {"0", "1"}


def test_numbers_that_move_up_are_told(tmp_path, capsys):
    own, out = str(tmp_path / "model"), str(tmp_path / "out")
    fit(names=[[len(names)] for names in NAMES]).save(own)
    assert main(["labels", "remove", own, "1", out]) == 0
    assert "those behind a removed one have moved up" in capsys.readouterr().err


def test_the_commands(lacking, tmp_path, capsys):
    own, out = str(tmp_path / "model"), str(tmp_path / "out")
    lacking.save(own)
    (tmp_path / "new.txt").write_text(f"{NEW}\troses and other flowers\ngarden\n")
    rows = [f'{{"text": "{text}", "labels": ["beer", "garden", "{NEW}"]}}' for text in EXAMPLES]
    (tmp_path / "points.jsonl").write_text("\n".join(rows))
    add = ["labels", "add", own, str(tmp_path / "new.txt"), out]
    assert main([*add, "--examples", str(tmp_path / "points.jsonl")]) == 0
    assert "knows 9 labels" in capsys.readouterr().err
    model = longtail.load(out)
    assert {NEW, "garden"} <= {name for name, _ in model.predict(EXAMPLES[0], 9)}
    assert main(["labels", "remove", out, NEW, "wine", out]) == 0
    assert longtail.load(out).n_labels == 7
    capsys.readouterr()
    for folder, said in ((own, False), (out, True)):
        assert main(["inspect", folder]) == 0
        first = capsys.readouterr().out.splitlines()[0]
        assert first.endswith("; since then, 2 labels added and 2 labels removed") == said
    assert main(["labels", "remove", out, NEW, out]) == 2
    assert "is named 'roses'" in capsys.readouterr().err


def test_labels_are_listed_as_they_are_removed(whole, tmp_path, capsys, monkeypatch):
    own, out = str(tmp_path / "model"), str(tmp_path / "out")
    whole.save(own)
    assert main(["labels", "list", own]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == [*whole.label_space.names]
    gone = tmp_path / "gone.txt"
    gone.write_text("".join(f"{name}\n" for name in listed[:2]))
    for words in ([own, "--from", str(gone), out], [own, out, "--from", "-"]):
        monkeypatch.setattr("sys.stdin", stdin_of(gone.read_bytes()))
        assert main(["labels", "remove", *words]) == 0
        assert [*longtail.load(out).label_space.names] == listed[2:]
    capsys.readouterr()
    for words in ([own, out], [own, listed[0], out, "--from", str(gone)]):
        assert main(["labels", "remove", *words]) == 2
        assert "Name the labels to remove, or a file of them by --from" in capsys.readouterr().err


def test_listed_names_of_more_than_a_line_are_removed_and_allowed(whole, tmp_path, capsys):
    own, out, listed = (str(tmp_path / name) for name in ("model", "out", "listed.txt"))
    odd = {"wine": "red\twine", "beer": "two\nlines", "ferns": "back\\tferns"}
    whole.with_names(odd).save(own)
    assert main(["labels", "list", own]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "\\" in line]
    assert {*lines} == {r"red\twine", r"two\nlines", r"back\tferns"}
    (tmp_path / "listed.txt").write_text("\n".join(lines))
    assert main(["predict", own, "--text", TEXTS[0], "--allowed", listed]) == 0
    answered = capsys.readouterr().out.splitlines()
    assert {line.partition("\t")[2] for line in answered} == {*lines}
    assert main(["labels", "remove", own, "--from", listed, out]) == 0
    assert {*longtail.load(out).label_space.names} == {*whole.label_space.names} - {*odd}


def test_names_that_begin_with_a_dash_are_taught(whole, tmp_path, capsys):
    own, out = str(tmp_path / "model"), str(tmp_path / "out")
    whole.save(own)
    for change, names in (("rename", ["wine", "-wine"]), ("remove", ["--wine"])):
        assert f"{names[-1]} is a name, write -- before the names: longtail labels {change}" in (
            refused(capsys, "labels", change, own, *names, out)
        )
    assert main(["labels", "rename", own, "--", "wine", "-wine", out]) == 0
    assert main(["labels", "remove", out, "--", "-wine", out]) == 0
    assert "-wine" not in longtail.load(out).label_space.ids_by_name


def test_a_model_without_training_points_can_be_changed_on(whole):
    bare = whole.with_labels({"a new one": TEXTS[0]}).without_labels(set(whole.label_space.names))
    again = bare.with_labels({"another": TEXTS[1]})
    assert {name for name, _ in again.predict(TEXTS[1], k=5)} == {"a new one", "another"}


def test_a_model_without_votes_keeps_no_examples():
    before = fit(n_near_points=0)
    model = before.with_labels(["lawn"], {"lawn": EXAMPLES})
    assert len(model.scorer.parts.point_labels) == len(before.scorer.parts.point_labels)
    assert "lawn" in {name for name, _ in model.predict(EXAMPLES[0], k=3)}


def test_a_model_with_another_part_is_else_the_same(whole):
    model = whole.replaced(n_features=7)
    assert model.n_features == 7
    assert model.description == whole.description
    for name in ("scorer", "label_space", "vectorizer", "calibration", "reads"):
        assert getattr(model, name) is getattr(whole, name), name


def test_examples_of_none_of_the_new_labels_are_refused(lacking, tmp_path, capsys):
    own, out, points = (tmp_path / name for name in ("model", "out", "points.jsonl"))
    lacking.save(own)
    (tmp_path / "new.txt").write_text("garden\troses\nlawn\tgrass\n")
    words = [
        "labels",
        "add",
        str(own),
        str(tmp_path / "new.txt"),
        str(out),
        "--examples",
        str(points),
    ]
    points.write_text('{"text": "roses", "labels": ["Garden"]}\n')
    assert main(words) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "points.jsonl has one of the new labels, such as 'garden'. Names must match" in error
    assert not out.exists()
    points.write_text('{"text": "roses", "labels": ["Garden", "garden"]}\n')
    assert main(words) == 0
    error = capsys.readouterr().err
    assert "no point of 1 of the 2 new labels, such as 'lawn': of these the text alone" in error
    assert "unknown labels" not in error


def test_examples_with_labels_that_are_not_new_are_nothing_odd(lacking, tmp_path, capsys):
    own, out = str(tmp_path / "model"), str(tmp_path / "out")
    lacking.save(own)
    (tmp_path / "new.txt").write_text("garden\n")
    rows = [{"text": EXAMPLES[0], "labels": ["garden", "wine"]}, {"text": "a", "labels": ["wine"]}]
    (tmp_path / "points.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = [own, str(tmp_path / "new.txt"), out, "--examples", str(tmp_path / "points.jsonl")]
    assert main(["labels", "add", *words]) == 0
    assert "warning" not in capsys.readouterr().err
    assert longtail.load(out).train_label_counts[-1] >= 1


def test_examples_with_ids_of_another_labels_file_are_refused(lacking, tmp_path, capsys):
    own, out, points = (tmp_path / name for name in ("model", "out", "points.jsonl"))
    lacking.save(own)
    (tmp_path / "new.txt").write_text("garden\troses\nlawn\tgrass\n")
    points.write_text('{"text": "roses", "labels": [0]}\n{"text": "grass", "labels": [7, 1]}\n')
    words = ["labels", "add", own, tmp_path / "new.txt", out, "--examples", points]
    assert main([*map(str, words)]) == 2
    error = capsys.readouterr().err
    assert "has ids of labels, up to 7. Here ids are lines of" in error
    assert not out.exists()
    points.write_text('{"text": "roses", "labels": [0]}\n{"text": "grass", "labels": [0, 1]}\n')
    assert main([*map(str, words)]) == 0


def test_a_label_that_is_named_twice_is_told(lacking, tmp_path, capsys):
    lacking.save(tmp_path / "model")
    (tmp_path / "new.txt").write_text("lawn\tgrass\ngarden\troses\ngarden\ttrees\n")
    words = ["labels", "add", tmp_path / "model", tmp_path / "new.txt", tmp_path / "out"]
    assert main([*map(str, words)]) == 2
    assert "new.txt names 'garden' more than once" in capsys.readouterr().err


def test_new_names_that_look_like_others_are_pointed_out(whole):
    said = "1 label names with blanks at their ends, such as 'wine '"
    with pytest.warns(InputWarning, match=f"labels: {said}"):
        model = whole.with_labels({"wine ": TEXTS[0], "lawn": TEXTS[1]})
    with pytest.warns(InputWarning, match=f"names: {said}"):
        whole.with_names({"beer": "wine "})
    with pytest.warns(InputWarning, match="such as 'cafe\u0301', are written with accents apart"):
        whole.with_labels({"caf\u00e9": TEXTS[0]}).with_labels({"cafe\u0301": TEXTS[0]})
    model.with_labels({"another": TEXTS[2]})  # what was there before is not said again
    whole.with_names({"beer": "Wine"})
    whole.with_names({"wine": "wine "})


def test_names_that_stay_are_not_counted_as_changed(whole, tmp_path, capsys):
    own, out = str(tmp_path / "model"), str(tmp_path / "out")
    whole.save(own)
    assert main(["labels", "rename", own, "wine", "wine", "beer", "ale", out]) == 0
    assert "1 name of" in capsys.readouterr().err


def test_examples_that_tell_nothing_are_pointed_out(lacking):
    texts = {"lawn": TEXTS[0], "garden": TEXTS[1]}
    examples = {"lawn": ["☃", TEXTS[2]], "garden": ["☂", "☃"]}
    said = (
        "examples: 3 of 4 hold nothing that the model knows and are left out, 1 of them of 'lawn'"
    )
    with pytest.warns(InputWarning, match=said):
        model = lacking.with_labels(texts, examples)
    same = lacking.with_labels(texts, {"lawn": TEXTS[2:3]})
    assert model.predict(TEST_TEXTS[:5]) == same.predict(TEST_TEXTS[:5])


@pytest.mark.parametrize(
    "make", [fit, lambda: Parabel(leaf_size=2, n_threads=1).fit(TEXTS, NAMES).predictor_]
)
def test_a_renamed_label_is_else_the_same(make, tmp_path):
    model = make()
    renamed = model.with_names({"wine": "beer", "beer": "ale", "cars": "cars"})
    names = {"wine": "beer", "beer": "ale"}
    expected = [[(names.get(n, n), p) for n, p in row] for row in model.predict(TEST_TEXTS)]
    renamed.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    for one in (renamed, loaded):
        assert one.predict(TEST_TEXTS) == expected
        assert one.predict("wine", allowed=["ale"])[0][0] == "ale"
        assert one.description["label_changes"] == {"renamed": 2}
    with pytest.raises(InputError, match="None of the 8 labels is named 'wine'"):
        loaded.predict("wine", allowed=["wine"])
    assert model.label_space.ids_by_name.keys() == set(WORDS)
    test = Dataset.of(["some wine"], [["beer"]])
    assert loaded.evaluate(test, ks=[1])["P@1"] == 100
    assert loaded.label_space.texts == model.label_space.texts


def test_labels_are_renamed_added_and_removed(whole, tmp_path, capsys):
    own, out = str(tmp_path / "model"), str(tmp_path / "out")
    whole.save(own)
    (tmp_path / "new.txt").write_text("wine\tgrapes and wine\n")
    assert main(["labels", "rename", own, "wine", "claret", "beer", "ale", out]) == 0
    assert capsys.readouterr().err == f"{out} knows 8 labels; 2 names of {own} changed.\n"
    assert main(["labels", "add", out, str(tmp_path / "new.txt"), out]) == 0
    assert main(["labels", "remove", out, "ale", out]) == 0
    assert {"wine", "claret"} < longtail.load(out).label_space.ids_by_name.keys()
    capsys.readouterr()
    assert main(["inspect", out]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.endswith("; since then, 1 label added, 1 label removed and 2 labels renamed")
    for names, said in (
        (["wine"], "'wine' has no new name"),
        (["wine", "a", "wine", "b"], "'wine' is given two new names"),
        (["wines", "a"], "is named 'wines'"),
    ):
        assert main(["labels", "rename", own, *names, str(tmp_path / "other")]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({}, "dictionary of new names by the present ones, got nothing in it"),
        (["wine", "ale"], "dictionary of new names"),
        ({"whine": "ale"}, "None of the 8 labels is named 'whine'"),
        ({"wine": "beer"}, "Another label is or will be named 'beer'"),
        ({"wine": "ale", "beer": "ale"}, "Another label is or will be named 'ale'"),
        ({"wine": " "}, "cannot be named ' '"),
        ({"wine": 5}, "strings, got 5"),
    ],
)
def test_names_that_cannot_be_given_are_refused(whole, names, message):
    with pytest.raises(InputError, match=message):
        whole.with_names(names)


def test_labels_without_names_get_none():
    texts, labels = ["red wine", "old car"] * 10, [[0], [1]] * 10
    model = LongtailClassifier(dimension=16, n_threads=1).fit(texts, labels).predictor_
    with pytest.raises(InputError, match="have numbers and no names that could be changed"):
        model.with_names({"0": "wine"})
