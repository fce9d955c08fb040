"""Make a set whose texts hold the names of their labels, as texts with keywords do.

python -m benchmarks.named_in_texts DATA OUT --points 2000
python -m benchmarks.named_in_texts DATA OUT --points 2000 --other-words 20

DATA is a folder with train.jsonl.gz and labels.txt.gz. Of its training points, drawn at random, so
many are trained on, and 1,500 others are the test set. The names of a point's labels are put into
its text at random places; with --other-words, the text is so many random words of all of these
texts instead. A label that no point has is left out. No test data is read.
"""

from __future__ import annotations

import numpy as np

from benchmarks.command import positive, run
from benchmarks.set_files import parser_of_places, read_part, write_parts

N_TEST = 1_500


def main() -> None:
    """Write the folder."""
    parser = parser_of_places(__doc__)
    parser.add_argument(
        "--points", type=positive(int), default=2_000, metavar="N", help="to train on (2000)"
    )
    parser.add_argument(
        "--other-words",
        type=int,
        default=0,
        metavar="N",
        help="random words in place of each text; its own by default",
    )
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (0)")
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    points = read_part(arguments.data, "train")
    if arguments.points + N_TEST > len(points):
        asked = f"{arguments.points:,} points and {N_TEST:,} for the test"
        parser.error(f"{asked} are more than {len(points):,}.")
    order = random.permutation(len(points))[: arguments.points + N_TEST].tolist()
    drawn = [points[row] for row in order]
    all_words = np.array([word for text, _ in drawn for word in text.split()])
    named = []
    for text, labels in drawn:
        words = text.split()
        if arguments.other_words:
            words = random.choice(all_words, arguments.other_words).tolist()
        for label in labels:
            words.insert(random.integers(len(words) + 1), label)
        named.append((" ".join(words), labels))
    write_parts(arguments.out, {"test": named[:N_TEST], "train": named[N_TEST:]})


if __name__ == "__main__":
    run(main)
