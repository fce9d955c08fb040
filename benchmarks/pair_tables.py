"""Cut a data set into a row for each pair of a text and a label, for `benchmarks.peers`.

python -m benchmarks.pair_tables DATA OUT
python -m benchmarks.peers --quick --data OUT/pairs --out RESULT

DATA is a folder with train.jsonl.gz, test.jsonl.gz and labels.txt.gz. Of its points, drawn at
random, 12,000 are trained on and 3,000 asked.

- points: as they are.
- pairs: a row for each label of a training point, as a data base joins them.
- log: each such row as often as a made log might have it, once to about ten times.
- events: nine tenths of these rows, and 5,000 of the others as the test set, of one label each.
"""

from __future__ import annotations

import math
import random

from benchmarks.command import run
from benchmarks.set_files import drawn_parts, parser_of_places, write_parts

N_TRAIN, N_TEST, N_EVENTS = 12_000, 3_000, 5_000
MEAN_REPEATS = 2


def main() -> None:
    """Write all of them."""
    arguments = parser_of_places(__doc__).parse_args()
    draw = random.Random(0)
    train, test = drawn_parts(arguments.data, draw, N_TRAIN, N_TEST)
    pairs = [(text, [label]) for text, labels in train for label in labels]
    log = [pair for pair in pairs for _ in range(math.ceil(draw.expovariate(1 / MEAN_REPEATS)))]
    draw.shuffle(pairs)
    draw.shuffle(log)
    n_asked = len(log) // 10
    sets = {
        "points": (train, test),
        "pairs": (pairs, test),
        "log": (log, test),
        "events": (log[n_asked:], log[: min(n_asked, N_EVENTS)]),
    }
    for name, (learnt, asked) in sets.items():
        write_parts(arguments.out / name, {"train": learnt, "test": asked})


if __name__ == "__main__":
    run(main)
