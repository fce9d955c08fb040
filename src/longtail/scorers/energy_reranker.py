"""A shortlist in a new order: an energy over its labels, with any scorer's scores as unaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.sparse import csr_array

from longtail.errors import InputError
from longtail.held_arrays import hold_read_only
from longtail.kernels.energy import EnergyLayers, PointTerms
from longtail.named_parts import with_prefix
from longtail.scorers.energy_inference import EnergyInference
from longtail.scorers.ranking import best_first
from longtail.scorers.sigmoid import sigmoid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers, Scorer

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["EnergyReranker", "ShortlistEnergy", "shortlist_evidence"]

N_EVIDENCE = 3
_ARRAYS = ("label_vectors", "offset", "weights", "context_weights", "evidence_weights")


def shortlist_evidence(scores: Floats) -> Floats:
    """Return what a shortlist's scores say of each label, for unaries.

    Parameters
    ----------
    scores : float32 (n, size)
        Best first, padded with -inf.

    Returns
    -------
    float32 (n, size, 3)
        The score, how far it is behind the best, and the logarithm of the rank; 0 for padding.

    Examples
    --------
    The second label is 2 behind the best, and the third place is padding.

    >>> import numpy as np
    >>> from longtail.scorers.energy_reranker import shortlist_evidence
    >>> scores = np.array([[5, 3, -np.inf]], np.float32)
    >>> shortlist_evidence(scores)[0].astype(float).round(2).tolist()
    [[5.0, 0.0, 0.0], [3.0, -2.0, 0.69], [0.0, 0.0, 0.0]]
    """
    known = np.isfinite(scores)
    values = np.where(known, scores, np.float32(0))
    ranks = np.log1p(np.arange(scores.shape[1], dtype=np.float32))
    parts = (values, values - values[:, :1], np.broadcast_to(ranks, scores.shape))
    evidence: Floats = np.stack(parts, axis=2)
    return np.where(known[:, :, None], evidence, np.float32(0))


@dataclass(frozen=True, kw_only=True)
class ShortlistEnergy:
    """E(y) over a point's shortlist: weighed evidence, and what its labels say about each other.

    ``-y . u + weights . softplus(y V + offset - context_weights * (sigmoid(u) V))``, V being one
    short vector a label, of which only those on the shortlist are looked at: the cost of a point
    does not depend on how many labels there are. The last term, the context, is what the scorer by
    itself would make of each unit. A convex energy needs it to join labels: with few units, V V^T
    can push labels that are alike apart, but not together.

    Parameters
    ----------
    label_vectors : float32 (n_labels, n_hidden)
        V.
    offset, weights, context_weights : float32 (n_hidden,)
    evidence_weights : float32 (3,)
        Of `shortlist_evidence`.
    bias : float
    size : int
        Labels of a shortlist.
    inference : EnergyInference

    Raises
    ------
    InputError
        If the arrays do not fit each other.
    """

    label_vectors: Floats
    offset: Floats
    weights: Floats
    context_weights: Floats
    evidence_weights: Floats
    bias: float
    size: int
    inference: EnergyInference

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        hold_read_only(self, dict.fromkeys(_ARRAYS, np.float32))
        n_hidden = self.label_vectors.shape[1]
        shapes = [getattr(self, name).shape for name in _ARRAYS[1:]]
        if shapes != [(n_hidden,)] * 3 + [(N_EVIDENCE,)]:
            raise InputError(
                f"A shortlist energy of {n_hidden} units cannot have parts of the shapes {shapes}. "
                "Train again."
            )

    def states(self, labels: Ids, scores: Floats, n_threads: int = 1) -> Floats:
        """Return the logits of the relaxed labels, float32 (n, size), -inf for padding."""
        return self.inference.states(self.terms(labels, scores), self.layers, n_threads)

    @property
    def layers(self) -> EnergyLayers:
        """What all points share."""
        n_hidden = len(self.weights)
        couplings = np.zeros((0, n_hidden, n_hidden), np.float32)
        return EnergyLayers(self.label_vectors[None], couplings)

    def terms(self, labels: Ids, scores: Floats) -> PointTerms:
        """Return the energy of each point, given its shortlist, best first."""
        n, size = labels.shape
        evidence = shortlist_evidence(scores)
        unaries = np.full((n, size), self.bias, np.float32)
        for place, weight in enumerate(self.evidence_weights):  # not a product: the same for a row
            unaries += weight * evidence[:, :, place]
        offsets = self.offset - self.context_weights * self._context(labels, unaries)
        return PointTerms(
            labels=labels,
            unaries=unaries,
            offsets=offsets[:, None],
            path_gates=np.broadcast_to(self.weights, (n, 1, len(self.weights))),
            label_gates=np.zeros((n, 0, size), np.float32),
        )

    def _context(self, labels: Ids, unaries: Floats) -> Floats:
        """Return sigmoid(u) V, (n, n_hidden)."""
        rows, places = np.nonzero(labels >= 0)
        relaxed = sigmoid(unaries[rows, places])
        shape = (len(labels), len(self.label_vectors))
        context: Floats = csr_array((relaxed, (rows, labels[rows, places])), shape=shape) @ (
            self.label_vectors
        )
        return context

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Return all arrays."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def config(self) -> dict[str, Any]:
        """Return the rest as JSON values."""
        return {"bias": self.bias, "size": self.size, "inference": self.inference.config()}

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> Self:
        """Make it again from `config` and `to_arrays`."""
        return cls(
            **{name: arrays[name] for name in _ARRAYS},
            bias=config["bias"],
            size=config["size"],
            inference=EnergyInference(**config["inference"]),
        )


@dataclass(frozen=True)
class EnergyReranker:
    """Another scorer's shortlist, re-ordered by the labels that minimise an energy over it.

    Parameters
    ----------
    scorer : Scorer
        Any.
    energy : ShortlistEnergy
        Learnt by `longtail.energy.reranking.EnergyRerankerTraining`.
    """

    scorer: Scorer
    energy: ShortlistEnergy

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`; labels behind the shortlist keep their order."""
        size = self.energy.size
        ids, scores = self.scorer.top_k(bags, max(k, size), n_threads)
        states = self.energy.states(ids[:, :size], scores[:, :size], n_threads)
        best, logits = best_first(ids[:, :size], states, min(k, size), n_threads)
        behind = ids[:, size:k]
        lowest = np.min(states, axis=1, keepdims=True, initial=0, where=np.isfinite(states))
        falling = lowest - np.arange(1, behind.shape[1] + 1, dtype=np.float32)
        falling = np.where(behind >= 0, falling, np.float32(-np.inf))
        return np.hstack([best, behind]), np.hstack([logits, falling])

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        energy = with_prefix("reranker-energy/", self.energy.to_arrays())
        return energy | with_prefix("reranked-", self.scorer.to_arrays())

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "energy-reranked",
            "scorer": self.scorer.config(),
            "energy": self.energy.config(),
        }
