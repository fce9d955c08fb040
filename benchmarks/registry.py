"""What a registry says of packages, drawn at random: asked for once, and kept in a file."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

from benchmarks.command import parser_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    Package = dict[str, Any]

__all__ = ["asked_for", "drawn", "packages_of"]

N_AT_ONCE, N_TRIES, SECONDS_BETWEEN = 8, 5, 2.0
# Some packages are withheld by a mirror, or by law.
GONE = {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN, HTTPStatus.UNAVAILABLE_FOR_LEGAL_REASONS}


def asked_for(description: str | None) -> argparse.Namespace:
    """Parse the command line of what makes data sets of a registry's packages."""
    parser = parser_of(description)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--names",
        type=Path,
        required=True,
        metavar="FILE",
        help="names of all packages, made as above",
    )
    parser.add_argument(
        "--metadata",
        type=Path,
        required=True,
        metavar="FILE",
        help="what the registry says of them: read if it is there, written if not",
    )
    return parser.parse_args()


def drawn(names: list[str], n: int) -> list[str]:
    """Return so many of the names, or all if they are fewer; the same for the same names."""
    return random.Random(1).sample(names, min(n, len(names)))


def packages_of(
    names: list[str], url_of: Callable[[str], str], kept_of: Callable[[Any], Package], path: Path
) -> list[Package]:
    """Return what is kept of each package that the registry still has, by name.

    Parameters
    ----------
    names : list of str
        Of the packages to ask for, where the file does not have the answers.
    url_of : callable
        Where to ask for a package.
    kept_of : callable
        From what the registry says, as JSON, to what is kept, its "name" among it.
    path : Path
        JSON lines. If asking is interrupted, what has been said is beside it, and not asked again.
    """
    if not path.exists():
        unfinished = path.with_suffix(".part")
        said = dict(_lines(unfinished)) if unfinished.exists() else {}
        left = [name for name in names if name not in said]
        with (
            httpx2.Client(timeout=60) as client,
            ThreadPoolExecutor(N_AT_ONCE) as pool,
            unfinished.open("w", encoding="utf-8") as file,
        ):
            file.writelines(json.dumps(line) + "\n" for line in said.items())
            answers = pool.map(lambda name: _said(client, url_of(name)), left)
            for name, answer in zip(left, answers, strict=True):
                said[name] = None if answer is None else kept_of(answer)
                file.write(json.dumps([name, said[name]]) + "\n")
        lines = [json.dumps(package) for package in said.values() if package is not None]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        unfinished.unlink()
    return sorted(_lines(path), key=lambda package: str(package["name"]))


def _lines(path: Path) -> Iterator[Any]:
    """Yield what the whole lines of a file hold; the last may have been cut off."""
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.endswith("\n"))


def _said(client: httpx2.Client, url: str) -> Any:
    """Return what is at an address; None if nothing is, as with many packages."""
    for left in reversed(range(N_TRIES)):
        try:
            answer = client.get(url)
            if answer.status_code in GONE:
                return None
            return answer.raise_for_status().json()
        except (httpx2.HTTPError, ValueError):
            if not left:
                raise
        time.sleep(SECONDS_BETWEEN)
    return None
