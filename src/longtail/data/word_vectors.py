"""Files of word vectors, as fastText, GloVe and word2vec write them as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longtail.amounts import counted
from longtail.data.characters import as_text, folded_code_points
from longtail.data.files import numbered_lines
from longtail.errors import DataFormatError, InputError, about_home

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from numpy.typing import NDArray

__all__ = ["FileSize", "WordVectors", "check_word_vectors", "read_word_vectors", "size_of_file"]

LEAST_NUMBERS = 2  # of a vector: a line of a word and one number is a count, or a header
_MODEL_OF_FASTTEXT = b"\xba\x16\x4f\x2f"
_SHOWN = 20  # characters of a word, in a message
_AS_TEXT = (
    "Word vectors are read as text: a word a line, and its numbers behind it, between blanks. Of "
    "fastText's models, take the .vec file that comes beside them; gensim writes such text by "
    "save_word2vec_format(path, binary=False)."
)


class WordVectors(NamedTuple):
    """Vectors of some words.

    Attributes
    ----------
    words : list of str
        Case-folded, each once.
    vectors : float32 (n_words, dimension)
    """

    words: list[str]
    vectors: NDArray[np.float32]


class FileSize(NamedTuple):
    """How large a file of word vectors is.

    Attributes
    ----------
    n_words : int or None
        None if its first line does not say it.
    n_numbers : int
        Of a vector; 0 if there is none.
    """

    n_words: int | None
    n_numbers: int


def check_word_vectors(path: str | Path) -> None:
    """Raise InputError unless there is a file that can be read as often as a training is repeated.

    Examples
    --------
    >>> from longtail.data.word_vectors import check_word_vectors
    >>> check_word_vectors("/dev/null")
    Traceback (most recent call last):
        ...
    longtail.errors.InputError: `word_vectors` names /dev/null, which is a pipe or a device, ...
    """
    path = Path(path)
    if path.is_file():
        return
    if path.is_dir():
        problem = "which is a folder. Name the file of word vectors in it."
    elif path.exists():
        problem = (
            "which is a pipe or a device, and so may be read but once. Name a file; one that is "
            "packed by gzip need not be unpacked."
        )
    else:
        problem = f"which is not there. Check the path; nothing is downloaded.{about_home(path)}"
    raise InputError(f"`word_vectors` names {path}, {problem}")


def size_of_file(path: str | Path) -> FileSize:
    r"""Return what the first lines of a file tell of its size.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If it is a model of fastText.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.word_vectors import size_of_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "words.vec")
    ...     _ = path.write_text("wine 0.5 1 2\n")
    ...     size_of_file(path)
    FileSize(n_words=None, n_numbers=3)
    """
    _, first = next(iter(numbered_lines(path)), (1, b""))
    if _is_header(first):
        return FileSize(*map(int, first.split()))
    _, line = next(_lines_of_words(path), (1, b"none"))
    return FileSize(None, len(line.split()) - 1)


def read_word_vectors(path: str | Path, wanted: Collection[str]) -> WordVectors:
    r"""Read the vectors of wanted words from a text file.

    A line is a word and its numbers, between blanks; the first line may say how many words and
    numbers there are. Of words that are the same but for upper and lower case, the first counts: in
    such files it is the more frequent one. Other words are skipped, and so are phrases: a file of
    millions of words takes time, but little memory.

    Parameters
    ----------
    path : str or Path
        Plain or gzip.
    wanted : collection of str
        Case-folded, as the vectoriser's words are.

    Raises
    ------
    InputError
        If the file cannot be opened, or has none of the words.
    DataFormatError
        If a wanted word has another number of numbers than others, or one that is none; if the
        file is not text, or has no words.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.data.word_vectors import read_word_vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "words.vec")
    ...     _ = path.write_text("3 2\nWine 0.5 1\ncar -1 0\nwine 3 3\n")
    ...     read_word_vectors(path, {"wine", "boat"})
    WordVectors(words=['wine'], vectors=array([[0.5, 1. ]], dtype=float32))
    """
    found: dict[str, None] = {}
    numbers = bytearray()  # of all: arrays of their own would leave holes where they were
    n_numbers, n_words, first_word = 0, 0, ""
    for number, line in _lines_of_words(path):
        name = line.split(None, 1)[0]
        if not n_numbers:
            n_numbers, first_word = len(line.split()) - 1, name.decode("utf-8", "replace")
            if n_numbers < LEAST_NUMBERS:
                message = f"Here is a word with {counted(n_numbers, 'number')}. {_AS_TEXT}"
                raise DataFormatError(message, path=path, line=number)
        n_words += 1
        word = _folded(name)
        if word in wanted and word not in found and not _is_phrase(line, n_numbers):
            numbers += _numbers_of(line, n_numbers, path, number).tobytes()
            found[word] = None
    if found:
        return WordVectors([*found], np.frombuffer(numbers, np.float32).reshape(-1, n_numbers))
    if not n_words:
        raise DataFormatError(f"There is no word in it. {_AS_TEXT}", path=path)
    raise InputError(
        f"{path} has none of the {len(wanted):,} words of these texts among its {n_words:,}, "
        f"the first of which is {first_word[:_SHOWN]!r}. Name a file of vectors of words of "
        "the texts' language."
    )


def _lines_of_words(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that begin with a word, and their numbers."""
    for number, line in numbered_lines(path):
        if number == 1 and line.startswith(_MODEL_OF_FASTTEXT):
            raise DataFormatError(f"This is a model of fastText. {_AS_TEXT}", path=path)
        if not (number == 1 and _is_header(line)) and line.strip():
            yield number, line


def _is_header(line: bytes) -> bool:
    """Return whether a first line says how many words and numbers there are."""
    parts = line.split()
    return len(parts) == LEAST_NUMBERS and all(part.isdigit() for part in parts)


def _folded(name: bytes) -> str:
    """Return a word as texts are read."""
    if name.isascii():
        return name.decode().lower()
    return as_text(folded_code_points(name.decode("utf-8", "replace")))


def _is_phrase(line: bytes, n_numbers: int) -> bool:
    """Return whether more than a word stands before the numbers, as in some lines of GloVe's."""
    return not all(map(_is_number, line.split()[1:-n_numbers]))


def _is_number(part: bytes) -> bool:
    try:
        float(part)
    except ValueError:
        return False
    return True


def _numbers_of(line: bytes, n_numbers: int, path: str | Path, number: int) -> NDArray[np.float32]:
    """Return the vector of a line."""
    name, *numbers = line.split()
    word = name.decode("utf-8", "replace")[:_SHOWN]
    if len(numbers) != n_numbers:
        raise DataFormatError(
            f"The word {word!r} has {counted(len(numbers), 'number')}, where the first has "
            f"{n_numbers}. {_AS_TEXT}",
            path=path,
            line=number,
        )
    try:
        with np.errstate(over="ignore"):
            vector = np.array(numbers, np.float32)
    except ValueError:
        vector = np.full(n_numbers, np.nan, np.float32)
    if not np.isfinite(vector).all():
        raise DataFormatError(
            f"The vector of {word!r} holds something that is no finite number. {_AS_TEXT}",
            path=path,
            line=number,
        )
    return vector
