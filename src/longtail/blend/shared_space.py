"""Points, labels and label texts trained into one space of unit vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.blend.label_head import LabelHead
from longtail.data.bags import Bags
from longtail.features.bag_encoder import StoredBagEncoder
from longtail.features.token_table import TokenTable
from longtail.named_parts import joined_parts
from longtail.row_store import AS_THEY_ARE
from longtail.training.batches import SharedPool
from longtail.training.chosen_bags import ChosenBags
from longtail.training.loop import train
from longtail.training.neighbourhood_batches import NeighbourhoodBatches
from longtail.training.products import one_blas_thread
from longtail.training.scratch import empty_array
from longtail.training.state import as_array
from longtail.training.threads import n_training_threads, training_threads
from longtail.training.unit_labels import UnitLabels, trained_directions
from longtail.training.units import Units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.features.half_encoder import HalfBagEncoder
    from longtail.row_store import RowStore
    from longtail.training.batches import Batch
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.training.schedule import Schedule
    from longtail.training.state import State
    from longtail.training.unit_labels_on_device import UnitLabelsOnDevice

__all__ = ["LearntSpace", "SharedSpace", "SpaceTables"]

ENTRIES_COMPARED = 64  # of a vector, all alike from the random start: who is near needs no more


class LearntSpace(NamedTuple):
    """What training leaves.

    Attributes
    ----------
    encoder : HalfBagEncoder or StoredBagEncoder
        Stored, unless training can go on.
    points : float32 (n_points, dimension)
        The training points, encoded.
    heads : tuple of LabelHead
        What was trained; and where labels have texts, then the mean directions of the labels'
        points, and the texts alone.
    tables : SpaceTables or None
        From which training can go on, if that was wanted.
    """

    encoder: HalfBagEncoder | StoredBagEncoder
    points: NDArray[np.float32]
    heads: tuple[LabelHead, ...]
    tables: SpaceTables | None


@dataclass
class SpaceTables:
    """What is trained, as it was at the end.

    Parameters
    ----------
    tokens : uint16 (n_features, dimension)
        The bits of bfloat16s.
    labels : float32 (n_labels, dimension)
    bias : float32 (n_labels, 1)
    has_points : bool (n_labels,)
        Whether a label was more than a negative.
    """

    tokens: NDArray[np.uint16]
    labels: NDArray[np.float32]
    bias: NDArray[np.float32]
    has_points: NDArray[np.bool_]

    def taken_over(self) -> SpaceTables:
        """Return the tables, of which this object holds nothing more.

        Whoever goes on from them writes over them, and frees their memory once they are stored.
        """
        taken = replace(self)
        self.__dict__.clear()
        return taken


@dataclass(frozen=True, kw_only=True)
class SharedSpace:
    """Learn token vectors e_t, and label vectors u_l to which those of the labels' texts are added.

    ``E(x) = unit(sum_t x_t e_t)`` for points and texts z alike, ``w_l = unit(u_l + E(z_l))``, and
    logits ``scale * (w_l . E(x)) + b_l`` go into a decoupled softmax over the labels of a batch:
    see `UnitLabels`.

    The token vectors start at random, which keeps the angles between bags as they are, or near word
    vectors that were learnt elsewhere. A label starts at the mean of its points: before the first
    step, this is a nearest-centroid classifier.
    Where labels have texts, two more heads follow from the token vectors: the means of the labels'
    points, and the texts alone, so that a blend of scores can learn how far to trust either.

    From the second epoch on, a batch is made of neighbourhoods, so that the labels of similar
    points are its negatives (NGAME; see `NeighbourhoodBatches`): four epochs of these teach about
    as much as five of random batches.

    Parameters
    ----------
    dimension : int
    schedule : Schedule
    batch_size : int
    n_random : int
        Random labels in a batch's pool, beside the true labels of its points.
    dropout : float
        Of the sums of token vectors.
    scale : float
        Logits are this times the cosine.
    texts_alone : float
        Share of the labels that are their text alone in a step. So texts learn to find points
        without the help of a label's own vector, which serves labels that have few points.
    neighbourhood : int
        Points of one, at most an eighth of a batch; 1 for random batches.

    Examples
    --------
    Points of label i have feature i. In the space learnt, they lie by the vector of their label.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.shared_space import SharedSpace
    >>> from longtail.training.run import TrainingData, TrainingRun
    >>> from longtail.training.schedule import Schedule
    >>> rows = csr_array(np.eye(3, dtype=np.float32)[[0, 1, 2, 0, 1, 2]])
    >>> space = SharedSpace(
    ...     dimension=8,
    ...     schedule=Schedule(epochs=2, learning_rate=0.1),
    ...     batch_size=6,
    ...     n_random=3,
    ...     dropout=0.0,
    ...     scale=10.0,
    ...     texts_alone=0.0,
    ... )
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> learnt = space.learn(TrainingData(rows, rows), run)
    >>> (learnt.points @ learnt.heads[0].vectors_of_labels().T).argmax(axis=1).tolist()
    [0, 1, 2, 0, 1, 2]
    """

    dimension: int
    schedule: Schedule
    batch_size: int
    n_random: int
    dropout: float
    scale: float
    texts_alone: float
    neighbourhood: int = 32

    def learn(
        self,
        data: TrainingData,
        run: TrainingRun,
        start: SpaceTables | None = None,
        *,
        store: RowStore = AS_THEY_ARE,
        goes_on: bool = False,
    ) -> LearntSpace:
        """Train on points, their labels and, where there are any, the labels' texts.

        With `start`, whose memory is taken over, training goes on from there: the same labels and
        features, more points. With `goes_on`, what is needed for that is kept, which takes as much
        memory again. `store` puts away the vectors of tokens, else, and of all heads but the first.
        """
        start = start.taken_over() if start else None
        tokens = TokenTable(
            data.features.shape[1],
            self.dimension,
            seed=run.seed_for("token vectors"),
            n_threads=run.n_threads,
            start=start.tokens if start else None,
            toward=data.directions.taken() if data.directions and not start else None,
        )
        batches = self._batches(data, tokens, run, is_first=start is None)
        task = _SharedSpaceTask(self, data, run, tokens, start)
        del start
        # Torch has as many threads if a device, or other processes, have loaded it.
        with one_blas_thread(), training_threads(n_training_threads()):
            train(task, batches, self.schedule, run, "shared space", draw_anew=task.draw_anew)
        return task.learnt(store, goes_on=goes_on)

    def _batches(
        self, data: TrainingData, tokens: TokenTable, run: TrainingRun, *, is_first: bool
    ) -> NeighbourhoodBatches:
        """Return batches of neighbourhoods, clustered anew for each epoch."""
        # A batch of one neighbourhood would lack the labels of all others.
        size = max(1, min(self.neighbourhood, self.batch_size // 8))
        n_random = min(self.n_random, data.labels.shape[1])
        pool = SharedPool.in_batch(data.labels, batch_size=self.batch_size, n_random=n_random)
        return NeighbourhoodBatches(
            pool,
            lambda: tokens.encode(data.features, ENTRIES_COMPARED),
            refresh_every=1,
            first_size=1 if is_first else size,
            growth=size,
            cluster_size=size,
            seed=run.seed_for("neighbourhoods"),
            n_threads=run.n_threads,
        )


class _SharedSpaceTask:
    """One step: encode points and label texts, compare, and change everything."""

    def __init__(
        self,
        settings: SharedSpace,
        data: TrainingData,
        run: TrainingRun,
        tokens: TokenTable,
        start: SpaceTables | None,
    ) -> None:
        self._settings = settings
        self._bags = Bags.of(data.features)
        self._by_label = data.labels.T.tocsr()
        texts = data.label_features
        self._label_bags = None if texts is None else Bags.of(texts)
        self._counts = np.diff(self._by_label.indptr)
        self._n_threads = run.n_threads
        self._tokens = tokens
        self._labels = self._labels_from(*self._starts(data, start), run)

    def _starts(
        self, data: TrainingData, start: SpaceTables | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return vectors and biases of labels to start from.

        Those of `start`, in the memory that was theirs, for labels that had points.
        """
        means = self._mean_directions(self._tokens.encode(data.features))
        bias = self._start_of_bias()
        if start is None:
            vectors = empty_array(means.shape)
            vectors[:] = means
            return vectors, bias
        is_new = ~start.has_points
        start.labels[is_new], start.bias[is_new, 0] = means[is_new], bias[is_new]
        return start.labels, start.bias[:, 0]

    def _labels_from(
        self,
        vectors: NDArray[np.float32],
        bias: NDArray[np.float32],
        run: TrainingRun,
    ) -> UnitLabels | UnitLabelsOnDevice:
        """Return the labels as they will be trained, where they will be."""
        settings = self._settings
        both = {
            "scale": settings.scale,
            "dropout": settings.dropout,
            "texts_alone": settings.texts_alone,
        }
        if run.is_in_main_memory:
            return UnitLabels(vectors, bias, **both)
        from longtail.training.unit_labels_on_device import (  # noqa: PLC0415 - it loads torch
            UnitLabelsOnDevice,
        )

        return UnitLabelsOnDevice(vectors, bias, device=run.torch_device, **both)

    def _mean_directions(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the direction of the mean of each label's points; zeros where it has none."""
        return Units.in_place(Bags.of(self._by_label).times(points, self._n_threads)).unit

    def _start_of_bias(self) -> NDArray[np.float32]:
        """Return the logarithm of the number of points of each label."""
        bias: NDArray[np.float32] = np.log(np.maximum(self._counts, 0.5)).astype(np.float32)
        return bias

    def step(
        self,
        batch: Batch,
        learning_rate: float,
        share: float,  # noqa: ARG002 - the loop tells every task
        *,
        measure: bool,
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        sums = self._tokens.sums(*self._bags_of(batch))
        points, texts = sums[: len(batch.points)], sums[len(batch.points) :]
        has_texts = self._label_bags is not None
        loss = self._labels.learn(points, texts if has_texts else None, batch, learning_rate)
        self._tokens.step(sums, learning_rate)
        return loss if measure else None

    def _bags_of(self, batch: Batch) -> list[ChosenBags]:
        """Return the bags of a batch's points, and of the texts of its labels."""
        bags = [ChosenBags.of(self._bags, batch.points)]
        if self._label_bags is not None:
            bags.append(ChosenBags.of(self._label_bags, batch.pool))
        return bags

    def draw_anew(self, seed: int) -> None:
        """Draw what the steps leave out from this seed on."""
        self._labels.draw_anew(seed)

    def state(self) -> State:
        """See `longtail.training.loop.Task.state`."""
        parts = {"tokens": self._tokens.state(), "labels": self._labels.state()}
        return joined_parts(parts, ".")

    def learnt(self, store: RowStore, *, goes_on: bool) -> LearntSpace:
        """Return the vectors as they are now."""
        encoder, has_points = self._tokens.encoder, self._counts > 0
        points = encoder.encode(self._bags, self._n_threads)
        heads = self._heads(encoder, points, store, in_place=not goes_on)
        if goes_on:
            label_tables = (as_array(self._labels.vectors), as_array(self._labels.bias))
            tables = SpaceTables(encoder.bits, *label_tables, has_points)
            return LearntSpace(encoder, points, heads, tables)
        # The largest table of all, of which nothing will be learnt any more.
        stored = StoredBagEncoder(encoder.stored(store), encoder.dimension)
        return LearntSpace(stored, points, heads, None)

    def _heads(
        self,
        encoder: HalfBagEncoder,
        points: NDArray[np.float32],
        store: RowStore,
        *,
        in_place: bool,
    ) -> tuple[LabelHead, ...]:
        """Return what was trained, and where labels have texts, their points' means, and these.

        A table of all labels is put away before the next is made: of millions, each is large.
        """
        scale, has_points = self._settings.scale, self._counts > 0
        texts = None
        if self._label_bags is not None:
            texts = encoder.encode(self._label_bags, self._n_threads)
        trained_vectors, bias = as_array(self._labels.vectors), as_array(self._labels.bias)[:, 0]
        units = trained_directions(trained_vectors, texts, has_points, in_place=in_place)
        trained = LabelHead.of(units, bias, scale)
        if texts is None:
            return (trained,)
        log_counts = self._start_of_bias()
        of_texts = LabelHead.of(texts, np.zeros_like(log_counts), scale, store)
        del texts
        of_means = LabelHead.of(self._mean_directions(points), log_counts, scale, store)
        return trained, of_means, of_texts
