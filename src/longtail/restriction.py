"""Answers held to some labels: those that are allowed, or all but those that are masked."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from longtail.compiled.blended import compiled_of
from longtail.compiled.parts import MOST_FREQUENT
from longtail.data.label_names import names_in
from longtail.errors import InputError
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.ranking import best_first, padding_last

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.data.label_space import LabelSpace
    from longtail.scorers.calibration import Calibration
    from longtail.scorers.protocols import Scorer

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["Restriction", "check_threshold", "checked_k", "ranked_candidates"]

MOST_GIVEN = 1_000  # labels that are scored whether or not the search finds them
MOST_REFUSED = 1_000  # labels beyond those wanted that a scorer is asked for
LEAST_STEP = 1e-3  # of a score, from the last label that was found to the first that was not
PAIRS_AT_ONCE = 400_000  # of a point and a candidate, held in memory together


@dataclass(frozen=True)
class Restriction:
    """Which labels may be in an answer.

    A restriction takes labels away and changes nothing else: a candidate keeps the probability that
    it has without one. The default recipe, and those of NGAME's family without a transformer,
    answer all of up to 1,000 allowed labels; those that the search does not find come below those
    that it finds. If more are allowed, and with all other recipes, an answer has the labels that
    are allowed among its first `k` and 1,000 more, so that 1,000 masked labels leave room for k
    others. A label that is scored only because it is allowed does not get the probability that it
    has in an unrestricted answer behind those that the search finds, some 40 of a usual model.

    Parameters
    ----------
    is_allowed : bool (n_labels,)
    given : int32 (n_given,)
        Labels to be scored whether or not they are found; what is not comes last.

    Examples
    --------
    >>> from longtail.data.label_space import LabelSpace
    >>> from longtail.restriction import Restriction
    >>> space = LabelSpace.from_names(["bread", "yeast", "guitar"])
    >>> Restriction.of(space, allowed=["guitar", "bread"], masked=["bread"]).is_allowed.tolist()
    [False, False, True]
    """

    is_allowed: NDArray[np.bool_]
    given: Ids

    @classmethod
    def of(
        cls, space: LabelSpace, allowed: Iterable[str] | None, masked: Iterable[str]
    ) -> Restriction | None:
        """Return the restriction to some names, or None where every label may be answered.

        A name means all labels that bear it.

        Raises
        ------
        InputError
            If these are no lists of names, there is no label of a name, or `allowed` is empty.
        """
        # Most queries have no restriction, and none of the time below must be spent on them.
        if allowed is None and isinstance(masked, tuple) and not masked:
            return None
        allowed_ids = None if allowed is None else _ids(space, allowed)
        masked_ids = _ids(space, masked)
        if allowed_ids is None:
            if not len(masked_ids):
                return None
            is_allowed = np.ones(space.n_labels, bool)
        elif not len(allowed_ids):
            raise InputError(
                "No label is allowed, so nothing can be answered. Name the labels that may be in "
                "the answer, or leave `allowed` out to allow all."
            )
        else:
            is_allowed = np.zeros(space.n_labels, bool)
            is_allowed[allowed_ids] = True
        is_allowed[masked_ids] = False
        few = allowed_ids is not None and len(allowed_ids) <= MOST_GIVEN
        given = np.flatnonzero(is_allowed) if few else np.empty(0)
        return cls(is_allowed, given.astype(np.int32))

    def top_k(
        self, scorer: Scorer, calibration: Calibration, bags: Bags, k: int, n_threads: int = 1
    ) -> tuple[Ids, Floats]:
        """Return the k best allowed labels of each bag and their probabilities.

        Returns
        -------
        ids : int32 (n, k)
            Descending, padded with -1.
        probabilities : float32 (n, k)
            Padded with -inf.
        """

        def answer(some: Bags) -> tuple[Ids, Floats]:
            found, scores = self._ranked(scorer, some, k, n_threads)
            # Before labels go: the calibration asks whether a label is ahead of all others.
            known = calibration.probabilities(scores)
            kept = (found >= 0) & self.is_allowed[found]
            ids = np.where(kept, found, np.int32(-1))
            ids, known = padding_last(ids, np.where(kept, known, np.float32(-np.inf)))
            return ids[:, :k], known[:, :k]

        at_once = max(1, PAIRS_AT_ONCE // (k + MOST_REFUSED + len(self.given)))
        return top_k_in_blocks(bags, k, at_once, answer)

    def _ranked(self, scorer: Scorer, bags: Bags, k: int, n_threads: int) -> tuple[Ids, Floats]:
        """Return labels of each bag, best first: so many that k of them should be allowed."""
        n_labels = len(self.is_allowed)
        if len(self.given) and compiled_of(scorer) is not None:
            return ranked_candidates(scorer, bags, self.given, n_labels, n_threads)
        n_refused = int(np.count_nonzero(~self.is_allowed))
        n_enough = min(k + min(n_refused, MOST_REFUSED), n_labels)
        return scorer.top_k(bags, n_enough, n_threads)


def ranked_candidates(
    scorer: Scorer, bags: Bags, given: Ids, n_labels: int, n_threads: int = 1
) -> tuple[Ids, Floats]:
    """Return what a scorer finds of each bag, best first; a default model all its candidates.

    Parameters
    ----------
    scorer : Scorer
    bags : Bags
    given : int32 (n_given,)
        Labels that a default model, compressed or not, scores whether or not it finds them; those
        that it does not find come last. Another is asked for so many and 1,000 more.
    n_labels, n_threads : int

    Returns
    -------
    ids : int32 (n, size)
        Padded with -1.
    scores : float32 (n, size)
        Padded with -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LongtailClassifier
    >>> from longtail.restriction import ranked_candidates
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> bags, vehicle = model.bags(["a bottle of wine"]), np.array([1], np.int32)
    >>> ids, scores = ranked_candidates(model.scorer, bags, vehicle, model.n_labels)
    >>> ids[0, :3].tolist(), scores[0, 2].item()
    ([0, 1, -1], -inf)
    """
    compiled = compiled_of(scorer)
    if compiled is None:
        return scorer.top_k(bags, min(len(given) + MOST_REFUSED, n_labels), n_threads)
    labels, scores = compiled.candidates(bags, n_threads)
    if not len(given):
        return labels, scores
    wider = compiled.finding_also(given)
    all_labels, all_scores = wider.candidates(bags, n_threads)
    # The blend compares candidates: those that were found keep the scores that they have alone.
    is_found = (all_labels[:, :, None] == labels[:, None]).any(axis=2)
    others = np.where(is_found, np.int32(-1), all_labels)
    labels = np.concatenate([labels, others], axis=1)
    scores = np.concatenate([scores, _put_below(scores, others, all_scores)], axis=1)
    labels, scores = padding_last(labels, scores)
    return best_first(labels, scores, scores.shape[1], n_threads)


def _put_below(found: Floats, others: Ids, scores: Floats) -> Floats:
    """Return the scores of labels that no search has found, below all that it has.

    The blend was taught on what is found, and thinks too well of the rest: in its own order, 1,000
    allowed labels are answered much worse than 1,001, of which only what is found is answered.

    Parameters
    ----------
    found : float32 (n, n_found)
        Of what was found, padded with -inf.
    others : int32 (n, size)
        Labels that were not, padded with -1.
    scores : float32 (n, size)
        What the blend says of these; they stay as far apart as they are.
    """
    unfound = np.where(others >= 0, scores, np.float32(-np.inf))
    least = np.where(np.isfinite(found), found, np.inf).min(axis=1, initial=np.inf)
    fall = np.maximum(unfound.max(axis=1, initial=-np.inf) - least + LEAST_STEP, 0)
    below: Floats = unfound - fall[:, None].astype(np.float32)
    return below


def _ids(space: LabelSpace, names: Iterable[str]) -> NDArray[np.int64]:
    """Return the ids of names: of all labels of a name, where several share it."""
    ids = [label for name in dict.fromkeys(names_in(names)) for label in space.ids_of(name)]
    return np.array(ids, np.int64)


def check_threshold(threshold: object) -> None:
    """Raise InputError unless a least probability is from 0 to 1.

    Examples
    --------
    >>> from longtail.restriction import check_threshold
    >>> check_threshold(0.5)
    """
    if not (isinstance(threshold, Real) and 0 <= float(threshold) <= 1):  # nan is neither
        raise InputError(
            f"The threshold is a probability, a number from 0 to 1, got {threshold!r}."
        )


def checked_k(k: int) -> int:
    """Return a number of labels as an int, numpy's too, or raise InputError.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.restriction import checked_k
    >>> checked_k(np.int64(5))
    5
    """
    try:
        k = int(operator.index(k))
    except TypeError as error:
        raise InputError(f"k must be a whole number, got {k!r}.") from error
    if not 1 <= k <= MOST_FREQUENT:
        raise InputError(f"k must be between 1 and {MOST_FREQUENT:,}, got {k:,}.")
    return k
