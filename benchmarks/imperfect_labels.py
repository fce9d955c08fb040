"""Cut a data set to few points, and spoil the labels that are learnt from, for `benchmarks.peers`.

python -m benchmarks.imperfect_labels DATA OUT
python -m benchmarks.peers --quick --data OUT/wrong --out RESULT

DATA is a folder with train.jsonl.gz, test.jsonl.gz and labels.txt.gz. Of its points, drawn at
random, 5,000 are trained on and 1,000 asked. But for the last four, the asked ones are as they are.

- right: all are as they are.
- wrong, very-wrong: each label is another with a probability of .2, or .5, drawn from all of them.
- missing, many-missing: each label is left out with a probability of .3, or .6, and with it a point
  that has none left.
- unlabelled: half of the points have no labels, and stay.
- synonyms: each label goes by one of two names, at random, and is asked by either.
- codes: numbers stand in place of names.
- swapped: each label has the name of another.
- everywhere: 95 of 100 points have one label more.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from benchmarks.command import run
from benchmarks.set_files import drawn_parts, parser_of_places, write_parts

if TYPE_CHECKING:
    from benchmarks.set_files import Points

N_TRAIN, N_TEST = 5_000, 1_000
WRONG, VERY_WRONG, MISSING, MANY_MISSING, UNLABELLED, EVERYWHERE = 0.2, 0.5, 0.3, 0.6, 0.5, 0.95


def main() -> None:
    """Write all of them."""
    arguments = parser_of_places(__doc__).parse_args()
    draw = random.Random(0)
    train, test = drawn_parts(arguments.data, draw, N_TRAIN, N_TEST)
    parts = {
        "right": (train, test),
        "wrong": (with_wrong(train, WRONG, draw), test),
        "very-wrong": (with_wrong(train, VERY_WRONG, draw), test),
        "missing": (with_missing(train, MISSING, draw), test),
        "many-missing": (with_missing(train, MANY_MISSING, draw), test),
        "unlabelled": (unlabelled(train, draw), test),
        "everywhere": (with_one_more(train, draw), with_one_more(test, draw)),
        "synonyms": (with_synonyms(train, draw), with_synonyms(test, draw)),
        "codes": renamed(train, test, draw, as_codes=True),
        "swapped": renamed(train, test, draw, as_codes=False),
    }
    for name, (trained, asked) in parts.items():
        write_parts(arguments.out / name, {"train": trained, "test": asked})


def with_wrong(points: Points, share: float, draw: random.Random) -> Points:
    """Return points of which a share of the labels is drawn from those of all points.

    Examples
    --------
    >>> import random
    >>> from benchmarks.imperfect_labels import with_wrong
    >>> with_wrong([("ale", ["drink"]), ("car", ["vehicle"])], 1.0, random.Random(0))
    [('ale', ['vehicle']), ('car', ['vehicle'])]
    """
    of_all = [label for _, labels in points for label in labels]
    return [
        (text, sorted({draw.choice(of_all) if draw.random() < share else own for own in labels}))
        for text, labels in points
    ]


def with_missing(points: Points, share: float, draw: random.Random) -> Points:
    """Return points without a share of the labels, and none that has no label left."""
    left = [
        (text, [label for label in labels if draw.random() >= share]) for text, labels in points
    ]
    return [(text, labels) for text, labels in left if labels]


def unlabelled(points: Points, draw: random.Random) -> Points:
    """Return points of which a share has no labels."""
    return [(text, [] if draw.random() < UNLABELLED else labels) for text, labels in points]


def with_one_more(points: Points, draw: random.Random) -> Points:
    """Return points nearly all of which have a label more, the same."""
    return [
        (text, [*labels, "whatever it is"] if draw.random() < EVERYWHERE else labels)
        for text, labels in points
    ]


def with_synonyms(points: Points, draw: random.Random) -> Points:
    """Return points each of whose labels goes by one of two names."""
    return [
        (text, [f"{label} {draw.choice(['group', 'kind'])}" for label in labels])
        for text, labels in points
    ]


def renamed(
    train: Points, test: Points, draw: random.Random, *, as_codes: bool
) -> tuple[Points, Points]:
    """Return both parts with numbers in place of labels, or with each by the name of another."""
    names = sorted({label for _, labels in [*train, *test] for label in labels})
    others = [f"{i:06d}" for i in range(len(names))] if as_codes else list(names)
    draw.shuffle(others)
    other_of = dict(zip(names, others, strict=True))

    def of_points(points: Points) -> Points:
        return [(text, [other_of[label] for label in labels]) for text, labels in points]

    return of_points(train), of_points(test)


if __name__ == "__main__":
    run(main)
