"""Small data sets that nothing was tuned for, made of what packages of the npm registry say.

    npm pack all-the-package-names && tar xzf all-the-package-names-*.tgz
    python -m benchmarks.npm_sets OUT --names package/names.json --metadata metadata.jsonl

The registry is asked for 45,000 packages drawn at random, eight at a time, and what it says
is kept in the metadata, which are not asked for again. Of a package's name and description, the
labels are its keywords, what it depends on, or what it is developed with. Each set is a folder as
`benchmarks.peers --data` takes it; a random fifth of the points is the test set.
"""

from __future__ import annotations

import argparse
import json
import random
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

from benchmarks.debian_sets import write

if TYPE_CHECKING:
    from collections.abc import Iterator

REGISTRY = "https://registry.npmjs.org"
N_ASKED, N_AT_ONCE = 45_000, 8
SETS = {"keywords": "keywords", "depends": "dependencies", "dev": "devDependencies"}
KEPT = ("name", "description", *SETS.values())


def main() -> None:
    """Write all three."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--names", type=Path, required=True)
    parser.add_argument("--metadata", type=Path, required=True)
    arguments = parser.parse_args()
    if not arguments.metadata.exists():
        ask_registry(arguments.names, arguments.metadata)
    with arguments.metadata.open(encoding="utf-8") as file:
        packages = sorted(map(json.loads, file), key=lambda package: str(package["name"]))
    for name, field in SETS.items():
        points = {text: (text, labels) for text, labels in points_of(packages, field)}
        write(arguments.out / f"npm-{name}", list(points.values()))


def ask_registry(names: Path, metadata: Path) -> None:
    """Write what the registry says of the newest version of packages, one a line."""
    plain = [name for name in json.loads(names.read_bytes()) if not name.startswith("@")]
    asked = random.Random(1).sample(plain, N_ASKED)  # noqa: S311 - no secret
    unfinished = metadata.with_suffix(".part")
    with ThreadPoolExecutor(N_AT_ONCE) as pool, unfinished.open("w", encoding="utf-8") as file:
        for package in filter(None, pool.map(newest, asked)):
            file.write(json.dumps({key: package.get(key) for key in KEPT}) + "\n")
    unfinished.rename(metadata)


def newest(name: str) -> dict[str, Any] | None:
    """Return what the registry says of a package; None if that is gone, as many are."""
    try:
        with urlopen(f"{REGISTRY}/{quote(name)}/latest", timeout=60) as answer:  # noqa: S310 - https
            found: dict[str, Any] = json.load(answer)
    except HTTPError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return None
    return found


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
    main()
