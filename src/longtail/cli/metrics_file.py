"""What ``longtail evaluate --json`` writes beside the metrics, and such a file read again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from longtail.cli.files import check_inputs
from longtail.data.files import raw_lines
from longtail.errors import DataFormatError, InputError, named

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from longtail.model_folder import ModelFolder

__all__ = ["MeasuredMetrics", "read_metrics", "what_was_measured"]

_METRIC = re.compile(r"(?:P|nDCG|PSP|PSnDCG|R|coverage)@[1-9]\d*")
_MOST = 100.0
_STDIN = "-"
_MADE_BY = "Write it by `longtail evaluate MODEL TEST --json FILE`"


class MeasuredMetrics(NamedTuple):
    """Metrics, and what they were measured on, as far as a file says so.

    Attributes
    ----------
    metrics : dict of str to float
        In percent.
    n_points : int or None
    test_name : str or None
        The name of the test file, without its folder.
    model_checksum : str or None
        That of the manifest of the model.
    """

    metrics: dict[str, float]
    n_points: int | None = None
    test_name: str | None = None
    model_checksum: str | None = None


def what_was_measured(
    folder: ModelFolder, arguments: argparse.Namespace, n_points: int, n_unanswered: int
) -> dict[str, object]:
    """Return what a reader of metrics has to know of them, as JSON values.

    Parameters
    ----------
    folder : ModelFolder
        That of the model.
    arguments : argparse.Namespace
        Those of `evaluate`.
    n_points, n_unanswered : int
        Points of the test set, and how many of them have no answer.
    """
    told = {
        "n_points": n_points,
        "n_unanswered": n_unanswered,
        "test": arguments.test,
        "model": arguments.model,
        "model_checksum": folder.checksum,
        "propensity": list(arguments.propensity),
        "filter": arguments.filter,
        "against_model": arguments.against,
        "exact_search": arguments.exact_search or None,
    }
    return {key: value for key, value in told.items() if value is not None}


def read_metrics(path: str, needed: Sequence[str]) -> MeasuredMetrics:
    """Return the metrics of a file, and what it says of how they were measured.

    Parameters
    ----------
    path : str
    needed : sequence of str
        Metrics that must be there.

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
    ...     _ = path.write_text('{"P@1": 51.2, "n_points": 8, "test": "data/test.jsonl"}')
    ...     found = read_metrics(str(path), ["P@1"])
    >>> found.metrics, found.n_points, found.test_name
    ({'P@1': 51.2}, 8, 'test.jsonl')
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
    return MeasuredMetrics(metrics, *_origin(content, path))


def _origin(content: Mapping[str, Any], path: str) -> tuple[int | None, str | None, str | None]:
    """Return the last three of `MeasuredMetrics`; files of earlier versions lack them."""
    n_points = content.get("n_points")
    is_count = isinstance(n_points, int) and not isinstance(n_points, bool) and n_points > 0
    if n_points is not None and not is_count:
        raise DataFormatError(
            f"n_points is a whole number above 0, got {n_points!r:.40}. {_MADE_BY}.", path=path
        )
    for name in ("test", "model_checksum"):
        value = content.get(name)
        if not isinstance(value, str | None):
            raise DataFormatError(f"{name} is a string, got {value!r:.40}. {_MADE_BY}.", path=path)
    test, checksum = content.get("test"), content.get("model_checksum")
    return n_points, None if test in {None, _STDIN} else Path(str(test)).name, checksum


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
