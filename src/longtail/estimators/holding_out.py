"""Which training points are held out, and what is asked instead where none can be."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.data.damping import unit_rows_of_power
from longtail.data.point_input import InputKind
from longtail.data.rows import evenly_spaced
from longtail.data.split import even_split, held_out_split, split_of_groups
from longtail.data.variants import groups_of_variants
from longtail.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.point_input import PointInput
    from longtail.data.text_column import TextColumn
    from longtail.data.vectorizer import TextVectorizer
    from longtail.training.run import TrainingData

    Rows = NDArray[np.int64]

__all__ = [
    "LARGEST_HELD_OUT",
    "LEAST_HELD_OUT",
    "Shown",
    "asked_in_part",
    "can_hold_out",
    "held_out_rows",
    "in_fragments",
    "n_in_part",
    "shown_to_blend",
    "text_in_part",
    "unseen_if_any",
]

LEAST_HELD_OUT, LARGEST_HELD_OUT = 20, 2_500  # points: enough for a few weights and a calibration
EVEN = 0.9  # share of the variance that chance would give to the labels' numbers of points
N_ITERATIONS = 50
FEW = 20  # points a label, on average: of so many, one more or less tells labels apart no longer
FEW_SINGLE = 0.1  # of the labels: so many may have one point, which cannot be held out
MOST_HELD_OUT = 3  # times as many as are wanted, if each label must lose a point
MOST_IN_PART = 4.0  # times as many points are asked in part as are held out, and the reverse
MOST_FRAGMENTS = 1_000  # enough for two numbers
MANY = 400  # points: models of so many err on points that they have learnt from, too


def held_out_rows(
    points: TextColumn | csr_array,
    labels: csr_array,
    n_wanted: float,
    seed: int,
    *,
    reads_label_texts: bool = False,
    bags: csr_array | None = None,
) -> tuple[Rows, Rows]:
    """Return which points to learn from, and which are held out: enough, or none.

    They are drawn at random, near-identical texts together, but for three kinds of data:

    - Somebody has written the same number of examples for each label (`are_even`). The label of a
      random point would be one that has lost an example, and what is learnt would be that labels
      with fewer examples are right. So each label loses the same number of points; where it cannot,
      as an answer with one question cannot, none is held out.
    - Such examples, but as many labels are known by their texts alone as have one example. To find
      these is asked for, too, and points whose labels are never seen teach it: points are drawn at
      random. Parts of other points teach how labels with examples are found: see `n_in_part`.
    - Nearly all points are variants of others, as texts made of others by leaving words out. All
      variants of one are held out together (`groups_of_variants`).

    Parameters
    ----------
    points : TextColumn, or csr_array (n_points, n_features)
    labels : csr_array (n_points, n_labels)
    n_wanted : float
    seed : int
    reads_label_texts : bool
        Whether labels without points can be found by their texts.
    bags : csr_array of float32 (n_points, n_features), optional
        Rows of unit length, by which variants are known.

    Returns
    -------
    train_rows, held_out_rows : int64

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.estimators.holding_out import held_out_rows
    >>> points = csr_array(np.eye(100))
    >>> one_each, four_each = csr_array(np.eye(100)), csr_array(np.eye(25)[np.arange(100) % 25])
    >>> [len(held_out_rows(points, y, 20, seed=0)[1]) for y in (one_each, four_each)]
    [0, 25]
    """
    nothing = train, held = np.arange(labels.shape[0]), np.arange(0)
    if can_hold_out(labels, n_wanted, reads_label_texts=reads_label_texts):
        is_even = _must_be_even(_n_points_of(labels), reads_label_texts=reads_label_texts)
        share = n_wanted / labels.shape[0]
        with suppress(InputError):  # nearly all points alike: none can be held out
            if is_even:
                train, held = even_split(points, labels, share, seed)
            elif (group_of_row := _groups_of_variants(bags, labels)) is not None:
                train, held = split_of_groups(group_of_row, share, seed)
            else:
                train, held = held_out_split(points, share, seed)
    return (train, held) if labels[train].nnz else nothing  # else there is nothing to learn from


def can_hold_out(labels: csr_array, n_wanted: float, *, reads_label_texts: bool = False) -> bool:
    """Return whether `held_out_rows` holds points out, unless nearly all of them are alike.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
    n_wanted : float
    reads_label_texts : bool
        Whether labels without points can be found by their texts.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.estimators.holding_out import can_hold_out
    >>> one_each, four_each = csr_array(np.eye(100)), csr_array(np.eye(25)[np.arange(100) % 25])
    >>> can_hold_out(one_each, 20), can_hold_out(four_each, 20), can_hold_out(four_each, 5)
    (False, True, False)
    """
    n_points_of = _n_points_of(labels)
    if n_wanted < LEAST_HELD_OUT or not n_points_of.any():
        return False
    if not _must_be_even(n_points_of, reads_label_texts=reads_label_texts):
        return True
    n_labels, n_single = np.count_nonzero(n_points_of), np.count_nonzero(n_points_of == 1)
    return bool(n_single <= FEW_SINGLE * n_labels and n_labels <= MOST_HELD_OUT * n_wanted)


def n_in_part(labels: csr_array, n_held_out: int, *, reads_label_texts: bool = False) -> int:
    """Return how many points that are learnt from are asked in part, beside those held out.

    None, if points come by chance. Where somebody has written the same number of examples for each
    label, no two of them are nearly the same, so held-out points cannot show what it means that a
    text is nearly an example. Parts of examples show it: a quarter as many are asked as points are
    held out. If some labels are known by their texts alone, most held-out points have labels that
    have lost their only example, and would teach that a label with an example is never right. So
    there are as many parts for each held-out point as labels with examples for each one without,
    from a quarter to four.

    Parameters
    ----------
    labels : csr_array (n_points, n_labels)
        Of all points.
    n_held_out : int
    reads_label_texts : bool
        Whether labels without points can be found by their texts.

    Examples
    --------
    Two labels have one point each, and two have none.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.estimators.holding_out import n_in_part
    >>> n_in_part(csr_array([[1, 0, 0, 0], [0, 1, 0, 0]]), 1, reads_label_texts=True)
    1
    """
    n_points_of = _n_points_of(labels)
    if not n_held_out or not are_even(n_points_of):
        return 0
    ratio = 1 / MOST_IN_PART
    if not _must_be_even(n_points_of, reads_label_texts=reads_label_texts):
        n_with, n_without = np.count_nonzero(n_points_of), np.count_nonzero(n_points_of == 0)
        ratio = min(max(n_with / n_without, ratio), MOST_IN_PART)
    return min(round(n_held_out * ratio), LARGEST_HELD_OUT)


def _must_be_even(n_points_of: NDArray[np.int64], *, reads_label_texts: bool) -> bool:
    """Return whether each label must lose the same number of points; see `held_out_rows`."""
    n_single = np.count_nonzero(n_points_of == 1)
    n_by_text = np.count_nonzero(n_points_of == 0) if reads_label_texts else 0
    is_closed = n_by_text < n_single or not n_by_text
    return bool(is_closed and are_even(n_points_of))


def are_even(n_points_of: NDArray[np.int64]) -> bool:
    """Return whether labels have few points each, and more alike in number than chance would give.

    If points come by chance, labels' numbers of points vary at least as much as they would if all
    labels were equally frequent, which is as a Poisson distribution without zeros does. Numbers
    that vary less were chosen. If each label has one point, they are even, too.

    Parameters
    ----------
    n_points_of : int64 (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.estimators.holding_out import are_even
    >>> are_even(np.full(100, 5)), are_even(np.random.default_rng(0).poisson(5, 9_999))
    (True, False)
    """
    numbers = n_points_of[n_points_of > 0]
    mean = float(numbers.mean())
    rate = mean
    for _ in range(N_ITERATIONS):
        rate = mean * (1 - math.exp(-rate))
    of_chance = mean * (1 + rate - mean)
    return mean < FEW and bool(numbers.var() < EVEN * of_chance or mean == 1)


def _groups_of_variants(bags: csr_array | None, labels: csr_array) -> Rows | None:
    """Return the groups that variants of one point make, if nearly all points are of that kind.

    None, too, where all labels have as many groups, such as one each: a label whose group is held
    out would not be learnt.
    """
    group_of_row = None if bags is None else groups_of_variants(bags, labels)
    if group_of_row is None:
        return None
    _, first_rows = np.unique(group_of_row, return_index=True)
    return None if are_even(_n_points_of(labels[first_rows])) else group_of_row


def _n_points_of(labels: csr_array) -> NDArray[np.int64]:
    """Return the number of points of each label."""
    return np.bincount(labels.indices, minlength=labels.shape[1])


class Shown(NamedTuple):
    """Points by which it is learnt how far to trust what has been trained.

    Attributes
    ----------
    points : TrainingData
        Those held out come first.
    are_unseen : bool
        Whether some are held out; else all are parts of points that training has seen.
    """

    points: TrainingData
    are_unseen: bool


def unseen_if_any(held_out: TrainingData, seen: TrainingData) -> Shown:
    """Return the points that nothing was learnt from or, where there are none, parts of others."""
    if held_out.labels.shape[0] or seen.in_part is None:
        return Shown(held_out, are_unseen=True)
    return Shown(seen.in_part, are_unseen=False)


def shown_to_blend(held_out: TrainingData, seen: TrainingData) -> Shown:
    """Return the points that nothing was learnt from, and parts of others: see `n_in_part`."""
    shown = unseen_if_any(held_out, seen)
    if seen.in_part is None or not shown.are_unseen:
        return shown
    return shown._replace(points=held_out.with_points_of(seen.in_part))


def asked_in_part(
    data: TrainingData,
    texts: TextColumn | None,
    vectorizer: TextVectorizer | None,
    reads: PointInput,
    seed: int,
    most: int,
) -> TrainingData:
    """Return some of the points as somebody might ask who says less of the same.

    Of each text or bag a random share is left, from next to nothing to nearly all. What has learnt
    from the whole point knows it by heart, but has to tell the part from parts of others: so parts
    show how sure its answers are. Where labels have many points, none is known by heart, and points
    stay as they are; images and dense rows always do.

    Parameters
    ----------
    data : TrainingData
    texts : TextColumn or None
        Those of the points, if these are texts.
    vectorizer : TextVectorizer or None
    reads : PointInput
    seed : int
    most : int
        How many points, if there are so many.
    """
    n_points = data.labels.shape[0]
    random = np.random.default_rng(seed)
    rows = np.sort(random.permutation(n_points)[:most])
    some = data.of_points(rows).with_unlabelled(data)
    if n_points >= MANY and data.labels.nnz >= FEW * np.count_nonzero(_n_points_of(data.labels)):
        return some
    if vectorizer is not None and texts is not None:
        parts = [text_in_part(texts[row], random) for row in rows.tolist()]
        return some._replace(
            features=vectorizer.transform(parts),
            words=reads.words(vectorizer, parts),
            texts=reads.texts(parts),
        )
    if reads.kind is not InputKind.BAGS:
        return some
    return some._replace(features=_bags_in_part(some.features, random))


def in_fragments(
    data: TrainingData, texts: TextColumn | None, vectorizer: TextVectorizer | None, seed: int
) -> TrainingData:
    """Return fragments of some of the points, at most a thousand.

    Of each text, or bag, so much is left that one or two words are about as likely as five or ten,
    whatever its length: somebody who types a text has typed little of it for a while.

    Parameters
    ----------
    data : TrainingData
        Bags of tokens.
    texts : TextColumn or None
        Those of the points, if these are texts.
    vectorizer : TextVectorizer or None
    seed : int
    """
    n_points, random = data.labels.shape[0], np.random.default_rng(seed)
    rows = evenly_spaced(min(MOST_FRAGMENTS, n_points), n_points)
    some = data.of_points(rows)
    if vectorizer is None or texts is None:
        return some._replace(features=_bags_in_part(some.features, random, few=True))
    parts = [text_in_part(texts[row], random, few=True) for row in rows.tolist()]
    return some._replace(features=vectorizer.transform(parts))


def text_in_part(text: str, random: np.random.Generator, *, few: bool = False) -> str:
    """Return some words of a text in their order or, of a single word, a run of characters.

    As many as any, or with `few` of any length of text as often one as two or three.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.estimators.holding_out import text_in_part
    >>> random = np.random.default_rng(1)
    >>> text_in_part("light mail client with documentation", random)
    'light client documentation'
    >>> text_in_part("documentation", random)
    'tion'
    """
    words = text.split()
    pieces = words if len(words) > 1 else text
    share = random.random()
    n_left = max(1, round(share * len(pieces)))
    if few:
        n_left = max(1, round(len(pieces) ** share))
    if len(words) > 1:
        chosen = np.sort(random.permutation(len(words))[:n_left])
        return " ".join(words[i] for i in chosen.tolist())
    start = int(random.integers(len(text) - n_left + 1)) if text else 0
    return text[start : start + n_left]


def _bags_in_part(
    features: csr_array, random: np.random.Generator, *, few: bool = False
) -> csr_array:
    """Return unit rows of a random share of each row's entries; see `text_in_part`."""
    lengths = np.diff(features.indptr)
    of_rows = random.random(len(lengths))
    if few:
        of_rows = np.maximum(lengths, 1) ** -of_rows
    shares = np.repeat(of_rows, lengths)
    kept = features.copy()
    kept.data[random.random(kept.nnz) > shares] = 0
    kept.eliminate_zeros()
    return unit_rows_of_power(kept, 1.0)
