"""Label names that are probably none: no strings, texts of lists, several packed into one."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.csr import MOST_DIGITS
from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from longtail.data.input_notes import InputNotes

__all__ = [
    "as_seen",
    "check_name",
    "is_list_text",
    "names_in",
    "packed_by",
    "remark_on_new_twins",
    "remark_on_packed",
    "remark_on_twins",
    "written_id",
]

# ['a', 'b'] as Python, JSON and numpy write it, and [3, 17]
_LIST_TEXT = re.compile(
    r"""\s*\[\s*(?:['"].*['"]\s*,?|\d+(?:\s*,\s*\d+)+)\s*\]\s*""", flags=re.DOTALL
)
_SURE = "|;\t\n"  # what stands between labels far more often than in one
_LEAST_MOVING = 0.2
_FEW, _NEARLY_ALL = 0.05, 0.8  # of the points, and of the names


def check_name(name: object) -> None:
    """Raise InputError unless the name of a label is a string.

    Examples
    --------
    >>> from longtail.data.label_names import check_name
    >>> check_name("7")
    >>> check_name(7)
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: Names of labels are strings, got 7. Pass, for example, '7'.
    """
    if not isinstance(name, str):
        raise InputError(
            f"Names of labels are strings, got {name!r}. Pass, for example, {str(name)!r}."
        )


def names_in(names: object) -> list[str]:
    """Return an iterable of names as a list, or raise InputError: one string is not several.

    Examples
    --------
    >>> from longtail.data.label_names import names_in
    >>> names_in(name for name in ("bread", "yeast"))
    ['bread', 'yeast']
    """
    if isinstance(names, str):
        raise InputError(f"Expected a list of label names, got one string. Pass [{names!r}].")
    if not isinstance(names, Iterable):
        raise InputError(f"Expected a list of label names, got {names!r}. Pass () for no names.")
    found = list(names)
    for name in found:
        check_name(name)
    return found


def is_list_text(name: str) -> bool:
    """Tell the text of a whole list, which comes of a list that was written into a table.

    Examples
    --------
    >>> from longtail.data.label_names import is_list_text
    >>> [is_list_text(name) for name in ("['a', 'b']", "[3, 17]", "[sic]", "[1]")]
    [True, True, False, False]
    """
    return name.lstrip()[:1] == "[" and _LIST_TEXT.fullmatch(name) is not None


def packed_by(counts: Mapping[str, int]) -> tuple[str, int, str] | None:
    """Tell several labels in one string by what separates them, if most points have such a one.

    A ``|``, ``;``, TAB or line break is enough. A comma may also be part of a name, such as
    ``Paris, France``: there, some of the parts that are in several names have to stand both in
    front and behind, as countries do not. Fewer points are enough where nearly all parts are labels
    of other points; only there is a blank no part of a name.

    Parameters
    ----------
    counts : mapping of str to int
        Points of each label, where no point has more than one.

    Returns
    -------
    separator : str
    n_points : int
        How many have a label that holds it.
    example : str
        The first such label.
    or None

    Examples
    --------
    >>> from longtail.data.label_names import packed_by
    >>> packed_by({"bread|baking": 2, "dance": 1})
    ('|', 2, 'bread|baking')
    >>> packed_by({"Paris, France": 1, "Lyon, France": 1}) is None
    True
    >>> packed_by({"bread": 5, "yeast": 4, "bread, yeast": 1})
    (',', 1, 'bread, yeast')
    """
    n_points = sum(counts.values())
    for separator in (*_SURE, ",", " "):
        parts = {
            name: found
            for name in counts
            if separator in name and len(found := _parts(name, separator)) > 1
        }
        n_found = sum(counts[name] for name in parts)
        is_packed = 2 * n_found >= n_points and (
            separator in _SURE or (separator == "," and _move(parts))
        )
        if parts and (is_packed or (n_found > _FEW * n_points and _are_labels(parts, counts))):
            return separator, n_found, next(iter(parts))
    return None


def remark_on_packed(
    notes: InputNotes,
    names: Collection[str],
    ids: NDArray[np.integer],
    advice: Callable[[str, str], str],
) -> None:
    """Say so if most points have one label that looks like several; see `packed_by`.

    Parameters
    ----------
    notes : InputNotes
    names : dict, TextColumn or the like
        Of all labels.
    ids : int (n,)
        The label of each point that has one; none has more.
    advice : callable
        Takes what separates the labels, and the first name that holds it; says that name and what
        to do.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_names import remark_on_packed
    >>> notes = InputNotes("a.tsv")
    >>> ids, advice = np.array([0, 0, 1]), lambda separator, example: f"such as {example}"
    >>> remark_on_packed(notes, ["bread|baking", "dance"], ids, advice)
    >>> notes.summary()
    "a.tsv: 2 of 3 points with a label have a single one that holds '|', such as bread|baking."
    """
    counts = np.bincount(ids, minlength=len(names)).tolist()
    packed = packed_by(dict(zip(names, counts, strict=True)))
    if packed is not None:
        separator, n_points, example = packed
        notes.remark(
            f"{n_points:,} of {len(ids):,} points with a label have a single one that holds "
            f"{separator!r}, {advice(separator, example)}"
        )


def _are_labels(parts: Mapping[str, list[str]], counts: Mapping[str, int]) -> bool:
    """Tell whether nearly all names are made of names that are labels by themselves."""
    n_of_labels = sum(all(part in counts for part in found) for found in parts.values())
    return n_of_labels > _NEARLY_ALL * len(parts)


def _parts(name: str, separator: str) -> list[str]:
    """Return what stands between separators, less empty parts."""
    return [part for piece in name.split(separator) if (part := piece.strip())]


def _move(parts: Mapping[str, list[str]]) -> bool:
    """Tell parts of equal rank: of those in several names, many stand first here, later there."""
    first = {found[0] for found in parts.values()}
    later = {part for found in parts.values() for part in found[1:]}
    n_names = Counter(part for found in parts.values() for part in set(found))
    n_in_several = sum(count > 1 for count in n_names.values())
    return len(first & later) > _LEAST_MOVING * n_in_several


def remark_on_twins(notes: InputNotes, names: Collection[str]) -> None:
    """Say so if names differ by what nobody sees: few mean two labels by them.

    That is blanks at their ends, and how Unicode writes a letter with an accent: as one character,
    or as the letter and its accent, as file names of a Mac do.

    Examples
    --------
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_names import remark_on_twins
    >>> notes = InputNotes("train.jsonl")
    >>> remark_on_twins(notes, {"bread", "bread ", " yeast"})
    >>> notes.summary().partition(", are")[0]
    "train.jsonl: 1 label names with blanks at their ends, such as 'bread '"
    """
    ended = [name for name in names if name != name.strip()]
    known = {name.strip() for name in ended}.intersection(names)
    twins = [name for name in ended if name.strip() in known]
    if twins:
        notes.remark(
            f"{len(twins):,} label names with blanks at their ends, such as {twins[0][:60]!r}, are "
            "taken for other labels than those without: delete the blanks if the same is meant"
        )
    apart = [name for name in names if not unicodedata.is_normalized("NFC", name)]
    known = {unicodedata.normalize("NFC", name) for name in apart}.intersection(names)
    twins = [name for name in apart if unicodedata.normalize("NFC", name) in known]
    if twins:
        notes.remark(
            f"{len(twins):,} label names, such as {twins[0][:60]!r}, are written with accents "
            "apart from their letters, and taken for other labels than those that look the same: "
            "write all in one Unicode form, such as NFC, if the same is meant"
        )


def remark_on_new_twins(notes: InputNotes, new: Collection[str], known: Iterable[str]) -> None:
    """Say so if new names differ from others, or among themselves, by what nobody sees.

    Parameters
    ----------
    notes : InputNotes
    new : list, dict or the like of str
    known : iterable of str
        Names that labels have already. What these differ by among themselves was said before.

    Examples
    --------
    >>> from longtail.data.input_notes import InputNotes
    >>> from longtail.data.label_names import remark_on_new_twins
    >>> notes = InputNotes("names")
    >>> remark_on_new_twins(notes, ["yeast", "rye "], ["bread", "bread ", "rye"])
    >>> notes.summary().partition(", are")[0]
    "names: 1 label names with blanks at their ends, such as 'rye '"
    """
    seen_as = {as_seen(name) for name in new}
    near = dict.fromkeys(name for name in known if as_seen(name) in seen_as)
    remark_on_twins(notes, near | dict.fromkeys(new))


def as_seen(name: str) -> str:
    r"""Return a name without what nobody sees of it: see `remark_on_twins`.

    Examples
    --------
    >>> from longtail.data.label_names import as_seen
    >>> as_seen("cafe\u0301 ") == "caf\u00e9"
    True
    """
    return unicodedata.normalize("NFC", name.strip())


def written_id(name: str, n_labels: int) -> int:
    """Return the id that a name is, as a model of ids writes it in answers; -1 if it is none.

    Examples
    --------
    >>> from longtail.data.label_names import written_id
    >>> [written_id(name, 12) for name in ("9", "12", "09", "-1", "nine")]
    [9, -1, -1, -1, -1]
    """
    if not name.isdecimal() or len(name) > MOST_DIGITS:
        return -1
    label = int(name)
    return label if label < n_labels and str(label) == name else -1
