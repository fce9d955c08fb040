"""Make sets of long strings without blanks, of which only pieces tell anything.

python -m benchmarks.long_strings DATA OUT

dna and protein are random strings of 60 to 300 letters, into which one to three motifs are put, the
labels: 60 of seven of four letters, and 400 of four of twenty. joined is 10,000 training points of
DATA, a folder with train.jsonl.gz, test.jsonl.gz and labels.txt.gz, and 2,000 of its test points,
without all that is no letter and no digit.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.command import run
from benchmarks.set_files import drawn_parts, parser_of_places, write, write_parts

if TYPE_CHECKING:
    from benchmarks.set_files import Points

N_STRINGS = 6_000
N_TRAIN, N_TEST = 10_000, 2_000
SHORTEST, LONGEST = 60, 300


class Kind(NamedTuple):
    """Of which letters strings are, and how many motifs of which length they may have."""

    letters: str
    n_motifs: int
    length: int


KINDS = {"dna": Kind("ACGT", 60, 7), "protein": Kind("ACDEFGHIKLMNPQRSTVWY", 400, 4)}


def main() -> None:
    """Write all of them."""
    arguments = parser_of_places(__doc__).parse_args()
    draw = random.Random(0)
    made = {name: strings(kind, draw) for name, kind in KINDS.items()}
    train, test = drawn_parts(arguments.data, draw, N_TRAIN, N_TEST)
    for name, points in made.items():
        write(arguments.out / name, points)
    write_parts(arguments.out / "joined", {"test": joined(test), "train": joined(train)})


def strings(kind: Kind, draw: random.Random) -> Points:
    """Return random strings, and which motifs they hold."""
    motifs = ["".join(draw.choices(kind.letters, k=kind.length)) for _ in range(kind.n_motifs)]
    points = []
    for _ in range(N_STRINGS):
        letters = draw.choices(kind.letters, k=draw.randint(SHORTEST, LONGEST))
        for motif in draw.sample(motifs, draw.randint(1, 3)):
            start = draw.randint(0, len(letters) - kind.length)
            letters[start : start + kind.length] = motif
        text = "".join(letters)
        points.append((text, [f"motif {i}" for i, motif in enumerate(motifs) if motif in text]))
    return points


def joined(points: Points) -> Points:
    """Return points whose texts are one word."""
    return [(re.sub(r"[\W_]+", "", text), labels) for text, labels in points]


if __name__ == "__main__":
    run(main)
