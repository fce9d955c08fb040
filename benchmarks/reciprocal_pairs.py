"""Find test labels that are the reverse of a training pair, and write them as a filter file.

Where points and labels are the same things, a point's own label is that whose name begins its text.
A test point and label are reciprocal if a training point whose own label is that label carries the
test point's own label. `longtail evaluate MODEL TEST --filter OUT` leaves them out. With TRAIN in
place of TEST, OUT is for `longtail train TRAIN --filter OUT`.

python -m benchmarks.reciprocal_pairs train.jsonl.gz test.jsonl.gz --labels labels.txt.gz filter.txt
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from benchmarks.command import parser_of, run
from longtail import Dataset


def main() -> None:
    """Write the pairs and print how many test labels they are."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "train", metavar="TRAIN", help="points and their labels, in any format of `longtail train`"
    )
    parser.add_argument("test", metavar="TEST", help="points to ask, in any such format")
    parser.add_argument(
        "out", metavar="OUT", help="the file to write: lines of a point and a label"
    )
    parser.add_argument(
        "--labels",
        required=True,
        metavar="FILE",
        help="names of labels that are ids: line number = id",
    )
    arguments = parser.parse_args()
    train = Dataset.read(arguments.train, labels_file=arguments.labels)
    test = Dataset.read(arguments.test, labels_file=arguments.labels)
    n_labels = n_reciprocal = n_left = 0
    found = reversed_labels(train, test)
    with Path(arguments.out).open("w", encoding="utf-8") as file:
        for point, (labels, reverse) in enumerate(zip(test.label_lists(), found, strict=True)):
            file.writelines(f"{point} {label}\n" for label in sorted(reverse))
            n_labels += len(labels)
            n_reciprocal += len(reverse & set(labels))
            n_left += bool(set(labels) - reverse)
    print(f"{n_reciprocal / n_labels:.1%} of {n_labels} test labels are reciprocal.")
    print(f"{n_left / test.n_points:.1%} of {test.n_points} test points have another label.")


def reversed_labels(train: Dataset, test: Dataset) -> list[set[int]]:
    """Return for each test point the labels whose own training points carry its own label."""
    refers = defaultdict(set)  # from a label to the own labels of the points that carry it
    for labels, own in zip(train.label_lists(), own_labels(train), strict=True):
        for label in labels:
            refers[label].update(own)
    return [set().union(*(refers[label] for label in own)) for own in own_labels(test)]


def own_labels(dataset: Dataset) -> list[list[int]]:
    """Return for each point the labels whose name begins its text."""
    labels_of_name = defaultdict(list)
    for label in range(dataset.n_labels):
        labels_of_name[dataset.label_space.name(label).partition(" : ")[0]].append(label)
    texts = dataset.texts or [""] * dataset.n_points
    return [labels_of_name.get(text.partition(" : ")[0], []) for text in texts]


if __name__ == "__main__":
    run(main)
