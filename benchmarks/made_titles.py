"""Write a made set of short titles with as many labels as wanted, in the files that others have.

python -m benchmarks.made_titles made --labels 1000000
longtail train made/train.jsonl.gz --labels made/labels.txt.gz --model model
python -m benchmarks.latency model made/test.jsonl.gz
python -m benchmarks.peers --data made --out out
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.command import parser_of, positive, run
from benchmarks.paper.scale import OWN_TOKENS, Shape, World

if TYPE_CHECKING:
    from longtail import Dataset

SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvwz" for vowel in "aeiou"]
LABELS_A_POINT, TOKENS_A_POINT = 3.0, 8.0
TEST_POINTS = 10_000
FIELD_TOKENS = 4 * OWN_TOKENS


def main(arguments: list[str] | None = None) -> None:
    """Draw topics, labels and points, and write them."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the folder to write")
    parser.add_argument(
        "--labels", type=positive(int), default=1_000_000, metavar="N", help="how many (1000000)"
    )
    parser.add_argument(
        "--points", type=positive(int), metavar="N", help="to train on; 0.4 a label by default"
    )
    given = parser.parse_args(arguments)
    n_points = given.points or max(2 * given.labels // 5, 1)
    n_words = max(given.labels // 10, 200)
    shape = Shape(n_points, n_words, given.labels, TEST_POINTS, LABELS_A_POINT, TOKENS_A_POINT)
    world = Fields(shape, np.random.default_rng(0))
    names = [_name(world, label) for label in range(given.labels)]
    given.folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(given.folder / "labels.txt.gz", "wt", compresslevel=1) as file:
        file.writelines(f"{name}\n" for name in names)
    for part, size in (("train", n_points), ("test", min(TEST_POINTS, n_points))):
        _write(given.folder / f"{part}.jsonl.gz", world.points(size))


class Fields(World):
    """Topics that belong to fields, of which there are as many as topics in each.

    Every other word of a topic is one of its field's. Without fields no topic would be near any
    other, as in no library: a search for near labels would have nothing to go by.
    """

    def __init__(self, shape: Shape, random: np.random.Generator) -> None:
        super().__init__(shape, random)
        n_topics = len(self.own_tokens)
        n_fields = int(np.ceil(np.sqrt(n_topics)))
        field_tokens = random.integers(0, shape.n_features, (n_fields, FIELD_TOKENS))
        field = np.arange(n_topics) // n_fields
        drawn = random.integers(0, FIELD_TOKENS, (n_topics, OWN_TOKENS // 2))
        self.own_tokens[:, 1::2] = field_tokens[field[:, None], drawn]


def word(number: int) -> str:
    """Return a word of its own for each number.

    >>> word(3), word(80), word(6401)
    ('bo', 'beba', 'bebabe')
    """
    syllables = []
    while True:
        syllables.append(SYLLABLES[number % len(SYLLABLES)])
        number //= len(SYLLABLES)
        if not number:
            return "".join(reversed(syllables))


def _name(world: World, label: int) -> str:
    """Return the name of a label: two words of its topic, and one that no other label has."""
    own = world.own_tokens[world.topic_of(label)]
    return f"{word(own[label % len(own)])} {word(own[(7 * label + 5) % len(own)])} q{word(label)}"


def _write(path: Path, points: Dataset) -> None:
    """Write points, a line each."""
    features: Any = points.features
    labels: Any = points.labels
    with gzip.open(path, "wt", compresslevel=1) as file:
        for row in range(points.n_points):
            tokens, own = (
                matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]].tolist()
                for matrix in (features, labels)
            )
            file.write(json.dumps({"text": " ".join(map(word, tokens)), "labels": own}) + "\n")


if __name__ == "__main__":
    run(main)
