"""Make two sets whose texts are no prose, for `benchmarks.peers`.

python -m benchmarks.unlike_prose DATA OUT
python -m benchmarks.peers --quick --data OUT/statements --out RESULT

DATA is a folder with train.jsonl.gz, test.jsonl.gz and labels.txt.gz, of which the latter is made.

- statements: the first line of a statement in Python's standard library, and which kind it is.
- typos: the texts of DATA, 5,000 to train on, one letter in seven left out, doubled or exchanged,
  and their labels that have twenty points.
"""

from __future__ import annotations

import ast
import random
import sysconfig
from collections import Counter
from pathlib import Path

from benchmarks.command import run
from benchmarks.set_files import Points, drawn_parts, parser_of_places, write_parts

N_TRAIN, N_TEST, LEAST_POINTS = 5_000, 3_000, 20
OF_LETTERS = 7  # one of so many is mistyped


def main() -> None:
    """Write both of them."""
    arguments = parser_of_places(__doc__).parse_args()
    draw = random.Random(0)
    train, test = drawn_parts(arguments.data, draw, N_TRAIN, N_TEST)
    lines = statements()
    draw.shuffle(lines)
    write_parts(
        arguments.out / "statements",
        {"train": lines[:N_TRAIN], "test": lines[N_TRAIN : N_TRAIN + N_TEST]},
    )
    count = Counter(label for _, labels in train for label in labels)
    known = {label for label, n_points in count.items() if n_points >= LEAST_POINTS}
    parts = {"train": _of_labels(train, known), "test": _of_labels(test, known)}
    typed = {
        part: [(mistyped(text, draw), labels) for text, labels in points]
        for part, points in parts.items()
    }
    write_parts(arguments.out / "typos", typed)


def statements() -> Points:
    """Return different first lines of the statements of Python's library, and their kinds."""
    kind_of: dict[str, str] = {}
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        source = path.read_text(encoding="utf-8")
        lines = source.splitlines()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.stmt):
                kind_of.setdefault(lines[node.lineno - 1].strip(), type(node).__name__)
    return [(line, [kind]) for line, kind in kind_of.items()]


def mistyped(text: str, draw: random.Random) -> str:
    """Return a text with typing errors: letters left out, doubled, or exchanged with the next."""
    letters = list(text)
    for i, letter in enumerate(text[:-1]):
        if letter.isalpha() and draw.randrange(OF_LETTERS) == 0:
            both = letters[i + 1] + letter
            letters[i] = draw.choice(["", letter * 2, both])
            if letters[i] == both:
                letters[i + 1] = ""
    return "".join(letters)


def _of_labels(points: Points, known: set[str]) -> Points:
    """Return points with their known labels, those that have one."""
    kept = ((text, [label for label in labels if label in known]) for text, labels in points)
    return [(text, labels) for text, labels in kept if labels]


if __name__ == "__main__":
    run(main)
