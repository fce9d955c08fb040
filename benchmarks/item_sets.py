"""Make sets of lists of items: what stands in a part of a list, and what else is in it.

python -m benchmarks.item_sets DATA OUT

DATA is a folder with train.jsonl.gz, test.jsonl.gz and labels.txt.gz. A random half of a point's
labels is the text of a new one, and the others are its labels: in names by what stands before
the first " : " of their names, in ids by numbers that tell nothing, such as i4711. sessions is
made: walks among 10,000 such ids, whose last one to eight are the text, and the next ones the
labels.
"""

from __future__ import annotations

import random
from itertools import accumulate, chain
from typing import TYPE_CHECKING

from benchmarks.command import run
from benchmarks.set_files import parser_of_places, read_part, write, write_parts

if TYPE_CHECKING:
    from benchmarks.set_files import Points

N_ITEMS, N_GROUPS, N_SESSIONS = 10_000, 300, 40_000
N_NEXT = 5  # items that are likely to follow one
FOLLOWS, STAYS = 0.2, 0.75  # how often the next item is one of these; else of the same group


def main() -> None:
    """Write all of them."""
    arguments = parser_of_places(__doc__).parse_args()
    draw = random.Random(0)
    parts = {part: halves(read_part(arguments.data, part), draw) for part in ("test", "train")}
    write_parts(arguments.out / "names", {part: told(lists, None) for part, lists in parts.items()})
    halves_of_all = (half for lists in parts.values() for sides in lists for half in sides)
    names = sorted(set(chain.from_iterable(halves_of_all)))
    ids = dict(zip(names, drawn_ids(len(names), draw), strict=True))
    write_parts(arguments.out / "ids", {part: told(lists, ids) for part, lists in parts.items()})
    write(arguments.out / "sessions", sessions(random.Random(0)))


Halves = list[tuple[list[str], list[str]]]


def halves(points: Points, draw: random.Random) -> Halves:
    """Return two random halves of the labels of each point that has two and more."""
    lists = []
    for _, labels in points:
        names = list(dict.fromkeys(name.split(" : ")[0] for name in labels))
        if len(names) >= 2:
            draw.shuffle(names)
            lists.append((names[: len(names) // 2], names[len(names) // 2 :]))
    return lists


def told(lists: Halves, ids: dict[str, str] | None) -> Points:
    """Return points whose texts are the first halves; of ids, if there are any."""
    if ids is None:
        return [(", ".join(first), second) for first, second in lists]
    return [(" ".join(ids[x] for x in first), [ids[x] for x in second]) for first, second in lists]


def drawn_ids(n_items: int, draw: random.Random) -> list[str]:
    """Return an id for each item, in random order."""
    return [f"i{number}" for number in draw.sample(range(2 * n_items), n_items)]


def sessions(draw: random.Random) -> Points:
    """Return walks among items, none of which comes twice in a walk."""
    ids, walk = drawn_ids(N_ITEMS, draw), Walk(draw)
    points = []
    for _ in range(N_SESSIONS):
        n_text, n_labels = draw.randint(1, 8), draw.randint(1, 4)
        items = [ids[item] for item in walk.of(n_text + n_labels)]
        points.append((" ".join(items[:n_text]), items[n_text:]))
    return points


class Walk:
    """Steps to one of the items that follow an item, of the same group, or of all."""

    def __init__(self, draw: random.Random) -> None:
        self._draw, self._items = draw, range(N_ITEMS)
        self._group_of = [draw.randrange(N_GROUPS) for _ in self._items]
        self._popularity = [(rank + 10) ** -0.6 for rank in self._items]
        self._of_all = list(accumulate(self._popularity))
        self._members: list[list[int]] = [[] for _ in range(N_GROUPS)]
        for item, group in enumerate(self._group_of):
            self._members[group].append(item)
        self._weights = [
            list(accumulate(self._popularity[i] for i in members)) for members in self._members
        ]
        self._following = [
            [self._of_group(group) for _ in range(N_NEXT)] for group in self._group_of
        ]

    def of(self, n_items: int) -> list[int]:
        """Return the different items of a walk."""
        last = self._of_any()
        items = {last: None}
        while len(items) < n_items:
            last = self._next(last)
            items[last] = None
        return list(items)

    def _next(self, last: int) -> int:
        chance = self._draw.random()
        if chance < FOLLOWS:
            return self._draw.choice(self._following[last])
        return self._of_group(self._group_of[last]) if chance < STAYS else self._of_any()

    def _of_group(self, group: int) -> int:
        return self._draw.choices(self._members[group], cum_weights=self._weights[group])[0]

    def _of_any(self) -> int:
        return self._draw.choices(self._items, cum_weights=self._of_all)[0]


if __name__ == "__main__":
    run(main)
