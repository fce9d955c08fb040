"""DeepXML with other features than Astec's: Table 4 of the paper.

"Both XML-CNN and MACH could be recast into the DeepXML framework by replacing Astec's feature
architecture by their CNN or MLP features" (section 5): all else is Astec's, one learner and no
re-ranker.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from longtail.recipes.architectures import OfArchitecture, OfKimCNN, OfMLP, OfXMLCNN
from longtail.recipes.astec import Astec

if TYPE_CHECKING:
    from longtail.recipes.deepxml import DeepXML
    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["DeepXMLKimCNN", "DeepXMLMACH", "DeepXMLWith", "DeepXMLXMLCNN"]


@dataclass(kw_only=True, eq=False, repr=False)
class DeepXMLWith(OfArchitecture):
    """Base of the recipes that are DeepXML with a feature architecture of another paper.

    Parameters
    ----------
    n_meta_labels : int
        L^, the label clusters of the surrogate task.
    surrogate_epochs, surrogate_learning_rate : int, float
        Epochs of Module I, the surrogate task, and the learning rate at their first step.
    extreme_epochs, extreme_learning_rate : int, float
        Epochs of Module IV, the classifiers of all labels, and the rate at their first step.
    batch_size : int
        Points of a step of Module I; batches on shortlists are twice as large.
    n_near_labels : int
        Labels with the nearest centroids that Module II finds for a training point.
    n_near_points : int
        Nearest training points whose labels it adds; 0 leaves these out.
    shortlist_size : int
        Most labels that it keeps of both: what the point's hard negatives are drawn from.
    n_hard, n_random : int
        Hard negatives drawn from a point's shortlist in each epoch, and random labels in a batch.
    **kwargs
        Those of `OfArchitecture`.
    """

    n_meta_labels: int = Astec.n_meta_labels
    surrogate_epochs: int = 15
    surrogate_learning_rate: float = Astec.surrogate_learning_rate
    extreme_epochs: int = 15
    extreme_learning_rate: float = Astec.extreme_learning_rate
    batch_size: int = 256
    n_near_labels: int = Astec.n_near_labels
    n_near_points: int = Astec.n_near_points
    shortlist_size: int = Astec.shortlist_size
    n_hard: int = Astec.n_hard
    n_random: int = Astec.n_random

    def deepxml(self) -> DeepXML:
        """Return Astec's framework around these features, without a re-ranker."""
        names = ("dropout", *DeepXMLWith.__annotations__)  # all that Astec has, too
        astec = Astec(**{name: getattr(self, name) for name in names}, reranker=False)
        return replace(astec.deepxml(n_points=0), features=self.architecture())  # sizes are given

    def _learn(self, data: TrainingData, held_out: TrainingData, run: TrainingRun) -> Scorer:
        """See `LabelEstimator`."""
        return self.deepxml().learn(data, held_out, run)


@dataclass(kw_only=True, eq=False, repr=False)
class DeepXMLMACH(OfMLP, DeepXMLWith):
    """DeepXML + MACH: one perceptron over hashed tokens in place of MACH's R.

    Tables 4 and 6(a) of the DeepXML paper; MACH by itself is `longtail.recipes.mach.MACH`.

    Parameters
    ----------
    **kwargs
        Those of `OfMLP` and `DeepXMLWith`.

    Examples
    --------
    >>> from longtail.recipes.deepxml_with import DeepXMLMACH
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> DeepXMLMACH().fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """


@dataclass(kw_only=True, eq=False, repr=False)
class DeepXMLKimCNN(OfKimCNN, DeepXMLWith):
    """DeepXML with the filters of Kim's network, which the DeepXML paper does not try.

    The "CNN" of its Table 6(a) is XML-CNN's. The filters are those of
    `longtail.recipes.end_to_end.KimCNNClassifier`.

    Parameters
    ----------
    **kwargs
        Those of `OfKimCNN` and `DeepXMLWith`.

    Examples
    --------
    >>> from longtail.recipes.deepxml_with import DeepXMLKimCNN
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> DeepXMLKimCNN().fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """


@dataclass(kw_only=True, eq=False, repr=False)
class DeepXMLXMLCNN(OfXMLCNN, DeepXMLWith):
    """DeepXML + XML-CNN: convolutions and bottleneck, without an output layer as wide as L.

    Tables 4 and 6(a) of the DeepXML paper; XML-CNN by itself is
    `longtail.recipes.end_to_end.XMLCNNClassifier`.

    Parameters
    ----------
    **kwargs
        Those of `OfXMLCNN` and `DeepXMLWith`.

    Examples
    --------
    >>> from longtail.recipes.deepxml_with import DeepXMLXMLCNN
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> DeepXMLXMLCNN().fit(texts, labels).predictor_.predict("wine", k=1)[0][0]
    'drink'
    """
