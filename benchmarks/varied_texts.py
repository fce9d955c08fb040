"""Cut a data set to few points, and make variants of their texts, for `benchmarks.peers`.

python -m benchmarks.varied_texts DATA OUT
python -m benchmarks.peers --quick --data OUT/words --out RESULT

DATA is a folder with train.jsonl.gz, test.jsonl.gz and labels.txt.gz. Of its points, drawn at
random, 600 are trained on and 1,000 asked.

- once: as they are.
- words: ten variants of each text, in which a word is left out with a probability of .15; half of
  them have a word more, of another text.
- order: ten variants of each text, whose words stand in any order.
"""

from __future__ import annotations

import random

from benchmarks.command import run
from benchmarks.set_files import drawn_parts, parser_of_places, write_parts

N_TRAIN, N_TEST, N_VARIANTS = 600, 1_000, 10
LEFT_OUT, WITH_ANOTHER = 0.15, 0.5


def main() -> None:
    """Write all of them."""
    arguments = parser_of_places(__doc__).parse_args()
    draw = random.Random(0)
    train, test = drawn_parts(arguments.data, draw, N_TRAIN, N_TEST)
    words = [word for text, _ in train for word in text.split()]
    of_words = [
        (less_and_more(text, words, draw), labels)
        for text, labels in train
        for _ in range(N_VARIANTS)
    ]
    of_order = [(turned(text, draw), labels) for text, labels in train for _ in range(N_VARIANTS)]
    for name, rows in {"once": train, "words": of_words, "order": of_order}.items():
        draw.shuffle(rows)
        write_parts(arguments.out / name, {"train": rows, "test": test})


def less_and_more(text: str, words: list[str], draw: random.Random) -> str:
    """Return a text without some of its words and, half of the time, with another of `words`.

    Examples
    --------
    >>> import random
    >>> from benchmarks.varied_texts import less_and_more
    >>> less_and_more("a light mail client with documentation", ["game"], random.Random(3))
    'a light mail game client with'
    """
    own = text.split()
    kept = [word for word in own if draw.random() >= LEFT_OUT] or own
    if draw.random() < WITH_ANOTHER:
        kept.insert(draw.randrange(len(kept) + 1), draw.choice(words))
    return " ".join(kept)


def turned(text: str, draw: random.Random) -> str:
    """Return the words of a text in any order.

    Examples
    --------
    >>> import random
    >>> from benchmarks.varied_texts import turned
    >>> turned("a light mail client", random.Random(1))
    'light mail a client'
    """
    words = text.split()
    return " ".join(draw.sample(words, len(words)))


if __name__ == "__main__":
    run(main)
