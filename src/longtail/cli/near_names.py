"""Names that are not there, and which ones were probably meant; and names that are nearly one."""

from __future__ import annotations

import difflib
from itertools import islice
from typing import TYPE_CHECKING

from longtail.amounts import counted
from longtail.cli.output import one_line
from longtail.data.label_names import as_seen
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

__all__ = ["check_label_names", "names_in_file", "near_names", "told_of_spellings"]

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


def told_of_spellings(names: Iterable[str]) -> str:
    """Say how many names differ from others by capital letters or blanks alone, if any do.

    Two labels may well be meant, as by `china` and `China`. Names that look the same were told when
    they were read: see `remark_on_twins`.

    Examples
    --------
    >>> from longtail.cli.near_names import told_of_spellings
    >>> told_of_spellings(["shoes", "Shoes", "shirts"])
    "1 label, such as 'Shoes' beside 'shoes', is called like another one but for ... and blanks..."
    >>> told_of_spellings(["shoes", "shoes ", "shirts"])
    ''
    """
    first: dict[str, str] = {}
    alike = []
    for name in dict.fromkeys(map(as_seen, names)):
        other = first.setdefault(" ".join(name.casefold().split()), name)
        if other is not name:
            alike.append((name, other))
    if not alike:
        return ""
    name, other = alike[0]
    is_called = "is called like another one" if len(alike) == 1 else "are called like others"
    return (
        f"{counted(len(alike), 'label')}, such as {name[:60]!r} beside {other[:60]!r}, {is_called} "
        "but for capital letters and blanks: write names alike where the same is meant."
    )


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


def names_in_file(space: LabelSpace, path: str | Path) -> list[str]:
    r"""Return the names of labels that a file holds, one a line, as `longtail labels list` does.

    There a TAB, a line end or another control character of a name is an escape, such as ``\t``.

    Raises
    ------
    DataFormatError
        If it is no file of names.
    InputError
        If no label has one of them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.cli.near_names import names_in_file
    >>> from longtail.data.label_space import LabelSpace
    >>> space = LabelSpace.from_names(["bread", "two\nlines"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "names.txt")
    ...     _ = path.write_text("two\\nlines\n")
    ...     names_in_file(space, path)
    ['two\nlines']
    """
    names = list(LabelSpace.read(path).names or ())
    escaped = {name for name in names if "\\" in name and not space.knows(name)}
    if escaped:
        shown = {one_line(name): name for name in space.names or ()}
        names = [shown.get(name, name) if name in escaped else name for name in names]
    check_label_names(space, names)
    return names
