"""DEXA, NGAME and SiameseXML: one encoder for points and label texts, then 1-vs-All classifiers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from longtail.classifiers.blended import BlendedScorer, LabelHead
from longtail.classifiers.candidates import CandidateSearch, SearchSizes
from longtail.classifiers.network_training import NetworkTraining
from longtail.classifiers.score_network import ScoreNetwork
from longtail.classifiers.sparse_label_vectors import SparseLabelVectors
from longtail.data.bags import Bags
from longtail.metrics import inverse_propensities
from longtail.recipes.estimator import LabelEstimator
from longtail.surrogates.label_clusters import balanced_clusters, label_centroids, n_meta_labels
from longtail.training.batches import SharedPool, neighbourhoods
from longtail.training.loop import train
from longtail.training.neighbourhood_batches import LabelBatches, NeighbourhoodBatches
from longtail.training.pair_losses import (
    DecoupledSoftmax,
    PairLoss,

    TripletLoss,
)
from longtail.training.schedule import Schedule
from longtail.training.siamese import Corrections, FrozenPairs, LearntBags, SiameseTask
from longtail.training.token_table import TokenTable
from longtail.training.unit_labels import UnitRows

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.features.bag_encoder import UnitBagEncoder
    from longtail.training.run import TrainingData, TrainingRun

    Floats = NDArray[np.float32]

__all__ = ["Dexa", "Ngame"]

MOST_CLUSTERS = 2**16


@dataclass(kw_only=True, eq=False, repr=False)
class Ngame(LabelEstimator):
    """NGAME."""

    dimension: int = 256
    encoder_epochs: int = 10
    encoder_learning_rate: float = 0.01
    classifier_epochs: int = 5
    classifier_learning_rate: float = 0.01
    batch_size: int = 1024
    dropout: float = 0.3
    classifier_dropout: float = 0.3
    refresh_every: int = 2
    cluster_size: int = 64
    first_size: int = 1
    n_random: int = 0
    n_hard: int = 5
    classifier_random: int = 1000
    freeze_encoder: bool = True
    encoder_loss: PairLoss = field(default_factory=TripletLoss)
    classifier_loss: PairLoss = field(default_factory=TripletLoss)
    n_found: int = 50
    beam: int = 64
    held_out: float = 0.1

    def looks_at_label_texts(self) -> bool:
        """See `LabelEstimator`."""
        return True

    def auxiliary_clusters(
        self, data: TrainingData, run: TrainingRun
    ) -> NDArray[np.int64] | None:
        """Return the cluster of each label whose vector it shares; NGAME has none."""
        return None

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> BlendedScorer:
        """See `LabelEstimator`."""
        if data.label_features is None:  # what a label's points say stands for its text
            data = data._replace(label_features=_points_as_texts(data, run))
        used = np.flatnonzero(data.labels.sum(axis=0))
        seen = data._replace(
            labels=data.labels[:, used], label_features=data.label_features[used]
        )
        with run.stage("encoder"):
            tokens, auxiliary = self._train_encoder(seen, data, used, run)
        points, texts = tokens.encode(seen.features), tokens.encode(data.label_features)
        encoded = _unit(texts if auxiliary is None else texts + auxiliary)
        with run.stage("classifiers"):
            vectors = encoded.copy()
            start = np.zeros_like(texts) if auxiliary is None else auxiliary
            eta = self._train_classifiers(
                seen, tokens, points, texts[used], encoded[used], start[used], run
            )
            points, texts = tokens.encode(seen.features), tokens.encode(data.label_features)
            vectors[used] = _unit(texts[used] + eta)
        with run.stage("search"):
            scorer = self._searching(tokens.encoder(), vectors, encoded, points, data, run)
        with run.stage("fusion"):
            network = NetworkTraining().learn(
                scorer.evidence(Bags.of(held_out.features), run.n_threads),
                held_out.labels,
                inverse_propensities(np.asarray(data.labels.sum(axis=0)), data.labels.shape[0]),
                run,
            )
        from dataclasses import replace
        return replace(scorer, network=network)

    def _train_encoder(self, seen, data, used, run):
        tokens = TokenTable(
            seen.features.shape[1], self.dimension, seed=run.seed_for("token vectors"),
            n_threads=run.n_threads, device=run.device,
        )
        clusters = self.auxiliary_clusters(data, run)
        corrections = None
        if clusters is not None:
            start = np.zeros((int(clusters.max()) + 1, self.dimension), np.float32)
            corrections = Corrections(start, clusters[used], run.device)
        batches = self._encoder_batches(seen, tokens, run)
        extra = batches.state() if isinstance(batches, NeighbourhoodBatches) else {}
        task = SiameseTask(
            encoder=LearntBags(tokens, seen.features, seen.label_features, self.dropout),
            corrections=corrections, loss=self.encoder_loss, extra_state=extra,
        )
        schedule = Schedule(epochs=self.encoder_epochs, learning_rate=self.encoder_learning_rate)
        train(task, batches, schedule, run, "encoder")
        if corrections is None:
            return tokens, None
        return tokens, corrections.vectors.cpu().numpy()[clusters]

    def _encoder_batches(self, seen, tokens, run):
        n_points, n_labels = seen.labels.shape
        pool = SharedPool(
            labels=seen.labels, shortlists=np.zeros((n_points, 0), np.int32),
            batch_size=self.batch_size, n_hard=0, n_random=min(self.n_random, n_labels),
        )
        return NeighbourhoodBatches(
            pool, lambda: tokens.encode(seen.features), refresh_every=self.refresh_every,
            cluster_size=self.cluster_size, first_size=self.first_size,
            seed=run.seed_for("neighbourhoods"), n_threads=run.n_threads,
        )

    def _train_classifiers(self, seen, tokens, points, texts, encoded, start, run):
        from longtail.index.graph import GraphIndex
        from longtail.index.exact import ExactIndex
        if len(encoded) < 2000:
            index = ExactIndex(encoded)
        else:
            index = GraphIndex.build(encoded, seed=run.seed_for("x"), n_threads=run.n_threads, beam=self.beam)
        shortlists, _ = index.query(points, min(self.n_found, len(encoded)))
        corrections = Corrections(start, np.arange(len(start)), run.device)
        encoder = (
            FrozenPairs(points, texts, self.classifier_dropout, run.device) if self.freeze_encoder
            else LearntBags(tokens, seen.features, seen.label_features, self.dropout)
        )
        task = SiameseTask(encoder=encoder, corrections=corrections, loss=self.classifier_loss, extra_state={})
        batches = SharedPool(
            labels=seen.labels, shortlists=shortlists.astype(np.int32), batch_size=self.batch_size,
            groups=neighbourhoods(points, self.cluster_size, seed=run.seed_for("y"), n_threads=run.n_threads),
            n_hard=self.n_hard, n_random=min(self.classifier_random, len(start)),
        )
        schedule = Schedule(epochs=self.classifier_epochs, learning_rate=self.classifier_learning_rate)
        train(task, batches, schedule, run, "classifiers")
        return corrections.of_labels()

    def _searching(self, encoder, vectors, encoded, points, data, run):
        n_labels = len(vectors)
        counts = np.bincount(data.labels.indices, minlength=n_labels)
        search = CandidateSearch.build(
            vectors, points, data.labels,
            sizes=SearchSizes(n_found=self.n_found, n_near_points=0, n_near_labels=0, beam=self.beam),
            seed=run.seed_for("search"), n_threads=run.n_threads,
        )
        none = np.zeros(n_labels, np.float32)
        return BlendedScorer(
            encoder=encoder, search=search,
            heads=(LabelHead.of_search(search, none, 20.0), LabelHead.of(encoded, none, 20.0)),
            relations=None, linear=SparseLabelVectors.empty(n_labels), is_word=None,
            commonness=np.log1p(counts).astype(np.float32), tail_weights=none,
            network=ScoreNetwork.of_source(0, 4),
        )


@dataclass(kw_only=True, eq=False, repr=False)
class Dexa(Ngame):
    """DEXA."""

    n_clusters: int = MOST_CLUSTERS
    n_private: int = 1000

    def auxiliary_clusters(self, data, run):
        n_labels = data.labels.shape[1]
        clusters = balanced_clusters(
            data.label_features, n_meta_labels(n_labels, self.n_clusters),
            seed=run.seed_for("label clusters"), n_threads=run.n_threads,
        ).astype(np.int64)
        counts = np.bincount(data.labels.indices, minlength=n_labels)
        head = np.argsort(-counts, kind="stable")[: self.n_private]
        clusters[head] = clusters.max() + 1 + np.arange(len(head))
        return clusters


def _unit(rows):
    import torch
    return UnitRows.of(torch.from_numpy(rows)).unit.numpy()


def _points_as_texts(data, run):
    return label_centroids(data.features, data.labels, normalise_points=False, max_entries=256, n_threads=run.n_threads)
