"""What every recipe is to its users: a scikit-learn estimator of texts or features and labels."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array

from longtail import __version__
from longtail.data.copies import points_of_rows, without_copies
from longtail.data.csr import with_entries
from longtail.data.damping import chosen_power
from longtail.data.dataset import Dataset
from longtail.data.dense_columns import chosen_dense_columns
from longtail.data.feature_names import feature_names
from longtail.data.foreign import as_classes
from longtail.data.from_python import (
    LabelForm,
    holds_texts,
    labels_from,
    texts_from,
)
from longtail.data.point_input import PointInput
from longtail.data.text_column import NO_TEXTS
from longtail.data.token_directions import DirectionsOfFile
from longtail.data.vectorizer import TextVectorizer
from longtail.data.word_vectors import check_word_vectors
from longtail.errors import InputError, interruptible
from longtail.estimators.answers import AnsweringEstimator, matrix_dtype, rereadable, sparse_type
from longtail.estimators.calibrating import calibrated
from longtail.estimators.holding_out import LARGEST_HELD_OUT
from longtail.estimators.json_values import code_of, digest_of_file, json_value
from longtail.estimators.limits import check_min_df, check_settings
from longtail.estimators.scikit_learn import classifier_tags
from longtail.estimators.splitting import split_data
from longtail.estimators.training_input import check_callbacks, check_dataset, checked_pairs
from longtail.estimators.vocabulary import AUTO, Encoded, char_ngrams_for, known_and_encoded
from longtail.kernels.jit import n_usable_threads
from longtail.predictor import Predictor
from longtail.training.checkpoints import CheckpointFolder
from longtail.training.fingerprint import Fingerprint, fingerprint
from longtail.training.peak_memory import peak_memory
from longtail.training.processes import join_processes, own_device, processes
from longtail.training.run import Callback, TrainingData, TrainingRun, checked_device
from longtail.training.threads import turn_to_train

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from longtail.scorers.calibration import Calibration
    from longtail.scorers.protocols import Scorer

__all__ = ["VERY_FEW_POINTS", "LabelEstimator"]

VERY_FEW_POINTS = 20_000


@dataclass(kw_only=True, eq=False, repr=False)
class LabelEstimator(AnsweringEstimator):
    """Base of all recipes: fit, predict, predict_topk, score, save; see also `AnsweringEstimator`.

    A recipe adds its hyper-parameters as fields and writes `_learn`; or `_learn_calibrated`, where
    it learns probabilities itself.

    Parameters
    ----------
    word_ngrams : int
        Tokens are words with 1, words and pairs of neighbouring words with 2. Of ready-made
        features nothing is cut into tokens: there this, `char_ngrams`, `char_weight`, `min_df` and
        `max_features` are not used.
    char_ngrams : (int, int), "auto" or None
        Shortest and longest pieces of words that are tokens, too; None for no pieces. ``"auto"``
        takes (3, 5) for up to 20,000 texts, and (4, 5) beyond; but (2, 5) where texts have fewer
        than 4 words on average, or where most words of 2,000 to 20,000 texts are in no other;
        (2, 4) for scripts without spaces between words; and (2, 5) to (2, 8) for strings, which are
        texts whose words have 20 letters on average. Fewer than 100 texts are neither short nor
        strings.
    char_weight : float or None
        What the weights of pieces of words are multiplied by: a word has many of them. None takes
        .6; but .2 where label texts are read, and nine in ten of a text's labels have all words of
        theirs in the text.
    min_df : int or None
        How many texts a token must be in to be kept, of the points and, where a recipe learns from
        them, of the labels. Over a twentieth of the training texts it is lowered to that, with a
        warning; over all of them it is refused. None takes 1 for up to 20,000 points, and 2 beyond;
        for pieces of strings 2, if most of the longest are in one text alone.
    max_features : int or None
        Most tokens that are kept, those in the most texts; None keeps all.
    feature_power : float or None
        Ready-made features are raised to it before their rows are scaled to unit length. None takes
        1/2 or 1/4 where that brings points nearer to their labels, else 1. Dense columns that make
        up most of a row are centred and made to spread alike instead, unless near points tell each
        other's labels better without.
    held_out : float
        Share of the training points on which score fusion and calibration are chosen, and by which
        a recipe with `patience` stops; at most 2,500 points, near-identical texts kept together.
        None are held out with 0, of few points, and of some sets with equally many examples of each
        label. Then probabilities, and weights of scores unless these are fixed, are learnt from
        parts of the training points; where labels have many points, from whole points, which makes
        probabilities too high.
    random_state : int
        Seed of everything random: same seed and same number of cores, same model.
    device : str
        ``"cpu"``, or ``"cuda"`` to train on a GPU.
    n_threads : int or None
        Threads for training, at most four a core; None for one a core. Trainings in several threads
        of one process take turns. In a forked process torch computes on one thread.
    """

    word_ngrams: int = 2
    char_ngrams: tuple[int, int] | str | None = AUTO
    char_weight: float | None = None
    min_df: int | None = 2
    max_features: int | None = 300_000
    feature_power: float | None = 1.0
    held_out: float = 0.05
    random_state: int = 0
    device: str = "cpu"
    n_threads: int | None = None

    predictor_: Predictor = field(init=False, repr=False)
    label_form_: LabelForm = field(init=False, repr=False)
    run_: TrainingRun = field(init=False, repr=False)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from points and their labels.

        Parameters
        ----------
        X : sequence of str, or matrix (n_points, n_features)
            Texts, or features: sparse, or dense numbers.
        y : one of
            a list of label names a point; a list of label ids a point; a sparse or dense 0/1
            matrix (n_points, n_labels), or such a table, whose columns name the labels; or one
            class a point. From points without labels only probabilities are learnt.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If X and y cannot be used, with the reason.
        TrainingError
            If training runs away.
        MissingExtraError
            If what the settings ask for, such as a device, needs a library that is not installed.
        """
        if isinstance(X, Dataset):
            raise InputError("A Dataset holds points and labels. Pass it to fit_dataset.")
        if y is None:
            raise InputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        X, y = rereadable(X), rereadable(y)
        texts, features = None, None
        if holds_texts(X):
            texts = texts_from(X)
            n_points = len(texts)
        else:
            features = self.reads().matrix(X)
            n_points = features.shape[0]
        labels, space, form = labels_from(y, n_points)
        dataset = Dataset(texts, features, labels, space)
        if form is LabelForm.CLASSES:  # a point has one class, so rows are no pairs to be joined
            check_dataset(dataset)
            self._fit_points(without_copies(dataset)[0])
        else:
            self.fit_dataset(dataset)
        self.label_form_ = form
        if form is LabelForm.CLASSES:
            self._own_classes = np.unique(as_classes(y))
        if dataset.features is not None:
            self.n_features_in_: int = dataset.features.shape[1]
            if names := feature_names(X):
                self.feature_names_in_: NDArray[np.object_] = np.array(names, np.object_)
                known = self.predictor_
                known.reads = replace(known.reads, feature_names=names)
        self._label_dtype, self._sparse_type = matrix_dtype(y), sparse_type(y)
        return self

    def fit_dataset(
        self,
        dataset: Dataset,
        *,
        set_aside: csr_array | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoint_folder: str | Path | None = None,
        checkpoint_seconds: float = 60.0,
    ) -> Self:
        """Learn from a data set.

        Parameters
        ----------
        dataset : Dataset
            Points, or a table of pairs, or with copies of points: see `points_of_rows`.
        set_aside : csr_array (n_points, n_labels), optional
            Pairs that answers will not be judged by, such as a page and what refers to it, where
            `evaluate` will be given such pairs, too (`longtail.data.read_filter`). Scores are then
            blended, and probabilities learnt, by the other labels of held-out points. Vectors and
            classifiers learn from all labels all the same.
        callbacks : sequence of Callback
            Told of every stage, batch and epoch.
        checkpoint_folder : str or Path, optional
            Where training keeps its state. If it holds that of a run with the same settings and
            data which was cut off, training goes on from there, to the very same model. `save`
            removes it. That of runs which differ stays beside it.
        checkpoint_seconds : float
            Least time between two checkpoints of a stage.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the data set or the pairs cannot be used, with the reason.
        TrainingError
            If training runs away, or nothing can be written to `checkpoint_folder`.
        MissingExtraError
            If what the settings ask for, such as a device, needs a library that is not installed.
        """
        check_dataset(dataset)
        if set_aside is not None:
            set_aside = checked_pairs(set_aside, dataset)
        dataset, set_aside = points_of_rows(dataset, set_aside)
        if set_aside is not None:  # once more: a joined point has the pairs of all its rows
            set_aside = checked_pairs(set_aside, dataset)
        checkpoints = None
        if checkpoint_folder is not None:
            checkpoints = partial(
                CheckpointFolder, checkpoint_folder, every_seconds=checkpoint_seconds
            )
        return self._fit_points(dataset, set_aside, callbacks, checkpoints)

    def _fit_points(
        self,
        dataset: Dataset,
        set_aside: csr_array | None = None,
        callbacks: Sequence[Callback] = (),
        checkpoints: Callable[..., CheckpointFolder] | None = None,
    ) -> Self:
        """See `fit_dataset`; each row is a point, and checked.

        `checkpoints` takes the fingerprint that a checkpoint is known by.
        """
        check_settings(self)
        check_callbacks(callbacks)
        join_processes()
        n_threads = n_usable_threads(self.n_threads)
        with interruptible(), turn_to_train(n_threads):
            run = TrainingRun(
                seed=self.random_state,
                device=own_device(checked_device(self.device)),
                n_threads=n_threads,
                callbacks=callbacks,
            )
            self._fit(dataset, set_aside, run, checkpoints)
        return self

    def _fit(
        self,
        dataset: Dataset,
        set_aside: csr_array | None,
        run: TrainingRun,
        checkpoints: Callable[..., CheckpointFolder] | None,
    ) -> None:
        """See `_fit_points`."""
        self.reads().check(is_text=dataset.texts is not None)
        with run.stage("features" if dataset.texts is None else "tokens"):
            reads = self._reads_of(dataset, run.n_threads)
            encoded = self._encoded(dataset, reads)
        if self.word_vectors_file() is not None:
            with run.stage("word vectors"):
                encoded = self._with_directions(encoded)
        if checkpoints is not None:
            known_by = self._fingerprint(dataset, encoded.features, set_aside)
            folder = checkpoints(fingerprint=known_by)
            folder.announce()
            run = replace(run, checkpoints=folder)
        data, held_out = split_data(self, dataset, encoded, set_aside, run.n_threads)
        vectorizer = encoded.vectorizer
        # Ready-made features as they are given: centred dense columns are encoded with one more.
        n_features = (encoded.features if dataset.features is None else dataset.features).shape[1]
        del encoded  # the two parts hold their own rows
        scorer, calibration = self._learn_calibrated(data, held_out, run)
        predictor = Predictor(
            scorer=scorer,
            label_space=dataset.label_space,
            vectorizer=vectorizer,
            n_features=n_features,
            calibration=calibration,
            train_label_counts=np.asarray(dataset.labels.sum(axis=0)).ravel().astype(np.int64),
            description=self._description(dataset, n_features, set_aside),
            reads=reads,
        )
        self._keep(predictor, run)

    def _keep(self, predictor: Predictor, run: TrainingRun) -> None:
        """Become the estimator that has learnt this.

        At the very end: a training that is stopped leaves all that the one before it has learnt.
        """
        for learnt in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(learnt, None)
        # Callbacks write to terminals and files, which neither a pickle nor a copy can have.
        self.run_ = replace(run, callbacks=())
        self.predictor_ = predictor
        self.predictor_.documents["training.json"] = self.training_report()
        self.label_form_ = LabelForm.SPARSE
        self._label_dtype, self._sparse_type = np.dtype(np.float32), csr_array

    def identity(self) -> dict[str, Any]:
        """Return what trainings must have alike beside their data, if one is to go on from another.

        Returns
        -------
        dict
            JSON values: recipe, settings, code and version, and digests of files that are read.
        """
        kind = type(self)
        files = [digest_of_file(file) for file in self.files_read()]
        code = {"longtail": __version__, **code_of(kind)}  # another version may train otherwise
        return {"recipe": _name_of(kind), **code, "files": files, **self._settings()}

    def _fingerprint(
        self, dataset: Dataset, features: csr_array, set_aside: csr_array | None
    ) -> Fingerprint:
        """Return what checkpoints of this training are known by."""
        space = dataset.label_space
        about = (features, dataset.labels, dataset.texts, space.names, space.texts)
        return fingerprint(self.identity(), *about, set_aside)

    def _learn_calibrated(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> tuple[Scorer, Calibration]:
        """Learn, and then probabilities from points that nothing was learnt from."""
        scorer = self._learn(data, held_out, run)
        return scorer, calibrated(scorer, held_out, data, run.n_threads)

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """Train on `data`; choose weights, if any, on `held_out`, which may be empty."""
        raise NotImplementedError(f"{type(self).__name__} has no `_learn` that returns a scorer.")

    def save(self, path: str | Path) -> None:
        """Save as a folder that `longtail.load` reads; see `Predictor.save`.

        Of several processes that have trained together, the first one alone does so.
        Checkpoints, if training kept any, are then removed: not before, so that a full disk costs
        no more than the saving.
        """
        self._check_is_fitted()
        if processes().rank:
            return
        self.predictor_.save(path)
        if self.run_.checkpoints is not None:
            self.run_.checkpoints.remove()

    def training_report(self) -> dict[str, Any]:
        """Return how the model came about: settings, time a stage, peak memory, history."""
        self._check_is_fitted()
        return {
            **self.predictor_.description,
            "stages": self.run_.timings,
            "wall_seconds": sum(t["wall_seconds"] for t in self.run_.timings.values()),
            "cpu_seconds": sum(t["cpu_seconds"] for t in self.run_.timings.values()),
            "peak_memory_mb": round(peak_memory() / 10**6),
            "history": self.run_.history,
        }

    def __sklearn_tags__(self) -> Any:
        return classifier_tags()

    def _settings(self) -> dict[str, Any]:
        """Return all hyper-parameters as JSON values."""
        return {f.name: json_value(getattr(self, f.name)) for f in fields(self) if f.init}

    def _description(
        self, dataset: Dataset, n_features: int, set_aside: csr_array | None
    ) -> dict[str, Any]:
        """Return what a model folder says of itself."""
        told = {} if set_aside is None else {"n_set_aside": int(set_aside.nnz)}
        return {
            "recipe": _name_of(type(self)),
            "settings": self._settings(),
            "seed": self.random_state,
            "n_points": dataset.n_points,
            "n_labels": dataset.n_labels,
            "n_features": n_features,
            **told,
        }

    def _reads_of(self, dataset: Dataset, n_threads: int) -> PointInput:
        """Return what is read of these points, and how, if they are ready-made features."""
        reads, features = self.reads(), dataset.features
        if features is None or reads.needs_numbers:  # weights of texts are our own
            return reads
        if self.feature_power is not None:
            return replace(reads, power=self.feature_power)
        features = _with_zeros_left_out(features)
        labels, seed = dataset.labels, self.random_state
        power = chosen_power(features, labels, seed=seed, n_threads=n_threads)
        dense = chosen_dense_columns(features, labels, power, seed=seed)
        return replace(reads, power=power if dense is None else 1.0, dense=dense)

    def _encoded(self, dataset: Dataset, reads: PointInput) -> Encoded:
        """Return unit rows of features, and the vectoriser that made them of texts."""
        if dataset.features is not None:
            is_bag = not reads.needs_numbers
            features = _with_zeros_left_out(dataset.features) if is_bag else dataset.features
            return Encoded(reads.rows(features))
        check_min_df(self, dataset.n_points)
        return known_and_encoded(self, dataset)

    def _with_directions(self, encoded: Encoded) -> Encoded:
        """Return the same with where its tokens point by word vectors."""
        file, vectorizer = self.word_vectors_file(), encoded.vectorizer
        if file is None or vectorizer is None:
            raise InputError(
                "`word_vectors` tells of words, but these points have ready-made features, not "
                "texts. Leave it out, or pass texts."
            )
        return encoded._replace(directions=DirectionsOfFile(vectorizer, file))

    def min_df_for(self, n_points: int) -> int | tuple[int, int, int]:
        """Return in how many texts a token must be to be kept, for so many training points."""
        usual = 1 if n_points <= VERY_FEW_POINTS else 2
        return min(self.min_df or usual, max(1, n_points // 20))

    def check(self) -> None:
        """Raise InputError for settings with which no data could be learnt from.

        `check_settings` asks, before any data is read. A recipe whose settings are words, or must
        go together, adds what they may be, and raises MissingExtraError for those that need a
        library which is not installed.
        """
        pieces = char_ngrams_for(self.char_ngrams, NO_TEXTS)
        TextVectorizer(word_ngrams=self.word_ngrams, char_ngrams=pieces).check_parameters()
        file = self.word_vectors_file()
        if file is not None:
            check_word_vectors(file)

    def reads(self) -> PointInput:
        """Return what the recipe reads of a point: its bag of tokens, unless it says otherwise."""
        return PointInput()

    def reads_symbols(self, dataset: Dataset) -> bool:  # noqa: ARG002 - recipes may look at it
        """Return whether symbols of the texts are words, too."""
        return False

    def files_read(self) -> Iterable[Path]:
        """Return what training reads beside the data: checkpoints are known by what is in it.

        A part of one's own that reads files has a method of this name.
        """
        parts = (getattr(self, field.name) for field in fields(self) if field.init)
        of_parts = (part.files_read() for part in parts if hasattr(part, "files_read"))
        file = self.word_vectors_file()
        return [*chain.from_iterable(of_parts), *(() if file is None else (file,))]

    def word_vectors_file(self) -> Path | None:
        """Return the file of word vectors that token vectors start from, if one is named."""
        return None

    def learns_from_fragments(self) -> bool:
        """Return whether the recipe asks fragments of held-out points, too."""
        return False

    def looks_at_label_texts(self) -> bool:
        """Return whether the recipe learns from the labels' texts."""
        return False

    def n_held_out(self, n_points: int) -> float:
        """Return about how many of so many training points are held out."""
        return min(self.held_out * n_points, LARGEST_HELD_OUT)


def _name_of(kind: type) -> str:
    """Return what a recipe is called by."""
    from longtail.recipes.names import name_of  # noqa: PLC0415 - recipes are made of this file

    return name_of(kind)


def _with_zeros_left_out(features: csr_array) -> csr_array:
    """Return bags without stored zeros, which say nothing."""
    return features if features.data.all() else with_entries(features, features.data != 0)
