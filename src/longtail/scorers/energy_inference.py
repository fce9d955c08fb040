"""How a trained energy is minimised over a point's labels: no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError, require_one_of
from longtail.kernels.arrays import read_only
from longtail.kernels.bundle import bundle_rows
from longtail.kernels.energy import EnergyLayers, Moves, PointTerms, descend_rows
from longtail.kernels.jit import over_row_chunks
from longtail.scorers.sigmoid import sigmoid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = ["MOST_STEPS", "EnergyInference"]

MOST_STEPS = 10_000
METHODS: Mapping[str, Moves | None] = MappingProxyType(
    {
        "entropy": Moves.ENTROPY,
        "logit": Moves.LOGIT,
        "projected": Moves.PROJECTED,
        "bundle": None,
    }
)


@dataclass(frozen=True, kw_only=True)
class EnergyInference:
    """Minimise an energy by gradient steps on the labels, or by a bundle of its tangent planes.

    Parameters
    ----------
    method : str
        ``"entropy"``, ``"logit"`` and ``"projected"`` are the gradient steps of
        `longtail.energy.descent`; ``"bundle"`` is the bundle-entropy method, for convex energies.
    n_steps : int
        Most steps, or planes.
    step, momentum : float
        Of gradient steps.
    tolerance : float
        Stop once no label moves as far, or the bundle is as near to the energy. 0 does not stop
        gradient steps early.

    Raises
    ------
    InputError
        If there is no such method, or there are more than 10,000 steps.

    Examples
    --------
    >>> from longtail.scorers.energy_inference import EnergyInference
    >>> EnergyInference(n_steps=5).config()["method"]
    'entropy'
    """

    method: str = "entropy"
    n_steps: int = 10
    step: float = 0.5
    momentum: float = 0.0
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        """Refuse methods that there are not, and steps without end."""
        require_one_of("method", self.method, METHODS)
        if not 0 <= self.n_steps <= MOST_STEPS:
            raise InputError(f"n_steps must be between 0 and {MOST_STEPS:,}, got {self.n_steps!r}.")

    def states(self, terms: PointTerms, layers: EnergyLayers, n_threads: int = 1) -> Floats:
        """Return what ranks the labels of each point, float32 (n, size).

        Returns
        -------
        float32 (n, size)
            The logits of the relaxed labels; with ``"projected"``, the labels before they are cut
            to [0, 1]. -inf for padding.
        """
        return self._run(terms, layers, 0, n_threads)[0]

    def labels(self, terms: PointTerms, layers: EnergyLayers, n_threads: int = 1) -> Floats:
        """Return the relaxed labels, float32 (n, size) in [0, 1]; 0 for padding."""
        states = self.states(terms, layers, n_threads)
        if METHODS[self.method] is Moves.PROJECTED:
            return np.clip(states, 0, 1)
        labels: Floats = np.where(terms.labels >= 0, sigmoid(states), 0).astype(np.float32)
        return labels

    def energies(self, terms: PointTerms, layers: EnergyLayers, n_threads: int = 1) -> Floats:
        """Return what is minimised before the first step and after each, (n, n_steps + 1).

        That is the energy, less the labels' entropy where the method has one.
        """
        if not self.n_steps:  # kernels note the value before a step where they take one
            method = "entropy" if METHODS[self.method] is None else self.method
            one = replace(self, method=method, n_steps=1)
            return one.energies(terms, layers, n_threads)[:, :1]
        return self._run(terms, layers, self.n_steps + 1, n_threads)[1]

    def _run(
        self, terms: PointTerms, layers: EnergyLayers, n_traced: int, n_threads: int
    ) -> tuple[Floats, Floats]:
        """Return states and traced energies."""
        states = np.full(terms.unaries.shape, -np.inf, np.float32)
        trace = np.zeros((len(states), n_traced), np.float32)
        terms = PointTerms(
            read_only(terms.labels, np.int32),
            *(read_only(array, np.float32) for array in terms[1:]),
        )
        layers = EnergyLayers(*(read_only(array, np.float32) for array in layers))
        tolerance, moves = np.float32(self.tolerance), METHODS[self.method]
        if not self.n_steps and moves is None:  # a bundle without planes would forget the unaries
            moves = Moves.ENTROPY

        def work(start: int, stop: int) -> None:
            if moves is None:
                bundle_rows(terms, layers, self.n_steps, tolerance, start, stop, states, trace)
                return
            rates = np.float32(self.step), np.float32(self.momentum), tolerance
            descend_rows(
                terms, layers, self.n_steps, *rates, int(moves), start, stop, states, trace
            )

        over_row_chunks(work, len(states), n_threads=n_threads, chunk=64)
        states[terms.labels < 0] = -np.inf
        return states, trace

    def config(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self)
