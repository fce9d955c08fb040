"""Find test labels that are the reverse of a training pair, and write them as a filter file.

Where points and labels are the same things, a point's own label is that whose name begins its text.
A test point and label are reciprocal if a training point whose own label is that label carries the
test point's own label. `longtail evaluate MODEL TEST --filter OUT` leaves them out.

python benchmarks/reciprocal_pairs.py train.jsonl.gz test.jsonl.gz --labels labels.txt.gz filter.txt
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from longtail import Dataset


def main() -> None:
    """Write the pairs and print how many test labels they are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("out")
    parser.add_argument("--labels", required=True)
    arguments = parser.parse_args()
    train = Dataset.read(arguments.train, labels_file=arguments.labels)
    test = Dataset.read(arguments.test, labels_file=arguments.labels)
    labels_of_name = defaultdict(list)
    for label in range(train.n_labels):
        labels_of_name[train.label_space.name(label)].append(label)

    def own_labels(dataset: Dataset, point: int) -> list[int]:
        """Return the labels whose name begins the text of a point."""
        text = "" if dataset.texts is None else dataset.texts[point]
        return labels_of_name.get(text.partition(" : ")[0], [])

    refers = defaultdict(set)  # from a label to the own labels of the points that carry it
    for point, labels in enumerate(train.label_lists()):
        for label in labels:
            refers[label].update(own_labels(train, point))
    n_labels = n_reciprocal = n_left = 0
    with Path(arguments.out).open("w", encoding="utf-8") as file:
        for point, labels in enumerate(test.label_lists()):
            reverse = set().union(*(refers[label] for label in own_labels(test, point)))
            file.writelines(f"{point} {label}\n" for label in sorted(reverse))
            n_labels += len(labels)
            n_reciprocal += len(reverse & set(labels))
            n_left += bool(set(labels) - reverse)
    print(f"{n_reciprocal / n_labels:.1%} of {n_labels} test labels are reciprocal.")
    print(f"{n_left / test.n_points:.1%} of {test.n_points} test points have another label.")


if __name__ == "__main__":
    main()
