"""Holding training points out, twins together.

Data sets are full of near-identical points: editions of one book, variants of one product. A point
whose twin stays in the training part looks easier than any test point, and whatever is tuned on it
learns to trust the nearest neighbour too much. So points are grouped first, and groups are split.

A text that comes again and again is another thing: a query that many ask will be asked again, and
points held out must show it. So where such texts make up more than a few of the points, the points
of large groups are split one by one.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from longtail.data.characters import joined_lines
from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.jit import n_usable_cores, over_row_chunks
from longtail.kernels.row_keys import keys_of_heaviest
from longtail.kernels.word_sets import write_word_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "even_split",
    "held_out_split",
    "split_of_groups",
    "text_group_keys",
]

Rows: TypeAlias = "NDArray[np.int64]"
Keys: TypeAlias = "NDArray[np.uint64]"

_WORD = re.compile(r"\w+")
_N_TOP_FEATURES = 16
MOST_TWINS = 4  # editions, variants; more points than these are one question asked often
LEAST_ASKED_OFTEN = 0.05  # of the points: fewer may be the most printed books of a catalogue


def held_out_split(
    texts_or_features: Sequence[str] | csr_array, fraction: float, seed: int
) -> tuple[Rows, Rows]:
    """Split points into two parts such that near-identical points stay on one side.

    More than four near-identical ones are split like any other points, where a twentieth of all
    points or more are of this kind.

    Parameters
    ----------
    texts_or_features : sequence of str, or sparse matrix of shape (n_points, n_features)
        The points.
    fraction : float
        Share of the points to hold out, between 0 and 1. It is met up to the size of one group.
    seed : int
        The same seed gives the same split.

    Returns
    -------
    train_rows, held_out_rows : ndarray of int64
        Row numbers, ascending; together all points.

    Raises
    ------
    InputError
        If `fraction` is not between 0 and 1, or the points cannot be split.

    See Also
    --------
    text_group_keys, feature_group_keys : what near-identical means.

    Examples
    --------
    >>> texts = ["the red fox", "The fox: red", "a hen", "two eggs", "hen, a", "a nest"]
    >>> train, held_out = held_out_split(texts, 0.34, seed=0)
    >>> len(train), len(held_out)
    (4, 2)
    """
    if not 0 < fraction < 1:
        raise InputError(f"`fraction` must lie between 0 and 1, got {fraction}.")
    return split_of_groups(_groups(texts_or_features), fraction, seed)


def split_of_groups(group_of_row: Rows, fraction: float, seed: int) -> tuple[Rows, Rows]:
    """Split points such that each group stays on one side: see `held_out_split`.

    Parameters
    ----------
    group_of_row : int64 (n_points,)
        The number of each point's group, from 0.
    fraction : float
    seed : int

    Returns
    -------
    train_rows, held_out_rows : ndarray of int64

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.split import split_of_groups
    >>> train, held_out = split_of_groups(np.array([0, 0, 1, 1, 2, 2]), 0.4, seed=0)
    >>> len(train), len(held_out), len(set(held_out // 2))
    (4, 2, 1)
    """
    n_points, group_sizes = len(group_of_row), np.bincount(group_of_row)
    n_wanted = max(1, round(fraction * n_points))
    # Groups that are too large to be held out are never drawn; else they would block the rest.
    candidates = np.flatnonzero(group_sizes <= n_wanted)
    candidates = np.random.default_rng(seed).permutation(candidates)
    drawn = candidates[np.cumsum(group_sizes[candidates]) <= n_wanted]
    held_out = np.isin(group_of_row, drawn)
    if not held_out.any() or held_out.all():
        raise InputError(
            f"{n_points} points in {len(group_sizes)} groups of near-identical ones cannot be "
            f"split with fraction {fraction}. Pass more points or another fraction."
        )
    return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def even_split(
    texts_or_features: Sequence[str] | csr_array, labels: csr_array, fraction: float, seed: int
) -> tuple[Rows, Rows]:
    """Split points such that all labels lose about the same share of their points.

    That is a stratified split, near-identical points on one side as in `held_out_split`. A label
    with two points or more loses one at least and none loses more than its share, rounded. So do
    points without labels, taken together. Of points with several labels, fewer may be held out.

    Parameters
    ----------
    texts_or_features : sequence of str, or sparse matrix of shape (n_points, n_features)
        The points.
    labels : csr_array (n_points, n_labels)
    fraction : float
    seed : int

    Returns
    -------
    train_rows, held_out_rows : ndarray of int64
        Row numbers, ascending; together all points.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.data.split import even_split
    >>> texts = ["a fox", "two foxes", "foxes", "a hen", "two hens", "hens", "an egg"]
    >>> labels = csr_array(np.eye(3)[[0, 0, 0, 1, 1, 1, 2]])
    >>> train, held_out = even_split(texts, labels, 0.2, seed=0)
    >>> labels[held_out].sum(axis=0).tolist()
    [1.0, 1.0, 0.0]
    """
    none = labels.shape[1]  # stands for no label
    n_points_of = np.bincount(labels.indices, minlength=none + 1)
    n_points_of[none] = np.count_nonzero(np.diff(labels.indptr) == 0)
    share = np.maximum(np.rint(fraction * n_points_of), 1)
    left = np.where(n_points_of > 1, share, 0).astype(np.int64).tolist()
    group_of_row = _groups(texts_or_features)
    groups = np.split(np.argsort(group_of_row, kind="stable"), _starts(group_of_row)[1:])
    is_held_out = np.zeros(len(group_of_row), bool)
    for group in np.random.default_rng(seed).permutation(len(groups)).tolist():
        rows = groups[group]
        own = [label for row in rows for label in _labels_of(labels, row) or [none]]
        for label in own:
            left[label] -= 1
        if min(left[label] for label in own) >= 0:
            is_held_out[rows] = True
        else:
            for label in own:
                left[label] += 1
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)


def _labels_of(labels: csr_array, row: int) -> list[int]:
    """Return the labels of a point."""
    own: list[int] = labels.indices[labels.indptr[row] : labels.indptr[row + 1]].tolist()
    return own


def _starts(group_of_row: Rows) -> Rows:
    """Return where each group starts once the rows are in its order."""
    sizes = np.bincount(group_of_row)
    return np.cumsum(sizes) - sizes


def _groups(texts_or_features: Sequence[str] | csr_array) -> Rows:
    """Return the number of the group of each row: those of a group are held out together."""
    is_matrix = issparse(texts_or_features)
    keys = (_feature_group_keys if is_matrix else text_group_keys)(texts_or_features)
    _, group_of_row, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    is_alone = sizes[group_of_row] > MOST_TWINS
    if is_alone.sum() >= LEAST_ASKED_OFTEN * len(keys):
        group_of_row[is_alone] = len(sizes) + np.arange(np.count_nonzero(is_alone))
    _, numbers = np.unique(group_of_row, return_inverse=True)
    groups: Rows = numbers.astype(np.int64)
    return groups


def text_group_keys(texts: Sequence[str]) -> Keys:
    """Return a 64-bit key for each text, the same for texts with the same set of words.

    Case, order, repeats and punctuation do not count. Two different sets of words share a key with
    a probability of about n**2 / 2**65, and then merely stay together.

    Examples
    --------
    >>> first, second, third = text_group_keys(["The red fox", "fox: the RED", "the fox"])
    >>> bool(first == second), bool(first == third)
    (True, False)
    """
    keys = np.empty(len(texts), np.uint64)

    def make_keys(start: int, stop: int) -> None:
        codes, offsets = joined_lines(texts, start, stop, _lower_case)
        word_sets = np.empty(codes.size + stop - start, np.uint32)
        n_written = write_word_sets(codes, offsets, _word_characters(), word_sets)
        lines = word_sets[:n_written].tobytes().decode("utf-32-le").encode().split(b"\n")[:-1]
        digests = b"".join(blake2b(line, digest_size=8).digest() for line in lines)
        keys[start:stop] = np.frombuffer(digests, "<u8")

    over_row_chunks(make_keys, len(texts), n_threads=n_usable_cores())
    return keys


def _lower_case(text: str) -> NDArray[np.uint32]:
    """Return the code points of a text in lower case."""
    return np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def _word_characters() -> NDArray[np.bool_]:
    """Return which code points a word is made of."""
    everything = np.arange(sys.maxunicode + 1, dtype=np.uint32).tobytes()
    is_word = np.zeros(sys.maxunicode + 1, np.bool_)
    for run in _WORD.finditer(everything.decode("utf-32-le", "surrogatepass")):
        is_word[run.start() : run.end()] = True
    return is_word


def _feature_group_keys(features: csr_array) -> Keys:
    """Return a 64-bit key for each row, the same for rows with the same 16 heaviest features.

    Among equal weights the rarer feature counts as heavier, so that rows of 0 and 1 are told apart
    by what is particular to them.
    """
    matrix = csr_array(features)
    keys = np.empty(matrix.shape[0], np.uint64)
    keys_of_heaviest(
        read_only(matrix.indptr, np.int64),
        read_only(matrix.indices, np.int32),
        read_only(matrix.data, np.float32),
        np.bincount(matrix.indices, minlength=matrix.shape[1]),
        _N_TOP_FEATURES,
        keys,
    )
    return keys
