"""The transformers inside a trained scorer, exchanged for what stands for them in serving."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from longtail.features.onnx_encoder import OnnxEncoder
from longtail.features.transformer_encoder import TransformerEncoder

if TYPE_CHECKING:
    from collections.abc import Callable

    from longtail.features.encoder import Encoder

__all__ = ["TextEncoder", "sharing_transformers", "transformers_of", "with_transformers_as"]

Part = TypeVar("Part")
TextEncoder: TypeAlias = TransformerEncoder | OnnxEncoder


def transformers_of(part: Any) -> list[TextEncoder]:
    """Return the transformers in a scorer, in torch or in ONNX, each once.

    Parameters
    ----------
    part : Scorer, or a part of one

    Examples
    --------
    An ensemble of two models with one transformer has one.

    >>> import numpy as np
    >>> from longtail.features.onnx_encoder import OnnxEncoder
    >>> from longtail.features.text_pieces import PiecesOfTexts
    >>> from longtail.scorers.inner_transformers import transformers_of
    >>> from longtail.scorers.ensemble import EnsembleScorer
    >>> from longtail.scorers.one_vs_all import OneVsAllScorer
    >>> encoder = OnnxEncoder(PiecesOfTexts("{}", 8, 0), np.zeros(0, np.uint8), 2)
    >>> member = OneVsAllScorer(encoder, np.zeros((1, 3)), np.array([0]))
    >>> len(transformers_of(EnsembleScorer((member, member))))
    1
    """
    if isinstance(part, TransformerEncoder | OnnxEncoder):
        return [part]
    found = {id(one): one for inner in _parts(part) for one in transformers_of(inner)}
    return list(found.values())


def with_transformers_as(part: Part, exchanged: Callable[[TextEncoder], Encoder]) -> Part:
    """Return a scorer with something in place of each of its transformers.

    Parameters
    ----------
    part : Scorer, or a part of one
        Stays as it is.
    exchanged : callable
        Asked once a transformer, though an ensemble may have one in all its members.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.features.bag_encoder import BagEncoder
    >>> from longtail.features.onnx_encoder import OnnxEncoder
    >>> from longtail.features.text_pieces import PiecesOfTexts
    >>> from longtail.scorers.inner_transformers import with_transformers_as
    >>> from longtail.scorers.one_vs_all import OneVsAllScorer
    >>> encoder = OnnxEncoder(PiecesOfTexts("{}", 8, 0), np.zeros(0, np.uint8), 2)
    >>> scorer = OneVsAllScorer(encoder, np.zeros((1, 3)), np.array([0]))
    >>> exchanged = with_transformers_as(scorer, lambda _: BagEncoder(np.eye(2)))
    >>> type(scorer.encoder).__name__, type(exchanged.encoder).__name__
    ('OnnxEncoder', 'BagEncoder')
    """
    known = {id(one): exchanged(one) for one in transformers_of(part)}
    changed: Part = _rebuilt(part, known)
    return changed


def sharing_transformers(part: Part) -> Part:
    """Return a scorer in which transformers of the very same arrays are one.

    So they were before they were saved, and several would each take the memory, and the time to
    read a text, of one.

    Parameters
    ----------
    part : Scorer, or a part of one
        Stays as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.features.onnx_encoder import OnnxEncoder
    >>> from longtail.features.text_pieces import PiecesOfTexts
    >>> from longtail.scorers.inner_transformers import sharing_transformers
    >>> graph = np.zeros(0, np.uint8)
    >>> first, second = (OnnxEncoder(PiecesOfTexts("{}", 8, 0), graph, 2) for _ in range(2))
    >>> shared = sharing_transformers((first, second))
    >>> first is second, shared[0] is shared[1]
    (False, True)
    """
    first: dict[frozenset[int], TextEncoder] = {}
    known: dict[int, Encoder] = {}
    for one in transformers_of(part):
        arrays = one.weights.values() if isinstance(one, TransformerEncoder) else [one.graph]
        known[id(one)] = first.setdefault(frozenset(map(id, arrays)), one)
    return _rebuilt(part, known) if len(first) < len(known) else part


def _rebuilt(part: Any, known: dict[int, Encoder]) -> Any:
    """Return a part with the known ones exchanged; the same object if it has none of them."""
    if id(part) in known:
        return known[id(part)]
    if type(part) is tuple:
        inner = tuple(_rebuilt(one, known) for one in part)
        return part if all(a is b for a, b in zip(inner, part, strict=True)) else inner
    if not is_dataclass(part) or isinstance(part, type):
        return part
    members = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
    changes = {name: _rebuilt(value, known) for name, value in members.items()}
    changes = {name: value for name, value in changes.items() if value is not members[name]}
    return replace(part, **changes) if changes else part


def _parts(part: Any) -> tuple[Any, ...]:
    """Return what a part is made of."""
    if type(part) is tuple:
        return part
    if not is_dataclass(part) or isinstance(part, type):
        return ()
    return tuple(getattr(part, field.name) for field in fields(part))
