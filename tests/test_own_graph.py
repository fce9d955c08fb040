"""A recurrent network over pieces of words as the features of DeepXML, kept as a graph of ONNX.

To copy from: nothing here is longtail's own but the seams.
"""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from longtail import DeepXML, load
from longtail.data.point_input import InputKind, PointInput
from longtail.errors import InputError
from longtail.features.onnx_encoder import IDS, IS_PIECE, OnnxEncoder
from longtail.features.text_pieces import PiecesOfTexts
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.schedule import Schedule
from small_parts import LABELS, TEXTS

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
tokenizers = pytest.importorskip("tokenizers")

RATE = 0.01
TASK = MetaLabelTask(schedule=Schedule(epochs=10, learning_rate=0.05))


@dataclass(frozen=True, kw_only=True)
class Recurrent:
    """A feature architecture: the mean of what a GRU says of the pieces of a text."""

    dimension: int = 16
    n_pieces: int = 32
    said_dimension: int | None = None

    @property
    def reads(self):
        return PointInput(InputKind.TEXTS)

    def network(self, data, targets, run, start=None):
        torch.manual_seed(run.seed_for("recurrent"))
        return RecurrentNetwork(self, pieces_of(data.texts.tolist(), self.n_pieces), data.texts)

    def frozen(self, network):
        return network.frozen(self.said_dimension or self.dimension)


def pieces_of(texts, n_pieces):
    """Return a tokeniser that was trained on texts."""
    unknown, padding = "[UNK]", "[PAD]"
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=unknown))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.WordPieceTrainer(
        special_tokens=[padding, unknown], vocab_size=1000, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PiecesOfTexts(tokenizer.to_str(), n_pieces, padding=0)


class MeanOfStates(torch.nn.Module):
    """What is trained, and what becomes the graph."""

    def __init__(self, n_known, dimension):
        super().__init__()
        self.table = torch.nn.Embedding(n_known, dimension)
        self.recurrent = torch.nn.GRU(dimension, dimension, batch_first=True)

    def forward(self, ids, is_piece):
        counts = is_piece[..., None].float()
        return (self.recurrent(self.table(ids))[0] * counts).sum(1) / counts.sum(1).clamp(min=1)


class RecurrentNetwork:
    """A feature network: the module, the texts that it is trained on, and its optimiser."""

    def __init__(self, settings, pieces, texts):
        self.dimension = settings.dimension
        self.pieces, self.cut = pieces, pieces.cut(texts.tolist())
        self.module = MeanOfStates(pieces.tokenizer.get_vocab_size(), settings.dimension)
        self.adam = torch.optim.Adam(self.module.parameters(), RATE)

    def forward(self, points):
        return self.module(*map(torch.from_numpy, self.cut.padded(points)))

    def step(self, learning_rate, share=1.0):
        self.adam.param_groups[0]["lr"] = RATE * share
        self.adam.step()
        self.adam.zero_grad()

    def state(self):
        return dict(self.module.state_dict())

    def frozen(self, dimension):
        graph, example = io.BytesIO(), tuple(map(torch.from_numpy, self.cut.padded(np.arange(2))))
        free = {0: "n", 1: "length"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                self.module.eval(),
                example,
                graph,
                dynamo=False,
                input_names=[IDS, IS_PIECE],
                output_names=["vectors"],
                dynamic_axes={IDS: free, IS_PIECE: free, "vectors": {0: "n"}},
            )
        return OnnxEncoder(self.pieces, np.frombuffer(graph.getvalue(), np.uint8), dimension)


def test_a_recurrent_network_is_trained_and_served(tmp_path):
    model = DeepXML(features=Recurrent(), surrogate=TASK, n_threads=1).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) == 1
    model.save(tmp_path / "model")
    asked = [*TEXTS[:4], "a bottle of red wine"]
    loaded = load(tmp_path / "model")
    pairs = zip(loaded.predict(asked), model.predictor_.predict(asked), strict=True)
    for answers in pairs:
        ours, theirs = (dict(one) for one in answers)
        assert ours == pytest.approx(theirs, abs=1e-5)


def test_a_graph_gives_what_it_says():
    model = DeepXML(features=Recurrent(said_dimension=9), surrogate=TASK, n_threads=1)
    with pytest.raises(InputError, match=r"gives \(40, 16\) for 40 texts, but must give \(40, 9\)"):
        model.fit(TEXTS, LABELS)
