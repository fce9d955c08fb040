"""Entries ``id:value`` of sparse text files, read from their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.kernels.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

__all__ = ["read_entries"]

_BLANK, _TAB, _PLUS, _MINUS, _POINT, _COLON, _ZERO = (ord(sign) for sign in " \t+-.:0")
# Up to here a decimal number is the quotient of two that float64 holds exactly, so that dividing
# them rounds once, as reading digit by digit must.
_MOST_DIGITS = 15
_POWERS_OF_TEN = 10.0 ** np.arange(_MOST_DIGITS + 1)


@kernel
def _digits(text: Bytes, place: int) -> tuple[np.int64, int]:
    """Return the number that begins at `place`, and where it ends; 15 digits of it at most."""
    number, start = np.int64(0), place
    while place < len(text) and place - start < _MOST_DIGITS:
        digit = np.int64(text[place]) - _ZERO
        if digit < 0 or digit > 9:
            break
        number = 10 * number + digit
        place += 1
    return number, place


@kernel
def _decimal(text: Bytes, start: int) -> tuple[float, int]:
    """Return the decimal number that begins at `start`, and where it ends; -1 if it is none."""
    is_negative = start < len(text) and text[start] == _MINUS
    if is_negative or (start < len(text) and text[start] == _PLUS):
        start += 1
    whole, end = _digits(text, start)
    n_digits, value = end - start, np.float64(whole)
    if end < len(text) and text[end] == _POINT:
        decimals, stop = _digits(text, end + 1)
        n_decimals = stop - end - 1
        n_digits, end = n_digits + n_decimals, stop
        if n_digits <= _MOST_DIGITS:
            scale = _POWERS_OF_TEN[n_decimals]
            value = (whole * scale + decimals) / scale
    if n_digits == 0 or n_digits > _MOST_DIGITS:
        end = -1
    return -value if is_negative else value, end


@kernel
def _is_blank(text: Bytes, place: int) -> bool:
    """Return whether there is a blank or a tab."""
    return place < len(text) and (text[place] == _BLANK or text[place] == _TAB)


@kernel
def read_entries(text: Bytes, ids: NDArray[np.int64], values: NDArray[np.float64]) -> int:
    """Read ``id:value id:value ...`` as nearly all files write it.

    Parameters
    ----------
    text : uint8 (n_bytes,)
    ids, values : int64, float64 (at least (n_bytes + 1) / 4,)
        Output.

    Returns
    -------
    int
        How many entries were read; or -1, whatever was written, where the text is something else,
        such as numbers with an exponent or of more than fifteen digits.
    """
    n_entries, place = 0, 0
    while True:
        while _is_blank(text, place):
            place += 1
        if place == len(text):
            return n_entries
        number, colon = _digits(text, place)
        if colon == place or colon == len(text) or text[colon] != _COLON:
            return -1
        value, place = _decimal(text, colon + 1)
        if place < 0 or not (place == len(text) or _is_blank(text, place)):
            return -1
        ids[n_entries], values[n_entries] = number, value
        n_entries += 1
