"""Cut a data set to few points, and copy rows of it, for `benchmarks.peers`.

python -m benchmarks.copied_rows DATA OUT
python -m benchmarks.peers --quick --data OUT/rare --out RESULT

DATA is a folder with train.jsonl.gz, test.jsonl.gz and labels.txt.gz. Of its points, drawn at
random, 5,000 are trained on and 3,000 asked.

- once: as they are.
- five: each row five times.
- rare: those with a label of three points or fewer five to twenty times.
"""

from __future__ import annotations

import random
from collections import Counter

from benchmarks.command import run
from benchmarks.set_files import drawn_parts, parser_of_places, write_parts

N_TRAIN, N_TEST, RARE = 5_000, 3_000, 3


def main() -> None:
    """Write all of them."""
    arguments = parser_of_places(__doc__).parse_args()
    draw = random.Random(0)
    train, test = drawn_parts(arguments.data, draw, N_TRAIN, N_TEST)
    n_points_of = Counter(label for _, labels in train for label in labels)
    rare = [
        point
        for point in train
        for _ in range(draw.randint(5, 20) if any(n_points_of[x] <= RARE for x in point[1]) else 1)
    ]
    for name, rows in {"once": train, "five": train * 5, "rare": rare}.items():
        draw.shuffle(rows)
        write_parts(arguments.out / name, {"train": rows, "test": test})


if __name__ == "__main__":
    run(main)
