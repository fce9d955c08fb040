"""What each of Unicode's code points does to a word, and how texts become code points.

The rules, all by code point, so that a table of 1.1 MB holds them:

- Letters, digits and the marks that combine with them make words; the rest separates.
- Characters of scripts written without spaces (Han, kana, Thai, Lao, Khmer, Myanmar, ...) and
  emoji are words by themselves, together with the marks that follow them.
- ``+`` and ``#`` belong to the word that they end: "c++", "c#".
- Invisible format characters (soft hyphen, joiners, direction marks), variation selectors, the
  Arabic tatweel and optional vowel signs, and Hebrew points count as absent.
- Of a text without any word, such as ":-)" or "?!", what stands between blanks is a word.

Upper and lower case, and compatibility forms (full-width letters, ligatures, superscripts), are
made one beforehand: NFKC, then case folding, which turns "ß" into "ss" as well.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from longtail.data.text_column import TextColumn, well_formed
from longtail.errors import InputError
from longtail.kernels.arrays import read_only
from longtail.kernels.text import LETTER, UNSPACED, CharacterClass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = [
    "are_unspaced",
    "as_text",
    "character_classes",
    "code_points",
    "folded_code_points",
    "joined_code_points",
    "joined_lines",
    "no_text",
]

N_CODE_POINTS = 0x110000
# Where symbols are words, their code points are moved by this much, beyond all of Unicode. So their
# tokens differ from those of other texts, and from the markers of words.
SYMBOLS_FROM, SYMBOLS_BELOW = N_CODE_POINTS, 0x20000
LETTER_OR_DIGIT = re.compile(r"[^\W_]")
ASSIGNED_BELOW = 0x33480  # no letter beyond: only tags, variation selectors and private use

# Ranges include both ends.
UNSPACED_SCRIPTS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark, zero
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31FF),  # Bopomofo and Katakana extensions
    (0x3400, 0xA4CF),  # Han, Yi
    (0xA980, 0xA9FF),  # Javanese, Myanmar
    (0xAA60, 0xAA7F),  # Myanmar
    (0xF900, 0xFAFF),  # Han, compatibility
    (0x17000, 0x18DFF),  # Tangut, Khitan
    (0x1AFF0, 0x1B2FF),  # kana extensions, Nushu
    (0x20000, ASSIGNED_BELOW),  # Han, extensions
)
PICTOGRAPHS = ((0x2600, 0x27BF), (0x2B00, 0x2BFF), (0x1F000, 0x1FAFF))
SKIN_TONES = (0x1F3FB, 0x1F3FF)
OPTIONAL_SIGNS = (
    (0x0591, 0x05BD),  # Hebrew accents and points
    (0x0640, 0x0640),  # Arabic tatweel
    (0x064B, 0x0652),  # Arabic vowel signs
    (0x0670, 0x0670),
    (0xFE00, 0xFE0F),  # variation selectors
    (0xE0000, 0xE0FFF),  # tags, more variation selectors
)
ZERO_WIDTH_SPACE = 0x200B  # a format character that does separate words

CLASS_OF_CATEGORY = {
    "L": CharacterClass.LETTER,
    "M": CharacterClass.MARK,
    "N": CharacterClass.LETTER,
    "Cf": CharacterClass.IGNORED,
}


@lru_cache(maxsize=1)
def character_classes() -> NDArray[np.uint8]:
    """Return the class of every code point, built at the first call.

    Returns
    -------
    ndarray of shape (0x130000,), uint8, read-only
        Values of `longtail.kernels.text.CharacterClass`. The last 0x20000 are of symbols that are
        words: see `code_points`.

    Notes
    -----
    It follows the Unicode version of the running Python; versions differ only in code points
    that the older one does not know.

    Examples
    --------
    >>> from longtail.data.characters import character_classes
    >>> from longtail.kernels.text import CharacterClass
    >>> [CharacterClass(character_classes()[ord(c)]).name for c in "a7, 字"]
    ['LETTER', 'LETTER', 'SEPARATOR', 'SEPARATOR', 'UNSPACED']
    """
    categories, names = _categories()
    class_of = [
        CLASS_OF_CATEGORY.get(name, CLASS_OF_CATEGORY.get(name[0], CharacterClass.SEPARATOR))
        for name in names
    ]
    classes = np.zeros(SYMBOLS_FROM + SYMBOLS_BELOW, np.uint8)
    classes[:ASSIGNED_BELOW] = np.array(class_of, np.uint8)[categories]
    letters = classes == LETTER
    letters[:ASSIGNED_BELOW] &= categories != names.index("Nd")
    other_symbols = categories == names.index("So")
    for first, last in UNSPACED_SCRIPTS:
        classes[first : last + 1][letters[first : last + 1]] = CharacterClass.UNSPACED
    for first, last in PICTOGRAPHS:
        classes[first : last + 1][other_symbols[first : last + 1]] = CharacterClass.UNSPACED
    for first, last in OPTIONAL_SIGNS:
        classes[first : last + 1] = CharacterClass.IGNORED
    classes[SKIN_TONES[0] : SKIN_TONES[1] + 1] = CharacterClass.MARK
    classes[[ord("+"), ord("#")]] = CharacterClass.SYMBOL
    classes[ZERO_WIDTH_SPACE] = CharacterClass.SEPARATOR
    is_symbol = np.array([name[0] in "PS" for name in names])[categories[:SYMBOLS_BELOW]]
    is_symbol &= np.isin(classes[:SYMBOLS_BELOW], (CharacterClass.SEPARATOR, CharacterClass.SYMBOL))
    is_symbol[ord("\N{REPLACEMENT CHARACTER}")] = False
    classes[SYMBOLS_FROM:][is_symbol] = CharacterClass.LETTER
    classes.flags.writeable = False
    return classes


def _categories() -> tuple[NDArray[np.uint8], list[str]]:
    """Return the category of each assigned code point, as a place in the list of their names.

    No step of Python's a code point: every process waits for this before its first answer.
    """
    place_of: defaultdict[str, int] = defaultdict(count().__next__)
    names = map(unicodedata.category, map(chr, range(ASSIGNED_BELOW)))
    places = np.fromiter(map(place_of.__getitem__, names), np.uint8, ASSIGNED_BELOW)
    return places, list(place_of)


def code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of `text`, normalised and case-folded, as tokens are made of.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    ndarray of shape (n_code_points,), uint32, read-only
        Those of `folded_code_points`. Of a text without any word, each symbol is 0x110000 more, by
        which it is a letter.

    Examples
    --------
    >>> from longtail.data.characters import as_text, code_points
    >>> [hex(code) for code in code_points(":)")], as_text(code_points(":)"))
    (['0x11003a', '0x110029'], ':)')
    """
    codes = folded_code_points(text)
    has_word = text[:1].isalnum() or LETTER_OR_DIGIT.search(text)
    return codes if has_word else _with_symbols(codes)


def folded_code_points(text: str) -> NDArray[np.uint32]:
    """Return the code points of `text`, normalised and case-folded.

    Parameters
    ----------
    text : str
        Any text. Surrogates are read as a `TextColumn` holds them: a lone one separates words.

    Returns
    -------
    ndarray of shape (n_code_points,), uint32, read-only

    Examples
    --------
    >>> from longtail.data.characters import folded_code_points
    >>> "".join(map(chr, folded_code_points("Große ＡＢＣ")))
    'grosse abc'
    """
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
    try:
        return np.frombuffer(folded.encode("utf-32-le"), np.uint32)
    except UnicodeEncodeError:
        return folded_code_points(well_formed(text))


def as_text(codes: NDArray[np.uint32]) -> str:
    """Return code points as a text, symbols that are words among them as they were.

    Examples
    --------
    >>> from longtail.data.characters import as_text, code_points
    >>> as_text(code_points("Wine")), as_text(code_points("<3"))
    ('wine', '<3')
    """
    plain = np.where(codes < SYMBOLS_FROM, codes, codes - np.uint32(SYMBOLS_FROM))
    return plain.astype(np.uint32).tobytes().decode("utf-32-le")


def _with_symbols(codes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the code points of a text, in which symbols are letters unless it has a word."""
    if _are_letters(codes).any():
        return codes
    classes = character_classes()
    bounded = np.minimum(codes, SYMBOLS_BELOW - 1)
    is_symbol = (bounded == codes) & (classes[SYMBOLS_FROM + bounded] == LETTER)
    return read_only(codes + np.uint32(SYMBOLS_FROM) * is_symbol, np.uint32)


def are_unspaced(texts: Sequence[str]) -> bool:
    """Return whether most letters of some texts are of scripts without spaces between words.

    Examples
    --------
    >>> from longtail.data.characters import are_unspaced
    >>> are_unspaced(["古代戦争の 3D ゲーム"]), are_unspaced(["game 游戏"]), are_unspaced([])
    (True, False, False)
    """
    codes, _ = joined_code_points(texts, 0, len(texts))
    n_of_class = np.bincount(character_classes()[codes], minlength=len(CharacterClass))
    return bool(n_of_class[CharacterClass.UNSPACED] > n_of_class[CharacterClass.LETTER])


def joined_code_points(
    texts: Sequence[str], start: int, stop: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    r"""Return the code points of ``texts[start:stop]`` at once, each as `code_points` gives it.

    See `joined_lines`.

    Examples
    --------
    >>> from longtail.data.characters import as_text, joined_code_points
    >>> codes, offsets = joined_code_points(["Ab", ":)"], 0, 2)
    >>> as_text(codes), offsets.tolist()
    ('ab\n:)\n', [0, 3, 6])
    """
    codes, offsets = joined_lines(texts, start, stop, folded_code_points)
    wordless = [
        row
        for row in _without_letters(codes, offsets)
        if not LETTER_OR_DIGIT.search(texts[start + row])
    ]
    if wordless:
        codes = codes.copy()
        for row in wordless:
            part = slice(int(offsets[row]), int(offsets[row + 1]))
            codes[part] = _with_symbols(codes[part])
    return read_only(codes, np.uint32), offsets


def _without_letters(codes: NDArray[np.uint32], offsets: NDArray[np.int64]) -> list[int]:
    """Return which of several texts have no letter; all of them end in a line feed."""
    if not codes.size:
        return []
    has_letters = np.logical_or.reduceat(_are_letters(codes), offsets[:-1])
    rows: list[int] = np.flatnonzero(~has_letters).tolist()
    return rows


def _are_letters(codes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Return which code points make words, or are words by themselves."""
    found = character_classes()[codes]
    # Compared with numpy's numbers: of an enum numpy looks for methods, and swallows a Ctrl-C.
    letters: NDArray[np.bool_] = found == LETTER
    letters |= found == UNSPACED
    return letters


def joined_lines(
    texts: Sequence[str],
    start: int,
    stop: int,
    to_codes: Callable[[str], NDArray[np.uint32]],
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    r"""Return the code points of ``texts[start:stop]`` at once, each as `to_codes` gives it.

    Parameters
    ----------
    texts : sequence of str
    start, stop : int
    to_codes : callable
        What makes the code points of a text, or of several at once: it neither looks across, makes
        nor changes a line feed.

    Returns
    -------
    codes : ndarray of shape (n_code_points,), uint32, read-only
        The texts, each followed by a line feed; line feeds within a text become spaces.
    offsets : ndarray of shape (stop - start + 1,), int64
        Text ``start + i`` with its line feed is ``codes[offsets[i]:offsets[i + 1]]``.

    Raises
    ------
    InputError
        If one of the texts is not a string.

    Examples
    --------
    >>> from longtail.data.characters import folded_code_points, joined_lines
    >>> codes, offsets = joined_lines(["Ab", "c\nd"], 0, 2, folded_code_points)
    >>> "".join(map(chr, codes)), offsets.tolist()
    ('ab\nc d\n', [0, 3, 7])
    """
    codes = to_codes(_as_lines(texts[start:stop], start))
    ends = np.flatnonzero(codes == ord("\n")) + 1
    return codes, np.concatenate([np.zeros(1, np.int64), ends])


def no_text(place: int, row: object) -> InputError:
    """Return the error for something among texts that is none.

    Examples
    --------
    >>> from longtail.data.characters import no_text
    >>> no_text(3, 7).args[0]
    'Text 3 is int (7), not str. Pass one string per text; it may be empty.'
    """
    return InputError(
        f"Text {place} is {type(row).__name__} ({row!r:.40}), not str. "
        "Pass one string per text; it may be empty."
    )


def _as_lines(texts: Sequence[str], start: int) -> str:
    """Return texts, the first of which is text `start`, each followed by a line feed."""
    if isinstance(texts, TextColumn):
        return texts.as_lines()
    rows = list(texts)
    try:
        joined = "\n".join([*rows, ""])
    except TypeError as error:
        place = next(place for place, row in enumerate(rows) if not isinstance(row, str))
        raise no_text(start + place, rows[place]) from error
    if joined.count("\n") == len(rows):
        return joined
    return "\n".join([*(row.replace("\n", " ") for row in rows), ""])
