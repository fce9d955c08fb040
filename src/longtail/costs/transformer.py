"""What an encoder costs that may be a transformer: reading a text, and training on one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from longtail.costs.estimate import LONGEST
from longtail.errors import InputError
from longtail.features.hub import transformer_folder
from longtail.features.transformer_encoder import TEXTS_AT_ONCE, layers_and_width

if TYPE_CHECKING:
    from longtail.costs.estimate import Workload
    from longtail.recipes.text_encoders import OfTextEncoder

__all__ = [
    "TRAIN",
    "encoder_width",
    "layers_and_width_of",
    "time_to_read",
    "transformer_memory",
]

# Of a title, times layers and squared width of a transformer.
READ = 9e-3 / (6 * 384**2)  # core-seconds, as in `longtail.costs.estimate`
READ_BY_GPU = 12e-6 / (6 * 384**2)  # seconds
TRAIN = 4.0  # forward, and once more for the way back, backward and step, over forward alone
ACTIVATIONS = 34  # bytes of a piece of a text, times layers and width, in half precision
OF_WORD = 1.5  # pieces of a word
VOCABULARY = 30_000  # pieces with a vector each: fewer than in models of many languages
LIBRARIES = 170e6  # bytes of `transformers`, and of what reading needs beside the weights
COPIES = 3  # of the weights: as arrays, as a network, and what copies the former to the latter
TUNED = 6  # further ones: the network that is trained, its gradient, Adam's two moments, the result
BEST = 3  # what patience keeps of the best epoch: weights and moments


def layers_and_width_of(folder: str) -> tuple[int, int]:
    """Return the number of layers of a transformer and its width, which its folder tells.

    The folder may also be a name that `transformer_folder` finds it by.

    Raises
    ------
    InputError
        If the folder does not tell.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from longtail.costs.transformer import layers_and_width_of
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     config = '{"num_hidden_layers": 6, "hidden_size": 384}'
    ...     _ = pathlib.Path(folder, "config.json").write_text(config)
    ...     layers_and_width_of(folder)
    (6, 384)
    """
    try:
        path = transformer_folder(folder) / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{folder} is not a transformer folder: its config.json is not JSON in UTF-8 "
            f"({error}). Download it again, or name another folder, or the encoder 'bag'."
        ) from error
    sizes = layers_and_width(config)
    if sizes is None:
        raise InputError(
            f"{folder} is not a transformer folder: its config.json does not say how many "
            "layers it has and how wide they are. Name another folder, or the encoder 'bag'."
        )
    return sizes


def encoder_width(settings: OfTextEncoder) -> int:
    """Return the length of an encoder's vectors.

    Examples
    --------
    A transformer's folder tells its own, whatever the settings' dimension.

    >>> import pathlib, tempfile
    >>> from longtail.costs.transformer import encoder_width
    >>> from longtail.recipes.ngame import NGAME
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     config = '{"num_hidden_layers": 6, "hidden_size": 384}'
    ...     _ = pathlib.Path(folder, "config.json").write_text(config)
    ...     encoder_width(NGAME(dimension=64)), encoder_width(NGAME(encoder=folder))
    (64, 384)
    """
    return settings.dimension if settings.is_bag else layers_and_width_of(settings.encoder)[1]


def time_to_read(settings: OfTextEncoder, n_threads: int) -> float:
    """Return the seconds in which a transformer reads a title; 0 where there is none.

    Examples
    --------
    Of a transformer that is half as wide, a quarter.

    >>> import pathlib, tempfile
    >>> from longtail.costs.transformer import time_to_read
    >>> from longtail.recipes.ngame import NGAME
    >>> def seconds(width):
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         config = f'{{"num_hidden_layers": 6, "hidden_size": {width}}}'
    ...         _ = pathlib.Path(folder, "config.json").write_text(config)
    ...         return time_to_read(NGAME(encoder=folder), n_threads=2)
    >>> seconds(192) / seconds(384), time_to_read(NGAME(), n_threads=2)
    (0.25, 0.0)
    """
    if settings.is_bag:
        return 0.0
    layers, width = layers_and_width_of(settings.encoder)
    title = READ / n_threads if settings.device == "cpu" else READ_BY_GPU
    return layers * width**2 * title


def transformer_memory(
    settings: OfTextEncoder, w: Workload, n_texts: float, length: float = 1.0
) -> float:
    """Return the bytes of a transformer's weights, and of what its training adds; 0 without one.

    No more texts are held than a batch has, and none is longer than the longest of them.

    The activations of a piece of a text take 34 bytes in half precision, times layers and width
    (Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys
    2023, section 4.1), without those of attention, which short texts have few of.

    Parameters
    ----------
    settings : OfTextEncoder
    w : Workload
    n_texts : float
        Texts that a batch has, those of labels among them.
    length : float
        Of the longer kind of texts, over that of points.

    Examples
    --------
    To train one takes several copies of its weights.

    >>> import pathlib, tempfile
    >>> from longtail.costs.estimate import Workload
    >>> from longtail.costs.transformer import transformer_memory
    >>> from longtail.recipes.ngame import NGAME
    >>> points = {"n_points": 1_000, "n_nonzero": 80_000, "n_word_entries": 9_000}
    >>> titles = Workload(n_labels=100, n_features=5_000, n_label_pairs=2_000, **points)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     config = '{"num_hidden_layers": 6, "hidden_size": 384}'
    ...     _ = pathlib.Path(folder, "config.json").write_text(config)
    ...     read, tuned, none = (
    ...         transformer_memory(NGAME(**changes), titles, n_texts=64)
    ...         for changes in ({"encoder": folder}, {"encoder": folder, "fine_tune": True}, {})
    ...     )
    >>> tuned > 2 * read, none
    (True, 0.0)
    """
    if settings.is_bag:
        return 0.0
    layers, width = layers_and_width_of(settings.encoder)
    weights = 4 * width * (12 * layers * width + VOCABULARY)
    if not settings.fine_tune:
        return LIBRARIES + COPIES * weights
    n_held = min(settings.texts_at_once or TEXTS_AT_ONCE, n_texts)
    n_words = w.n_word_entries / w.n_points / settings.word_ngrams  # pairs are entries, too
    pieces = n_held * min(settings.n_pieces, LONGEST * length * OF_WORD * n_words)
    copies = COPIES + TUNED + (0 if settings.patience is None else BEST)
    return LIBRARIES + copies * weights + ACTIVATIONS * layers * width * pieces
