"""The files of a data set that is made here, as `benchmarks.peers --data` takes its folder."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias, cast

from benchmarks.command import parser_of
from longtail.errors import InputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from sklearn.feature_extraction.text import TfidfVectorizer

__all__ = [
    "Points",
    "distinct",
    "drawn_parts",
    "parser_of_places",
    "read_part",
    "read_parts",
    "write",
    "write_features",
    "write_parts",
]

Points: TypeAlias = list[tuple[str, list[str]]]


def parser_of_places(description: str | None) -> argparse.ArgumentParser:
    """Return the parser of a command that makes sets of one that is there: from DATA, in OUT."""
    parser = parser_of(description)
    parser.add_argument("data", type=Path, metavar="DATA", help="the folder of a set that is there")
    parser.add_argument("out", type=Path, metavar="OUT", help="the folder to write")
    return parser


def drawn_parts(folder: Path, draw: random.Random, n_train: int, n_test: int) -> list[Points]:
    """Return some training points of a set, and some of its test points."""
    parts = read_parts(folder, n_train, n_test)
    return [draw.sample(points, n) for points, n in zip(parts, (n_train, n_test), strict=True)]


def read_parts(folder: Path, n_train: int, n_test: int) -> list[Points]:
    """Read both parts of a set, each of which must have so many points."""
    parts = []
    for part, n_needed in (("train", n_train), ("test", n_test)):
        points = read_part(folder, part)
        if len(points) < n_needed:
            raise InputError(
                f"{folder} has {len(points):,} points in {part}.jsonl.gz, {n_needed:,} are needed. "
                "Take a larger set."
            )
        parts.append(points)
    return parts


def distinct(points: Iterable[tuple[str, list[str]]]) -> Points:
    """Return one point of each text, the last, and none without labels.

    Examples
    --------
    >>> from benchmarks.set_files import distinct
    >>> distinct([("red", ["colour"]), ("one", []), ("red", ["wine"])])
    [('red', ['wine'])]
    """
    return list({text: (text, labels) for text, labels in points if labels}.values())


def write(folder: Path, points: Points) -> None:
    """Write a training set, a random fifth as a test set, and the labels' names."""
    random.Random(0).shuffle(points)
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


def read_part(folder: Path, part: str) -> Points:
    """Read the training set or the test set of texts, with names of labels."""
    with gzip.open(folder / "labels.txt.gz", "rt", encoding="utf-8") as file:
        names = [line.rstrip("\n").split("\t")[0] for line in file]
    with gzip.open(folder / f"{part}.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [(row["text"], [names[label] for label in row["labels"]]) for row in rows]


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
