"""Names that are not there, and which ones were probably meant."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import TYPE_CHECKING

from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from longtail.data.label_space import LabelSpace

__all__ = ["check_label_names", "near_names"]

MOST_COMPARED, MOST_NAMED = 20_000, 3


def near_names(name: str, known: Sequence[str]) -> str:
    """Return a hint at names of similar spelling, or else at longer ones that begin alike.

    Examples
    --------
    >>> from longtail.cli.near_names import near_names
    >>> near_names("bred", ["bread", "yeast"]), near_names("x", ["bread"])
    (" Similar ones: 'bread'.", '')
    >>> near_names("Perl", ["perl : a language of scripts", "perl-doc : its manual"])
    " Similar ones: 'perl : a language of scripts', 'perl-doc : its manual'."
    """
    # Comparing with every one of a million names would take minutes.
    wanted = name.casefold()
    begun = [other for other in known if other[:1].casefold() == wanted[:1]]
    near = difflib.get_close_matches(name, dict.fromkeys(begun[:MOST_COMPARED]), n=MOST_NAMED)
    longer = (other for other in begun if other.casefold().startswith(wanted))
    hints = near or [*islice(longer, MOST_NAMED)]
    return f" Similar ones: {', '.join(map(repr, hints))}." if hints else ""


def check_label_names(space: LabelSpace, names: Iterable[str]) -> None:
    """Raise InputError if no label has one of the names; say which are like it, how many others.

    A server, which others may ask for what is not there all day, does without this.

    Examples
    --------
    >>> from longtail.cli.near_names import check_label_names
    >>> from longtail.data.label_space import LabelSpace
    >>> space = LabelSpace.from_names(["bread", "yeast"])
    >>> check_label_names(space, ["yeast"])
    >>> check_label_names(space, ["bred"])
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: None of the 2 labels is named 'bred'. ... Similar ones: 'bread'.
    """
    wanted = list(dict.fromkeys(names))
    missing = [name for name in wanted if not space.knows(name)]
    if not missing:
        return
    try:
        space.id_of(missing[0])
    except InputError as error:
        n_missing, n_wanted = len(missing), len(wanted)
        how_many = f" Of the {n_wanted:,} names, {n_missing:,} are no label's."
        hint = near_names(missing[0], space.names or ())
        raise InputError(f"{error}{hint}{how_many if n_missing > 1 else ''}") from error
