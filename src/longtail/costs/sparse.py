"""What training the recipes costs whose classifiers, trees or votes are of sparse features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from longtail.clustering.balanced import n_halvings
from longtail.costs.estimate import BAGS, CENTROIDS, PROCESS
from longtail.recipes.pfastrexml import n_trees_for

if TYPE_CHECKING:
    from longtail.costs.estimate import Machine, Workload
    from longtail.recipes.annexml import AnnexML
    from longtail.recipes.dismec import DiSMEC
    from longtail.recipes.parabel import Parabel
    from longtail.recipes.pfastrexml import PfastreXML

__all__ = ["AnnexMLCosts", "DiSMECCosts", "ForestCosts", "TreeCosts"]

# Core-seconds, as in `longtail.costs.estimate`.
TRAIN = 5.3e-9  # an entry of a point that trains a support vector machine, in all passes
TAKE = 1.5e-7  # such a point
MORE_PASSES = 1.5  # of DiSMEC, whose machines are trained to a smaller tolerance
HALVE = 2e-8  # an entry of the labels' centroids, each time that labels are halved

OF_NEGATIVES = 4  # weights of a label over the tokens of its points
STRONG = 3.0  # of points with at most STRONG / prune entries, no weight is small enough to drop
WEIGHT = 12  # bytes of a weight: feature, value, and which child it is of
LAID_OUT = 60  # bytes of a weight while a tree is laid out for search


@dataclass(frozen=True)
class DiSMECCosts:
    """Of a linear support vector machine for each label.

    See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    Twice as many labels take twice as long.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.sparse import DiSMECCosts
    >>> from longtail.recipes.dismec import DiSMEC
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = DiSMECCosts(DiSMEC()), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["classifiers"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    2.0
    """

    settings: DiSMEC

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        w = workload
        n_taken = w.n_points * w.n_trained_labels
        return {"classifiers": MORE_PASSES * n_taken * _time_of_point(w) / machine.n_threads}

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: bags, and the weights of all labels."""
        n_weights = _n_weights(workload, self.settings.prune)
        return PROCESS + BAGS * workload.n_nonzero + 2 * WEIGHT * n_weights


@dataclass(frozen=True)
class TreeCosts:
    """Of linear support vector machines along trees of labels.

    See `longtail.costs.estimate.CostModel`.

    Parameters
    ----------
    settings : Parabel
        Bonsai among them.

    Examples
    --------
    Twice as many labels make trees one level deeper, which takes little longer.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.sparse import TreeCosts
    >>> from longtail.recipes.parabel import Parabel
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> few, many = (Workload(n_labels=n, **sizes) for n in (1_000, 2_000))
    >>> costs, machine = TreeCosts(Parabel()), Machine(rate=1e11, n_threads=2)
    >>> seconds = [costs.stages(workload, machine)["trees"] for workload in (few, many)]
    >>> round(seconds[1] / seconds[0], 1)
    1.1
    """

    settings: Parabel

    def stages(self, workload: Workload, machine: Machine) -> dict[str, float]:
        """Return the seconds of each stage."""
        w, settings = workload, self.settings
        depth = n_halvings(max(w.n_trained_labels, 1), settings.leaf_size)
        growing = (depth + 1) * w.n_centroid_entries * HALVE
        n_taken = w.n_label_pairs * (w.n_trained_labels / 2**depth + 2 * depth)
        a_tree = growing + n_taken * _time_of_point(w)
        return {"trees": settings.n_learners * a_tree / machine.n_threads}

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: bags, centroids, and the weights of all labels."""
        w, settings = workload, self.settings
        kept = BAGS * w.n_nonzero + CENTROIDS * w.n_centroid_entries
        of_weight = LAID_OUT + (settings.n_learners - 1) * WEIGHT
        return PROCESS + kept + of_weight * _n_weights(w, settings.prune)


def _time_of_point(w: Workload) -> float:
    """Return the core-seconds of a point that a machine is trained on."""
    return TAKE + TRAIN * (w.n_nonzero / w.n_points)


def _n_weights(w: Workload, prune: float) -> float:
    """Return how many weights are kept, of all labels."""
    per_point = w.n_nonzero / w.n_points  # each about 1 / per_point^.5 in size
    share = min(1.0, (STRONG / max(prune * per_point, 1e-6)) ** 2)
    most = float(w.n_trained_labels * w.n_features)
    return share * min(OF_NEGATIVES * w.n_centroid_entries, most)


@dataclass(frozen=True)
class ForestCosts:
    """Of trees over points, and the means of labels' points.

    See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    Twice as many trees take more memory; how much longer they take is not known.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.sparse import ForestCosts
    >>> from longtail.recipes.pfastrexml import PfastreXML
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> workload = Workload(n_labels=1_000, **sizes)
    >>> fewer, more = (ForestCosts(PfastreXML(n_learners=n)) for n in (50, 100))
    >>> more.memory(workload) > fewer.memory(workload), more.stages(workload, Machine(1e11, 2))
    (True, {})
    """

    settings: PfastreXML

    def stages(
        self,
        workload: Workload,  # noqa: ARG002 - how deep trees grow was not foreseen
        machine: Machine,  # noqa: ARG002
    ) -> dict[str, float]:
        """Return nothing: how long separators take depends on the data too much."""
        return {}

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: bags, trees, leaves, and means of labels' points."""
        w, settings = workload, self.settings
        n_trees = settings.n_learners or n_trees_for(w.n_points)
        n_leaves = 2 * w.n_points / settings.leaf_size
        trees = n_trees * (w.n_points * 48 + n_leaves * 400)
        return PROCESS + BAGS * w.n_nonzero + trees + CENTROIDS * w.n_centroid_entries


@dataclass(frozen=True)
class AnnexMLCosts:
    """Of partitions of points, and of token vectors in each of them.

    See `longtail.costs.estimate.CostModel`.

    Examples
    --------
    Of two learners, each has token vectors of its own; how long they take is not known.

    >>> from longtail.costs.estimate import Machine, Workload
    >>> from longtail.costs.sparse import AnnexMLCosts
    >>> from longtail.recipes.annexml import AnnexML
    >>> points = {"n_points": 10_000, "n_nonzero": 10**6, "n_word_entries": 10**6}
    >>> sizes = {"n_features": 5_000, "n_label_pairs": 20_000, **points}
    >>> workload = Workload(n_labels=1_000, **sizes)
    >>> one, two = (AnnexMLCosts(AnnexML(n_learners=n)) for n in (1, 2))
    >>> two.memory(workload) > one.memory(workload), two.stages(workload, Machine(1e11, 2))
    (True, {})
    """

    settings: AnnexML

    def stages(
        self,
        workload: Workload,  # noqa: ARG002
        machine: Machine,  # noqa: ARG002
    ) -> dict[str, float]:
        """Return nothing: how many labels points share decides the time, and is not known."""
        return {}

    def memory(self, workload: Workload) -> float:
        """Return the bytes at the peak: bags, and of each learner tokens, points and partitions."""
        w, settings = workload, self.settings
        n_parts = max(w.n_points // settings.partition_size, 1)
        n_tokens = min(n_parts * w.n_features, w.n_nonzero)
        vectors = 4 * (settings.dimension + 2) * (n_tokens + w.n_points)
        partitions = 4 * w.n_features * n_parts
        return PROCESS + BAGS * w.n_nonzero + settings.n_learners * (vectors + partitions)
