"""Every error that longtail raises on purpose, and what checks and messages share.

::

    LongtailError
    ├── InputError            an argument or a data set is wrong (also a ValueError)
    │   ├── DataFormatError   a file is wrong, at a named line
    │   └── TooLargeError     training would need more memory than there is
    ├── ModelFolderError      a saved model is missing, damaged or not ours (also a ValueError)
    ├── MissingExtraError     an optional dependency is not installed (also an ImportError)
    └── TrainingError         training cannot start or go on (also a RuntimeError)

Each message says what is wrong, what came, what is allowed and what to do.
"""

from __future__ import annotations

import difflib
import errno
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = [
    "NO_SPACE",
    "RETRAIN",
    "DataFormatError",
    "InputError",
    "LongtailError",
    "MissingExtraError",
    "ModelFolderError",
    "Remedy",
    "TooLargeError",
    "TrainingError",
    "about_home",
    "did_you_mean",
    "interruptible",
    "named",
    "needs_extra",
    "require_one_of",
    "require_positive",
    "source_name",
]


# A full disk, a quota that is used up, a file longer than this process may write.
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

# What to do with a model folder that is damaged, or of a layout that is no longer read.
RETRAIN = "Copy the model again from where it was made, or train it again."


class LongtailError(Exception):
    """The base of every error that longtail raises on purpose."""


class Remedy(NamedTuple):
    """What another argument would mend, which the command line knows by the name of an option.

    Attributes
    ----------
    keyword : str
        The argument, as Python functions call it.
    sentence : str
        What to do; ``{}`` stands for the argument.

    Examples
    --------
    >>> from longtail.errors import Remedy
    >>> Remedy("format", "Pass {}, such as tsv.").named("--format")
    'Pass --format, such as tsv.'
    """

    keyword: str
    sentence: str

    def named(self, argument: str) -> str:
        """Return the sentence with a name of the argument."""
        return self.sentence.format(argument)


class InputError(LongtailError, ValueError):
    """An argument or a data set cannot be used as it is.

    Parameters
    ----------
    message : str
        What is wrong and what to do.
    *remedies : Remedy
        Sentences behind it that name arguments.

    Examples
    --------
    >>> from longtail.errors import InputError, Remedy
    >>> error = InputError("The format is not known.", Remedy("format", "Pass {}, such as tsv."))
    >>> str(error)
    'The format is not known. Pass format=, such as tsv.'
    >>> error.in_words_of({"format": "--format"})
    'The format is not known. Pass --format, such as tsv.'
    """

    def __init__(self, message: str = "", *remedies: Remedy) -> None:
        super().__init__(message)
        self.remedies = remedies

    def __str__(self) -> str:
        return self.in_words_of({keyword: f"{keyword}=" for keyword, _ in self.remedies})

    def in_words_of(self, names: Mapping[str, str]) -> str:
        """Return the message, arguments called by other names; what has none is left out."""
        said = (r.named(names[r.keyword]) for r in self.remedies if r.keyword in names)
        return " ".join([str(self.args[0]), *said])


class DataFormatError(InputError):
    """A file cannot be read as the format it is meant to be in.

    Parameters
    ----------
    message : str
        What is wrong and what to do, as one or two sentences.
    *remedies : Remedy
        See `InputError`.
    path : str or Path
        The file; ``-`` is standard input.
    line : int, optional
        The line, counted from 1; of a file without lines the row, from 0.
    unit : str
        What `line` counts.

    Examples
    --------
    >>> from longtail.errors import DataFormatError
    >>> str(DataFormatError("Expected a label id, got 'x'.", path="train.txt", line=3))
    "train.txt, line 3: Expected a label id, got 'x'."
    """

    def __init__(
        self,
        message: str,
        *remedies: Remedy,
        path: str | Path,
        line: int | None = None,
        unit: str = "line",
    ) -> None:
        self.path: str = str(path)
        self.line = line
        source = source_name(path)
        place = source if line is None else f"{source}, {unit} {line}"
        super().__init__(f"{place}: {message}", *remedies)


def source_name(path: str | Path) -> str:
    """Return what messages call a file.

    Examples
    --------
    >>> from longtail.errors import source_name
    >>> source_name("train.txt"), source_name("-")
    ('train.txt', 'standard input')
    """
    return "standard input" if str(path) == "-" else str(path)


class TooLargeError(InputError):
    """Training with these settings on these data would need more memory than there is."""


class ModelFolderError(LongtailError, ValueError):
    """A saved model is missing, damaged, or was not written by longtail."""


class MissingExtraError(LongtailError, ImportError):
    """An optional dependency is not installed; the message names the command that installs it."""


class TrainingError(LongtailError, RuntimeError):
    """Training cannot start, or cannot go on."""


def needs_extra(what: str, error: ModuleNotFoundError, extra: str) -> MissingExtraError:
    """Return the error of what needs a module that an extra installs, and that is not there.

    Examples
    --------
    >>> from longtail.errors import needs_extra
    >>> error = ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
    >>> print(needs_extra("Serving", error, "serve"))
    Serving needs uvicorn. Install it with `pip install 'longtail[serve]'`.
    """
    return MissingExtraError(
        f"{what} needs {error.name}. Install it with `pip install 'longtail[{extra}]'`."
    )


_WITH_AN_EXCEPTION = "returned a result with an exception set"  # as Python says it


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C, or a notebook's stop button, end compiled code as it ends all other.

    So it is with what the handler of another signal raises, such as a task queue's time limit. A
    kernel that returns arrays runs a line of numba's Python on its way back. What is raised there
    comes out as a SystemError, which ``except Exception`` takes for a failure of the model:
    scikit-learn's searches would go on with the next one.

    Examples
    --------
    >>> from longtail.errors import interruptible
    >>> failure = SystemError("f returned a result with an exception set")
    >>> try:
    ...     with interruptible():
    ...         raise failure from KeyboardInterrupt()
    ... except KeyboardInterrupt:
    ...     "stopped"
    'stopped'
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError) and _WITH_AN_EXCEPTION in str(cause):
            cause = cause.__cause__
        if cause is None or cause is error:
            raise
        raise cause from None


def require_one_of(name: str, value: object, choices: Collection[object]) -> None:
    """Raise InputError for what is none of the words, or other values, that there are.

    Examples
    --------
    >>> from longtail.errors import require_one_of
    >>> require_one_of("storage", "int8", ("float32", "int8"))
    >>> require_one_of("storage", "int7", ("float32", "int8"))
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: storage must be one of 'float32', 'int8', got 'int7'.
    """
    if value not in choices:
        allowed = ", ".join(map(repr, choices))
        raise InputError(f"{name} must be one of {allowed}, got {value!r}.")


def require_positive(name: str, value: int) -> None:
    """Raise InputError for a count below 1.

    Examples
    --------
    >>> from longtail.errors import require_positive
    >>> require_positive("batch_size", 1)
    >>> require_positive("batch_size", 0)
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: batch_size must be at least 1, got 0.
    """
    if value < 1:
        raise InputError(f"{name} must be at least 1, got {value}.")


def named(thing: object, *, first: bool = False) -> str:
    """Return the type of a thing behind "a" or "an", capitalised where it is `first` in a sentence.

    Examples
    --------
    >>> from longtail.errors import named
    >>> named([]), named(1.0), named(0), named(0, first=True)
    ('a list', 'a float', 'an int', 'An int')
    """
    name = type(thing).__name__
    # As it is spoken: "one" and "unit" begin with a consonant, "ndarray" does not.
    is_open = name[:1].upper() in set("AEIOU") and not name.startswith(("One", "Uni"))
    is_open = is_open or name == "ndarray"
    article = "an" if is_open else "a"
    return f"{article.capitalize() if first else article} {name}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question after the name that was probably meant; nothing if none is near.

    Examples
    --------
    >>> did_you_mean("titel", ["id", "Title"]), did_you_mean("x", ["id"])
    (" Did you mean 'Title'?", '')
    """
    by_letters: dict[str, str] = {}
    for other in known:
        by_letters.setdefault(other.lower(), other)
    near = difflib.get_close_matches(name.lower(), by_letters, n=1)
    return f" Did you mean {by_letters[near[0]]!r}?" if near else ""


def about_home(path: str | Path) -> str:
    """Return the sentence about a ``~`` that no shell has expanded; nothing if there is none.

    Shells leave it in ``--model=~/model`` and in quotes, and Python does everywhere.

    Examples
    --------
    >>> about_home("~/model").startswith(" The '~' of a home folder is not expanded here: pass ")
    True
    >>> about_home("model"), about_home("./~/model")
    ('', '')
    """
    given = os.fspath(path)
    expanded = os.path.expanduser(given)  # noqa: PTH111  # that of Path fails for unknown users
    if given == expanded or os.path.lexists(given):
        return ""
    return f" The '~' of a home folder is not expanded here: pass {expanded}."
