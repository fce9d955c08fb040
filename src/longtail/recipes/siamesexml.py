"""SiameseXML: where it differs from NGAME."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from longtail.recipes.ngame import NGAME
from longtail.siamese.pair_losses import PairLoss, ProbabilisticContrast
from longtail.training.neighbourhood_batches import LabelBatches

if TYPE_CHECKING:
    from longtail.blend.candidates import SearchSizes
    from longtail.siamese.modules import EncoderModule

__all__ = ["SiameseXML"]


@dataclass(kw_only=True, eq=False, repr=False)
class SiameseXML(NGAME):
    """SiameseXML (Dahiya et al., "Siamese networks meet extreme classifiers", ICML 2021).

    NGAME's two modules with these differences: batches of Module I are drawn over labels, the loss
    is `ProbabilisticContrast`, labels of near training points are hard negatives, too, and Module
    II trains the encoder on. The encoder is NGAME's: it lacks the authors' ReLU and residual block.
    As theirs, it has no dropout.

    Parameters
    ----------
    label_power : float
        Batches of Module I are drawn over labels, by their frequency to this power: 0 draws all
        alike, 1 as often as they occur. See `LabelBatches`.
    **kwargs
        Those of `NGAME`.

    Examples
    --------
    >>> from longtail.recipes.siamesexml import SiameseXML
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> SiameseXML(dimension=16).fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """

    label_power: float = LabelBatches.power
    dropout: float = 0.0
    encoder_loss: PairLoss | str = field(
        default_factory=lambda: ProbabilisticContrast(of_labels=True)
    )
    classifier_loss: PairLoss | str = field(
        default_factory=lambda: ProbabilisticContrast(
            largest_chance=0.75, steepness=3.0, n_hardest=5
        )
    )
    freeze_encoder: bool = False

    def encoder_module(self, n_points: int) -> EncoderModule:
        """Return Module I."""
        return replace(super().encoder_module(n_points), label_power=self.label_power)

    def mining_sizes(self) -> SearchSizes:
        """Return how hard negatives are looked for: among label vectors and near points."""
        found = self.candidate_sizes()
        return replace(found, n_near_labels=self.n_hard, beam_size=self.mining_beam_size)
