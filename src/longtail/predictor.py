"""The serving object: text in, label names out. It imports neither torch nor scikit-learn."""

from __future__ import annotations

import inspect
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from longtail.compiled.blended import compiled_of
from longtail.compiled.compression import compressed
from longtail.compiled.one_text import OneText
from longtail.compiled.parts import MOST_FREQUENT
from longtail.data.bags import Bags
from longtail.data.blocks import is_one_text
from longtail.data.from_python import ADVICE, texts_from
from longtail.data.given_bags import checked_bags, checked_features
from longtail.data.point_input import PointInput
from longtail.data.text_column import TextColumn
from longtail.errors import InputError, interruptible
from longtail.evaluation import evaluate_model
from longtail.explain import Explanation, explain
from longtail.held_arrays import make_read_only
from longtail.kernels.jit import n_usable_threads
from longtail.label_changes.changes import with_labels, without_labels
from longtail.label_changes.renamed import with_names
from longtail.metrics.hits import USUAL_PLACES, USUAL_RECALL_PLACES
from longtail.metrics.propensity import USUAL_PROPENSITY
from longtail.model_folder import ModelFolder, write_model_folder
from longtail.named_parts import with_prefix
from longtail.restoring import check_kept, parts_in
from longtail.restriction import Restriction, check_threshold, checked_k

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.compiled.scorer import StorageType
    from longtail.data.dataset import Dataset
    from longtail.data.label_space import LabelSpace
    from longtail.data.vectorizer import TextVectorizer
    from longtail.scorers.calibration import Calibration
    from longtail.scorers.protocols import Scorer

__all__ = ["Predictor", "load"]

LARGEST_K = MOST_FREQUENT  # as many as an answer of the default recipe can be filled up with
BAGS = PointInput()


class Predictor:
    """A trained model that answers.

    Made by `longtail.load`, or by an estimator's ``fit`` (its ``predictor_``). Any number of
    threads may use one at once.

    Parameters
    ----------
    scorer : Scorer
    label_space : LabelSpace
        Names of the labels.
    vectorizer : TextVectorizer or None
        None for a model of ready-made features.
    n_features : int
    calibration : Calibration
    train_label_counts : int64 (n_labels,)
        How many training points have each label: propensities and `inspect` need it.
    description : dict
        Recipe, settings and sizes, as JSON values. Only `evaluate` needs one of them: ``n_points``,
        how many training points there were.
    reads : PointInput
        What the scorer reads of a point; its bag unless said otherwise.
    documents : mapping of str to dict
        JSON files that go with the model by name, such as ``training.json``.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> [name for name, probability in model.predict("a bottle of wine")]
    ['drink', 'vehicle']
    >>> [name for name, _ in model.predict("a bottle of wine", masked=["drink"])]
    ['vehicle']
    >>> ids, probabilities = model.predict_topk(["white wine", "an old car"], k=3)
    >>> ids.tolist()
    [[0, 1, -1], [1, 0, -1]]
    """

    def __init__(
        self,
        *,
        scorer: Scorer,
        label_space: LabelSpace,
        vectorizer: TextVectorizer | None,
        n_features: int,
        calibration: Calibration,
        train_label_counts: NDArray[np.int64],
        description: Mapping[str, Any],
        reads: PointInput = BAGS,
        documents: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        self.scorer = scorer
        self.label_space = label_space
        self.vectorizer = vectorizer
        self.n_features = n_features
        self.calibration = calibration
        self.train_label_counts = train_label_counts
        self.description: dict[str, Any] = dict(description)
        self.reads = reads
        self.documents: dict[str, Mapping[str, Any]] = dict(documents)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        make_read_only(self.scorer)

    def __repr__(self) -> str:
        by = self.description.get("recipe", "hand")
        return f"<Predictor of {self.n_labels:,} labels, trained by {by}>"

    @property
    def n_labels(self) -> int:
        """Number of labels that can be predicted."""
        return self.label_space.n_labels

    @property
    def most_answers(self) -> int:
        """As many labels as a point can be answered with, however many it is asked for."""
        return min(self.n_labels, LARGEST_K)

    @property
    def feature_names_in_(self) -> tuple[str, ...]:
        """Names of the columns of a table of features; none where training had no names."""
        return self.reads.feature_names

    @overload
    def predict(
        self,
        X: str,
        k: int = 5,
        *,
        threshold: float = 0.0,
        allowed: Iterable[str] | None = None,
        masked: Iterable[str] = (),
    ) -> list[tuple[str, float]]: ...

    @overload
    def predict(
        self,
        X: Any,
        k: int = 5,
        *,
        threshold: float = 0.0,
        allowed: Iterable[str] | None = None,
        masked: Iterable[str] = (),
    ) -> list[list[tuple[str, float]]]: ...

    def predict(
        self,
        X: Any,
        k: int = 5,
        *,
        threshold: float = 0.0,
        allowed: Iterable[str] | None = None,
        masked: Iterable[str] = (),
    ) -> list[tuple[str, float]] | list[list[tuple[str, float]]]:
        """Return the names and probabilities of the best labels, best first.

        Parameters
        ----------
        X : str, sequence of str, matrix (n_points, n_features), or Bags
            One text, several as a list, an array or a column of a table, rows of ready-made
            features, or the `bags` of any of these.
        k : int
            Most labels a text, from 1 to 10,000.
        threshold : float
            Least probability, from 0 to 1.
        allowed : iterable of str, optional
            Names of the only labels that may be answered; all by default. See `Restriction`.
        masked : iterable of str
            Names of labels that may not be.

        Returns
        -------
        list of (str, float), or a list of those
            A text of which the model knows no token gets an empty list.

        Raises
        ------
        InputError
            If `X` is not what the model was trained on, k or the threshold is out of range, or no
            label has one of the names.
        """
        check_threshold(threshold)
        restriction = Restriction.of(self.label_space, allowed, masked)
        points = [X] if isinstance(X, str) else X
        ids, scores = self.predict_topk(points, k, restriction=restriction)
        answers = [
            [
                (self.label_space.name(label), score)
                for label, score in zip(row_ids, row_scores, strict=True)
                if label >= 0 and score >= threshold
            ]
            for row_ids, row_scores in zip(ids.tolist(), scores.tolist(), strict=True)
        ]
        return answers[0] if isinstance(X, str) else answers

    def predict_topk(
        self,
        X: Any,
        k: int = 5,
        *,
        n_threads: int | None = None,
        restriction: Restriction | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the ids and probabilities of the k best labels of each point.

        Parameters
        ----------
        X : sequence of str, matrix (n_points, n_features), or Bags
            See `predict`.
        k : int
            May exceed what is found; the rest is padding. The default recipe finds up to 10,000.
        n_threads : int, optional
            All cores by default. The numbers do not depend on it, nor on what else is in the batch;
            of a model with a transformer they may in their last digits, and of one in eight bits in
            the third.
        restriction : Restriction, optional
            Which labels may be answered.

        Returns
        -------
        ids : int32 (n, k)
            Descending, padded with -1. A text of which the model knows no token has nothing else.
        probabilities : float32 (n, k)
            Padded with -inf.

        Raises
        ------
        InputError
            If `X` is not what the model was trained on, or a table of features whose columns have
            other names or another order, or k is out of range.
        """
        k = checked_k(k)
        ids, probabilities = self._answers(X, k, n_threads, restriction)
        n_missing = k - ids.shape[1]
        if not n_missing:
            return ids, probabilities
        more = (0, 0), (0, n_missing)
        return (
            np.pad(ids, more, constant_values=-1),
            np.pad(probabilities, more, constant_values=-np.inf),
        )

    def _answers(
        self,
        X: Any,
        k: int,
        n_threads: int | None,
        restriction: Restriction | None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `predict_topk`; there may be fewer columns: the model may have fewer labels."""
        one = self._one if restriction is None and is_one_text(X) else None
        n_possible = min(k, self.n_labels)
        if one is not None:
            return one.top_k(X[0], n_possible)
        with interruptible():
            bags = self.bags(X)
            n_threads = n_usable_threads(1 if bags.n_rows == 1 else n_threads)
            if restriction is not None:
                return restriction.top_k(self.scorer, self.calibration, bags, k, n_threads)
            ids, scores = self.scorer.top_k(bags, n_possible, n_threads)
            return ids, self.calibration.probabilities(scores)

    @interruptible()
    def explain(
        self,
        text: str,
        k: int = 5,
        *,
        allowed: Iterable[str] | None = None,
        masked: Iterable[str] = (),
    ) -> Explanation:
        """Return which words moved each of the k best labels, and the nearest training points.

        See `longtail.explain.explain`; the other arguments are those of `predict`.
        """
        return explain(self, text, k, restriction=Restriction.of(self.label_space, allowed, masked))

    @property
    def answers_at_once(self) -> bool:
        """Whether one compiled call answers a single text, far within a millisecond."""
        return self._one is not None

    @cached_property
    def _one(self) -> OneText | None:
        """What answers single texts."""
        scorer = compiled_of(self.scorer)
        if self.vectorizer is None or scorer is None:
            return None
        return OneText(scorer, self.vectorizer, self.calibration)

    def bags(self, X: Any) -> Bags:
        """Return points as the model's bags of tokens, or raise InputError if they cannot be.

        To ask the same texts several times, for other `k` or within other labels, take them apart
        once: `predict` and `predict_topk` of this model take its bags in place of them.
        """
        if isinstance(X, Bags):
            return checked_bags(X, self.reads, self.n_features)
        if self.vectorizer is None:
            return Bags.of(checked_features(X, self.reads, self.n_features))
        if hasattr(X, "shape") and len(X.shape) > 1:
            raise InputError(f"This model was trained on texts, but was given a table. {ADVICE}")
        if is_one_text(X):
            texts, bags = X, Bags.one(*self.vectorizer.encode_one(X[0]), self.n_features)
        else:
            texts = X if isinstance(X, TextColumn) else texts_from(X)
            bags = Bags.of(self.vectorizer.transform(texts))
        return bags._replace(
            words=self.reads.words(self.vectorizer, texts), texts=self.reads.texts(texts)
        )

    def evaluate(
        self,
        dataset: Dataset,
        ks: Sequence[int] = USUAL_PLACES,
        *,
        recall_ks: Sequence[int] = USUAL_RECALL_PLACES,
        propensity: tuple[float, float] = USUAL_PROPENSITY,
        set_aside: csr_array | None = None,
    ) -> dict[str, float]:
        """Return all metrics on a test set.

        Parameters
        ----------
        dataset : Dataset
            Labels with names are matched by name, and those that the model does not know count as
            misses, with a warning where they are the most. Ids are taken for the model's. The
            labels of a point without an answer, as of an empty text, are misses, too.
        ks, recall_ks, propensity, set_aside
            See `longtail.metrics.evaluate`. Pairs to set aside have the label ids of `dataset`.

        Returns
        -------
        dict of str to float
            In percent.

        Raises
        ------
        InputError
            If no point has a label, or the model knows none of the labels.
        """
        return evaluate_model(
            self,
            dataset,
            ks,
            recall_ks=recall_ks,
            propensity=propensity,
            set_aside=set_aside,
        )

    def save(self, path: str | Path) -> None:
        """Save as a model folder.

        Raises
        ------
        InputError
            If the scorer is one of a user's own, which no folder can hold.
        ModelFolderError
            If the folder cannot be written; then nothing is left behind.
        """
        config, arrays = self.scorer.config(), self.scorer.to_arrays()
        check_kept(self.scorer, config)
        manifest = {
            "description": self.description,
            "scorer": config,
            "calibration": self.calibration.config(),
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "label_texts_are_names": self.label_space.texts_are_names,
            "reads": self.reads.config(),
            "vectorizer": None if self.vectorizer is None else self.vectorizer.config(),
        }
        if self.vectorizer is not None:
            arrays |= with_prefix("vectorizer/", self.vectorizer.to_arrays())
        arrays["labels/train_counts"] = self.train_label_counts
        arrays |= with_prefix("labels/", self.label_space.to_arrays())
        write_model_folder(path, manifest=manifest, arrays=arrays, documents=self.documents)

    def compressed(self, storage: StorageType = "int8") -> Predictor:
        """Return the same model laid out for serving, its numbers kept in fewer bits.

        Parameters
        ----------
        storage : {"float32", "float16", "int8"}
            int8 has one scale a row. float32 rounds nothing further, but what was kept in fewer
            bits is searched by codes made anew: a few answers change. A model whose numbers are
            kept so already stays as it is. Of a model with a transformer, the transformer alone
            changes: it becomes a graph that ONNX Runtime runs, without torch, as float32 or int8.

        Raises
        ------
        InputError
            If there is no such `storage`, or the model is of another recipe than the default one,
            DEXA, NGAME and SiameseXML and has no transformer, or has an `energy_reranker`.
        MissingExtraError
            If a package that exports the transformer is not installed.
        """
        return self.with_scorer(compressed(self.scorer, storage))

    def with_exact_search(self) -> Predictor:
        """Return the same model comparing each point with all labels, where it walked their graph.

        It finds nearly all of the nearest labels, the walk 99 % of them, sooner: see "Exact
        search" in docs/serving.md. Saved, it stays so, until labels come or go.

        Raises
        ------
        InputError
            If the model is of another recipe than the default one, DEXA, NGAME and SiameseXML, or
            has a transformer or an `energy_reranker`.
        """
        scorer = compiled_of(self.scorer)
        if scorer is None:
            raise InputError(
                "Exact search takes the place of a walk along a graph of labels, which models of "
                "the default recipe, dexa, ngame and siamesexml take, without a transformer and "
                "without an `energy_reranker`. This is another model. Use it as it is."
            )
        return self.with_scorer(scorer.with_exact_search())

    def with_scorer(self, scorer: Scorer, reads: PointInput | None = None) -> Predictor:
        """Return the same model answering by another scorer of the same points and labels."""
        return self.replaced(scorer=scorer, reads=reads or self.reads)

    def replaced(self, **parts: Any) -> Predictor:
        """Return the same model with other parts, by the names of the constructor's parameters."""
        own = {name: getattr(self, name) for name in inspect.signature(Predictor).parameters}
        return type(self)(**own | parts)

    def with_labels(
        self,
        labels: Mapping[str, str] | Iterable[str],
        examples: Mapping[str, Any] | None = None,
    ) -> Predictor:
        """Return a model that knows further labels; see `longtail.label_changes.changes`."""
        return with_labels(self, labels, examples)

    def without_labels(self, names: Iterable[str]) -> Predictor:
        """Return a model without some labels; see `longtail.label_changes.changes`."""
        return without_labels(self, names)

    def with_names(self, names: Mapping[str, str]) -> Predictor:
        """Return a model that calls labels otherwise; see `longtail.label_changes.renamed`."""
        return with_names(self, names)

    @classmethod
    def from_folder(cls, folder: ModelFolder) -> Predictor:
        """Make a predictor on the memory-mapped arrays of a folder; see `load`."""
        return cls(**parts_in(folder))


def load(path: str | Path, *, verify: bool = False) -> Predictor:
    """Load a saved model; its tables are memory-mapped.

    Those of the default recipe are read when they are used; all others first, for their checksums.

    Parameters
    ----------
    path : str or Path
        A model folder.
    verify : bool
        Compare the checksum of every file first, whatever the recipe, which reads them all.

    Raises
    ------
    ModelFolderError
        If a file is missing, cut short, damaged or from elsewhere.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from longtail import LongtailClassifier, load
    >>> model = LongtailClassifier().fit(["red wine", "fast car"] * 9, [["drink"], ["car"]] * 9)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     load(f"{folder}/model")
    <Predictor of 2 labels, trained by longtail>
    """
    return Predictor.from_folder(ModelFolder.open(path, verify=verify))
