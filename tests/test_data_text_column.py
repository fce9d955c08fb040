"""TextColumn: what a list of strings does, without the strings."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data import TextColumn, TextColumnBuilder
from longtail.errors import InputError

texts = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=12)


@settings(max_examples=25, deadline=None)
@given(texts, st.data())
def test_behaves_as_a_list_does(strings, data):
    column = TextColumn.from_strings(strings)
    assert list(column) == strings
    assert [column[i] for i in range(-len(strings), len(strings))] == strings + strings
    cut = data.draw(st.slices(len(strings)))
    assert list(column[cut]) == strings[cut]
    rows = (
        data.draw(st.lists(st.integers(-len(strings), max(len(strings) - 1, 0)))) if strings else []
    )
    taken = column.take(rows)
    assert list(taken) == [strings[row] for row in rows]
    assert taken == TextColumn.from_strings([strings[row] for row in rows])
    assert list(column.joined(taken)) == strings + list(taken)


def test_a_damaged_text_leaves_the_others_readable():
    column = TextColumn.from_strings(["große Fuge", "a rose"])
    buffer = column.buffer.copy()
    buffer[3] = 0xFF
    damaged = TextColumn(buffer, column.offsets)
    assert list(damaged) == [damaged[0], damaged[1]] == ["gro\ufffd\ufffde Fuge", "a rose"]


def test_slice_starts_anew_and_shares_the_buffer():
    column = TextColumn.from_strings(["ab", "cde", "f"])
    part = column[1:]
    assert part.offsets.tolist() == [0, 3, 4]
    assert np.shares_memory(part.buffer, column.buffer)


def test_take_crosses_chunks(monkeypatch):
    monkeypatch.setattr("longtail.data.text_column._CHUNK", 2)
    column = TextColumn.from_strings(["a", "", "ccc", "dd", "e"])
    assert list(column.take([4, 2, 1, 2, 0])) == ["e", "ccc", "", "ccc", "a"]
    assert list(column) == ["a", "", "ccc", "dd", "e"]


def test_builder_takes_bytes_and_starts_anew():
    builder = TextColumnBuilder()
    builder.append("ä".encode())
    builder.append("b")
    first = builder.finish()
    builder.append("c")
    assert len(builder) == 1
    assert list(first) == ["ä", "b"]
    assert list(builder.finish()) == ["c"]


def test_works_on_memory_maps(tmp_path):
    column = TextColumn.from_strings(["eins", "zwei", ""])
    np.save(tmp_path / "b.npy", column.buffer)
    np.save(tmp_path / "o.npy", column.offsets)
    mapped = TextColumn(
        np.load(tmp_path / "b.npy", mmap_mode="r"), np.load(tmp_path / "o.npy", mmap_mode="r")
    )
    assert mapped == column
    assert list(mapped[1:]) == ["zwei", ""]
    assert list(mapped.take([1])) == ["zwei"]


def test_lone_surrogates_are_replaced_and_pairs_joined():
    assert list(TextColumn.from_strings(["a\ud800b", "\ud83d\ude00"])) == ["a\ufffdb", "\U0001f600"]


def test_takes_what_there_is_of_a_damaged_column():
    column = TextColumn(np.frombuffer(b"onetwo", np.uint8), np.array([0, 9, -4, 6], np.int64))
    assert list(column.take([1, 0, 2])) == ["", "onetwo", "onetwo"]


@settings(max_examples=25, deadline=None)
@given(texts)
def test_lines_are_the_texts_whose_own_line_feeds_are_spaces(strings):
    lines = "".join(text.replace("\n", " ") + "\n" for text in strings)
    assert TextColumn.from_strings(strings).as_lines() == lines


@pytest.mark.parametrize("offsets", [[0, 1, 4], [0, 3, 1, 4], [0, 9, 2, 4]])
def test_lines_of_a_damaged_column_are_what_its_texts_read_as(offsets):
    column = TextColumn(np.frombuffer("aéb".encode(), np.uint8), np.array(offsets))
    assert column.as_lines() == "".join(text + "\n" for text in column)
    half = TextColumn(np.frombuffer("aéb".encode(), np.uint8), np.array([0, 2, 4]))
    assert half.as_lines() == "a\ufffd\n\ufffdb\n"


def test_equality_and_copies():
    column = TextColumn.from_strings(["a", "b"])
    assert column != TextColumn.from_strings(["ab", ""])
    assert column != ["a", "b"]
    assert copy.copy(column) == column == copy.deepcopy(column)
    with pytest.raises(TypeError, match="unhashable"):
        hash(column)


def test_index_out_of_range():
    with pytest.raises(IndexError, match="text 2 of 2"):
        TextColumn.from_strings(["a", "b"])[2]


def test_not_a_string_is_named_by_position():
    with pytest.raises(InputError, match=r"Text 1 is nan \(float\)"):
        TextColumn.from_strings(["a", float("nan")])


@pytest.mark.parametrize("offsets", [[], [1, 2], [0, 1], [0, 3]])
def test_offsets_that_do_not_fit_are_refused(offsets):
    with pytest.raises(InputError, match="must run from 0"):
        TextColumn(np.zeros(2, dtype=np.uint8), np.array(offsets, dtype=np.int64))


def test_wrong_types_are_refused():
    with pytest.raises(InputError, match="uint8 buffer"):
        TextColumn(np.zeros(2, dtype=np.int8), np.array([0, 2]))


def test_a_long_text_is_shown_by_its_beginning():
    shown = repr(TextColumn.from_strings(["red wine", "x" * 80, "y" * 81, "z"]))
    assert shown == f"TextColumn(['red wine', '{'x' * 80}', '{'y' * 80}...', ...])"
