"""Data sets that nothing was tuned for, made of what a Debian mirror has.

    apt-get update
    apt-get download mythes-fr unicode-cldr-core
    for package in *.deb; do dpkg -x $package unpacked; done
    curl -O http://deb.debian.org/debian/dists/bookworm/main/i18n/Translation-en.xz
    python -m benchmarks.debian_sets OUT --unpacked unpacked --descriptions Translation-en.xz

Two of the six are of texts of 65 words, and these two are there as features, too. Each is a folder
as `benchmarks.peers --data` takes it; a random fifth of the points is the test set. The packages'
index moves, so a later one differs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import random
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast
from xml.etree import ElementTree as ET

from sklearn.feature_extraction.text import TfidfVectorizer

if TYPE_CHECKING:
    from collections.abc import Iterator

    Points = list[tuple[str, list[str]]]


def main() -> None:
    """Write all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--unpacked", type=Path, required=True)
    parser.add_argument("--descriptions", type=Path, required=True)
    arguments = parser.parse_args()
    share = arguments.unpacked / "usr" / "share"
    entries = list(package_entries())
    sets = {
        "debtags": [(text_of(e), tags_of(e["Tag"])) for e in entries if "Tag" in e],
        "maintainers": [(text_of(e), [e["Maintainer"].split(" <")[0]]) for e in entries],
        "thesaurus-fr": synonyms(share / "mythes" / "thes_fr.dat"),
        "emoji": character_names(share / "unicode" / "cldr" / "common" / "annotations"),
    }
    long = descriptions(arguments.descriptions)
    described = [entry for entry in entries if entry["Package"] in long]
    long_sets = {
        "long-tags": [(long[e["Package"]], tags_of(e["Tag"])) for e in described if "Tag" in e],
        "long-depends": [(long[e["Package"]], packages_named_by(e)) for e in described],
    }
    for name, points in {**sets, **long_sets}.items():
        distinct = {text: (text, labels) for text, labels in points if labels}
        write(arguments.out / name, list(distinct.values()))
    for name in long_sets:
        words = TfidfVectorizer(min_df=2, sublinear_tf=True)
        write_features(arguments.out / name, arguments.out / f"{name}-features", words)


def package_entries() -> Iterator[dict[str, str]]:
    """Yield the fields of each package."""
    command = ["apt-cache", "dumpavail"]
    index = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for block in index.split("\n\n"):
        fields: dict[str, str] = {}
        key = ""
        for line in block.split("\n"):
            if line.startswith(" "):
                fields[key] += line
            elif ": " in line:
                key, fields[key] = line.split(": ", 1)
        if {"Package", "Description", "Maintainer"} <= fields.keys():
            yield fields


def text_of(entry: dict[str, str]) -> str:
    """Return the name and the summary of a package."""
    return f"{entry['Package']} : {entry['Description']}"


def tags_of(field: str) -> list[str]:
    """Return the tags of a package; ``a::{b,c}`` stands for two."""
    found = set()
    for facet, braced, plain in re.findall(r"([^\s,{}]+::)(?:\{([^}]*)\}|([^\s,{}]+))", field):
        found |= {facet + tag.strip() for tag in (braced or plain).split(",")}
    return sorted(found)


def packages_named_by(entry: dict[str, str]) -> list[str]:
    """Return the packages that a package depends on, recommends or suggests."""
    fields = [entry.get(name, "") for name in ("Depends", "Recommends", "Suggests")]
    names = (re.split(r"[\s(:]", word.strip())[0] for word in re.split("[,|]", ",".join(fields)))
    return sorted(set(filter(None, names)))


def descriptions(path: Path) -> dict[str, str]:
    """Return the title and the whole description of each package."""
    found = {}
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for block in file.read().split("\n\n"):
            first, *rest = block.split("\n")
            if len(rest) > 1:
                lines = [rest[1].partition(": ")[2] + ".", *(line.strip() for line in rest[2:])]
                found[first.partition(": ")[2]] = " ".join(line for line in lines if line != ".")
    return found


def synonyms(path: Path) -> Points:
    """Return words and their synonyms, without the remarks in brackets."""
    lines = iter(path.read_text(encoding="utf-8").split("\n")[1:])
    found: defaultdict[str, set[str]] = defaultdict(set)
    for entry in filter(None, lines):
        word, n_meanings = entry.rsplit("|", 1)
        for _ in range(int(n_meanings)):
            said = (re.sub(r"\s*\([^)]*\)", "", s).strip() for s in next(lines).split("|")[1:])
            found[word] |= {synonym for synonym in said if synonym not in {"", word}}
    return [(word, sorted(labels)) for word, labels in found.items() if word]


def character_names(folder: Path) -> Points:
    """Return the names of characters in all languages, and their English keywords."""
    keywords = {
        one.get("cp"): [word.strip() for word in str(one.text).split("|")]
        for one in remarks_in(folder / "en.xml")
        if one.get("type") != "tts"
    }
    return [
        (str(one.text), keywords[one.get("cp")])
        for path in sorted(folder.glob("*.xml"))
        if "_" not in path.stem
        for one in remarks_in(path)
        if one.get("type") == "tts" and one.get("cp") in keywords and one.text not in {None, "↑↑↑"}
    ]


def remarks_in(path: Path) -> Iterator[ET.Element]:
    """Return what a file of the CLDR says of characters."""
    return ET.parse(path).iter("annotation")  # noqa: S314 - a file of a Debian package


def write(folder: Path, points: Points) -> None:
    """Write a training set, a random fifth as a test set, and the labels' names."""
    random.Random(0).shuffle(points)  # noqa: S311 - no secret
    n_test = len(points) // 5
    write_parts(folder, {"test": points[:n_test], "train": points[n_test:]})


def write_parts(folder: Path, parts: dict[str, Points]) -> None:
    """Write a training set and a test set, which are given, and the labels' names."""
    folder.mkdir(parents=True, exist_ok=True)
    points = [point for rows in parts.values() for point in rows]
    names = sorted({label for _, labels in points for label in labels})
    ids = {name: i for i, name in enumerate(names)}
    with opened(folder / "labels.txt.gz") as file:
        file.writelines(f"{name}\n" for name in names)
    for part, rows in parts.items():
        with opened(folder / f"{part}.jsonl.gz") as file:
            for text, labels in rows:
                row = {"text": text, "labels": sorted(ids[label] for label in labels)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(f"{folder}: {len(points):,} points, {len(names):,} labels")


def write_features(texts: Path, folder: Path, tokens: TfidfVectorizer) -> None:
    """Write the TF-IDF of the tokens of a set as ready-made features."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(texts / "labels.txt.gz", "rt", encoding="utf-8") as file:
        n_labels = sum(1 for _ in file)
    for part in ("train", "test"):
        with gzip.open(texts / f"{part}.jsonl.gz", "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        if part == "train":
            tokens.fit([row["text"] for row in rows])
        features = tokens.transform([row["text"] for row in rows]).sorted_indices()
        with opened(folder / f"{part}.txt.gz") as file:
            file.write(f"{len(rows)} {features.shape[1]} {n_labels}\n")
            for row, start, stop in zip(
                rows, features.indptr[:-1], features.indptr[1:], strict=True
            ):
                entries = zip(features.indices[start:stop], features.data[start:stop], strict=True)
                values = " ".join(f"{i}:{value:.5g}" for i, value in entries)
                file.write(f"{','.join(map(str, row['labels']))} {values}\n")


def opened(path: Path) -> TextIO:
    """Open a packed file to be written."""
    return cast("TextIO", gzip.open(path, "wt", encoding="utf-8"))


if __name__ == "__main__":
    main()
