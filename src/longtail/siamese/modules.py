"""NGAME's two modules: an encoder, with DEXA's auxiliary vectors or without; then label vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from longtail.blend.candidates import CandidateSearch, popular_labels
from longtail.index import ExactIndex
from longtail.metrics import recall_at_k
from longtail.siamese.corrections import Corrections
from longtail.siamese.encoders import FrozenPairs
from longtail.siamese.networks import Side
from longtail.siamese.task import SiameseTask
from longtail.siamese.text_block import TextBlock
from longtail.training.batches import SharedPool
from longtail.training.early_stopping import EarlyStopping
from longtail.training.loop import train
from longtail.training.neighbourhood_batches import (
    LabelBatches,
    NeighbourhoodBatches,
    RefreshedPool,
)
from longtail.training.neighbourhoods import neighbourhoods
from longtail.training.unit_rows import UnitRows

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.candidates import SearchSizes
    from longtail.siamese.networks import SiameseNetwork
    from longtail.siamese.pair_losses import PairLoss
    from longtail.training.batches import Batches
    from longtail.training.early_stopping import HeldOut
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.training.schedule import Schedule

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = [
    "ClassifierModule",
    "EncodedPairs",
    "EncoderModule",
    "LearntModules",
    "label_vectors",
    "search_labels",
    "unit",
]

N_NEAREST = 10  # labels of a held-out point that early stopping looks at
LONGEST_AUXILIARY = 1.0  # no longer than the unit text that it corrects: rare words still count


class EncodedPairs(NamedTuple):
    """Unit vectors of training points and of label texts.

    Attributes
    ----------
    points : float32 (n_points, dimension)
    texts : float32 (n_labels, dimension)
    """

    points: Floats
    texts: Floats


@dataclass(frozen=True, kw_only=True)
class EncoderModule:
    """Module I: train the encoder on in-batch negatives, with auxiliary vectors or without.

    Parameters
    ----------
    schedule : Schedule
    loss : PairLoss
    batch_size : int
    cluster_size, refresh_every : int
        Of the points' neighbourhoods; see `NeighbourhoodBatches`.
    label_power : float or None
        Batches over labels instead; see `LabelBatches`.
    auxiliary_speed : float
        The auxiliary vectors learn at so many times the rate of the encoder.
    """

    schedule: Schedule
    loss: PairLoss
    batch_size: int
    cluster_size: int
    refresh_every: int
    label_power: float | None = None
    auxiliary_speed: float = 1.0

    def learn(
        self,
        data: TrainingData,
        network: SiameseNetwork,
        used: NDArray[np.integer],
        clusters: NDArray[np.int64] | None,
        held_out: HeldOut | None,
        run: TrainingRun,
    ) -> Corrections | None:
        """Train the network in place; return its auxiliary vectors, if any.

        Parameters
        ----------
        data : TrainingData
            Of labels with points alone.
        network : SiameseNetwork
            Of the same points.
        used : int (n_labels,)
            Which of the network's labels those are.
        clusters : int64 (n_network_labels,) or None
            Which auxiliary vector is whose, of all the network's labels: one that no label with
            points has stays 0. None for no such vectors.
        held_out : HeldOut or None
            Stop by the recall of these labels; see `recall_of_nearest`.
        run : TrainingRun
        """
        auxiliary = None
        if clusters is not None:
            start = np.zeros((int(clusters.max()) + 1, network.dimension), np.float32)
            auxiliary = Corrections(
                start, clusters[used], run.torch_device, self.auxiliary_speed, LONGEST_AUXILIARY
            )
        task = SiameseTask(
            encoder=network.pairs(used),
            corrections=auxiliary,
            loss=self.loss,
        )
        stopping = None
        if held_out is not None:
            truth = held_out.targets
            stopping = EarlyStopping(
                lambda: recall_of_nearest(network, auxiliary, used, truth, run.n_threads),
                held_out.patience,
            )
        batches = self._batches(data, network, run)
        train(task, batches, self.schedule, run, "encoder", stopping)
        return auxiliary

    def _batches(self, data: TrainingData, network: SiameseNetwork, run: TrainingRun) -> Batches:
        """Return batches over labels, or NGAME's: a pool is the true labels of the batch's points.

        Random labels fill it up to a multiple of 64, as they do every `SharedPool`.
        """
        if self.label_power is not None:
            return LabelBatches(
                labels=data.labels, batch_size=self.batch_size, power=self.label_power
            )
        return NeighbourhoodBatches(
            SharedPool.in_batch(data.labels, batch_size=self.batch_size),
            lambda: network.vectors(Side.POINTS),
            refresh_every=self.refresh_every,
            cluster_size=self.cluster_size,
            seed=run.seed_for("neighbourhoods"),
            n_threads=run.n_threads,
        )


@dataclass(frozen=True, kw_only=True)
class ClassifierModule:
    """Module II: train ``w_l = unit(E(z_l) + a_k + eta_l)`` on points and hard negatives.

    What it trains is ``a_k + eta_l``, in one vector a label, which starts as Module I's auxiliary
    vector a_k, or as zeros where there are none; with `text_block`, E(z_l) goes through that first.

    A point's negatives are the labels that a search finds near it, in O(log L), so an epoch takes
    O(N D log L).

    Parameters
    ----------
    schedule : Schedule
    loss : PairLoss
    batch_size : int
    dropout : float
    cluster_size : int
        Points of a neighbourhood, which share a batch and so their negatives.
    sizes : SearchSizes
        How many negatives a point has.
    n_random : int
        Random labels in a batch's pool.
    freeze_encoder : bool
        Leave the encoder as Module I made it.
    refresh_every : int
        Epochs after which negatives and neighbourhoods are looked for anew, if it is trained on.
    text_block : bool
        Put DECAF's `TextBlock` between a label's text and its vector.
    """

    schedule: Schedule
    loss: PairLoss
    batch_size: int
    dropout: float
    cluster_size: int
    sizes: SearchSizes
    n_random: int
    freeze_encoder: bool
    refresh_every: int
    text_block: bool

    def learn(
        self,
        data: TrainingData,
        network: SiameseNetwork,
        used: NDArray[np.integer],
        encoded: EncodedPairs,
        start: Floats,
        run: TrainingRun,
    ) -> tuple[Floats, TextBlock | None]:
        """Train; the network changes, too, unless the encoder is frozen.

        Parameters
        ----------
        data, network, used
            As in `EncoderModule.learn`.
        encoded : EncodedPairs
            Its vectors of the points and of those labels' texts.
        start : float32 (n_labels, dimension)
            a_k + eta_l before training: a_k, or what another training has made of it.
        run : TrainingRun

        Returns
        -------
        added : float32 (n_labels, dimension)
            a_k + eta_l.
        block : TextBlock or None
            What texts must go through before that is added.
        """
        points, texts = encoded
        block = TextBlock(start.shape[1], run.torch_device) if self.text_block else None
        corrections = Corrections(start, np.arange(len(start)), run.torch_device, block=block)
        frozen = FrozenPairs(points, texts, self.dropout, run.torch_device)
        mined = self._mined(data, points, label_vectors(texts, start), run)
        batches: Batches = mined
        if not self.freeze_encoder:

            def anew(n_before: int) -> SharedPool:
                read = network.vectors(Side.LABELS)[used]
                labels = label_vectors(read, corrections.of_labels(), block)
                return self._mined(data, network.vectors(Side.POINTS), labels, run, n_before)

            batches = RefreshedPool(mined, anew, refresh_every=self.refresh_every)
        task = SiameseTask(
            encoder=frozen if self.freeze_encoder else network.pairs(used),
            corrections=corrections,
            loss=self.loss,
        )
        train(task, batches, self.schedule, run, "classifiers")
        return corrections.of_labels(), block

    def _mined(
        self,
        data: TrainingData,
        points: Floats,
        labels: Floats,
        run: TrainingRun,
        n_before: int = 0,
    ) -> SharedPool:
        """Return batches of neighbours, and their hard negatives, by vectors as they are now."""
        search = search_labels(labels, points, data.labels, self.sizes, run)
        none = np.empty((len(points), 0), np.int32)
        shortlists = self._as_wide(search.find(points, none, run.n_threads).labels, search)
        near = neighbourhoods(
            points,
            self.cluster_size,
            seed=run.seed_for("classifiers", "neighbourhoods") + n_before,
            n_threads=run.n_threads,
        )
        return SharedPool(
            labels=data.labels,
            shortlists=shortlists,
            batch_size=self.batch_size,
            groups=near,
            n_hard=shortlists.shape[1],
            n_random=min(self.n_random, len(labels)),
        )

    def _as_wide(self, found: Ids, search: CandidateSearch) -> Ids:
        """Pad shortlists to a width that does not depend on how many labels have vectors yet.

        A label whose text has no known token is found once its free vector has been trained.
        """
        n_most = self.sizes.n_candidates(search.n_labels, n_popular=len(search.popular))
        return np.pad(found, ((0, 0), (0, n_most - found.shape[1])), constant_values=-1)


def recall_of_nearest(
    network: SiameseNetwork,
    auxiliary: Corrections | None,
    used: NDArray[np.integer],
    truth: csr_array,
    n_threads: int,
) -> float:
    """Return the share of a held-out point's labels among the ten nearest of those that are used.

    At most half of these labels are looked at: among all of them, every true one is found.
    """
    labels = network.vectors(Side.LABELS)[used]
    if auxiliary is not None:
        labels = label_vectors(labels, auxiliary.of_labels())
    n_nearest = min(N_NEAREST, max(len(labels) // 2, 1))
    nearest = ExactIndex(labels, n_threads=n_threads).query(
        network.vectors(Side.HELD_OUT), n_nearest
    )
    return recall_at_k(nearest[0], truth, n_nearest)


def search_labels(
    vectors: Floats,
    points: Floats,
    labels: csr_array,
    sizes: SearchSizes,
    run: TrainingRun,
    training_rows: NDArray[np.integer] | None = None,
) -> CandidateSearch:
    """Return a search over label vectors, and over training points where `sizes` wants any.

    `training_rows` are those of the points, if anybody will be told of them.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.blend.candidates import SearchSizes
    >>> from longtail.siamese.modules import search_labels
    >>> from longtail.training.run import TrainingRun
    >>> vectors, labels = np.eye(3, dtype=np.float32), csr_array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    >>> sizes = SearchSizes(n_near_labels=1, n_near_points=0, n_voted=0, n_popular=1)
    >>> run = TrainingRun(seed=0, n_threads=1)
    >>> search = search_labels(vectors, vectors[:2], labels, sizes, run)
    >>> found = search.find(vectors[:2], np.empty((2, 0), np.int32)).labels
    >>> found.tolist()  # the nearest, and the most frequent
    [[0, 2], [1, 2]]
    """
    some = slice(None) if sizes.n_near_points else slice(0)
    search = CandidateSearch.build(
        vectors,
        points[some],
        labels[some],
        sizes=sizes,
        seed=run.seed_for("search"),
        n_threads=run.n_threads,
        training_rows=None if training_rows is None else training_rows[some],
    )
    return replace(search, popular=popular_labels(labels, sizes.n_popular))


class LearntModules(NamedTuple):
    """The encoder's vectors, and what is added to those of label texts.

    Attributes
    ----------
    encoded : EncodedPairs
        Of the training points and of all labels, as the encoder is in the end.
    auxiliary : float32 (n_labels, dimension) or None
        a_k, which Module I adds to texts; None without auxiliary vectors.
    added : float32 (n_labels, dimension)
        a_k + eta_l, in one vector; before Module II is trained a_k, or zeros where there is none.
    block : TextBlock or None
        What texts go through before that is added to them.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.siamese.modules import EncodedPairs, LearntModules
    >>> texts = np.eye(2, dtype=np.float32)
    >>> added = np.array([[0, 1], [0, 0]], np.float32)  # the first label's points look elsewhere
    >>> second, first = LearntModules(EncodedPairs(texts, texts), None, added).heads()
    >>> (second > 0).astype(int).tolist(), (first > 0).astype(int).tolist()
    ([[1, 1], [0, 1]], [[1, 0], [0, 1]])
    """

    encoded: EncodedPairs
    auxiliary: Floats | None
    added: Floats
    block: TextBlock | None = None

    def heads(self) -> list[Floats]:
        """Return label vectors (n_labels, dimension) of Module II, then those of Module I.

        With auxiliary vectors those of texts alone come last: a blend learns how far to trust them.
        """
        texts = self.encoded.texts
        second = label_vectors(texts, self.added, self.block)
        if self.auxiliary is None:
            return [second, unit(texts)]
        return [second, label_vectors(texts, self.auxiliary), texts]


def label_vectors(texts: Floats, added: Floats, block: TextBlock | None = None) -> Floats:
    """Return ``w_l = unit(E(z_l) + added)``; a block, if any, is what E(z_l) goes through first.

    Parameters
    ----------
    texts : float32 (n_labels, dimension)
        E(z_l).
    added : float32 (n_labels, dimension)
        a_k of Module I, or a_k + eta_l of Module II.
    block : TextBlock or None

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.siamese.modules import label_vectors
    >>> label_vectors(np.array([[1, 0]], np.float32), np.array([[-1, 3]], np.float32)).tolist()
    [[0.0, 1.0]]
    """
    return unit((texts if block is None else block.apply(texts)) + added)


def unit(rows: Floats) -> Floats:
    """Scale rows to length 1, to the last bit as training does; rows of zeros stay.

    `longtail.data.rows.unit_vectors` may round otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.siamese.modules import unit
    >>> unit(np.array([[0, 2], [0, 0]], np.float32)).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    scaled: Floats = UnitRows.of(torch.from_numpy(rows)).unit.numpy()
    return scaled
