"""Data sets with one, two or five examples of each label, as somebody writes them by hand.

    apt-get update
    curl -O http://deb.debian.org/debian/dists/bookworm/main/i18n/Translation-en.xz
    python -m benchmarks.few_examples OUT --descriptions Translation-en.xz

- one-each: the summary of a Debian package, and its name; asked are the first words of its
  description, as a question is asked in other words than an answer was filed under.
- some-two: the same, half of the packages with later words of the description as a second example.
- two-each: the same, all of them with such a second example.
- five-each: the summaries of five packages, and who maintains them; asked are others of theirs.
- half-each: as one-each, but every other package is known by its name alone; asked is of all.

Each is a folder as `benchmarks.peers --data` takes it. Beside each but the last is one with numbers
in place of the labels' names, which tell what a package is about.
"""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.command import parser_of, run
from benchmarks.debian_sets import descriptions, package_entries
from benchmarks.set_files import write_parts

if TYPE_CHECKING:
    from benchmarks.set_files import Points

N_PACKAGES, N_ASKED, N_WORDS, N_EXAMPLES = 10_000, 3_000, 12, 5


class Package(NamedTuple):
    """What is said of a package."""

    name: str
    maintainer: str
    summary: str
    words: list[str]  # of the description after the summary


def main() -> None:
    """Write all of them."""
    parser = parser_of(__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--descriptions",
        type=Path,
        required=True,
        metavar="FILE",
        help="descriptions of packages, as a Debian mirror has them",
    )
    arguments = parser.parse_args()
    packages = described(arguments.descriptions)
    some = packages[:N_PACKAGES]
    of_all = [(" ".join(p.words[:N_WORDS]), [p.name]) for p in some]
    asked = of_all[:N_ASKED]
    one = [(p.summary, [p.name]) for p in some]
    second = [(" ".join(p.words[N_WORDS : 2 * N_WORDS]), [p.name]) for p in some]
    sets = {
        "one-each": (one, asked),
        "some-two": (one + second[::2], asked),
        "two-each": (one + second, asked),
        "five-each": by_maintainer(packages),
    }
    for name, (train, test) in sets.items():
        write_parts(arguments.out / name, {"train": train, "test": test})
        numbers = {label: f"{i:05d}" for i, (_, [label]) in enumerate(train)}
        numbered = (
            [(text, [numbers[label]]) for text, [label] in points] for points in (train, test)
        )
        parts = dict(zip(("train", "test"), numbered, strict=True))
        write_parts(arguments.out / f"{name}-numbered", parts)
    write_parts(arguments.out / "half-each", {"train": one[::2], "test": of_all})


def described(path: Path) -> list[Package]:
    """Return packages, in random order, that are no libraries and are told about at length."""
    long = descriptions(path)
    found = {}
    for entry in package_entries():
        name = entry["Package"]
        summary = entry["Description"].split("\n")[0]
        words = long.get(name, "").removeprefix(f"{summary}.").split()
        if not name.startswith("lib") and len(words) >= 2 * N_WORDS:
            found[summary] = Package(name, entry["Maintainer"].split(" <")[0], summary, words)
    packages = list(found.values())
    random.Random(0).shuffle(packages)
    return packages


def by_maintainer(packages: list[Package]) -> tuple[Points, Points]:
    """Return five examples of each maintainer who has more, and up to five others."""
    theirs: defaultdict[str, list[str]] = defaultdict(list)
    for package in packages:
        theirs[package.maintainer].append(package.summary)
    train: Points = []
    test: Points = []
    for maintainer, summaries in theirs.items():
        if len(summaries) > N_EXAMPLES:
            train += [(text, [maintainer]) for text in summaries[:N_EXAMPLES]]
            test += [(text, [maintainer]) for text in summaries[N_EXAMPLES : 2 * N_EXAMPLES]]
    return train, test


if __name__ == "__main__":
    run(main)
