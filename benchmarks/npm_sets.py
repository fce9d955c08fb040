"""Small data sets that nothing was tuned for, made of what packages of the npm registry say.

    npm pack all-the-package-names && tar xzf all-the-package-names-*.tgz
    python -m benchmarks.npm_sets OUT --names package/names.json --metadata metadata.jsonl

The registry is asked for 45,000 packages drawn at random, eight at a time, and what it says
is kept in the metadata, which are not asked for again. Of a package's name and description, the
labels are its keywords, what it depends on, or what it is developed with. Each set is a folder as
`benchmarks.peers --data` takes it; a random fifth of the points is the test set.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from benchmarks.command import run
from benchmarks.registry import asked_for, drawn, packages_of
from benchmarks.set_files import distinct, write

if TYPE_CHECKING:
    from collections.abc import Iterator

N_ASKED = 45_000
SETS = {"keywords": "keywords", "depends": "dependencies", "dev": "devDependencies"}
KEPT = ("name", "description", *SETS.values())


def main() -> None:
    """Write all three."""
    arguments = asked_for(__doc__)
    names = json.loads(arguments.names.read_bytes())
    asked = drawn([name for name in names if not name.startswith("@")], N_ASKED)
    packages = packages_of(asked, url_of, kept_of, arguments.metadata)
    for name, field in SETS.items():
        write(arguments.out / f"npm-{name}", distinct(points_of(packages, field)))


def url_of(name: str) -> str:
    """Return where the registry says what the newest version of a package is."""
    return f"https://registry.npmjs.org/{quote(name)}/latest"


def kept_of(said: Any) -> dict[str, Any]:
    """Return what is kept of that."""
    return {key: said.get(key) for key in KEPT}


def points_of(packages: list[dict[str, Any]], field: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the text and the labels of each package that has both."""
    for package in packages:
        description, labels = package["description"], labels_in(package[field])
        if isinstance(description, str) and description.strip() and labels:
            yield f"{package['name']} : {' '.join(description.split())}", labels


def labels_in(said: object) -> list[str]:
    """Return keywords, of which some packages write one string, or the names of packages."""
    if isinstance(said, str):
        said = said.replace(";", ",").split(",")
    words = said if isinstance(said, list | dict) else ()
    plain = (" ".join(word.lower().split()) for word in words if isinstance(word, str))
    return sorted(set(filter(None, plain)))


if __name__ == "__main__":
    run(main)
