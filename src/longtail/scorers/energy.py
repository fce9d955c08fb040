"""A trained energy network over all labels: features, unaries, inference; no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError
from longtail.features.bag_encoder import BagEncoder
from longtail.features.dense_layer import DenseLayer
from longtail.held_arrays import hold_read_only
from longtail.kernels.arrays import read_only
from longtail.kernels.energy import EnergyLayers, PointTerms
from longtail.named_parts import with_prefix
from longtail.scorers.blocks import top_k_in_blocks
from longtail.scorers.energy_inference import EnergyInference
from longtail.scorers.ranking import best_first

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.named_parts import Arrays
    from longtail.scorers.protocols import Answers

    Floats = NDArray[np.float32]

__all__ = ["EnergyScorer"]

ROWS_AT_ONCE = 1024  # points whose relaxed labels are held in memory together


@dataclass(frozen=True, kw_only=True)
class EnergyScorer:
    """Score every label by the relaxed labels that minimise the energy.

    Parameters
    ----------
    encoder : BagEncoder
        F(x).
    maps : DenseLayer
        All linear maps of F(x), one after the other: unaries, then, K layers of H units, K * H
        offsets, K * H gates of the path from layer to layer, and K * L gates of labels, or none.
    layers : EnergyLayers
    known : int32 (L,)
        The labels that the energy is of; the others have no training point.
    inference : EnergyInference
    is_convex : bool
        The gates of the path are cut at 0.

    Raises
    ------
    InputError
        If the parts do not fit each other, or hold what is not a number.
    """

    encoder: BagEncoder
    maps: DenseLayer
    layers: EnergyLayers
    known: NDArray[np.int32]
    inference: EnergyInference
    is_convex: bool

    def __post_init__(self) -> None:
        """Hold the arrays as memory maps are held, and refuse those that do not fit."""
        maps = DenseLayer(*(read_only(array, np.float32) for array in self.maps))
        layers = EnergyLayers(*(read_only(array, np.float32) for array in self.layers))
        object.__setattr__(self, "maps", maps)
        object.__setattr__(self, "layers", layers)
        hold_read_only(self, {"known": np.int32})
        n_layers, n_labels, n_hidden = layers.label_vectors.shape
        n_plain = n_labels + 2 * n_layers * n_hidden
        fitting = {n_plain, n_plain + n_layers * n_labels}
        if (
            len(self.known) != n_labels
            or len(maps.bias) not in fitting
            or layers.couplings.shape != (n_layers - 1, n_hidden, n_hidden)
        ):
            raise InputError(
                f"An energy of {n_labels} labels and {n_layers} layers of {n_hidden} units needs "
                f"{sorted(fitting)} linear maps, got {len(maps.bias)} for {len(self.known)} "
                "labels. Train again."
            )
        if not all(np.isfinite(array).all() for array in (*layers, maps.bias)):
            raise InputError("The energy holds values that are not finite. Train again.")

    def top_k(self, bags: Bags, k: int, n_threads: int = 1) -> Answers:
        """See `Scorer.top_k`: scores are logits of relaxed labels."""

        def answer(some: Bags) -> Answers:
            states = self.inference.states(self.terms(some, n_threads), self.layers, n_threads)
            labels = np.tile(self.known, (some.n_rows, 1))
            labels[some.silent()] = -1  # nothing is known of these points
            states[labels < 0] = -np.inf
            return best_first(labels, states, min(k, len(self.known)), n_threads)

        return top_k_in_blocks(bags, k, ROWS_AT_ONCE, answer)

    def terms(self, bags: Bags, n_threads: int = 1) -> PointTerms:
        """Return the energy of each point."""
        n_layers, n_labels, n_hidden = self.layers.label_vectors.shape
        outputs = self.maps.apply(self.encoder.encode(bags, n_threads), n_threads)
        n, width = len(outputs), n_layers * n_hidden
        bounds = np.cumsum([n_labels, width, width])
        unaries, offsets, path_gates, label_gates = np.split(outputs, bounds, axis=1)
        if self.is_convex:
            path_gates = np.maximum(path_gates, 0)
        return PointTerms(
            labels=np.broadcast_to(np.arange(n_labels, dtype=np.int32), (n, n_labels)),
            unaries=unaries,
            offsets=offsets.reshape(n, n_layers, n_hidden),
            path_gates=path_gates.reshape(n, n_layers, n_hidden),
            label_gates=label_gates.reshape(n, label_gates.shape[1] // n_labels, n_labels),
        )

    def relaxed_labels(self, bags: Bags, n_threads: int = 1) -> Floats:
        """Return y of each point, float32 (n, L) in [0, 1], columns as in `known`.

        For whoever chooses labels by a threshold, as the papers' F1 does; `top_k` needs no more
        than their order.
        """
        return self.inference.labels(self.terms(bags, n_threads), self.layers, n_threads)

    def energies(self, bags: Bags, n_threads: int = 1) -> Floats:
        """Return what inference minimises, step after step: see `EnergyInference.energies`."""
        return self.inference.energies(self.terms(bags, n_threads), self.layers, n_threads)

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """See `Scorer.to_arrays`."""
        return {
            "encoder/token_vectors": self.encoder.token_vectors,
            "heads/vectors": self.maps.matrix,
            "heads/bias": self.maps.bias,
            **with_prefix("energy/", self.layers._asdict()),
            "energy/known": self.known,
        }

    def config(self) -> dict[str, Any]:
        """See `Scorer.config`."""
        return {
            "kind": "energy",
            "inference": self.inference.config(),
            "is_convex": self.is_convex,
        }

    @classmethod
    def from_parts(cls, config: Mapping[str, Any], arrays: Arrays) -> EnergyScorer:
        """Make it again from `config` and `to_arrays`."""
        return cls(
            encoder=BagEncoder(arrays["encoder/token_vectors"]),
            maps=DenseLayer(arrays["heads/vectors"], arrays["heads/bias"]),
            layers=EnergyLayers(arrays["energy/label_vectors"], arrays["energy/couplings"]),
            known=arrays["energy/known"],
            inference=EnergyInference(**config["inference"]),
            is_convex=config["is_convex"],
        )
