"""Why a model answers as it does: which words moved which label, and what it saw in training."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.amounts import counted
from longtail.data.bags import Bags
from longtail.data.characters import as_text, character_classes, code_points
from longtail.data.text_column import shown_texts, well_formed
from longtail.errors import InputError, named
from longtail.kernels.text import CHARACTERS, PAIR, UNSPACED, WORD, CharacterClass, mark_words
from longtail.restriction import LEAST_STEP, ranked_candidates
from longtail.scorers.protocols import KnowsPoints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from longtail.data.vectorizer import TextVectorizer
    from longtail.predictor import Predictor
    from longtail.restriction import Restriction

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["Explanation", "LabelExplanation", "NearPoint", "WordEffect", "explain", "words_of"]

MOST_WORDS = 64  # words of a text that are left out in turn
SAME_SCORE = 1e-5
# What may stand in a word, what may stand at its end, and what may not.
_KIND_OF_CLASS = dict.fromkeys(CharacterClass, "-") | {
    CharacterClass.LETTER: "w",
    CharacterClass.MARK: "w",
    CharacterClass.IGNORED: "w",
    CharacterClass.SYMBOL: "s",
}
MOST_NEAR_LABELS = 20  # labels shown of a near training point


@dataclass(frozen=True)
class WordEffect:
    """How much a label's log-odds fall when a word is left out; below 0, they rise.

    Where no word moves a label, it is how much the label's lead over the best other one falls: of a
    model of a few training points, a score says how far the label is behind the best, so that of
    a label which stays the best does not move.
    A word that the model knows only in pieces is still one word here.
    """

    word: str
    effect: float


@dataclass(frozen=True)
class LabelExplanation:
    """A predicted label and the words that moved it, most first."""

    label: str
    probability: float
    words: tuple[WordEffect, ...]

    def __repr__(self) -> str:
        words = [f"{shown_texts([word.word])} {word.effect:+.2f}" for word in self.words[:3]]
        words += ["..."] if len(self.words) > len(words) else []
        label = shown_texts([self.label])
        return f"<LabelExplanation of {label}, {self.probability:.4f}: {', '.join(words)}>"


@dataclass(frozen=True)
class NearPoint:
    """A training point near the text: a model keeps its labels and its row, but not its text.

    The row is its place, from 0, among the points of the file or of ``X`` that the model was
    trained on: blank lines do not count. Of rows that were joined, or are copies, it is the first.
    It is None of a point that came with a label which was added later, and in a model of a version
    that did not keep rows.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> texts = ["red wine", "white wine", "fast car", "old car"]
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]]
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> nearest = model.explain("an old car", k=1).near_points[0]
    >>> nearest.row, texts[nearest.row]
    (3, 'old car')
    """

    similarity: float
    labels: tuple[str, ...]
    row: int | None = None

    def __repr__(self) -> str:
        where = "" if self.row is None else f"in row {self.row:,}, "
        of = f"{where}of similarity {self.similarity:.4f}"
        return f"<NearPoint {of}: {shown_texts(self.labels)}>"


@dataclass(frozen=True)
class Explanation:
    """What `explain` returns; `near_points` is empty where a model keeps no points to search in.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.explain import explain
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> found = explain(model, "a bottle of wine", k=2, n_near_points=1)
    >>> [label.label for label in found.labels], found.near_points[0].labels
    (['drink', 'vehicle'], ('drink',))
    """

    labels: tuple[LabelExplanation, ...]
    near_points: tuple[NearPoint, ...]

    def __repr__(self) -> str:
        labels, n_points = [part.label for part in self.labels], len(self.near_points)
        of = f"{counted(len(labels), 'label')} and {counted(n_points, 'near point')}"
        return f"<Explanation of {of}: {shown_texts(labels)}>"


def explain(
    model: Predictor,
    text: str,
    k: int = 5,
    *,
    restriction: Restriction | None = None,
    n_near_points: int = 5,
) -> Explanation:
    """Explain the answer to one text.

    The text is answered again with each of its words left out, all of that in one batch. The effect
    of a word on a label is how much the label's log-odds fall without it. Effects need not sum up
    to anything: words act together.

    Parameters
    ----------
    model : Predictor
        Trained on texts.
    text : str
        Of more than 64 different words, the 64 that weigh most in its bag are looked at.
    k : int
        Labels to explain.
    restriction : Restriction, optional
        Which labels may be among them.
    n_near_points : int
        Training points to show.

    Raises
    ------
    InputError
        If the model was trained on ready-made features, or k is out of range.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.explain import explain
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> drink = explain(model, "a bottle of wine", k=1).labels[0]
    >>> drink.label, drink.words[0].word
    ('drink', 'wine')
    """
    if model.vectorizer is None:
        raise InputError("Only models that were trained on texts can be explained, word by word.")
    if not isinstance(text, str):
        raise InputError(f"One text is explained at a time, a string, got {named(text)}.")
    ids, probabilities = model.predict_topk([text], k, restriction=restriction)
    text = well_formed(text)  # its parts will be read by themselves
    labels = ids[0][ids[0] >= 0]
    bags = model.bags([text])
    words, bags_without = _without_each_word(model.vectorizer, text, bags)
    found = _scores_of(model, Bags.joined([bags, *bags_without]), labels)
    scores, others = (model.calibration.as_read(some) for some in found)
    is_first = (scores > others).astype(np.float32)
    is_moved = (np.ptp(scores, axis=0) >= SAME_SCORE) | (np.ptp(is_first, axis=0) > 0)
    log_odds = model.calibration.log_odds(*found)
    ahead = model.calibration.slope * (scores - others)
    log_odds[:, ~is_moved] = ahead[:, ~is_moved]
    effects = log_odds[0] - log_odds[1:]  # (n_words, n_labels)
    explained = tuple(
        LabelExplanation(
            model.label_space.name(label),
            float(probabilities[0, j]),
            _ordered(words, effects[:, j]),
        )
        for j, label in enumerate(labels.tolist())
    )
    return Explanation(explained, _near_points(model, bags, n_near_points))


def words_of(text: str) -> list[str]:
    """Return the different words of a text as the model reads them, in order.

    Examples
    --------
    >>> from longtail.explain import words_of
    >>> words_of("Red wine, red C++ 葡萄")
    ['red', 'wine', 'c++', '葡', '萄']
    """
    codes, classes = code_points(text), character_classes()
    marked = np.empty(3 * len(codes), np.uint32)
    n_marked = mark_words(codes, 0, len(codes), classes, marked)
    edges = (np.flatnonzero(marked[:n_marked] == ord(edge)) for edge in "<>")
    runs = [as_text(marked[start + 1 : stop]) for start, stop in zip(*edges, strict=True)]
    words: dict[str, None] = {}
    for run in runs:
        words.update(dict.fromkeys(run if _is_unspaced(run) else [run]))
    return list(words)


def _is_unspaced(run: str) -> bool:
    """Return whether each character of a run is a word by itself."""
    return bool(character_classes()[ord(run[0])] == UNSPACED)


def _without_each_word(
    vectorizer: TextVectorizer, text: str, bags: Bags
) -> tuple[list[str], list[Bags]]:
    """Return the words that the model knows something of, and the bag of the text without each."""
    words = _weightiest(vectorizer, words_of(text), bags)
    runs = [] if bags.texts is None else _runs_of(text)
    owners = [_owners(vectorizer, column, words) for column in bags.columns.tolist()]
    known, without = [], []
    for word in words:
        kept = np.array([owner is None or word not in owner for owner in owners], bool)
        if kept.all() and bags.texts is None:  # a model that reads texts may know more words
            continue
        known.append(word)
        rest = _without(bags, kept)
        if bags.texts is not None:
            shorter = _without_word(text, runs, word)
            rest = rest._replace(texts=np.array([shorter], np.object_))
        without.append(rest)
    return known, without


def _weightiest(vectorizer: TextVectorizer, words: list[str], bags: Bags) -> list[str]:
    """Return the words that weigh most, in the order of the text.

    The first words of a long text are often the same in all texts, and tell nothing.
    """
    if len(words) <= MOST_WORDS:
        return words
    weight_of = {
        vectorizer.token(column): value
        for column, value in zip(bags.columns.tolist(), bags.values.tolist(), strict=True)
        if vectorizer.kinds_[column] == WORD
    }
    weights = np.array([weight_of.get(word, 0.0) for word in words])
    chosen = np.argsort(-weights, kind="stable")[:MOST_WORDS]
    return [words[place] for place in np.sort(chosen).tolist()]


def _without(bags: Bags, kept: NDArray[np.bool_]) -> Bags:
    """Return a bag without some tokens, also among its words, where it has them in order."""
    values = bags.values[kept]
    # Rows of the vectoriser have unit length, and so has this one if anything is left.
    values = values / max(float(np.linalg.norm(values)), 1e-12)
    rest = Bags.one(bags.columns[kept], values.astype(np.float32))
    if bags.words is not None:
        left = bags.words[0][~np.isin(bags.words[0], bags.columns[~kept])]
        padding = np.full(bags.words.shape[1] - len(left), -1, np.int32)
        rest = rest._replace(words=np.concatenate([left, padding])[None])
    return rest


class _Run(NamedTuple):
    """Where a text spells what is read as some words, mostly one."""

    start: int
    stop: int
    words: list[str]


def _runs_of(text: str) -> list[_Run]:
    """Return the runs of characters between which words end; of scripts with spaces alone."""
    classes = character_classes()[[ord(character) for character in text]]
    kinds = "".join(_KIND_OF_CLASS[found] for found in classes.tolist())
    found = (run.span() for run in re.finditer("w+(?:s+(?![sw]))?", kinds))
    return [_Run(start, stop, words_of(text[start:stop])) for start, stop in found]


def _without_word(text: str, runs: Sequence[_Run], word: str) -> str:
    """Return a text without a word of `words_of`, which its runs may spell otherwise."""
    if _is_unspaced(word):
        return re.sub(re.escape(word), " ", text, flags=re.IGNORECASE)
    parts, end = [], 0
    for start, stop, words in runs:
        if word in words:
            parts += [text[end:start], " "]
            end = stop
    return "".join([*parts, text[end:]])


def _owners(vectorizer: TextVectorizer, column: int, words: Sequence[str]) -> set[str] | None:
    """Return the words that a text loses a token without; None if no single word takes it away.

    A pair goes with either word; a piece that several words share goes with none.
    """
    token, kind = vectorizer.token(column), vectorizer.kinds_[column]
    if kind == PAIR:
        return set(words) & {*token.split(" ")}
    if kind == CHARACTERS:
        holders = {word for word in words if token in f"<{word}>" or _in_run(word, token)}
        return holders if len(holders) == 1 else None
    return {word for word in words if word == token or _in_run(word, token)}


def _in_run(word: str, token: str) -> bool:
    """Return whether a word of a script without spaces is part of a longer token."""
    return word in token and _is_unspaced(word)


def _scores_of(model: Predictor, bags: Bags, labels: Ids) -> tuple[Floats, Floats]:
    """Return the scores (n, n_labels) of some labels, and the best score beside each of them.

    A label that a scorer leaves out of a bag counts as just behind the last that it finds, or as 0,
    which is what no votes at all come to, if that is lower. So an effect does not depend on which
    other labels are explained. A bag of which it says nothing has the lowest score of all bags.
    """
    found, scores = ranked_candidates(model.scorer, bags, labels[:0], model.n_labels)
    behind = np.where(np.isfinite(scores), scores, np.inf).min(axis=1, initial=np.inf) - LEAST_STEP
    lowest = behind.min(initial=0)
    unfound = np.setdiff1d(labels, found[0])  # not found by the search, but allowed by name
    if len(unfound):
        found, scores = ranked_candidates(model.scorer, bags, unfound, model.n_labels)
    own: Floats = np.full((len(found), len(labels)), lowest, np.float32)
    others = own.copy()
    for i, (row_labels, row_scores) in enumerate(zip(found, scores, strict=True)):
        known = np.isfinite(row_scores)
        if known.any():  # else there is no answer, which is as low as any score
            n_scores = max(model.n_labels, 2)  # a single label is compared with the lowest score
            every = np.full(n_scores, min(behind[i], 0), np.float32)
            every[row_labels[known]] = row_scores[known]
            own[i] = every[labels]
            second, first = np.partition(every, -2)[-2:]
            others[i] = np.where(own[i] == first, second, first)
    return own, others


def _ordered(words: Sequence[str], effects: Floats) -> tuple[WordEffect, ...]:
    """Return the words, those that moved the label most first."""
    order = np.argsort(-np.abs(effects), kind="stable").tolist()
    return tuple(WordEffect(words[i], float(effects[i])) for i in order)


def _near_points(model: Predictor, bags: Bags, n: int) -> tuple[NearPoint, ...]:
    """Return the nearest training points, where the model has them."""
    scorer = model.scorer
    if not isinstance(scorer, KnowsPoints):
        return ()
    name = model.label_space.name
    points, similarities = (found.tolist() for found in scorer.near_points(bags, n))
    return tuple(
        NearPoint(
            min(similarity, 1.0),  # of vectors whose numbers were rounded, it comes out above that
            tuple(map(name, scorer.labels_of_point(point)[:MOST_NEAR_LABELS].tolist())),
            scorer.training_row_of(point),
        )
        for point, similarity in zip(points, similarities, strict=True)
    )
