"""Which tokens the texts of a training set are cut into, and which texts make them known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from longtail.data.characters import are_unspaced
from longtail.data.csr import first_rows
from longtail.data.text_column import NO_TEXTS
from longtail.data.token_counts import document_frequencies
from longtail.data.vectorizer import TextVectorizer
from longtail.errors import InputError
from longtail.estimators.text_traits import (
    LEAST_TEXTS,
    N_LOOKED_AT,
    are_strings,
    sample_of,
    share_alone,
    share_named,
    share_unknown,
    step_for,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.dataset import Dataset
    from longtail.data.text_column import TextColumn
    from longtail.data.token_directions import DirectionsOfFile
    from longtail.estimators.estimator import LabelEstimator

__all__ = [
    "AUTO",
    "WORDS",
    "Encoded",
    "FeatureKinds",
    "char_ngrams_for",
    "char_weight_for",
    "feature_kinds",
    "known_and_encoded",
    "label_texts_of",
    "vectorizer_for",
    "vocabulary_texts",
]

AUTO = "auto"
USUAL_NGRAMS, NGRAMS_OF_FEW_TEXTS, NGRAMS_OF_FEW_WORDS = (4, 5), (3, 5), (2, 5)
UNSPACED_NGRAMS = (2, 4)  # most words of such scripts have one or two characters
LONGEST_OF_STRINGS = 8  # four letters have as many such pieces as some thousand strings
RARELY_ALONE, MOSTLY_ALONE = 0.05, 0.5  # share of a string's pieces that are in no other text
FEW_TEXTS = 20_000  # up to which three characters that words share gain more than they take time
MOSTLY_UNKNOWN = 0.55  # share of words that other texts have not; of any prose, it is below .4
FEW_WORDS = 4  # different ones of a text, on average; of fewer, two characters are evidence, too
USUAL_WEIGHT, WEIGHT_WHERE_NAMED = 0.6, 0.2  # of pieces of words, beside words
NEARLY_ALL = 0.9  # of the labels that points have: share whose words are all in the text
WORDS = TextVectorizer(word_ngrams=1, char_ngrams=None)


def vectorizer_for(
    settings: LabelEstimator, dataset: Dataset, *, symbols: bool = False
) -> TextVectorizer:
    """Return the vectoriser of a training set's texts, which is yet to be fitted.

    Parameters
    ----------
    settings : LabelEstimator
    dataset : Dataset
        With texts.
    symbols : bool
        Whether symbols are words, too.

    Examples
    --------
    >>> from longtail import Astec, Dataset
    >>> from longtail.estimators.vocabulary import vectorizer_for
    >>> dataset = Dataset.of([f"number {i}" for i in range(100)], [["count"]] * 100)
    >>> vectorizer = vectorizer_for(Astec(), dataset)
    >>> vectorizer.char_ngrams, vectorizer.min_df
    ((2, 5), 2)
    """
    pieces = char_ngrams_for(settings.char_ngrams, dataset.texts or NO_TEXTS)
    return TextVectorizer(
        symbols=symbols,
        word_ngrams=settings.word_ngrams,
        char_ngrams=pieces,
        min_df=_min_df_for(settings, dataset, pieces[1] if pieces else 0),
        max_features=settings.max_features,
        kind_weights=(1.0, 1.0, char_weight_for(settings, dataset)),
    )


def _min_df_for(
    settings: LabelEstimator, dataset: Dataset, longest: int
) -> int | tuple[int, int, int]:
    """Return in how many texts tokens must be: two for pieces of strings, if most are in one."""
    least = settings.min_df_for(dataset.n_points)
    texts = sample_of(dataset.texts or NO_TEXTS)
    if settings.min_df is not None or not are_strings(texts):
        return least
    if share_alone(texts, longest) < MOSTLY_ALONE:
        return least
    of_words, of_pairs, of_pieces = least if isinstance(least, tuple) else (least,) * 3
    return of_words, of_pairs, max(of_pieces, 2)


def char_weight_for(settings: LabelEstimator, dataset: Dataset) -> float:
    """Return what pieces of words weigh: less where texts hold the texts of their labels.

    There, words say which labels these are, and pieces bring others that sound alike.

    Examples
    --------
    >>> from longtail import Dataset, LongtailClassifier
    >>> from longtail.estimators.vocabulary import char_weight_for
    >>> dataset = Dataset.of(["a red car", "the tango"] * 50, [["car"], ["tango"]] * 50)
    >>> char_weight_for(LongtailClassifier(), dataset)
    0.2
    >>> char_weight_for(LongtailClassifier(label_texts=False), dataset)
    0.6
    """
    if settings.char_weight is not None:
        return settings.char_weight
    of_labels = label_texts_of(dataset) if settings.looks_at_label_texts() else None
    if of_labels is None or dataset.texts is None or dataset.n_points < LEAST_TEXTS:
        return USUAL_WEIGHT
    step = step_for(dataset.texts, N_LOOKED_AT)
    share = share_named(dataset.texts[::step], dataset.labels[::step], of_labels)
    return WEIGHT_WHERE_NAMED if share >= NEARLY_ALL else USUAL_WEIGHT


def char_ngrams_for(
    given: tuple[int, int] | str | None, texts: TextColumn
) -> tuple[int, int] | None:
    """Return the shortest and longest pieces of words, for these texts unless that is set.

    Raises
    ------
    InputError
        If another word is given.

    Examples
    --------
    >>> from longtail.data.text_column import TextColumn
    >>> from longtail.estimators.vocabulary import char_ngrams_for
    >>> texts = TextColumn.from_strings(["red wine"] * 100)
    >>> char_ngrams_for("auto", texts), char_ngrams_for("auto", texts[:99])
    ((2, 5), (3, 5))
    >>> char_ngrams_for("auto", TextColumn.from_strings(["赤ワイン"]))
    (2, 4)
    >>> char_ngrams_for("auto", TextColumn.from_strings(["GATTACATTGAGACATAGAC"] * 100))
    (2, 8)
    >>> char_ngrams_for((1, 4), texts), char_ngrams_for(None, texts)
    ((1, 4), None)
    """
    if not isinstance(given, str):
        return given
    if given != AUTO:
        raise InputError(
            f"char_ngrams must be (shortest, longest), {AUTO!r}, or None for none; got {given!r}."
        )
    some = sample_of(texts)
    if are_unspaced(some):
        return UNSPACED_NGRAMS
    if are_strings(some):
        return NGRAMS_OF_FEW_WORDS[0], _longest_of_strings(some)
    _, n_texts_of = document_frequencies(some, WORDS.token_rules())
    has_few_words = n_texts_of.sum() < FEW_WORDS * len(some)
    if len(texts) >= LEAST_TEXTS and (has_few_words or _are_unknown(texts)):
        return NGRAMS_OF_FEW_WORDS
    return NGRAMS_OF_FEW_TEXTS if len(texts) <= FEW_TEXTS else USUAL_NGRAMS


def _are_unknown(texts: TextColumn) -> bool:
    """Return whether most words of a text are in no other, so that only their pieces tell.

    Of many texts, most words come again in the end.
    """
    return len(texts) <= FEW_TEXTS and share_unknown(texts) > MOSTLY_UNKNOWN


def _longest_of_strings(texts: TextColumn) -> int:
    """Return how long pieces of strings are: longer, where nearly all have those of five."""
    shortest = NGRAMS_OF_FEW_WORDS[1]
    lengths = range(shortest, LONGEST_OF_STRINGS)
    tells = (n for n in lengths if share_alone(texts, n) >= RARELY_ALONE)
    return next(tells, LONGEST_OF_STRINGS)


class Encoded(NamedTuple):
    """The points and labels of a training set as unit rows.

    Attributes
    ----------
    features : csr_array of float32 (n_points, n_features)
    vectorizer : TextVectorizer or None
        What made them of texts; None where they came as features.
    label_features : csr_array of float32 (n_labels, n_features) or None
        Those of the labels' texts, where the recipe reads any.
    directions : DirectionsOfFile or None
        Where tokens point by word vectors, if a file of these was named.
    """

    features: csr_array
    vectorizer: TextVectorizer | None = None
    label_features: csr_array | None = None
    directions: DirectionsOfFile | None = None


def known_and_encoded(settings: LabelEstimator, dataset: Dataset) -> Encoded:
    """Learn which tokens are known, and encode points and labels by these.

    Raises
    ------
    InputError
        If no text has a token, or none is in enough texts.

    Examples
    --------
    >>> from longtail import Astec, Dataset
    >>> from longtail.estimators.vocabulary import known_and_encoded
    >>> dataset = Dataset.of(["red wine", "red car"], [["drink"], ["vehicle"]])
    >>> encoded = known_and_encoded(Astec(word_ngrams=1, char_ngrams=None), dataset)
    >>> sorted(encoded.vectorizer.tokens_), encoded.features.shape
    (['car', 'red', 'wine'], (2, 3))
    """
    texts, n_points = vocabulary_texts(settings, dataset), dataset.n_points
    vectorizer = vectorizer_for(settings, dataset, symbols=settings.reads_symbols(dataset))
    rows = vectorizer.fit_transform(texts)  # points and labels in one reading
    features = first_rows(rows, n_points)
    if not features.nnz:
        raise InputError(
            f"Empty vocabulary: the {n_points} training texts hold no word at all. "
            "Pass at least one text that is not blank."
        )
    # Training keeps the labels' rows. A slice of scipy's is a copy: it does not keep the points'.
    return Encoded(features, vectorizer, rows[n_points:] if len(texts) > n_points else None)


def vocabulary_texts(settings: LabelEstimator, dataset: Dataset) -> TextColumn:
    """Return the texts whose tokens are known: the points', and those of labels that are read.

    A word of a label's text that no point has yet is one that a text to come may have.

    Raises
    ------
    InputError
        If there are no texts.

    Examples
    --------
    >>> from longtail import Astec, Dataset, LongtailClassifier
    >>> from longtail.estimators.vocabulary import vocabulary_texts
    >>> dataset = Dataset.of(["red wine"], [["drink"]])
    >>> vocabulary_texts(Astec(), dataset), vocabulary_texts(LongtailClassifier(), dataset)
    (TextColumn(['red wine']), TextColumn(['red wine', 'drink']))
    """
    if dataset.texts is None:
        raise InputError("A vocabulary is learnt from texts; these points have features.")
    of_labels = label_texts_of(dataset) if settings.looks_at_label_texts() else None
    return dataset.texts if of_labels is None else dataset.texts.joined(of_labels)


def label_texts_of(dataset: Dataset) -> TextColumn | None:
    """Return the labels' texts, or else names; None where they have neither.

    Examples
    --------
    >>> from longtail import Dataset
    >>> from longtail.estimators.vocabulary import label_texts_of
    >>> texts, labels = ["how to knead", "the tango"], [["bread"], ["dance"]]
    >>> label_texts_of(Dataset.of(texts, labels, label_texts={"dance": "tango, waltz"}))
    TextColumn(['bread', 'tango, waltz'])
    >>> label_texts_of(Dataset.of(texts, [[0], [1]])) is None
    True
    """
    space = dataset.label_space
    return space.names if space.texts is None else space.texts


class FeatureKinds(NamedTuple):
    """What kinds of tokens features are; see `longtail.training.run.TrainingData`."""

    is_word: NDArray[np.bool_] | None
    is_beginning: NDArray[np.bool_] | None
    is_unspaced: bool
    is_unknown: bool


def feature_kinds(vectorizer: TextVectorizer | None, texts: TextColumn) -> FeatureKinds:
    """Return what kinds of tokens the features of texts are.

    Examples
    --------
    >>> from longtail import TextVectorizer
    >>> from longtail.data.text_column import NO_TEXTS
    >>> from longtail.estimators.vocabulary import feature_kinds
    >>> vectorizer = TextVectorizer(char_ngrams=(3, 3), min_df=1).fit(["ab"])
    >>> kinds = feature_kinds(vectorizer, NO_TEXTS)
    >>> kinds.is_word.tolist(), kinds.is_beginning.tolist()
    ([True, False, False], [False, False, True])
    """
    traits = are_unspaced(sample_of(texts)), _are_unknown(texts)
    if vectorizer is None or vectorizer.char_ngrams is None:
        return FeatureKinds(None, None, *traits)
    return FeatureKinds(vectorizer.is_word(), vectorizer.is_beginning(), *traits)
