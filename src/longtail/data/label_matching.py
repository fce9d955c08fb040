"""Which label of a model each label of a data set is."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.input_notes import warn
from longtail.data.label_names import written_id
from longtail.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.data.label_space import LabelSpace
    from longtail.data.text_column import TextColumn

__all__ = ["matched_labels"]


def matched_labels(space: LabelSpace, known: LabelSpace) -> tuple[NDArray[np.int32], LabelSpace]:
    """Match labels with those of a model, by their names.

    Where neither space has names, ids are the model's. To a model that knows ids alone, names that
    are all ids of its labels, such as its own answers have, are these ids. Labels that share a name
    are told apart by their texts, or else, where both spaces have equally many of the name, by
    their order. Where neither tells, the first is taken, with a warning.

    Parameters
    ----------
    space : LabelSpace
        Of a data set.
    known : LabelSpace
        Of the model.

    Returns
    -------
    ids : int32 (space.n_labels,)
    labels : LabelSpace
        The model's labels, and behind them the names that it has not, each once.

    Raises
    ------
    InputError
        If only one of the two has names, and they are not ids that it has.

    Examples
    --------
    >>> from longtail.data.label_matching import matched_labels
    >>> from longtail.data.label_space import LabelSpace
    >>> model = LabelSpace.from_names(["bank", "bank"], ["money", "shore"])
    >>> own = LabelSpace.from_names(["bank", "tree"], ["shore", "oak"])
    >>> ids, labels = matched_labels(own, model)
    >>> ids.tolist(), labels.n_labels
    ([1, 2], 3)
    """
    if known.names is None and space.names is not None:
        written = np.array([written_id(name, known.n_labels) for name in space.names], np.int32)
        if (written >= 0).all():
            return written, known
    if space.names is None and known.names is None:
        own = np.arange(space.n_labels, dtype=np.int32)
        return own, known if space.n_labels <= known.n_labels else space
    if space.names is None or known.names is None:
        raise InputError(
            "Only one of the model's labels and the labels of the points have names, so they "
            "cannot be matched. Use ids or names in both; `longtail evaluate` without --labels "
            "takes ids for those of the model."
        )
    new = [name for name in dict.fromkeys(space.names) if name not in known.ids_by_name]
    ids = known.ids_by_name | {name: known.n_labels + i for i, name in enumerate(new)}
    matched = np.array([ids[name] for name in space.names], np.int32)
    if not known.names_are_unique:
        _tell_apart(matched, space.names, space.texts, known)
    return matched, known.extended(new)


def _tell_apart(
    matched: NDArray[np.int32], names: TextColumn, texts: TextColumn | None, known: LabelSpace
) -> None:
    """Match labels whose names several of the model's labels share, in place."""
    shared = known.shared_names
    own: dict[str, list[int]] = defaultdict(list)
    for label, name in enumerate(names):
        if name in shared:
            own[name].append(label)
    unclear = []
    for name, labels in own.items():
        others = known.ids_of(name)
        by_text = _by_text(labels, texts, others, known.texts)
        if by_text is not None:
            matched[labels] = by_text
        elif len(labels) == len(others):
            matched[labels] = others
        else:
            unclear.append(name)
    if unclear:
        warn(
            f"Several of the model's labels share a name, such as {unclear[0]!r}, and neither "
            "texts nor order tell which of them the points have: the first is taken (names: "
            f"{len(unclear):,}). Write ids in place of names; the model's own answers keep them "
            "as a matrix (.npz).",
        )


def _by_text(
    labels: list[int], texts: TextColumn | None, others: list[int], known: TextColumn | None
) -> list[int] | None:
    """Return which of the others have the labels' texts, or None where texts do not tell."""
    if texts is None or known is None:
        return None
    ids = {known[other]: other for other in others}
    wanted = [texts[label] for label in labels]
    is_clear = len(ids) == len(others) and max(Counter(wanted).values()) == 1
    return [ids[text] for text in wanted] if is_clear and ids.keys() >= {*wanted} else None
