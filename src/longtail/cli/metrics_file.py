"""The metrics that ``longtail evaluate --json`` has written, read again."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from longtail.cli.files import check_inputs
from longtail.data.files import raw_lines
from longtail.errors import DataFormatError, InputError, named

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["read_metrics"]

_METRIC = re.compile(r"(?:P|nDCG|PSP|PSnDCG|R|coverage)@[1-9]\d*")
_MOST = 100.0
_MADE_BY = "Write it by `longtail evaluate MODEL TEST --json FILE`"


def read_metrics(path: str, needed: Sequence[str]) -> dict[str, float]:
    """Return the metrics of a file by their names, in percent.

    Parameters
    ----------
    path : str
    needed : sequence of str
        Those that must be there.

    Raises
    ------
    InputError
        If the file cannot be opened.
    DataFormatError
        If `longtail evaluate --json` does not write such.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.cli.metrics_file import read_metrics
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "metrics.json")
    ...     _ = path.write_text('{"P@1": 51.2, "points_per_second": 9e4}')
    ...     read_metrics(str(path), ["P@1"])
    {'P@1': 51.2}
    """
    content = _content(path)
    missing = [name for name in needed if name not in content]
    if missing:
        raise DataFormatError(
            f"There is no {', no '.join(missing)}. {_MADE_BY}, without --ks.", path=path
        )
    metrics = {name: value for name, value in content.items() if _METRIC.fullmatch(name)}
    for name, value in metrics.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _MOST:  # which NaN is not, either
            raise DataFormatError(
                f"{name} is a number from 0 to 100, got {value!r:.40}. {_MADE_BY}.", path=path
            )
    return metrics


def _content(path: str) -> dict[str, Any]:
    """Return the object that a file holds."""
    check_inputs(path)
    try:
        content = json.loads(b"".join(raw_lines(path)))
    except InputError:  # of the file: the next line is of what is in it
        raise
    except (ValueError, RecursionError) as error:
        raise DataFormatError(
            f"This is not JSON ({error!s:.80}). {_MADE_BY}.", path=path
        ) from error
    if not isinstance(content, dict):
        message = f"Expected a JSON object, got {named(content)}. {_MADE_BY}."
        raise DataFormatError(message, path=path)
    return content
