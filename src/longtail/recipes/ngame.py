"""NGAME: a siamese encoder of points and label texts, then a classifier a label."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.blend.candidates import SearchSizes
from longtail.errors import InputError
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.ngame_training import NGAMETraining
from longtail.recipes.own_parts import check_part
from longtail.recipes.part_words import PAIR_LOSSES, part_of
from longtail.recipes.text_encoders import OfTextEncoder
from longtail.siamese.modules import ClassifierModule, EncoderModule
from longtail.siamese.networks import BagArchitecture
from longtail.siamese.pair_losses import PairLoss, TripletLoss
from longtail.siamese.transformers import TransformerArchitecture
from longtail.training.batches import fitting_batch_size
from longtail.training.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.blend.encoded import EncodedScorer
    from longtail.compiled.blended import BlendedScorer
    from longtail.data.rows import Rows
    from longtail.scorers.calibration import Calibration
    from longtail.siamese.networks import SiameseArchitecture
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["NGAME"]

LEAST_SHOWN, MOST_SHOWN = 40, 9_000  # points that a blend is learnt from
MAP_RATE = 3e-4  # of Adam, for the map of a transformer's vectors
MINING_BEAM = 64  # a missed negative costs nothing, a missed candidate an answer


@dataclass(kw_only=True, eq=False, repr=False)
class NGAME(OfTextEncoder):
    """NGAME (Dahiya et al., "NGAME: negative mining-aware mini-batching", WSDM 2023).

    Module I trains one encoder for points and label texts, a bag of token vectors or a transformer,
    on batches of neighbours, whose labels are each other's hard negatives. Module II adds a free
    vector to each label's text, trained on hard negatives. A learned blend of both scores orders
    the labels that a graph search finds, in O(D log L) a point. A label without training points
    is found by its text alone. In the end all but the encoder and the blend learn from the held-out
    points, too.

    Where labels have no texts, the features of a label's points stand for its text; a transformer
    needs texts. Of one that is not fine-tuned, Module I trains a linear map of its vectors; see
    `TransformerArchitecture`.

    Parameters
    ----------
    min_df : int or None
        How many texts of points and labels a token must be in to be kept. None takes 1 for up to
        20,000 points, and 2 beyond.
    max_features : int or None
        Most tokens that are kept, those in the most texts; None keeps all. Rare words of label
        texts tell labels apart, so there are as many as in the default recipe.
    encoder_epochs, classifier_epochs : int
        Epochs of Module I, which trains the encoder, and of Module II, which trains a vector for
        each label.
    encoder_learning_rate, classifier_learning_rate : float
        Their rates of row-wise Adagrad, which fall in a straight line, after the warm-up.
    patience : int or None
        Stop Module I after so many epochs without a gain in the share of held-out points' labels
        that are among the ten nearest, and go back to the best epoch. None trains for all epochs.
    batch_size : int or None
        None takes 1,024, and less where that would leave fewer than about forty batches an epoch.
    encoder_loss, classifier_loss : PairLoss or str
        The losses of Module I and Module II; see `longtail.siamese.pair_losses`. A word stands for
        one with its usual numbers: "triplet", "softmax", "contrast" or "contrast-of-labels".
    cluster_size : int
        Most points of a neighbourhood. In Module I batches are random at first, and neighbourhoods
        double each time that they are made anew, up to that: 16 points in the last two of the ten
        epochs by default. Module II starts with so many.
    refresh_every : int
        After how many epochs neighbourhoods are made anew; and hard negatives in Module II, if the
        encoder is trained on there.
    freeze_encoder : bool
        Whether Module II leaves the encoder as it is.
    text_block : bool
        Whether Module II puts DECAF's block between a label's text and its vector; see `TextBlock`.
    n_hard : int
        Hard negatives of a point in Module II: labels with the nearest vectors. The most frequent
        labels are such, too.
    n_random : int
        Random labels in a batch's pool in Module II.
    n_near_labels : int
        Labels with the nearest vectors that the blend scores.
    beam_size : int
        Width of the search for them: a wider one finds more, and takes longer. Label vectors of one
        cluster lie in knots, above all with an auxiliary vector in common, and a short beam stays
        in one of them.
    n_near_points : int
        Nearest training points, which vote for their labels; 0 for no votes.
    n_voted : int
        Most labels that only their votes bring, beside the nearest ones.
    relations : bool
        Whether the blend also looks at words that points share with label texts, and at links
        between labels; see `LabelRelations`.
    linear : bool
        Whether it also looks at linear classifiers on words, trained against the labels of near
        points. The papers' fusion has neither of these, nor near points.
    cost : float
        C of the linear classifiers.
    tail : float
        This times the logarithm of a label's inverse propensity is added to its blended score. A
        little gains PSP@k for next to nothing of P@k; more of it finds more labels that have few
        training points, or none.
    word_vectors : str or None
        A text file of word vectors that were learnt elsewhere, as fastText, GloVe and word2vec
        write them, plain or gzip. Vectors of tokens start near these, and not at random, which
        gains where points are few, and finds more labels by their texts. The model needs no such
        file.
    held_out : float
        Share of the points on which the blend is learnt: at most 9,000 points, and none where that
        would be fewer than 40. The encoder does not learn from them, all else does in the end.
    **kwargs
        Those of `OfTextEncoder`.

    Examples
    --------
    >>> from longtail.recipes.ngame import NGAME
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> NGAME(dimension=16).fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    min_df: int | None = 1
    max_features: int | None = LongtailClassifier.max_features
    encoder_epochs: int = 10
    encoder_learning_rate: float = 0.01
    classifier_epochs: int = 5
    classifier_learning_rate: float = 0.005
    batch_size: int | None = None
    encoder_loss: PairLoss | str = field(default_factory=TripletLoss)
    classifier_loss: PairLoss | str = field(default_factory=TripletLoss)
    cluster_size: int = 64
    refresh_every: int = 2
    freeze_encoder: bool = True
    text_block: bool = False
    n_hard: int = 10
    n_random: int = 500
    n_near_labels: int = 50
    beam_size: int = 256
    n_near_points: int = SearchSizes.n_near_points
    n_voted: int = SearchSizes.n_voted
    relations: bool = True
    linear: bool = True
    cost: float = 1.0
    tail: float = 0.3
    word_vectors: str | None = None
    held_out: float = 0.2

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        for name in ("encoder_loss", "classifier_loss"):
            loss = part_of(name, getattr(self, name), PAIR_LOSSES)
            check_part(name, loss, ["slope"], TripletLoss)
        if not self.is_bag:
            self._refuse(["word_vectors"], "a transformer has vectors of its own. Set encoder=bag")
        if self.linear and not self.n_near_points:
            raise InputError(
                "The linear classifiers learn from the labels of near points, but n_near_points is "
                "0. Set linear to False, or n_near_points to at least 1."
            )

    def word_vectors_file(self) -> Path | None:
        """See `LabelEstimator`."""
        return None if self.word_vectors is None else Path(self.word_vectors)

    def n_held_out(self, n_points: int) -> float:
        """See `LabelEstimator`: many, since nearly all learns from them in the end, or none."""
        wanted = min(self.held_out * n_points, MOST_SHOWN)
        return wanted if wanted >= LEAST_SHOWN else 0

    def auxiliary_clusters(
        self,
        labels: csr_array,  # noqa: ARG002 - for recipes that have some
        texts: Callable[[], Rows],  # noqa: ARG002 - as is this
        run: TrainingRun,  # noqa: ARG002 - and this
    ) -> NDArray[np.int64] | None:
        """Return which auxiliary vector each label has; NGAME has none.

        Parameters
        ----------
        labels : csr_array (n_points, n_labels)
        texts : callable
            Returns what the labels' texts are like, (n_labels, any width), and may take long.
        run : TrainingRun

        Returns
        -------
        int64 (n_labels,) or None
        """
        return None

    def architecture(self, n_points: int) -> SiameseArchitecture:
        """Return how points and label texts are encoded."""
        if self.is_bag:
            return BagArchitecture(dimension=self.dimension, dropout=self.dropout)
        transformer = self.transformer(self.batch_size_for(n_points))
        rate = self.fine_tune_learning_rate if self.fine_tune else MAP_RATE
        speed = rate / self.encoder_learning_rate
        return TransformerArchitecture(transformer=transformer, speed=speed, dropout=self.dropout)

    def encoder_module(self, n_points: int) -> EncoderModule:
        """Return Module I."""
        return EncoderModule(
            schedule=Schedule(
                epochs=self.encoder_epochs,
                learning_rate=self.encoder_learning_rate,
                warm_up=self.warm_up_of_encoder(),
            ),
            loss=part_of("encoder_loss", self.encoder_loss, PAIR_LOSSES),
            batch_size=self.batch_size_for(n_points),
            cluster_size=self.cluster_size,
            refresh_every=self.refresh_every,
        )

    def classifier_module(self, n_points: int) -> ClassifierModule:
        """Return Module II."""
        return ClassifierModule(
            schedule=Schedule(
                epochs=self.classifier_epochs, learning_rate=self.classifier_learning_rate
            ),
            loss=part_of("classifier_loss", self.classifier_loss, PAIR_LOSSES),
            batch_size=self.batch_size_for(n_points),
            dropout=self.dropout,
            cluster_size=self.cluster_size,
            sizes=self.mining_sizes(),
            n_random=self.n_random,
            freeze_encoder=self.freeze_encoder,
            refresh_every=self.refresh_every,
            text_block=self.text_block,
        )

    def batch_size_for(self, n_points: int) -> int:
        """Return the largest power of two that leaves about forty batches an epoch, or 1,024."""
        return self.batch_size or fitting_batch_size(n_points, n_batches=40, most=1024)

    @property
    def mining_beam_size(self) -> int:
        """Length of the beam that looks for hard negatives."""
        return min(self.beam_size, MINING_BEAM)

    def mining_sizes(self) -> SearchSizes:
        """Return how hard negatives are looked for: among label vectors alone."""
        return SearchSizes(
            n_near_labels=self.n_hard, n_near_points=0, n_voted=0, beam_size=self.mining_beam_size
        )

    def candidate_sizes(self) -> SearchSizes:
        """Return how the labels that the blend orders are looked for."""
        return SearchSizes(
            n_near_labels=self.n_near_labels,
            n_near_points=self.n_near_points,
            n_voted=self.n_voted if self.n_near_points else 0,
            beam_size=self.beam_size,
        )

    def _learn_calibrated(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> tuple[BlendedScorer | EncodedScorer, Calibration]:
        """See `LabelEstimator`; all but the encoder learn from the held-out points in the end."""
        return NGAMETraining(self, run).learn(data, held_out)
