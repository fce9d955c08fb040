"""Files in, data sets out: readers, writers, labels, splits.

- Files, a reader and most often a writer each: `formats` knows them all; `delimited`,
  `json_lines`, `parquet`, `fasttext`, `svmlight`, `repository`, `pairs`, `matrix_files`, `storage`
- What readers share: `files`, `columns`, `table_header`, `table_rows`, `sparse_lines`,
  `line_kinds`, `input_notes`, `kept_columns`; points without labels: `unlabelled`
- Labels: `labels_file`, `label_names`, `label_rows`, `label_space`, `label_matching`,
  `named_classes`
- From Python: `from_python`, `foreign`, `given_bags`
- In memory: `dataset`, `text_column`, `blocks`, `bags`, `csr`, `rows`, `assembled`
- Texts to rows: `vectorizer`, with `characters`, `symbol_words`, `token_settings`,
  `token_counts`; what a model reads of a point: `point_input`
- Words known from elsewhere: `word_vectors`, and what they tell of tokens, `token_directions`
- Ready-made features: `damping`, `dense_columns`, chosen by `agreement`; what their columns are
  called: `feature_names`
- Which points, and how often: `split`, `variants`, `copies`, `pair_table`, `weighted_draws`
"""

from __future__ import annotations

from longtail.data.dataset import Dataset
from longtail.data.formats import FORMATS, FileFormat
from longtail.data.from_python import LabelForm, features_from, labels_from, texts_from
from longtail.data.input_notes import InputWarning
from longtail.data.label_rows import UnknownLabels
from longtail.data.label_space import LabelSpace
from longtail.data.repository import read_filter
from longtail.data.split import held_out_split
from longtail.data.text_column import TextColumn, TextColumnBuilder

__all__ = [
    "FORMATS",
    "Dataset",
    "FileFormat",
    "InputWarning",
    "LabelForm",
    "LabelSpace",
    "TextColumn",
    "TextColumnBuilder",
    "UnknownLabels",
    "features_from",
    "held_out_split",
    "labels_from",
    "read_filter",
    "texts_from",
]
