"""The data set that comes with the project."""

from __future__ import annotations

from importlib.resources import as_file, files

from longtail.data.dataset import Dataset

__all__ = ["wordnet"]


def wordnet() -> tuple[Dataset, Dataset]:
    """Return WordNet 3.0 as a see-also task: from a dictionary entry to the related entries.

    Texts are ``"words : definition"``; label names are the words of the related entries. Source,
    licence and statistics are in ``longtail/demo/wordnet``.

    Returns
    -------
    train : Dataset
        93,311 points.
    test : Dataset
        23,057 points, with the same 104,011 labels.

    Examples
    --------
    >>> from longtail.demo.data import wordnet
    >>> train, test = wordnet()
    >>> test.n_points, test.n_labels
    (23057, 104011)
    """
    with as_file(files("longtail.demo") / "wordnet") as folder:
        train = Dataset.read(folder / "train.jsonl.gz", labels_file=folder / "labels.txt.gz")
        test = Dataset.read(folder / "test.jsonl.gz", label_space=train.label_space)
    return train, test
