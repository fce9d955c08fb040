"""The HTML file of a report, and the parts that it is made of.

The page follows the reader's choice of light or dark, fits a narrow screen, and can be read out.
"""

from __future__ import annotations

import html
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from longtail.data.files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "Bar",
    "Name",
    "charts",
    "escaped",
    "figure",
    "folded",
    "key_figures",
    "listed",
    "paragraph",
    "table",
    "write_page",
]


# Control characters, and halves of characters: Python holds names of files that are not UTF-8 so.
_NO_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Bar(float):
    """A share in [0, 1] that a table draws as a bar; its cell is not read out.

    Examples
    --------
    >>> from longtail.report.page import Bar, table
    >>> "width: 25.0%" in table("shares", (), [("one", Bar(0.25))])
    True
    """


class Name(str):
    """Text that a table sets to the left, as it does its first column, and not as numbers.

    Examples
    --------
    >>> from longtail.report.page import Name, table
    >>> '<td class="name" dir="auto">music</td>' in table("pairs", (), [("song", Name("music"))])
    True
    """

    __slots__ = ()


def write_page(
    path: str | Path,
    *,
    title: str,
    introduction: str,
    headline: str,
    sections: Mapping[str, str],
) -> None:
    """Write a report.

    Parameters
    ----------
    path : str or Path
        The HTML file; it appears once it is complete.
    title, introduction : str
        Plain text.
    headline : str
        HTML, as `key_figures` returns it.
    sections : mapping of str to str
        HTML of each section by its heading, in order; one without content is left out.

    Raises
    ------
    InputError
        If the folder that `path` is to be in does not exist.
    """
    style = files("longtail.report").joinpath("report.css").read_text(encoding="utf-8")
    content = "".join(
        f"<section>\n<h2>{escaped(heading)}</h2>\n{section}</section>\n"
        for heading, section in sections.items()
        if section
    )
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escaped(title)}</title>
<style>
{style}</style>
</head>
<body>
<header>
<h1>{escaped(title)}</h1>
{paragraph(introduction)}
</header>
<main>
{headline}{content}</main>
</body>
</html>
"""
    with replacing(path) as stream:
        stream.write(page.encode())


def key_figures(figures: Mapping[str, str]) -> str:
    """Return the few figures that most look for, large, each under its name."""
    items = (f"<div><dt>{escaped(k)}</dt><dd>{escaped(v)}</dd></div>" for k, v in figures.items())
    return f'<dl class="figures">{"".join(items)}</dl>\n'


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escaped(text)}</p>\n"


def listed(before: str, names: Iterable[str], after: str = "") -> str:
    """Return a paragraph of names in a row, none of which turns round what stands beside it.

    Examples
    --------
    >>> from longtail.report.page import listed
    >>> listed("Missing: ", ["a", "b"], " and 3 more").rstrip()
    '<p>Missing: <bdi>a</bdi> · <bdi>b</bdi> and 3 more</p>'
    """
    inside = " \N{MIDDLE DOT} ".join(f"<bdi>{escaped(name)}</bdi>" for name in names)
    return f"<p>{escaped(before)}{inside}{escaped(after)}</p>\n"


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str | Bar]]) -> str:
    """Return a table whose first column names the rows.

    Parameters
    ----------
    caption : str
    header : sequence of str
        Empty for none; an empty string heads a column without a name.
    rows : iterable of sequences
        Plain text, or bars.

    Examples
    --------
    >>> from longtail.report.page import table
    >>> print(table("Sizes", (), [("a & b", "2 MB")]).rstrip())
    <div class="scroll"><table><caption dir="auto">Sizes</caption><tbody><tr><th scope="row"...
    """
    head = "".join(
        f'<th scope="col"{_class_of(name)}>{escaped(name)}</th>' if name else "<td></td>"
        for name in header
    )
    head = f"<thead><tr>{head}</tr></thead>" if header else ""
    body = "".join(
        f'<tr><th scope="row" dir="auto">{escaped(str(first))}</th>{"".join(map(_cell, rest))}</tr>'
        for first, *rest in rows
    )
    return (
        f'<div class="scroll"><table><caption dir="auto">{escaped(caption)}</caption>{head}'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def _cell(value: str | Bar) -> str:
    """Return one cell: a bar or text."""
    if isinstance(value, Bar):
        width = f"{100 * min(max(value, 0.0), 1.0):.1f}"
        return f'<td class="bar" aria-hidden="true"><span style="width: {width}%"></span></td>'
    return f"<td{_class_of(value)}>{escaped(value)}</td>"


def _class_of(value: str) -> str:
    """Return by what the text of a cell is set: names begin where their script does."""
    return ' class="name" dir="auto"' if isinstance(value, Name) else ""


def folded(summary: str, content: str) -> str:
    """Return content, which is HTML, that is shown once its summary is clicked."""
    return f"<details><summary>{escaped(summary)}</summary>{content}</details>\n"


def charts(figures: Iterable[str]) -> str:
    """Put figures side by side where there is room."""
    return f'<div class="charts">{"".join(figures)}</div>\n'


def figure(caption: str, svg: str) -> str:
    """Return a chart, which is markup, under its caption, which is text."""
    return f"<figure><figcaption>{escaped(caption)}</figcaption>{svg}</figure>"


def escaped(text: str) -> str:
    r"""Make any text safe inside the page; what no page may hold shows that something was there.

    Examples
    --------
    >>> from longtail.report.page import escaped
    >>> escaped("<a>\0") == "&lt;a&gt;\N{REPLACEMENT CHARACTER}"
    True
    """
    return html.escape(_NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text))
