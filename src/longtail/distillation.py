"""A transformer distilled into a table of token vectors: a text in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.blend.encoded import EncodedScorer
from longtail.compiled.blended import scorer_around
from longtail.data.bags import Bags
from longtail.data.point_input import PointInput
from longtail.errors import InputError
from longtail.features.bag_encoder import UnitBagEncoder
from longtail.kernels.jit import n_usable_threads
from longtail.scorers.inner_transformers import transformers_of, with_transformers_as

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.vectorizer import TextVectorizer
    from longtail.predictor import Predictor
    from longtail.scorers.inner_transformers import TextEncoder

    Floats = NDArray[np.float32]

__all__ = ["Distilled", "distilled", "vectorizer_beside_transformer"]

HELD_OUT = 0.1  # of the texts: to see how near the table comes
LEAST_TEXTS = 20
RIDGE = 0.3  # texts are unit rows, so this is a third of what one text says of its tokens
N_STEPS = 20
TINY = np.float32(1e-30)


class Distilled(NamedTuple):
    """A model without its transformer.

    Attributes
    ----------
    model : Predictor
    cosine : float
        Mean over held-out texts of the cosine between the transformer's vector and the table's.
    """

    model: Predictor
    cosine: float


def vectorizer_beside_transformer(model: Predictor) -> TextVectorizer:
    """Return the vectoriser of a model that can be distilled.

    Raises
    ------
    InputError
        If the model has no transformer, or reads features.

    Examples
    --------
    >>> from longtail.distillation import vectorizer_beside_transformer
    >>> from longtail.recipes.parabel import Parabel
    >>> model = Parabel().fit(["red wine", "old car"], [["drink"], ["vehicle"]]).predictor_
    >>> vectorizer_beside_transformer(model)
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: Only a model with a transformer can be distilled, and this one, ...
    """
    vectorizer = model.vectorizer
    if vectorizer is None or not transformers_of(model.scorer):
        raise InputError(
            "Only a model with a transformer can be distilled, and this one, of "
            f"{model.description.get('recipe')}, has none: dexa, ngame, siamesexml and "
            "xtransformer have one if they are trained with encoder=FOLDER."
        )
    return vectorizer


def distilled(model: Predictor, texts: Sequence[str], n_threads: int | None = None) -> Distilled:
    """Return a model whose transformer has become a weighted average of token vectors.

    As Model2Vec (Tulkens and van Dongen, 2024) does, the vocabulary is read by the transformer, a
    token at a time. Unlike there, tokens are the words of the model's own bags, with their TF-IDF
    in place of Zipf weights; and as the model's classifiers know the transformer's vectors, the
    table must come near these, not only near their angles: so the vectors of all tokens are then
    moved, by ridge regression, to where the averages fit the transformer's vectors of `texts`
    best. Pieces of words, which say nothing to a transformer, are learnt from the texts alone.

    Parameters
    ----------
    model : Predictor
        With a transformer, in torch or in ONNX, and a vectoriser. Stays as it is.
    texts : sequence of str
        Like those that the model will be asked; the training texts are best.
    n_threads : int, optional
        All cores by default.

    Raises
    ------
    InputError
        If the model has no transformer, or the texts are too few.
    """
    vectorizer = vectorizer_beside_transformer(model)
    if len(texts) < LEAST_TEXTS:
        raise InputError(
            f"Distilling needs at least {LEAST_TEXTS} texts, got {len(texts)}. Pass the training "
            "texts."
        )
    n_threads = n_usable_threads(n_threads)
    bags = vectorizer.transform(texts)
    order = np.random.default_rng(0).permutation(len(texts))
    n_held_out = int(HELD_OUT * len(texts))
    held_out, fitted = np.sort(order[:n_held_out]), np.sort(order[n_held_out:])
    strings = np.array([*texts], np.object_)
    cosines: list[float] = []

    def table(teacher: TextEncoder) -> UnitBagEncoder:
        vectors = teacher.encode(Bags.of(bags)._replace(texts=strings), n_threads)
        start = _words(teacher, vectorizer, n_threads)
        student = UnitBagEncoder(_fitted(start, bags[fitted], vectors[fitted], n_threads))
        nearby = student.encode(Bags.of(bags[held_out]), n_threads)
        cosines.append(float((nearby * vectors[held_out]).sum(axis=1).mean()))
        return student

    scorer = with_transformers_as(model.scorer, table)
    if isinstance(scorer, EncodedScorer):
        scorer = scorer_around(scorer.encoder, scorer)
    return Distilled(model.with_scorer(scorer, reads=PointInput()), float(np.mean(cosines)))


def _words(teacher: TextEncoder, vectorizer: TextVectorizer, n_threads: int) -> Floats:
    """Return what the transformer makes of each word, centred; zeros for pieces of words."""
    words = np.flatnonzero(vectorizer.is_word())
    texts = np.array([vectorizer.token(int(word)) for word in words], np.object_)
    every = np.arange(len(words) + 1, dtype=np.int32)
    bags = Bags(every, every[:-1], np.ones(len(words), np.float32), texts=texts)
    found = teacher.encode(bags, n_threads)
    vectors = np.zeros((vectorizer.n_features_, found.shape[1]), np.float32)
    vectors[words] = found - found.mean(axis=0)
    return vectors


def _fitted(start: Floats, features: csr_array, targets: Floats, n_threads: int) -> Floats:
    """Minimise ``|X E - V|^2 + r |E - s E_0|^2`` over E, after the scale s, which fits best alone.

    By conjugate gradients (Hestenes and Stiefel, 1952) on the normal equations, all columns at
    once, for a fixed number of steps.

    Parameters
    ----------
    start : float32 (n_tokens, dimension)
        E_0.
    features : csr_array (n_texts, n_tokens)
        X.
    targets : float32 (n_texts, dimension)
        V.
    n_threads : int
    """
    bags, transposed = Bags.of(features), Bags.of(features.T.tocsr())
    sums = bags.times(start, n_threads)
    table = start * np.float32((sums * targets).sum() / max((sums * sums).sum(), TINY))
    left = targets - bags.times(table, n_threads)
    change = np.zeros_like(table)
    slope = transposed.times(left, n_threads)
    direction, length = slope.copy(), _squares(slope)
    for _ in range(N_STEPS):
        moved = bags.times(direction, n_threads)
        curve = _squares(moved) + np.float32(RIDGE) * _squares(direction)
        step = length / np.maximum(curve, TINY)
        change += step * direction
        left -= step * moved
        slope = transposed.times(left, n_threads)
        slope -= RIDGE * change
        before, length = length, _squares(slope)
        direction *= length / np.maximum(before, TINY)
        direction += slope
    table += change
    return table


def _squares(rows: Floats) -> Floats:
    """Return the sum of squares of each column."""
    sums: Floats = np.einsum("ij,ij->j", rows, rows)
    return sums
