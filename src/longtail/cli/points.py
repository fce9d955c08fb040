"""Points to be answered, in blocks, so that a file of any length fits in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longtail.cli.notices import warning
from longtail.data.blocks import POINTS_AT_ONCE, Points, blocks_of, n_points_of
from longtail.data.columns import USUAL
from longtail.data.fasttext import parse_line
from longtail.data.files import STDIN, decode_line, numbered_lines
from longtail.data.formats import FORMATS, suffix_of
from longtail.data.input_notes import InputNotes
from longtail.data.json_lines import JsonRows, keys_of
from longtail.data.line_kinds import PLAIN, SPARSE, told_by_first
from longtail.data.matrix_files import is_matrix_file
from longtail.data.parquet import is_parquet
from longtail.data.text_column import TextColumn, TextColumnBuilder
from longtail.data.unlabelled import check_kind, read_points
from longtail.errors import DataFormatError, Remedy, source_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from longtail.data.columns import Columns
    from longtail.data.kept_columns import Kept
    from longtail.predictor import Predictor

__all__ = [
    "AnsweredBlock",
    "is_read_again",
    "n_features_of",
    "points_in",
]

_JSON_SUFFIXES = FORMATS["json-lines"].suffixes
_DATASET_SUFFIXES = {s for known in FORMATS.values() for s in known.suffixes} - {*_JSON_SUFFIXES}


class AnsweredBlock(NamedTuple):
    """What the model says of a block of points.

    Attributes
    ----------
    points : TextColumn or csr_array
    ids : int32 (n, k)
        Best first, padded with -1.
    scores : float32 (n, k)
        Padded with -inf.
    """

    points: Points
    ids: NDArray[np.int32]
    scores: NDArray[np.float32]


def points_in(
    model: Predictor,
    path: str,
    *,
    format_name: str | None,
    columns: Columns = USUAL,
    kept: Kept | None = None,
) -> tuple[Iterator[Points], int | None]:
    """Return the points of a file in blocks, and how many there are if that is cheap to know.

    Parameters
    ----------
    model : Predictor
        Says whether texts or features are wanted.
    path : str
        JSON lines, plain text with one text a line, or any format that `Dataset.read` knows;
        labels need not be there. ``-`` is standard input.
    format_name : str or None
        ``"text"``, or as in `Dataset.read`; guessed without it. Of standard input, JSON lines,
        fastText lines and plain text are told apart.
    columns : Columns
        What the text is called, where it has a name.
    kept : Kept, optional
        Is filled with what is carried to the answers: that of a block before the block is yielded.

    Raises
    ------
    InputError
        If the file cannot be used with this model.
    """
    n_features = n_features_of(model)
    if _is_lines(model, path, format_name):
        check_kind(path, is_text=True, n_features=n_features)
        n_points = sum(1 for _ in numbered_lines(path)) if is_read_again(path) else None
        return _text_blocks(path, format_name, columns, kept), n_points
    points = read_points(
        path, n_features=n_features, format_name=format_name, columns=columns, kept=kept
    )
    return blocks_of(points), n_points_of(points)


def n_features_of(model: Predictor) -> int | None:
    """Return how many ready-made features a model reads; None if it reads texts."""
    return None if model.vectorizer is not None else model.n_features


def is_read_again(path: str) -> bool:
    """Tell a file from a pipe, whose content can be read only once.

    Examples
    --------
    >>> from longtail.cli.points import is_read_again
    >>> is_read_again("-"), is_read_again("/dev/null")
    (False, False)
    """
    return path != STDIN and Path(path).is_file()


def _is_lines(model: Predictor, path: str, format_name: str | None) -> bool:
    """Tell whether each line is a point that can be read by itself."""
    if format_name is not None:
        return format_name in {PLAIN, "json-lines"}
    file = Path(path)
    is_foreign = suffix_of(file) in _DATASET_SUFFIXES or is_matrix_file(file) or is_parquet(file)
    return model.vectorizer is not None and not is_foreign


def _text_blocks(
    path: str, format_name: str | None, columns: Columns, kept: Kept | None
) -> Iterator[TextColumn]:
    """Yield blocks of texts: of the format that is named, or that the file's name or lines tell."""
    kind = format_name
    if kind is None and suffix_of(Path(path)) in _JSON_SUFFIXES:
        kind = "json-lines"
    texts = TextColumnBuilder()
    lines = numbered_lines(path)
    if kind is None:
        kind, lines = _told(lines, path)
    rows = JsonRows(columns, Path(path), points_only=True) if kind == "json-lines" else None
    notes = InputNotes(path)
    for number, line in lines:
        if kind == PLAIN or line.strip():
            texts.append(_text_of(line, rows, kind, path, number))
            if rows is not None and kept is not None:
                _keep(kept, line, path, number)
        else:
            notes.add("blank lines (skipped)", line=number)
        if len(texts) == POINTS_AT_ONCE:
            yield texts.finish()
    if len(texts):
        yield texts.finish()
    notes.warn()


def _keep(kept: Kept, line: bytes, path: str, number: int) -> None:
    """Take what is kept of a line, or warn of an id that comes too late."""
    if kept.names != ():
        kept.add_object(keys_of(line), path=Path(path), line=number)
    elif (name := kept.missed(line)) is not None:
        warning(
            f"{source_name(path)}, line {number}: there is a key {name!r}, which the first line "
            "has not, so no answer has one. Give one to each line (it may be null), and pass "
            f"--keep {name}. Answers are in the order of the lines."
        )


def _told(lines: Iterator[tuple[int, bytes]], path: str) -> tuple[str, Iterator[tuple[int, bytes]]]:
    """Tell the format by the first lines, and return all lines again.

    Lines of features, which would be answered as if they were prose, are refused.
    """
    told = told_by_first(lines)
    if told.kind == SPARSE:
        check_kind(path, is_text=False, n_features=None)
    if told.kind == PLAIN and len(told.first) == 2:
        first, second = told.first
        if first.count(b"\t") == second.count(b"\t") > 0:
            warning(
                f"{source_name(path)}: each line is taken as one text, TABs included. If the TABs "
                "separate columns, pass --format tsv."
            )
        if FORMATS["csv"].first_line.match(first):
            warning(
                f"{source_name(path)}: each line is taken as one text, the first, which looks like "
                "a header, included. If it is one, pass --format csv."
            )
    return told.kind, told.numbered


def _text_of(line: bytes, rows: JsonRows | None, kind: str, path: str, number: int) -> str | bytes:
    """Return the text of a line, or say what the line should be."""
    decoded = decode_line(line, path=path, number=number)
    if kind == "fasttext":
        return parse_line(decoded)[0]
    if rows is None:
        return line
    try:
        return rows.read(line, number)[0]
    except DataFormatError as error:
        error.remedies += (Remedy("format", "If each line is a text, pass {} text."),)
        raise
