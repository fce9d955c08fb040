"""What a trained energy has learnt, for people: label pairs, and the way down of an inference."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.errors import InputError, MissingExtraError, named
from longtail.scorers.energy import EnergyScorer
from longtail.scorers.energy_reranker import EnergyReranker

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.bags import Bags
    from longtail.kernels.energy import EnergyLayers, PointTerms
    from longtail.predictor import Predictor
    from longtail.scorers.protocols import Scorer

    Floats = NDArray[np.float32]

__all__ = ["LabelPair", "descent_picture", "inference_energies", "label_pairs", "pair_energies"]

MOST_LABELS = 2_000  # of which all pairs are looked at


class LabelPair(NamedTuple):
    """Two labels, and what having both costs over having each alone.

    Attributes
    ----------
    first, second : str
    energy : float
        Below 0, the energy joins them: either makes the other likelier. Above 0, it separates them.
    """

    first: str
    second: str
    energy: float


def label_pairs(
    model: Predictor, X: Bags | None = None, n: int = 10
) -> tuple[list[LabelPair], list[LabelPair]]:
    """Return the label pairs that a model's global energy joins and separates most.

    Parameters
    ----------
    model : Predictor
        Of the recipe SPEN or ICNN, or of another with such a re-ranker.
    X : Bags, optional
        Points, as by `Predictor.bags`, over which the energy is averaged where it depends on
        points. Without them, that of a point with no features.
    n : int
        Pairs of each kind.

    Returns
    -------
    joined, separated : list of LabelPair
        Strongest first; fewer than n where no more have that sign.

    Raises
    ------
    InputError
        If the model has no energy.

    Examples
    --------
    >>> from longtail.energy.diagnostics import label_pairs
    >>> from longtail.recipes.spen import SPEN
    >>> model = SPEN(dimension=8).fit(["red wine", "old car"] * 9, [["a", "b"], ["c"]] * 9)
    >>> joined, separated = label_pairs(model.predictor_)
    >>> len(joined) + len(separated)
    3
    """
    labels, energies = pair_energies(model, X)
    rows, columns = np.triu_indices(len(labels), 1)
    values = energies[rows, columns]
    order = np.argsort(values, kind="stable")

    def pairs(places: NDArray[np.int64]) -> list[LabelPair]:
        name = model.label_space.name
        return [
            LabelPair(name(int(labels[i])), name(int(labels[j])), float(energies[i, j]))
            for i, j in zip(rows[places], columns[places], strict=True)
        ]

    joined, separated = order[:n], order[::-1][:n]
    return pairs(joined[values[joined] < 0]), pairs(separated[values[separated] > 0])


def pair_energies(
    model: Predictor, X: Bags | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return ``E(both) - E(first) - E(second) + E(none)`` of each pair of labels.

    Parameters
    ----------
    model, X
        See `label_pairs`.

    Returns
    -------
    labels : int32 (m,)
        The labels of most training points, at most 2,000.
    energies : float32 (m, m)
        Symmetric; unaries cancel out. The diagonal means nothing.

    Examples
    --------
    >>> from longtail.energy.diagnostics import pair_energies
    >>> from longtail.recipes.spen import SPEN
    >>> model = SPEN(dimension=8).fit(["red wine", "old car"] * 9, [["a", "b"], ["b"]] * 9)
    >>> labels, energies = pair_energies(model.predictor_)
    >>> [model.predictor_.label_space.name(label) for label in labels], energies.shape
    (['b', 'a'], (2, 2))
    """
    layers, terms, known = _energy_of(model, X)
    by_count = np.argsort(-model.train_label_counts[known], kind="stable")[:MOST_LABELS]
    total = np.zeros((len(by_count), len(by_count)), np.float64)
    for point in range(len(terms.offsets)):
        total += _pairs_at(point, terms, layers, by_count)
    return known[by_count], (total / len(terms.offsets)).astype(np.float32)


def inference_energies(model: Predictor, X: Bags) -> Floats:
    """Return what inference minimises before each step and after the last.

    Parameters
    ----------
    model : Predictor
    X : Bags
        Points, as by `Predictor.bags`.

    Returns
    -------
    float32 (n, n_steps + 1)

    Examples
    --------
    >>> from longtail.energy.diagnostics import inference_energies
    >>> from longtail.recipes.spen import SPEN
    >>> model = SPEN(dimension=8).fit(["red wine", "old car"] * 9, [["a", "b"], ["c"]] * 9)
    >>> points = model.predictor_.bags(["red wine", "old car"])
    >>> energies = inference_energies(model.predictor_, points)
    >>> (energies[:, -1] < energies[:, 0]).tolist()  # its steps lead down
    [True, True]
    """
    scorer = model.scorer
    if isinstance(scorer, EnergyScorer):
        return scorer.energies(X)
    reranker = _reranker(scorer)
    ids, scores = reranker.scorer.top_k(X, reranker.energy.size)
    terms = reranker.energy.terms(ids, scores)
    return reranker.energy.inference.energies(terms, reranker.energy.layers)


def descent_picture(energies: Floats) -> str:
    """Return the way down of `inference_energies` as an ``<svg>`` element.

    Parameters
    ----------
    energies : float32 (n, n_steps + 1)

    Returns
    -------
    str
        The median over points, and between which values nine tenths of them lie, each point
        measured from where it ends.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - of an extra
        from matplotlib.figure import Figure  # noqa: PLC0415 - of an extra
    except ImportError as error:
        raise MissingExtraError(
            "The picture needs matplotlib, which is not installed. Install it with "
            "`pip install 'longtail[report]'`."
        ) from error
    above = energies - energies[:, -1:]
    low, middle, high = np.quantile(above, [0.05, 0.5, 0.95], axis=0)
    steps = np.arange(energies.shape[1])
    figure = Figure(figsize=(4.8, 2.7), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(steps, low, high, alpha=0.25, linewidth=0, label="nine tenths of the points")
    axes.plot(steps, middle, marker="o", markersize=3, label="median")
    axes.set(xlabel="step of inference", ylabel="energy above that of the last step")
    axes.legend(frameon=False)
    file = io.StringIO()
    with rc_context({"svg.hashsalt": "longtail"}):  # the same picture each time
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    return text[text.index("<svg") :]


def _energy_of(
    model: Predictor, X: Bags | None
) -> tuple[EnergyLayers, PointTerms, NDArray[np.int32]]:
    """Return the energy of a model, at points or at none, and the labels it is of."""
    scorer = model.scorer
    bags = model.bags(_no_features(model)) if X is None else X
    if isinstance(scorer, EnergyScorer):
        return scorer.layers, scorer.terms(bags), scorer.known
    reranker = _reranker(scorer)
    energy, every = reranker.energy, np.arange(len(reranker.energy.label_vectors), dtype=np.int32)
    if X is None:
        empty = np.full((1, 1), -1, np.int32), np.full((1, 1), -np.inf, np.float32)
        return energy.layers, energy.terms(*empty), every
    return energy.layers, energy.terms(*reranker.scorer.top_k(bags, energy.size)), every


def _reranker(scorer: Scorer) -> EnergyReranker:
    """Return the re-ranker, or raise InputError."""
    if not isinstance(scorer, EnergyReranker):
        raise InputError(
            f"{named(scorer, first=True)} has no energy. Train with --recipe spen or icnn, or with "
            "--set energy_reranker=spen (which keeps the energy only where it gains)."
        )
    return scorer


def _no_features(model: Predictor) -> object:
    """Return one point of which nothing is known."""
    if model.vectorizer is not None:
        return [""]
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import, seldom needed

    return csr_array((1, model.n_features), dtype=np.float32)


def _pairs_at(
    point: int, terms: PointTerms, layers: EnergyLayers, some: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the energy of each pair of some labels at a point, (m, m)."""
    gates = terms.label_gates[point]
    gated = [
        vectors[some] * gates[k][some, None] if len(gates) else vectors[some]
        for k, vectors in enumerate(layers.label_vectors.astype(np.float64))
    ]
    none = [np.zeros((1, vectors.shape[1])) for vectors in gated]
    alone = _global_energy(point, gated, terms, layers)
    nothing = _global_energy(point, none, terms, layers)[0]
    both = np.stack(
        [
            _global_energy(point, [vectors + vectors[i] for vectors in gated], terms, layers)
            for i in range(len(some))
        ]
    )
    pairs: NDArray[np.float64] = both - alone[:, None] - alone[None] + nothing
    return pairs


def _global_energy(
    point: int, inputs: list[NDArray[np.float64]], terms: PointTerms, layers: EnergyLayers
) -> NDArray[np.float64]:
    """Return z_K . c_K for inputs (y * d_k) A_k of each layer, (m, n_hidden) each."""
    hidden = np.zeros_like(inputs[0])
    for k, of_labels in enumerate(inputs):
        sums = of_labels + terms.offsets[point, k]
        if k > 0:
            sums = sums + hidden @ layers.couplings[k - 1]
        hidden = np.logaddexp(0, sums) * terms.path_gates[point, k]
    total: NDArray[np.float64] = hidden.sum(axis=1)
    return total
