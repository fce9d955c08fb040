"""Make a file of word vectors by a transformer that reads each word of a training set alone.

python -m benchmarks.word_vectors ENCODER train.jsonl.gz words.vec --labels labels.txt.gz

ENCODER is the folder of a transformer, as `longtail train --set encoder=` takes it. The words are
those of the points' and the labels' texts. `longtail train --set word_vectors=words.vec` starts
from the file, as from one of fastText's.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from benchmarks.command import parser_of, run
from longtail import Dataset, TextVectorizer
from longtail.data import InputWarning
from longtail.data.bags import Bags
from longtail.errors import InputError
from longtail.estimators.vocabulary import label_texts_of
from longtail.features.transformer import read_transformer

if TYPE_CHECKING:
    from longtail.data.text_column import TextColumn

AT_ONCE = 4_096
MOST_PIECES = 24  # of a word


def main() -> None:
    """Write one file."""
    parser = parser_of(__doc__)
    parser.add_argument("encoder", type=Path, help="the folder of a transformer")
    parser.add_argument("train", type=Path, help="points and their labels")
    parser.add_argument("out", type=Path, help="the file of word vectors to write")
    parser.add_argument("--labels", metavar="FILE", help="names of labels that are ids")
    arguments = parser.parse_args()
    encoder = read_transformer(arguments.encoder, MOST_PIECES)
    words = words_of(arguments.train, arguments.labels)
    with arguments.out.open("w", encoding="utf-8") as file:
        file.write(f"{len(words)} {encoder.dimension}\n")
        for start in range(0, len(words), AT_ONCE):
            some = words[start : start + AT_ONCE]
            texts = np.array(list(some), np.object_)
            bags = Bags.of(csr_array((len(some), 1), dtype=np.float32))._replace(texts=texts)
            for word, vector in zip(some, encoder.encode(bags), strict=True):
                file.write(f"{word} {' '.join(f'{number:.4f}' for number in vector)}\n")
    print(f"{arguments.out}: {len(words):,} words, {encoder.dimension} numbers each")


def words_of(train: Path, labels: str | None) -> TextColumn:
    """Return all words of a training set, the most frequent first."""
    warnings.simplefilter("ignore", InputWarning)
    data = Dataset.read(train, labels_file=labels)
    if data.texts is None:
        raise InputError(f"{train} has features, and words are asked for. Name a file of texts.")
    of_labels = label_texts_of(data)
    texts = data.texts if of_labels is None else data.texts.joined(of_labels)
    vectorizer = TextVectorizer(word_ngrams=1, char_ngrams=None, min_df=1, max_features=None)
    return vectorizer.fit(texts).tokens_


if __name__ == "__main__":
    run(main)
