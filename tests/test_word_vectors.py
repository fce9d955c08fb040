"""Word vectors that were learnt elsewhere: files of these, and trainings that start from them."""

from __future__ import annotations

import gc
import gzip
import os
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from longtail import Dataset, LongtailClassifier, TextVectorizer
from longtail.data.input_notes import InputWarning
from longtail.data.token_directions import DirectionsOfFile, TokenDirections
from longtail.data.word_vectors import FileSize, read_word_vectors, size_of_file
from longtail.errors import DataFormatError, InputError
from longtail.features.token_table import TokenTable
from longtail.recipes.names import recipe as recipe_of

if TYPE_CHECKING:
    from pathlib import Path

    from longtail.training.run import EpochReport

WINE = "wine 0.5 1\n"
THINGS = ("anchor", "bishop", "candle", "dragon", "engine", "feather")
MEANT = ("zeppelin", "yoghurt", "xylophone", "walrus", "vinegar", "umbrella")


def file_of(folder: Path, content: str | bytes) -> Path:
    path = folder / "words.vec"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder: Path, content: str | bytes, *wanted: str) -> list[tuple[str, list[float]]]:
    words, vectors = read_word_vectors(file_of(folder, content), wanted)
    assert vectors.dtype == np.float32
    return list(zip(words, vectors.tolist(), strict=True))


@pytest.mark.parametrize("header", ["", "2 2\n", "400000 2\r\n", "\ufeff2 2\n"])
def test_a_header_is_no_word(tmp_path: Path, header: str) -> None:
    assert read(tmp_path, header + WINE + "2 3 4\n", "wine", "2") == [
        ("wine", [0.5, 1.0]),
        ("2", [3.0, 4.0]),
    ]


def test_the_first_of_equal_words_counts_and_others_are_skipped(tmp_path: Path) -> None:
    text = "car x y\n\nwine at table 7 8\nWINE 1 2\nwine 3 4\nÉTÉ\t5\t6 \n\n"
    assert read(tmp_path, text, "wine", "été") == [("wine", [1.0, 2.0]), ("été", [5.0, 6.0])]


def test_packed_files_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(WINE.encode()), "wine") == [("wine", [0.5, 1.0])]


@settings(max_examples=30)
@given(
    st.dictionaries(
        st.text("abcxyz", min_size=1, max_size=5),
        st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, known: dict) -> None:  # type: ignore[type-arg]
    lines = [f"{word} {' '.join(map(repr, numbers))}\n" for word, numbers in known.items()]
    assert dict(read(tmp_path_factory.mktemp("words"), "".join(lines), *known)) == known


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("car 1 2\nwine 1\n", "line 2: The word 'wine' has 1 number, where the first has 2"),
        ("car 1 2\nwine 1 2 3\n", "line 2: The word 'wine' has 3 numbers"),
        ("wine 1 red\n", "line 1: The vector of 'wine' holds something that is no finite number"),
        ("wine 1 nan\n", "no finite number"),
        ("wine 1 1e99\n", "no finite number"),
        ("wine\ncar\n", "line 1: Here is a word with 0 numbers. Word vectors are read as text"),
        ("wine,1,2\n", "line 1: Here is a word with 0 numbers"),
        (b"\xba\x16\x4f\x2f\x0c\x00\x00\x00\n", "This is a model of fastText"),
        (b"1 2\nwine \x00\x00\x80\x3f\x00\x00\x00\x40\n", "Word vectors are read as text"),
        (b"PK\x03\x04", "zip archive"),
    ],
)
def test_broken_files_are_told_of(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, content, "wine")


def test_a_file_without_any_of_the_words_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has none of the 1 words of these texts"):
        read(tmp_path, "car 1 2\n", "wine")
    for content in ("", "3 2\n", "\n \n"):
        with pytest.raises(DataFormatError, match="There is no word in it"):
            read(tmp_path, content, "wine")


@pytest.mark.parametrize("phrase", ["wine at table", "wine 7 at", "wine 7 at 8", "wine 5 % ."])
def test_phrases_are_skipped(tmp_path: Path, phrase: str) -> None:
    text = f"car 9 9\n{phrase} 3 4\n{WINE}"
    assert read(tmp_path, text, "wine") == [("wine", [0.5, 1.0])]


def test_pairs_and_pieces_point_where_their_words_do(tmp_path: Path) -> None:
    vectorizer = TextVectorizer(word_ngrams=2, char_ngrams=(3, 3), min_df=1)
    vectorizer.fit(["red wine", "winery boat"])
    path = file_of(tmp_path, "red 1 0 0\nwine 0 1 0\nwinery 0 0 1\n")
    directions = TokenDirections.of(vectorizer, path)
    column_of = {token: column for column, token in enumerate(vectorizer.tokens_)}
    rows = directions.directions(0, vectorizer.n_features_)

    def row(token: str) -> list[float]:
        found: list[float] = rows[column_of[token]].round(3).tolist()
        return found

    assert row("red") == [1, 0, 0]
    assert row("red wine") == pytest.approx([0.707, 0.707, 0])
    assert row("winery boat") == [0, 0, 1]
    assert row("win") == pytest.approx([0, 0.707, 0.707])
    assert row("<re") == [1, 0, 0]
    assert row("boat") == row("<bo") == [0, 0, 0]


@pytest.mark.parametrize("dimension", [5, 8, 64])
def test_angles_of_words_are_kept(dimension: int) -> None:
    vectors = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    directions = TokenDirections(csr_array(np.eye(9, dtype=np.float32)), vectors)
    unit = vectors - vectors.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    found = directions.within(dimension, seed=1).directions(0, 9)
    assert found.shape == (9, dimension)
    np.testing.assert_allclose(found @ found.T, unit @ unit.T, atol=1e-5)


def test_numbers_that_say_little_are_left_out() -> None:
    vectors = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)
    vectors[:, 3:] *= 0.01
    directions = TokenDirections(csr_array(np.eye(50, dtype=np.float32)), vectors)
    whole = directions.within(6, seed=0).directions(0, 50)
    short = directions.within(3, seed=0).directions(0, 50)
    np.testing.assert_allclose(short @ short.T, whole @ whole.T, atol=0.05)


def test_a_table_starts_near_what_is_known_and_elsewhere_at_random() -> None:
    two = TokenDirections(
        csr_array(np.array([[1, 0], [0, 0], [0, 1]] * 3_000, np.float32)),
        np.array([[1, 0, 2, 0], [0, 1, 0, 2]], np.float32),
    )
    table = TokenTable(9_000, 32, seed=5, n_threads=1, toward=two)
    random = TokenTable(9_000, 32, seed=5, n_threads=1).vectors()
    rows, known = table.vectors(), two.within(32, 5).directions(0, 9_000)
    np.testing.assert_array_equal(rows[1::3], random[1::3])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = (unit * known).sum(axis=1)
    assert np.mean(cosines[0::3]) > 0.85
    assert np.mean(cosines[2::3]) > 0.85


def points() -> Dataset:
    """Return points of which none says what THINGS are, and labels with texts, some unheard of."""
    texts = [f"{thing} {n}" for n in range(10) for thing in ("house", "garden", *THINGS)]
    names = ["home", "green", *["thing"] * len(THINGS)] * 10
    of_labels = {"home": "home", "green": "green", "thing": "thing"}
    meant = {f"of {word}": word for word in MEANT}
    return Dataset.of(texts, [[n] for n in names], label_texts=of_labels | meant)


@pytest.mark.parametrize("recipe", ["longtail", "dexa"])
def test_words_that_points_do_not_explain_are_known(tmp_path: Path, recipe: str) -> None:
    if recipe == "dexa":
        pytest.importorskip("torch")
    random = np.random.default_rng(0).standard_normal((len(THINGS), 40))
    lines = [
        f"{word} {' '.join(f'{x:.3f}' for x in vector)}\n"
        for pair, vector in zip(zip(THINGS, MEANT, strict=True), random, strict=True)
        for word in pair
    ]
    path = file_of(tmp_path, "".join(lines))
    asked = [f"of {word}" for word in MEANT]

    def n_right(**with_vectors: str) -> int:
        kind = recipe_of(recipe)
        model = kind(random_state=0, char_ngrams=None, **with_vectors).fit_dataset(points())
        answers = model.predictor_.predict(list(THINGS), k=1, allowed=asked)
        return sum(found[0][0] == name for found, name in zip(answers, asked, strict=True) if found)

    assert n_right(word_vectors=str(path)) >= 5
    assert n_right() <= 3


class CountsDirections:
    """A callback that notes after each epoch how many directions of tokens are in memory."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def on_stage(self, stage: str, seconds: float | None) -> None:
        pass

    def on_batch(self, stage: str, done: int, total: int, loss: float | None) -> None:
        pass

    def on_epoch(self, report: EpochReport) -> None:
        self.found.append(sum(isinstance(one, TokenDirections) for one in gc.get_objects()))


@pytest.mark.parametrize("recipe", ["longtail", "dexa"])
def test_word_vectors_are_gone_once_token_vectors_have_started(tmp_path: Path, recipe: str) -> None:
    if recipe == "dexa":
        pytest.importorskip("torch")
    gc.collect()
    path = file_of(tmp_path, "house 1 0 0\ngarden 0 1 0\nanchor 0 0 1\n")
    counts, kind = CountsDirections(), recipe_of(recipe)
    kind(word_vectors=str(path)).fit_dataset(points(), callbacks=[counts])
    assert counts.found
    assert not any(counts.found)


def test_whoever_asks_again_gets_the_same(tmp_path: Path) -> None:
    vectorizer = TextVectorizer(min_df=1).fit(["red wine", "winery boat"])
    source = DirectionsOfFile(vectorizer, file_of(tmp_path, "red 1 0 0\nwine 0 1 0\n"))
    first, second = source.taken(), source.taken()
    assert first is not second
    np.testing.assert_array_equal(first.vectors, second.vectors)
    np.testing.assert_array_equal(first.of_words.toarray(), second.of_words.toarray())


def test_reading_takes_little_more_than_the_vectors(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(500)]
    text = "".join(f"{word} {'0.5 ' * 300}\n" for word in words)
    path = file_of(tmp_path, text)
    tracemalloc.start()
    _, vectors = read_word_vectors(path, set(words))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.6 * vectors.nbytes


@pytest.mark.parametrize(
    ("content", "size"),
    [
        ("wine 0.5 1\ncar 1 2\n", FileSize(None, 2)),
        ("3 300\nwine 0.5 1\n", FileSize(3, 300)),
        ("\nwine 0.5 1 2\n", FileSize(None, 3)),
        ("", FileSize(None, 0)),
        (gzip.compress(b"wine 1 2 3 4\n", mtime=0), FileSize(None, 4)),
    ],
)
def test_first_lines_tell_the_size(tmp_path: Path, content: str | bytes, size: FileSize) -> None:
    path = file_of(tmp_path, content)
    if isinstance(content, bytes):
        path = path.rename(path.with_suffix(".gz"))
    assert size_of_file(path) == size


def test_features_have_no_words(tmp_path: Path) -> None:
    model = LongtailClassifier(word_vectors=str(file_of(tmp_path, WINE)))
    with pytest.raises(InputError, match="these points have ready-made features, not texts"):
        model.fit(np.eye(4, dtype=np.float32), ["a", "b"] * 2)


@pytest.mark.parametrize("scale", [1e-37, 1e-20, 1e19, 1e36])
def test_numbers_of_any_size_point_somewhere(scale: float) -> None:
    vectors = np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32)
    each = csr_array(np.eye(9, dtype=np.float32))
    usual = TokenDirections(each, vectors).within(8, seed=0).directions(0, 9)
    scaled = TokenDirections(each, vectors * np.float32(scale)).within(8, seed=0)
    np.testing.assert_allclose(scaled.directions(0, 9), usual, atol=1e-5)


def test_what_rounding_leaves_is_no_direction() -> None:
    words = np.array([[1, 1], [1, 0]], np.float32)
    vectors = np.array([[0.6, 0.8], [-0.6, -0.80000001]], np.float32) * np.float32(1 + 1e-7)
    rows = TokenDirections(csr_array(words), vectors).directions(0, 2)
    assert rows.any(axis=1).tolist() == [False, True]


@pytest.mark.parametrize("text", [WINE, "wine 1 2\nred 1 2\n", "wine 0 0\nred 0 0\n"])
def test_vectors_that_tell_nothing_apart_are_told_of(tmp_path: Path, text: str) -> None:
    model = LongtailClassifier(word_vectors=str(file_of(tmp_path, text)))
    with pytest.raises(InputError, match="tells none of the words of these texts from another"):
        model.fit(["red wine", "boat"] * 4, ["a", "b"] * 4)


def test_what_can_be_read_but_once_is_told_before_training(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, problem in ((tmp_path, "is a folder"), (tmp_path / "pipe", "is a pipe or a device")):
        with pytest.raises(InputError, match=rf"`word_vectors` names \S+, which {problem}"):
            LongtailClassifier(word_vectors=str(place)).fit(["wine"] * 4, ["a", "b"] * 2)


def test_a_path_is_told_as_a_string_is(tmp_path: Path) -> None:
    path = file_of(tmp_path, "wine 1 2\nboat 2 1\n")
    model = LongtailClassifier(word_vectors=path)  # type: ignore[arg-type]
    model.fit(["red wine", "boat"] * 4, ["a", "b"] * 4)
    assert model.training_report()["settings"]["word_vectors"] == str(path)


def test_a_missing_file_is_told_before_training() -> None:
    with pytest.raises(InputError, match=r"`word_vectors` names nowhere\.vec, which is not there"):
        LongtailClassifier(word_vectors="nowhere.vec").fit(["wine"] * 4, ["a", "b"] * 2)


def test_files_of_another_language_are_warned_of(tmp_path: Path) -> None:
    path = file_of(tmp_path, "taxi 1 2\nhotel 2 1\n")
    vectorizer = TextVectorizer(min_df=1).fit([f"taxi hotel {'a' * n}" for n in range(1, 20)])
    with pytest.warns(
        InputWarning, match=r"words\.vec has 2 of the 21 words of these texts\. Is it"
    ):
        TokenDirections.of(vectorizer, path)


def test_other_vectors_are_another_training(tmp_path: Path) -> None:
    path = file_of(tmp_path, WINE)
    model = LongtailClassifier(word_vectors=str(path))
    assert list(model.files_read()) == [path]


def test_what_is_no_vector_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = file_of(tmp_path, "wine 1 2\nred 1 2\nboat 1\n")
    with pytest.raises(DataFormatError, match=r"words\.vec, line 3: The word 'boat'"):
        LongtailClassifier(word_vectors=str(path)).fit(["red wine", "boat"] * 4, ["a", "b"] * 4)
