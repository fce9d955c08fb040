"""Texts, and what was answered: examples, and the mistakes of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longtail.metrics.hits import true_among
from longtail.report.mistakes import (
    Confusion,
    MissedLabel,
    most_confused,
    most_missed,
    spread_out,
    sure_and_wrong,
    without_hit,
)
from longtail.report.page import Bar, Name, listed, paragraph, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from longtail.data.dataset import Dataset
    from longtail.metrics.hits import Floats, Integers

__all__ = ["Answered", "examples"]

N_POINTS, N_LABELS = 8, 20  # of each kind: as many as somebody reads
MOST_LETTERS, MOST_OF_NAME = 300, 80  # of a text, and of a label's name
MOST_LABELS = 12  # of a point, that are missing
SURE_AND_WRONG = (
    "Sure, and wrong: first answers that are no label of the point, the most probable first. Often "
    "the answer is right, and the label was forgotten."
)
NOT_FOUND = "Not found: points none of whose labels is among the first {} answers."
_RIGHT = "\N{CHECK MARK}"


def examples(answers: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """Return one small table a text: label, probability, bar.

    Parameters
    ----------
    answers : sequence of (text, answers)
        Answers as `Predictor.predict` returns them.
    """
    tables = [
        table(text, (), [(name, f"{100 * p:.0f} %", Bar(p)) for name, p in named])
        for text, named in answers
    ]
    return paragraph(
        "Texts that are not in the data, chosen by hand, and the labels that the model finds most "
        "probable."
    ) + _side_by_side(tables)


@dataclass(frozen=True, kw_only=True, eq=False)
class Answered:
    """Test points and their first few answers, to look at.

    Parameters
    ----------
    points : Dataset
        With the labels that are true, by the ids of the answers.
    ids : int array (n_points, k)
        Best first, padded with -1.
    probabilities : float array (n_points, k)
    train_label_counts : int array (at most n_labels,)
        How many training points have each label.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import Dataset
    >>> from longtail.report.answers import Answered
    >>> points = Dataset.of(["a dry wine", "an old car"], [["drink"], ["vehicle"]])
    >>> ids, probabilities = np.array([[0], [0]]), np.array([[0.75], [0.25]])
    >>> answered = Answered(
    ...     points=points, ids=ids, probabilities=probabilities, train_label_counts=np.array([3, 1])
    ... )
    >>> "an old car" in answered.mistakes(), "vehicle" in answered.missed_labels()
    (True, True)
    """

    points: Dataset
    ids: Integers
    probabilities: Floats
    train_label_counts: NDArray[np.int64]

    def drawn_points(self) -> str:
        """Return some points from all over, with what was answered."""
        said = "Test points from all over. A check mark is at answers that are labels of the point."
        return paragraph(said) + self._tables(spread_out(self.points.n_points, N_POINTS))

    def mistakes(self) -> str:
        """Return points that the model was sure of and wrong, and points without a hit."""
        truth, k = self.points.labels, self.ids.shape[1]
        wrong = sure_and_wrong(self.ids, self.probabilities, truth, N_POINTS)
        lost = without_hit(self.ids, truth, N_POINTS)
        parts = []
        if len(wrong):
            parts += [paragraph(SURE_AND_WRONG), self._tables(wrong)]
        if len(lost):
            parts += [paragraph(NOT_FOUND.format(k)), self._tables(lost)]
        return "".join(parts)

    def missed_labels(self) -> str:
        """Return which labels are missed most often, and what is answered in their place."""
        truth = self.points.labels
        missed = most_missed(self.ids, truth, N_LABELS)
        confused = most_confused(self.ids, truth, N_LABELS)
        return (self._missed(missed) if missed else "") + (
            self._confused(confused) if confused else ""
        )

    def _missed(self, missed: Sequence[MissedLabel]) -> str:
        """Return the table of labels that are missed."""
        rows = [
            (
                self._name(of.label),
                f"{self._trained(of.label):,}",
                f"{of.n_points:,}",
                f"{of.n_found:,}",
                Bar(of.n_found / of.n_points),
            )
            for of in missed
        ]
        found = f"found by {self.ids.shape[1]} answers"
        header = ("label", "training points", "test points", found, "")
        return table("Labels that are missed most often", header, rows)

    def _confused(self, confused: Sequence[Confusion]) -> str:
        """Return the table of answers that stand where another label was missed."""
        rows = [
            (self._name(of.answered), Name(self._name(of.missed)), f"{of.n_points:,}")
            for of in confused
        ]
        header = ("first answer, wrong", Name("label that was missed"), "test points")
        return table("What is answered in place of what", header, rows)

    def _tables(self, points: Iterable[int]) -> str:
        """Return one small table a point."""
        return _side_by_side(self._table(int(point)) for point in points)

    def _table(self, point: int) -> str:
        """Return the answers of a point, the right ones marked, and its other labels."""
        truth = self.points.labels
        ids, known = self.ids[point], self.ids[point] >= 0
        is_right = true_among(ids[np.newaxis], truth[[point]])[0]
        rows = [
            (
                f"{_RIGHT} {self._name(label)}" if right else self._name(label),
                f"{100 * p:.0f} %",
                Bar(p),
            )
            for label, right, p in zip(
                ids[known].tolist(),
                is_right[known].tolist(),
                self.probabilities[point][known].tolist(),
                strict=True,
            )
        ]
        own = truth.indices[truth.indptr[point] : truth.indptr[point + 1]]
        return table(self._text(point), (), rows) + self._missing(own[~np.isin(own, ids)].tolist())

    def _missing(self, labels: Sequence[int]) -> str:
        """Return which of a point's labels are not among its answers."""
        if not labels:
            return ""
        names, more = map(self._name, labels[:MOST_LABELS]), len(labels) - MOST_LABELS
        return listed("Missing: ", names, f" and {more:,} more" if more > 0 else "")

    def _text(self, point: int) -> str:
        """Return the beginning of a text, or the number of a point of features."""
        texts = self.points.texts
        if texts is None:
            return f"point {point:,}"
        return _beginning(texts[point].strip(), MOST_LETTERS) or "(an empty text)"

    def _name(self, label: int) -> str:
        return _beginning(self.points.label_space.name(label), MOST_OF_NAME)

    def _trained(self, label: int) -> int:
        """Return how many training points have a label; none has one that the model lacks."""
        counts = self.train_label_counts
        return int(counts[label]) if label < len(counts) else 0


def _beginning(text: str, n_letters: int) -> str:
    """Return a text, or as much of it as there is room for."""
    return text if len(text) <= n_letters else f"{text[:n_letters]}\N{HORIZONTAL ELLIPSIS}"


def _side_by_side(examples: Iterable[str]) -> str:
    """Put small tables side by side where there is room."""
    parts = "".join(f"<div>{example}</div>" for example in examples)
    return f'<div class="examples">{parts}</div>\n'
