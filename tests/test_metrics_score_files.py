"""The best labels of a score matrix, and files of scores."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, save_npz

from longtail.errors import DataFormatError, InputError
from longtail.metrics import (
    precision_at_k,
    read_scores,
    top_k,
)
from ranked_labels import IDS, SCORES, TRUTH


class TestTopK:
    def test_ties_zeros_negatives_and_short_rows(self):
        matrix = csr_array(
            (
                np.array([0.5, 0.0, 0.5, 0.7, -1.0]),
                np.array([4, 2, 1, 0, 3]),
                np.array([0, 4, 4, 5]),
            ),
            shape=(3, 5),
        )
        ids, scores = top_k(matrix, 3)
        assert ids.tolist() == [[0, 1, 4], [-1, -1, -1], [3, -1, -1]]
        assert scores.tolist() == [[0.7, 0.5, 0.5], [-np.inf] * 3, [-1.0, -np.inf, -np.inf]]

    @given(
        st.lists(st.dictionaries(st.integers(0, 7), st.integers(-3, 3), max_size=8), min_size=1),
        st.integers(1, 9),
    )
    @settings(max_examples=40, deadline=None)
    def test_same_as_sorting_each_row(self, rows, k):
        matrix = csr_array((len(rows), 8)).tolil()
        for point, row in enumerate(rows):
            for label, score in row.items():
                matrix[point, label] = score
        ids, scores = top_k(matrix.tocsr(), k)
        for point, row in enumerate(rows):
            best = sorted((-score, label) for label, score in row.items() if score)[:k]
            rest = k - len(best)
            assert ids[point].tolist() == [label for _, label in best] + [-1] * rest
            assert scores[point].tolist() == [-score for score, _ in best] + [-np.inf] * rest

    def test_nan_is_an_error(self):
        with pytest.raises(InputError, match="NaN"):
            top_k(csr_array([[np.nan, 1.0]]), 1)

    def test_no_place_is_an_error(self):
        with pytest.raises(InputError, match="k is 0"):
            top_k(csr_array([[1.0]]), 0)


class TestScoreFiles:
    text = "3 5\n1:0.9 3:0.5 0:0.4\n0:0.8 2:0.7\n4:0.6 2:0.5 3:0.4\n"

    def test_published_npz_gives_the_published_numbers(self, tmp_path):
        # The predictions of the example at the top, as a score matrix; P@3 = 4/9 there.
        rows, columns = np.nonzero(IDS >= 0)
        scores = csr_matrix((SCORES[rows, columns], (rows, IDS[rows, columns])), shape=(3, 5))
        save_npz(tmp_path / "score.npz", scores)
        ids, values = top_k(read_scores(tmp_path / "score.npz"), 3)
        upper = (tmp_path / "score.npz").rename(tmp_path / "score.NPZ")
        assert np.array_equal(top_k(read_scores(upper), 3)[0], ids)
        assert ids.tolist() == IDS.tolist()
        assert values.tolist() == SCORES.tolist()
        assert precision_at_k(ids, TRUTH, 3) == pytest.approx(4 / 9)

    @pytest.mark.parametrize("name", ["score.txt", "score.txt.gz"])
    def test_text(self, tmp_path, name):
        data = self.text.encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        ids, values = top_k(read_scores(tmp_path / name), 3)
        assert ids.tolist() == IDS.tolist()
        assert values.tolist() == SCORES.tolist()

    def test_empty_lines_and_carriage_returns(self, tmp_path):
        path = tmp_path / "score.txt"
        path.write_bytes(b"3 4\r\n\r\n 2:1e-3  0:-2 \r\n\n")
        assert read_scores(path).toarray().tolist() == [[0] * 4, [-2, 0, 0.001, 0], [0] * 4]

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            ("", 1, r"Expected a header of 2 .* \(n_points n_labels\), got ''"),
            ("3\n", 1, r"Expected a header of 2 .* \(n_points n_labels\), got '3'"),
            ("2 5\n0:1\n5:1\n", 3, "The id 5 is out of range: ids run from 0 to 4"),
            ("1 5\n0:x\n", 2, "Expected id:value, got '0:x'"),
            ("1 5\n0:nan\n", 2, "Expected id:value, got '0:nan'"),
            ("1 5\n0:1e400\n", 2, "too large for a 64-bit number"),
            ("1 5\n0:1 2\n", 2, "Expected id:value, got '2'"),
            ("1 5\n0 1:2:3\n", 2, "Expected id:value, got '0'"),
            ("1 5\n-1:2\n", 2, "Expected id:value, got '-1:2'"),
            ("1 5\n0:1\n0:1\n", 3, "promises 1 rows, but here is one more"),
        ],
    )
    def test_broken_text_is_named_with_its_line(self, tmp_path, text, line, message):
        path = tmp_path / "score.txt"
        path.write_text(text)
        with pytest.raises(DataFormatError, match=message) as caught:
            read_scores(path)
        assert caught.value.line == line

    def test_file_cut_short(self, tmp_path):
        path = tmp_path / "score.txt"
        path.write_text(self.text.rpartition("4:")[0])
        with pytest.raises(DataFormatError, match="promises 3 rows, but the file has 2"):
            read_scores(path)

    def test_compressed_file_cut_short(self, tmp_path):
        path = tmp_path / "score.txt.gz"
        path.write_bytes(gzip.compress(self.text.encode())[:-9])
        with pytest.raises(DataFormatError, match="end too early or are damaged"):
            read_scores(path)

    def test_npz_that_is_none(self, tmp_path):
        path = tmp_path / "score.npz"
        for content in (b"no archive", b""):
            path.write_bytes(content)
            with pytest.raises(DataFormatError, match="not a sparse matrix"):
                read_scores(path)
        np.savez(path, other=np.ones(3))
        with pytest.raises(DataFormatError, match="not a sparse matrix"):
            read_scores(path)

    def test_npz_that_is_damaged(self, tmp_path):
        path = tmp_path / "score.npz"
        save_npz(path, csr_array(np.random.default_rng(0).random((40, 50))))
        whole = path.read_bytes()
        n_refused = 0
        for start in range(30, len(whole) - 100, len(whole) // 40):
            path.write_bytes(whole[:start] + b"\xff" * 8 + whole[start + 8 :])
            try:
                read_scores(path)
            except DataFormatError:
                n_refused += 1
        assert n_refused > 30  # of 40; the others hit what nobody reads

    @pytest.mark.parametrize("name", ["score.npz", "score.txt", "score.txt.gz"])
    def test_file_that_is_not_there(self, tmp_path, name):
        with pytest.raises(InputError, match=rf"{name} cannot be opened: No such file"):
            read_scores(tmp_path / name)

    def test_scores_that_float32_could_not_tell_apart_keep_their_order(self, tmp_path):
        scores = [0.3, 0.3 + 1e-15, 0.3 - 1e-15, 12345678.900001, 12345678.9, 1e-300]
        path = tmp_path / "score.txt"
        path.write_text("1 6\n" + " ".join(f"{i}:{score!r}" for i, score in enumerate(scores)))
        assert read_scores(path).toarray().tolist() == [scores]
        assert top_k(read_scores(path), 6)[0].tolist() == [[3, 4, 1, 0, 2, 5]]

    def test_byte_order_mark(self, tmp_path):
        (tmp_path / "score.txt").write_text(f"\ufeff{self.text}", "utf-8")
        assert read_scores(tmp_path / "score.txt").shape == (3, 5)


class TestDamage:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("1 3\n1:0.5 1:0.5 2:0.9\n", "The id 1 appears twice"),
            ("1 3\n99999999999999999999:1\n", "The id 99999999999999999999 is out of range"),
        ],
    )
    def test_lines_that_mean_nothing(self, tmp_path, text, message):
        path = tmp_path / "scores.txt"
        path.write_text(text)
        with pytest.raises(DataFormatError, match=message):
            read_scores(path)

    def test_blank_lines_at_the_end(self, tmp_path):
        path = tmp_path / "scores.txt"
        path.write_text("1 3\n1:0.5\n\n\n")
        assert read_scores(path).shape == (1, 3)

    def test_compressed_bytes_that_were_changed(self, tmp_path):
        path = tmp_path / "scores.txt.gz"
        lines = "".join(f"{i}:{i / 7}\n" for i in range(500))
        for seed in range(20):
            random = np.random.default_rng(seed)
            packed = bytearray(gzip.compress(f"500 500\n{lines}".encode()))
            for place in random.integers(12, len(packed), 8):
                packed[place] = random.integers(256)
            path.write_bytes(packed)
            with pytest.raises(DataFormatError):
                read_scores(path)
