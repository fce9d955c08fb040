"""Table 6(c): classifiers of other papers, on the features that Astec's Module I has learnt."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Self

from scipy.sparse import csr_array

from longtail.data.blocks import points_of
from longtail.metrics.propensity import USUAL_PROPENSITY

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from longtail import Dataset
    from longtail.data.label_space import LabelSpace
    from longtail.estimators.estimator import LabelEstimator
    from longtail.recipes.deepxml import DeepXML

__all__ = ["OnFeatures"]


class OnFeatures:
    """A recipe on the features of another; an estimator and its predictor in one, for a table.

    Parameters
    ----------
    features : DeepXML
        Its Modules II to IV are trained too, and not used: leave them no epoch.
    recipe : LabelEstimator
        Of dense features.
    """

    def __init__(self, features: DeepXML, recipe: LabelEstimator) -> None:
        self.features, self.recipe = features, recipe

    def fit_dataset(self, dataset: Dataset) -> Self:
        """Train the features, then the recipe on what they make of the points."""
        self.features.fit_dataset(dataset)
        self.recipe.fit_dataset(self._seen(dataset))
        return self

    @property
    def predictor_(self) -> Self:
        """Itself."""
        return self

    @property
    def label_space(self) -> LabelSpace:
        """See `Predictor`."""
        return self.recipe.predictor_.label_space

    def evaluate(
        self, dataset: Dataset, *, propensity: tuple[float, float] = USUAL_PROPENSITY
    ) -> dict[str, float]:
        """See `Predictor.evaluate`."""
        return self.recipe.predictor_.evaluate(self._seen(dataset), propensity=propensity)

    def predict_topk(self, X: Any, k: int = 5) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """See `Predictor.predict_topk`."""
        return self.recipe.predictor_.predict_topk(self._vectors(X), k)

    def _seen(self, dataset: Dataset) -> Dataset:
        """Return the same points as features."""
        points = points_of(dataset)
        return replace(dataset, texts=None, features=self._vectors(points))

    def _vectors(self, X: Any) -> csr_array:
        """Return the features of points, dense rows."""
        learnt = self.features.predictor_
        scorer: Any = learnt.scorer  # of one learner
        return csr_array(scorer.ranker.encoder.encode(learnt.bags(X), self.features.run_.n_threads))
