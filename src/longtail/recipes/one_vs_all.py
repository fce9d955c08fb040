"""Full one-versus-all over learnt embeddings: every point against every label, nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from longtail.features.bag_of_tokens import BagOfTokens
from longtail.recipes.end_to_end import EndToEnd

__all__ = ["OneVsAll"]


@dataclass(kw_only=True, eq=False, repr=False)
class OneVsAll(EndToEnd):
    """Token vectors and one linear classifier a label, trained together against all labels.

    The simple way, which is among the most accurate where it can be afforded: no meta-labels, no
    shortlists, no search (after Jain et al., "Renee: End-to-end training of extreme classification
    models", MLSys 2023, with a bag of tokens in place of a transformer). For some ten thousand
    labels on a CPU, and for more with ``device="cuda"``.

    Parameters
    ----------
    dimension : int
        Length of token and label vectors.
    epochs : int
        Over the training points.
    learning_rate : float
        Of token and label vectors, at the first step.
    batch_size : int
        Points of a step.
    dropout : float
        Of the embeddings, in training.
    **kwargs
        Those of `LabelEstimator`.

    Examples
    --------
    >>> from longtail.recipes.one_vs_all import OneVsAll
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> model = OneVsAll().fit(texts, [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5)
    >>> model.predictor_.predict("a bottle of wine", k=1)[0][0]
    'drink'
    """

    stage: ClassVar[str] = "one versus all"
    as_probability: ClassVar[bool] = False
    held_out: float = 0.02  # for the calibration alone
    dimension: int = 512
    epochs: int = 60
    learning_rate: float = 0.03
    batch_size: int = 256
    dropout: float = 0.5

    def architecture(self) -> BagOfTokens:
        """Return the bag of tokens."""
        return BagOfTokens(dimension=self.dimension, dropout=self.dropout)
