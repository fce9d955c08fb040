"""Recipes whose answer an energy may re-order: ``energy_reranker="spen"`` or ``"icnn"``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from longtail.data.split import held_out_split
from longtail.errors import InputError, MissingExtraError, require_one_of
from longtail.estimators.calibrating import calibrated
from longtail.estimators.estimator import LabelEstimator
from longtail.scorers.energy_reranker import EnergyReranker
from longtail.training.threads import n_training_threads, training_threads

if TYPE_CHECKING:
    from longtail.energy.reranking import EnergyRerankerTraining
    from longtail.scorers.calibration import Calibration
    from longtail.scorers.energy_reranker import ShortlistEnergy
    from longtail.scorers.protocols import Scorer
    from longtail.training.run import TrainingData, TrainingRun

__all__ = ["ENERGY_RERANKERS", "RerankedEstimator"]

ENERGY_RERANKERS = ("spen", "icnn")
SHARE_UNSEEN, MOST_UNSEEN = 0.1, 5_000


@dataclass(kw_only=True, eq=False, repr=False)
class RerankedEstimator(LabelEstimator):
    """Base of recipes that can have an energy behind them.

    The energy must learn from scores of points that the recipe has not seen. So the recipe is
    trained twice: without a tenth of the points, from whose shortlists the energy is learnt, and
    then with them. A recipe that learns probabilities itself overrides `_learn_alone`.

    Parameters
    ----------
    energy_reranker : str or None
        ``"spen"`` or ``"icnn"``: re-order the best labels by an energy over them, if that gains on
        points held out; training takes twice as long. None does not.
    **kwargs
        Those of `LabelEstimator`.
    """

    energy_reranker: str | None = None

    def check(self) -> None:
        """See `LabelEstimator.check`."""
        super().check()
        require_one_of("energy_reranker", self.energy_reranker, (None, *ENERGY_RERANKERS))
        if self.energy_reranker is not None and find_spec("torch") is None:
            raise MissingExtraError(
                f"`energy_reranker` is {self.energy_reranker!r}, and an energy is trained by "
                "torch. Install it with `pip install 'longtail[train]'`, or leave it at none."
            )

    def _learn_calibrated(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> tuple[Scorer, Calibration]:
        """See `LabelEstimator`."""
        if self.energy_reranker is None:
            return self._learn_alone(data, held_out, run)
        from longtail.energy.reranking import ENERGY_RERANKINGS  # noqa: PLC0415 - it loads torch

        with training_threads(n_training_threads()):  # torch's as well, now that it is loaded
            found = self._energy(ENERGY_RERANKINGS[self.energy_reranker], data, held_out, run)
        if found is None:
            return self._learn_alone(data, held_out, run)
        energy, calibration = found
        return EnergyReranker(self._learn(data, held_out, run), energy), calibration

    def _learn_alone(
        self, data: TrainingData, held_out: TrainingData, run: TrainingRun
    ) -> tuple[Scorer, Calibration]:
        """Learn what answers without an energy, and its probabilities."""
        return super()._learn_calibrated(data, held_out, run)

    def _energy(
        self,
        training: EnergyRerankerTraining,
        data: TrainingData,
        held_out: TrainingData,
        run: TrainingRun,
    ) -> tuple[ShortlistEnergy, Calibration] | None:
        """Return an energy learnt on points that the recipe did not see; None if of no use.

        And what its answers to these points say of probabilities.
        """
        from longtail.energy.reranking import LEAST_POINTS  # noqa: PLC0415 - it loads torch

        n_points: int = data.labels.shape[0]
        if SHARE_UNSEEN * n_points < LEAST_POINTS:
            return None  # too few to learn from
        share = min(SHARE_UNSEEN, MOST_UNSEEN / n_points)
        try:
            kept, unseen = held_out_split(data.features, share, run.seed_for("set aside"))
        except InputError:  # nearly all points alike
            return None
        some = data.of_points(kept)
        scorer = self._learn(some, held_out, run.within("to re-rank: "))
        others = data.of_points(unseen)
        size = min(training.size, data.labels.shape[1])
        ids, scores = others.judged(*scorer.top_k(others.bags(), size, run.n_threads))
        with run.stage("re-ranker"):
            energy = replace(training, size=ids.shape[1]).learn(
                ids, scores, others.judged_labels, some.labels, run
            )
        if energy is None:
            return None
        others = others.with_unlabelled(data if held_out.unlabelled is None else held_out)
        return energy, calibrated(EnergyReranker(scorer, energy), others, some, run.n_threads)
