"""The page on which a person decides what is to become of what a review has found."""

from __future__ import annotations

import hashlib
import shlex
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import msgspec

from longtail.data.files import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["is_page", "saved_as", "write_review_page"]

_PLACE = b'<script id="review" type="application/json">{}</script>'


def is_page(path: Path | None) -> bool:
    """Tell by an output's name whether it is to be a page.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.review_page import is_page
    >>> is_page(Path("review.html")), is_page(Path("review.csv")), is_page(None)
    (True, False, False)
    """
    return path is not None and path.suffix.lower() in {".html", ".htm"}


def saved_as(path: Path) -> str:
    """Return what a browser calls the file of what is to be changed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.cli.review_page import saved_as
    >>> saved_as(Path("review.html"))
    'review.accepted.jsonl'
    """
    return f"{path.stem}.accepted.jsonl"


def write_review_page(
    path: Path, rows: Sequence[Mapping[str, Any]], *, title: str, points: Sequence[str], target: str
) -> None:
    """Write one HTML file, which needs nothing else, and asks nobody.

    Parameters
    ----------
    path : Path
    rows : sequence of dict
        As `longtail.cli.review_file.as_rows` returns them.
    title : str
        Plain text.
    points : sequence of str
        The words of a command that tell how the points are read.
    target : str
        A file for the points with their labels put right.
    """
    encoded = msgspec.json.encode(rows)
    words = ["longtail", "review", *points, "--apply", saved_as(path), "--output", target]
    content = {
        "id": hashlib.sha256(encoded).hexdigest()[:12],  # by which a browser keeps what is decided
        "title": title,
        "saved_as": saved_as(path),
        "command": shlex.join(words),
        "rows": msgspec.Raw(encoded),
    }
    # No text may end the script that it stands in.
    told = msgspec.json.encode(content).replace(b"<", rb"\u003c")
    page = files("longtail.review").joinpath("page.html").read_bytes()
    with replacing(path) as stream:
        stream.write(page.replace(_PLACE, _PLACE.replace(b"{}", told)))
