"""One text answered by one call of compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longtail.data.symbol_words import codes_of
from longtail.errors import interruptible
from longtail.kernels.answer_text import MOST_CODES, new_text_room
from longtail.kernels.handle import handle_of
from longtail.spares import Spares

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.compiled.scorer import CompiledScorer
    from longtail.data.vectorizer import TextVectorizer
    from longtail.scorers.calibration import Calibration

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["OneText"]


class OneText:
    """Answers one text at a time; any number of threads may use one at once.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.compiled.one_text import OneText
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> one_text = OneText(model.scorer, model.vectorizer, model.calibration)
    >>> ids, probabilities = one_text.top_k("a glass of wine", 3)
    >>> ids.tolist(), (probabilities > 0.5).tolist()
    ([[0, 1, -1]], [[True, False, False]])
    """

    def __init__(
        self, scorer: CompiledScorer, vectorizer: TextVectorizer, calibration: Calibration
    ) -> None:
        self._scorer, self._vectorizer, self._calibration = scorer, vectorizer, calibration
        self._curve = calibration.curve
        self._symbols = vectorizer.symbols
        self._rooms: Spares[Any] = Spares()

    def top_k(self, text: str, k: int) -> tuple[Ids, Floats]:
        """Return ids and probabilities (1, k): the same bits as its row of a batch."""
        codes = codes_of(text, symbols=self._symbols)
        if len(codes) > MOST_CODES:
            with interruptible():
                columns, values = self._vectorizer.encode_one(text)
            ids, scores = self._scorer.top_k_of_one(columns, values, k)
            return ids, self._calibration.probabilities(scores)
        room = self._rooms.taken(self._new_room)
        answer = self._scorer.answer_text(self._vectorizer.handle(), room, codes, self._curve, k)
        self._rooms.keep(room)
        return answer

    def _new_room(self) -> Any:
        """Return room for the tokens of a text."""
        return handle_of(new_text_room(self._vectorizer.fitted_rules()))

    def __reduce__(self) -> Any:
        """Leave out what belongs to this process."""
        return type(self), (self._scorer, self._vectorizer, self._calibration)
