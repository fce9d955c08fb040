"""Data sets that nothing was tuned for, made of what packages of the Python Package Index say.

    curl https://pypi.org/simple/ > names.html
    python -m benchmarks.pypi_sets OUT --names names.html --metadata metadata.jsonl

The index is asked for 30,000 packages drawn at random, eight at a time, and what it says is kept in
the metadata, which are not asked for again. Of a package's name and summary, the labels are its
classifiers, what it depends on, or its keywords. Each set is a folder as `benchmarks.peers --data`
takes it; a random fifth of the points is the test set.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from benchmarks.command import run
from benchmarks.registry import asked_for, drawn, packages_of
from benchmarks.set_files import write

if TYPE_CHECKING:
    from collections.abc import Callable

    Package = dict[str, Any]

N_ASKED = 30_000
KEPT = ("name", "summary", "classifiers", "keywords", "requires_dist")
NOT_SAID = {"", "UNKNOWN"}


def main() -> None:
    """Write all three."""
    arguments = asked_for(__doc__)
    names = re.findall(r'href="(?:/simple/)?([^/"]+)/"', arguments.names.read_text())
    packages = packages_of(drawn(names, N_ASKED), url_of, kept_of, arguments.metadata)
    for name, labels_of in SETS.items():
        points = {text_of(package): labels_of(package) for package in packages}
        labelled = [(text, labels) for text, labels in points.items() if text and labels]
        write(arguments.out / f"pypi-{name}", labelled)


def url_of(name: str) -> str:
    """Return where the index says what a package is."""
    return f"https://pypi.org/pypi/{quote(name)}/json"


def kept_of(said: Any) -> Package:
    """Return what is kept of that."""
    return {key: said["info"].get(key) for key in KEPT}


def text_of(package: Package) -> str:
    """Return name and summary; nothing without the latter."""
    summary = " ".join((package["summary"] or "").split())
    return "" if summary in NOT_SAID else f"{package['name']} : {summary}"


def classifiers(package: Package) -> list[str]:
    """Return the classifiers, such as "License :: OSI Approved :: MIT License"."""
    return sorted(set(package["classifiers"] or ()))


def dependencies(package: Package) -> list[str]:
    """Return the names of what a package always needs, not of its extras."""
    needed = [line for line in package["requires_dist"] or () if "extra" not in line]
    names = (re.match(r"[A-Za-z0-9._-]+", line.strip()) for line in needed)
    return sorted({re.sub("[-_.]+", "-", name[0]).lower() for name in names if name})


def keywords(package: Package) -> list[str]:
    """Return the keywords, which are between commas, or else between spaces."""
    said = (package["keywords"] or "").lower()
    words = said.split(",") if "," in said else said.split()
    return sorted(set(filter(None, (" ".join(word.split()) for word in words))))


SETS: dict[str, Callable[[Package], list[str]]] = {
    "classifiers": classifiers,
    "depends": dependencies,
    "keywords": keywords,
}

if __name__ == "__main__":
    run(main)
