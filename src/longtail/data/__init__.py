"""Files in, data sets out: readers, writers, labels, splits."""

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
