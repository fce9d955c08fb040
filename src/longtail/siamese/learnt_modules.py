"""What NGAME's two modules have learnt: the vectors by which labels are found and scored."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from longtail.siamese.modules import label_vectors, unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from longtail.siamese.modules import EncodedPairs
    from longtail.siamese.text_block import TextBlock

    Floats = NDArray[np.float32]

__all__ = ["LearntModules"]


class LearntModules(NamedTuple):
    """The encoder's vectors, and what is added to those of label texts.

    Attributes
    ----------
    encoded : EncodedPairs
        Of the training points and of all labels, as the encoder is in the end.
    auxiliary : float32 (n_labels, dimension) or None
        a_k, which Module I adds to texts; None without auxiliary vectors.
    added : float32 (n_labels, dimension)
        a_k + eta_l, in one vector; before Module II is trained a_k, or zeros where there is none.
    block : TextBlock or None
        What texts go through before that is added to them.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.siamese.learnt_modules import LearntModules
    >>> from longtail.siamese.modules import EncodedPairs
    >>> texts = np.eye(2, dtype=np.float32)
    >>> added = np.array([[0, 1], [0, 0]], np.float32)  # the first label's points look elsewhere
    >>> second, first = LearntModules(EncodedPairs(texts, texts), None, added).heads()
    >>> (second > 0).astype(int).tolist(), (first > 0).astype(int).tolist()
    ([[1, 1], [0, 1]], [[1, 0], [0, 1]])
    """

    encoded: EncodedPairs
    auxiliary: Floats | None
    added: Floats
    block: TextBlock | None = None

    def heads(self) -> list[Floats]:
        """Return label vectors (n_labels, dimension) of Module II, then those of Module I.

        With auxiliary vectors those of texts alone come last: a blend learns how far to trust them.
        """
        texts = self.encoded.texts
        second = label_vectors(texts, self.added, self.block)
        if self.auxiliary is None:
            return [second, unit(texts)]
        return [second, label_vectors(texts, self.auxiliary), texts]
