"""What the modules of one training run share: seeds, device, clock, history, checkpoints."""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from scipy.sparse import vstack

from longtail.data.assembled import rows_of
from longtail.data.bags import Bags
from longtail.data.rows import evenly_spaced
from longtail.errors import InputError, MissingExtraError
from longtail.metrics import set_aside
from longtail.metrics.predictions import truth_without
from longtail.training.processes import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.data.token_directions import DirectionsOfFile
    from longtail.training.checkpoints import CheckpointFolder

    Ids = NDArray[np.int32]
    Floats = NDArray[np.float32]

__all__ = ["Callback", "EpochReport", "TrainingData", "TrainingRun", "checked_device"]


class TrainingData(NamedTuple):
    """Points as the modules see them.

    Attributes
    ----------
    features : csr_array of float32 (n_points, n_features)
        Unit rows.
    labels : csr_array of float32 (n_points, n_labels)
    label_features : csr_array of float32 (n_labels, n_features) or None
        Unit rows of the labels' texts; None where they have none, or where points have none.
    is_word : bool array (n_features,) or None
        Which features are words or pairs of words, not pieces of words; None if all count.
    is_beginning : bool array (n_features,) or None
        Which features are pieces that words begin with; None together with `is_word`.
    is_unspaced : bool
        Whether most of the points' letters are of scripts without spaces between words.
    is_unknown : bool
        Whether most words of a text are in no other.
    words : int32 array (n_points, n_words) or None
        The words of each text in order, padded with -1, where the architecture reads them.
    texts, label_texts : object array (n_points,) and (n_labels,), or None
        The texts themselves, where the architecture reads them.
    set_aside : csr_array (n_points, n_labels) or None
        Pairs by which no answer is judged, whether they are among the labels or not.
    unlabelled : TrainingData or None
        Points beside these that have no label: they tell how probable it is that none is right.
    in_part : TrainingData or None
        Where no points are held out, or those that are do not tell all: some of these, with a part
        of what they say. Of held-out points: fragments of some of them.
    directions : DirectionsOfFile or None
        Where tokens point by word vectors that were learnt elsewhere.
    to_learn : csr_array of float32 (n_points, n_features) or None
        Of held-out points whose `features` are those of texts to come: their own, with the tokens
        that these would lack.
    rows : int (n_points,) or None
        Which points of what the user passed these are; None where nobody will ask.

    Examples
    --------
    No point has the first label, and nothing can be learnt about it.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.run import TrainingData
    >>> labels = csr_array(np.array([[0, 1, 0], [0, 1, 1]], np.float32))
    >>> data = TrainingData(features=csr_array(np.eye(2, dtype=np.float32)), labels=labels)
    >>> used, of_used = data.of_used_labels()
    >>> used.tolist(), of_used.labels.toarray().tolist()
    ([1, 2], [[1.0, 0.0], [1.0, 1.0]])
    """

    features: csr_array
    labels: csr_array
    label_features: csr_array | None = None
    is_word: NDArray[np.bool_] | None = None
    is_beginning: NDArray[np.bool_] | None = None
    is_unspaced: bool = False
    is_unknown: bool = False
    words: NDArray[np.int32] | None = None
    texts: NDArray[np.object_] | None = None
    label_texts: NDArray[np.object_] | None = None
    set_aside: csr_array | None = None
    unlabelled: TrainingData | None = None
    in_part: TrainingData | None = None
    directions: DirectionsOfFile | None = None
    to_learn: csr_array | None = None
    rows: NDArray[np.integer] | None = None

    def bags(self) -> Bags:
        """Return the points as a scorer takes them."""
        return Bags.of(self.features)._replace(words=self.words, texts=self.texts)

    def label_bags(self) -> Bags | None:
        """Return the labels' texts as a scorer takes points; None where there are none."""
        if self.label_features is None:
            return None
        return Bags.of(self.label_features)._replace(texts=self.label_texts)

    @property
    def features_to_learn(self) -> csr_array:
        """The features that training sees: of held-out points, if it goes on with these."""
        return self.features if self.to_learn is None else self.to_learn

    @property
    def judged_labels(self) -> csr_array:
        """The labels by which answers are judged: all that are not set aside."""
        if self.set_aside is None:
            return self.labels
        return truth_without(self.labels, self.set_aside)

    def judged(self, ids: Ids, scores: Floats) -> tuple[Ids, Floats]:
        """Return answers to these points without what is set aside: see `metrics.set_aside`."""
        if self.set_aside is None:
            return ids, scores
        kept, left = set_aside(ids, scores, self.set_aside)
        return kept.astype(np.int32, copy=False), left.astype(np.float32, copy=False)

    def of_used_labels(self) -> tuple[NDArray[np.int32], TrainingData]:
        """Return which labels have points, and the data with those labels alone."""
        used = np.flatnonzero(self.labels.sum(axis=0)).astype(np.int32)
        return used, self.of_labels(used)

    def of_labels(self, labels: NDArray[np.int32]) -> TrainingData:
        """Return the data with some labels alone."""
        bags, texts = self.label_features, self.label_texts
        return self._replace(
            labels=self.labels[:, labels],
            set_aside=None if self.set_aside is None else self.set_aside[:, labels],
            label_features=None if bags is None else bags[labels],
            label_texts=None if texts is None else texts[labels],
        )

    def with_unlabelled(self, of: TrainingData) -> TrainingData:
        """Return the data with points without labels `of` other data, in the same proportion.

        With fewer points where the other data has not enough without labels.
        """
        n_own, n_their, beside = self.labels.shape[0], of.labels.shape[0], of.unlabelled
        if beside is None or n_own == n_their:
            return self._replace(unlabelled=beside)
        if n_own > n_their:
            return self.of_points(evenly_spaced(n_their, n_own))._replace(unlabelled=beside)
        n_beside = beside.labels.shape[0]
        some = evenly_spaced(n_beside * n_own // n_their, n_beside)
        return self._replace(unlabelled=beside.of_points(some) if len(some) else None)

    def of_points(self, rows: NDArray[np.int64], n_threads: int = 1) -> TrainingData:
        """Return the data with some points alone, and none without labels beside them."""
        words, texts, pairs, to_learn = self.words, self.texts, self.set_aside, self.to_learn
        return self._replace(
            features=rows_of(self.features, rows, n_threads),
            labels=rows_of(self.labels, rows, n_threads),
            words=None if words is None else words[rows],
            texts=None if texts is None else texts[rows],
            set_aside=None if pairs is None else pairs[rows],
            unlabelled=None,
            to_learn=None if to_learn is None else rows_of(to_learn, rows, n_threads),
            rows=None if self.rows is None else self.rows[rows],
        )

    def with_points_of(self, other: TrainingData) -> TrainingData:
        """Return these points, and then those of other data of the same features and labels.

        All that the others have to learn from is there, too.
        """
        own, others = self.set_aside, other.set_aside
        return self._replace(
            features=vstack([self.features, other.features_to_learn]).tocsr(),
            labels=vstack([self.labels, other.labels]).tocsr(),
            words=_both(self.words, other.words),
            texts=_both(self.texts, other.texts),
            set_aside=None if own is None or others is None else vstack([own, others]).tocsr(),
            to_learn=None,
            rows=_both(self.rows, other.rows),
        )


def _both(own: NDArray[Any] | None, others: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return rows and then others; None where either is missing."""
    return None if own is None or others is None else np.concatenate([own, others])


class EpochReport(NamedTuple):
    """An epoch that has ended.

    Attributes
    ----------
    stage : str
    epoch : int
        Counted from 1.
    n_epochs : int
        Of the whole stage, unless it stops early.
    loss : float
        The mean over the batches that were measured.
    quality : float or None
        On held-out points, with early stopping.
    """

    stage: str
    epoch: int
    n_epochs: int
    loss: float
    quality: float | None = None


@runtime_checkable
class Callback(Protocol):
    """Is told how training goes."""

    def on_stage(self, stage: str, seconds: float | None) -> None:
        """Hear that a stage begins, without seconds, or that it has ended after so many."""
        ...

    def on_batch(self, stage: str, done: int, total: int, loss: float | None) -> None:
        """Hear that `done` of all `total` batches of a stage are behind."""
        ...

    def on_epoch(self, report: EpochReport) -> None:
        """Hear that an epoch has ended."""
        ...


@dataclass(frozen=True)
class TrainingRun:
    """Seeds, device, clock, history and checkpoints of one training run.

    Parameters
    ----------
    seed : int
        All randomness follows from it and from the name of what is drawn, so that a stage does
        the same whether the stages before it ran just now or were read from a checkpoint.
    n_threads : int
        For compiled loops.
    device : str
        Where tensors are: "cpu", "cuda" or "cuda:1".
    callbacks : sequence of Callback
    checkpoints : CheckpointFolder or None
    scope : str
        Comes before the name of each stage, such as ``"learner 2: "`` in an ensemble.
    history : list of dict
        One entry an epoch: stage, epoch, loss, seconds; and quality on held-out points, higher is
        better, where it is measured: with early stopping, and of an energy that re-ranks.
    timings : dict
        Wall and CPU seconds of each stage.

    Examples
    --------
    >>> from longtail.training.run import TrainingRun
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> with run.stage("clusters"):
    ...     seed = run.seed_for("clusters")
    >>> list(run.timings), seed == run.within("learner 2: ").seed_for("clusters")
    (['clusters'], False)
    """

    seed: int
    n_threads: int
    device: str = "cpu"
    callbacks: Sequence[Callback] = ()
    checkpoints: CheckpointFolder | None = None
    scope: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    timings: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def torch_device(self) -> torch.device:
        """The device as torch knows it, which this loads."""
        import torch  # noqa: PLC0415 - what trains in main memory alone does not need it

        return torch.device(self.device)

    @property
    def is_in_main_memory(self) -> bool:
        """Whether one process trains, without a device: then nothing needs torch."""
        return self.device == "cpu" and processes().count == 1

    def seed_for(self, *names: str | int) -> int:
        """Return a number that depends on the seed and on what it is for."""
        key = "/".join([str(self.seed), self.scope, *map(str, names)])
        return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=4).digest(), "little")

    def within(self, scope: str) -> TrainingRun:
        """Return this run with more before the name of each stage, and so with other seeds.

        History is shared.
        """
        return replace(self, scope=self.scope + scope)

    @contextmanager
    def counted(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """Tell the callbacks of a part of a stage; yield what tells them how much of it is done."""
        started = time.perf_counter()
        self._tell(name, None)

        def hear(done: int, total: int) -> None:
            for callback in self.callbacks:
                callback.on_batch(self.scope + name, done, total, None)

        yield hear
        self._tell(name, time.perf_counter() - started)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what happens inside."""
        self._tell(name, None)
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            seconds = round(time.perf_counter() - wall, 3)
            spent = {"wall_seconds": seconds, "cpu_seconds": round(time.process_time() - cpu, 3)}
            before = self.timings.get(self.scope + name, {})  # of a stage that comes twice
            self.timings[self.scope + name] = {
                of: round(spent[of] + before.get(of, 0.0), 3) for of in spent
            }
        self._tell(name, seconds)

    def _tell(self, name: str, seconds: float | None) -> None:
        """Tell the callbacks that a stage begins or has ended."""
        for callback in self.callbacks:
            callback.on_stage(self.scope + name, seconds)


def checked_device(name: str) -> str:
    """Return the name of a device that is there.

    Raises
    ------
    InputError
        If there is none of that name.
    MissingExtraError
        If it is not the CPU, and torch is not installed.

    Examples
    --------
    >>> from longtail.training.run import checked_device
    >>> checked_device("cpu")
    'cpu'
    """
    if name == "cpu":
        return name
    try:
        import torch  # noqa: PLC0415 - all other devices are its
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"`device` is {name!r}, and all but 'cpu' needs torch. Install it with "
            "`pip install 'longtail[train]'`."
        ) from error
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InputError(
            f"`device` must be a name such as 'cpu' or 'cuda', got {name!r}."
        ) from error
    if device.type not in {"cpu", "cuda"}:
        raise InputError(f"`device` must be 'cpu' or 'cuda', got {name!r}, which is not supported.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"`device` is {name!r}, but this machine has no usable CUDA device. Use 'cpu'."
        )
    return "cpu" if device.type == "cpu" else str(device)
