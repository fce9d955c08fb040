"""AttentionXML while it is trained: a BiLSTM, attention a label, one level at a time."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from longtail.errors import InputError
from longtail.features.sketches import sketched_vectors
from longtail.features.word_table import WordTable
from longtail.kernels.attention import AttentionWeights
from longtail.metrics import precision_at_k
from longtail.named_parts import joined_parts, with_prefix
from longtail.scorers.label_attention import AttentionLevel
from longtail.scorers.ranking import best_first
from longtail.scorers.tree_nodes import children_of
from longtail.training.batches import AllLabels
from longtail.training.dropout import dropped
from longtail.training.early_stopping import EarlyStopping
from longtail.training.loop import train
from longtail.training.module_adam import ModuleAdam
from longtail.training.optimisers import RowwiseAdagrad
from longtail.training.processes import processes
from longtail.training.weight_average import AveragedTask

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from longtail.training.batches import Batch
    from longtail.training.clipping import Clipping
    from longtail.training.early_stopping import HeldOut
    from longtail.training.run import TrainingData, TrainingRun
    from longtail.training.schedule import Schedule

__all__ = ["Candidates", "HeldOutLevel", "LabelAttention"]

GATES = ("weight_ih_l0", "weight_hh_l0")
ROWS_AT_ONCE = 256
# Of Adam, for LSTM and layers, whose steps stay about as long as its rate. The tables have Adagrad,
# whose steps become shorter, and so a greater rate to begin with.
NETWORK_RATE = 2e-3
TINY = np.finfo(np.float32).tiny


class Candidates(NamedTuple):
    """Nodes of a level that training points are scored against: children of those above.

    Attributes
    ----------
    parents : int32 (n_points or 1, b)
        Nodes of the level above, padded with -1; one row for all points alike.
    child_starts : int32 (n_parents + 1,)
    """

    parents: NDArray[np.int32]
    child_starts: NDArray[np.int32]

    def of(self, points: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return those of some points, int32 (n, size), padded with -1."""
        parents = self.parents if len(self.parents) == 1 else self.parents[points]
        return children_of(parents, self.child_starts)[0]


class HeldOutLevel(NamedTuple):
    """Held-out points that have come as far as a level.

    Attributes
    ----------
    points : HeldOut
        With the nodes of this level as targets.
    parents : int32 (n_points, b)
        Nodes of the level above that each point follows, padded with -1.
    above : float32 (n_points, b)
        Their scores.
    """

    points: HeldOut
    parents: NDArray[np.int32]
    above: NDArray[np.float32]

    def stopping(
        self,
        weights: Callable[[], AttentionWeights],
        child_starts: NDArray[np.int32],
        run: TrainingRun,
        in_use: Callable[[], AbstractContextManager[None]],
    ) -> EarlyStopping:
        """Return what stops the training of a level by the P@1 of its nodes.

        While `in_use` is open, `weights` returns those that would be kept.
        """

        def quality() -> float:
            with in_use():
                return self.precision(AttentionLevel(weights(), child_starts), run.n_threads)

        return EarlyStopping(quality, self.points.patience)

    def precision(self, level: AttentionLevel, n_threads: int) -> float:
        """Return P@1 of a level's nodes, scored as in a prediction."""
        bags = self.points.data.bags()
        nodes, scores = level.children(bags, self.parents, self.above, n_threads)
        best, _ = best_first(nodes, scores, 1, n_threads)
        return precision_at_k(best, self.points.targets, 1)


@dataclass(frozen=True, kw_only=True)
class LabelAttention:
    """Words to states, states to a vector a label, a vector to a logit (You et al., NeurIPS 2019).

    With states h_t of a BiLSTM and w_l what label l looks for, ``a_t = softmax_t(h_t . w_l)``,
    ``m_l = sum_t a_t h_t``, ``z_l = v . ReLU(W m_l + b) + c + w_l . m_l``; only w_l is the label's
    own. The last term is ours: those before do not say how well a text's words fit the label. The
    loss is binary cross-entropy over the candidates of a point. A second layer that labels share
    may follow, with ``v . ReLU(U ReLU(W m_l + b) + d)`` in place of the first term.

    Parameters
    ----------
    dimension : int
        Of a word's vector.
    n_states : int
        Of each direction of the LSTM.
    hidden : tuple of int
        Widths of the one or two layers that labels share.
    dropout : float
        Of words' vectors and states.
    schedule : Schedule
        Its rate is that of the tables, of words and labels; `NETWORK_RATE` falls with it.
    batch_size : int
    clipping : callable or None
        Makes what holds down the gradient of LSTM and layers, of each level anew.
    average_after : int or None
        Epochs after which the mean of the weights begins that takes their place; None for no mean.
    """

    dimension: int
    n_states: int
    hidden: tuple[int, ...]
    dropout: float
    schedule: Schedule
    batch_size: int
    clipping: Callable[[], Clipping] | None
    average_after: int | None

    def learn(
        self,
        data: TrainingData,
        targets: csr_array,
        candidates: Candidates,
        run: TrainingRun,
        start: AttentionWeights | None = None,
        held_out: HeldOutLevel | None = None,
    ) -> AttentionWeights:
        """Train one level.

        Parameters
        ----------
        data : TrainingData
            With words.
        targets : csr_array (n_points, n_nodes)
        candidates : Candidates
            Of each point.
        run : TrainingRun
        start : AttentionWeights or None
            Of the level above: words and network go on from there, what nodes look for is new.
        held_out : HeldOutLevel or None
            Stop by the P@1 of their nodes.

        Raises
        ------
        InputError
            If the data have no words.
        """
        if data.words is None:
            raise InputError("AttentionXML reads the words of a text in order. Pass texts.")
        words, module = self._started(data, targets, run, start)
        _set_first_bias(module, targets, candidates)
        labels = _centroids(module, words, data.words, targets)
        tables = _Tables(
            WordTable(words, RowwiseAdagrad, run.torch_device),
            WordTable(labels, RowwiseAdagrad, run.torch_device),
        )
        adam = ModuleAdam(
            module.to(run.torch_device), None if self.clipping is None else self.clipping()
        )
        level = _LevelTask(module, tables, data, targets, candidates, adam)
        batches = AllLabels(targets, self.batch_size)
        averaged = self._averaged(level, batches)
        stopping = None
        if held_out is not None:
            in_use = nullcontext if averaged is None else averaged.in_use
            stopping = held_out.stopping(
                lambda: module.frozen(tables), candidates.child_starts, run, in_use
            )
        train(averaged or level, batches, self.schedule, run, "level", stopping)
        if averaged is not None:
            averaged.take_over()
        return module.frozen(tables)

    def _started(
        self,
        data: TrainingData,
        targets: csr_array,
        run: TrainingRun,
        start: AttentionWeights | None,
    ) -> tuple[NDArray[np.float32], _Network]:
        """Return words' vectors and a network: those of `start`, or new ones."""
        torch.manual_seed(run.seed_for("network"))
        module = _Network(self.dimension, self.n_states, self.hidden, self.dropout)
        if start is not None:
            module.start_from(start)
            return start.words, module
        seed = run.seed_for("word vectors")
        return sketched_vectors(data.features, targets, self.dimension, seed), module

    def _averaged(self, level: _LevelTask, batches: AllLabels) -> AveragedTask | None:
        """Return the level with the mean of its weights kept, where one is asked for."""
        if self.average_after is None:
            return None
        n_batches = batches.n_batches()
        n_before, n_steps = self.average_after * n_batches, self.schedule.epochs * n_batches
        return AveragedTask.after(level, level.weights(), n_before, n_steps)


def _set_first_bias(module: _Network, targets: csr_array, candidates: Candidates) -> None:
    """Set the output's bias to the log of the share of candidates that are true.

    Few are: the first steps need not go into lowering the scores of all.
    """
    n_parents, n_children = candidates.parents.shape[1], np.diff(candidates.child_starts).mean()
    share = min(targets.nnz / (targets.shape[0] * n_parents * n_children), 0.5)
    nn.init.constant_(module.output.bias, float(np.log(share)))


def _centroids(
    module: _Network, words: NDArray[np.float32], texts: NDArray[np.int32], targets: csr_array
) -> NDArray[np.float32]:
    """Return what sets the mean states of each node's points apart from those of all, unit rows."""
    means = np.zeros((len(texts), 2 * module.lstm.hidden_size), np.float32)
    table = torch.from_numpy(words)
    with torch.no_grad():
        for start in range(0, len(texts), ROWS_AT_ONCE):
            read = torch.from_numpy(texts[start : start + ROWS_AT_ONCE]).long()
            known = torch.nonzero((read >= 0).any(dim=1))[:, 0]
            if not len(known):
                continue
            is_word = (read[known] >= 0)[..., None]
            vectors = table[read[known].clamp(min=0)] * is_word
            states = module.states(vectors, is_word.sum(dim=(1, 2)))
            totals = (states * is_word[:, : states.shape[1]]).sum(dim=1)
            means[start + known.numpy()] = (totals / is_word.sum(dim=1)).numpy()
    has_words = (texts >= 0).any(axis=1)  # of the others nothing is known: they stay at zero
    means[has_words] -= means.sum(axis=0) / max(int(has_words.sum()), 1)
    sums: NDArray[np.float32] = targets.T @ means
    sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), TINY)
    return sums


class _Tables(NamedTuple):
    """Vectors of which a batch reads some."""

    words: WordTable
    labels: WordTable


class _Network(nn.Module):
    """What all labels share."""

    def __init__(
        self, dimension: int, n_states: int, widths: tuple[int, ...], dropout: float
    ) -> None:
        super().__init__()
        self.lstm = nn.LSTM(int(dimension), int(n_states), batch_first=True, bidirectional=True)
        self.hidden = nn.Linear(2 * n_states, widths[0])
        self.second = nn.Linear(*widths) if len(widths) == 2 else None
        self.output = nn.Linear(widths[-1], 1)
        self._dropout = dropout

    def forward(self, vectors: Tensor, lengths: Tensor, labels: Tensor) -> Tensor:
        """Return logits (n, c) of labels' vectors (n, c, 2 H) for words' vectors (n, T, D)."""
        states = self._dropped(self.states(self._dropped(vectors), lengths))
        is_word = torch.arange(states.shape[1], device=lengths.device) < lengths[:, None]
        fits = labels @ states.transpose(1, 2)
        shares = fits.masked_fill(~is_word[:, None], -torch.inf).softmax(dim=2)
        # The shared layer is linear up to its ReLU: once a word, not once a label and word.
        projected = states @ self.hidden.weight.T
        hidden = torch.relu(shares @ projected + self.hidden.bias)
        if self.second is not None:
            hidden = torch.relu(self.second(hidden))
        logits: Tensor = self.output(hidden)[..., 0] + (shares * fits).sum(dim=2)
        return logits

    def _dropped(self, rows: Tensor) -> Tensor:
        """Return the rows with some units left out in training."""
        return dropped(rows, self._dropout) if self.training else rows

    def states(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Return the states (n, T, 2 H) of words' vectors (n, T, D)."""
        packed = pack_padded_sequence(
            vectors, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states: Tensor = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        return states

    def start_from(self, start: AttentionWeights) -> None:
        """Copy a trained network."""
        with torch.no_grad():
            for d, suffix in enumerate(("", "_reverse")):
                for name, own in zip(GATES, (start.inputs, start.states), strict=True):
                    getattr(self.lstm, name + suffix).copy_(torch.tensor(own[d]))
                getattr(self.lstm, f"bias_ih_l0{suffix}").copy_(torch.tensor(start.gates[d]))
                getattr(self.lstm, f"bias_hh_l0{suffix}").zero_()
            self.hidden.weight.copy_(torch.tensor(start.hidden))
            self.hidden.bias.copy_(torch.tensor(start.hidden_bias))
            if self.second is not None:
                self.second.weight.copy_(torch.tensor(start.second))
                self.second.bias.copy_(torch.tensor(start.second_bias))
            self.output.weight[0].copy_(torch.tensor(start.output[:-1]))

    def frozen(self, tables: _Tables) -> AttentionWeights:
        """Return the weights as a trained model keeps them."""
        state = {name: w.detach().cpu().numpy() for name, w in self.state_dict().items()}

        def both(name: str) -> NDArray[np.float32]:
            return np.stack([state[f"lstm.{name}"], state[f"lstm.{name}_reverse"]])

        no_layer = np.zeros((0, len(state["hidden.bias"])), np.float32)
        return AttentionWeights(
            tables.words.table.cpu().numpy(),
            both("weight_ih_l0"),
            both("weight_hh_l0"),
            both("bias_ih_l0") + both("bias_hh_l0"),
            tables.labels.table.cpu().numpy(),
            state["hidden.weight"].copy(),
            state["hidden.bias"].copy(),
            np.concatenate([state["output.weight"][0], state["output.bias"]]),
            state.get("second.weight", no_layer).copy(),
            state.get("second.bias", no_layer[:, 0]).copy(),
        )


class _LevelTask:
    """One step of a level."""

    def __init__(
        self,
        module: _Network,
        tables: _Tables,
        data: TrainingData,
        targets: csr_array,
        candidates: Candidates,
        adam: ModuleAdam,
    ) -> None:
        self._module = module.train()
        self._tables = tables
        self._words = data.words
        self._targets = targets
        self._candidates = candidates
        self._adam = adam

    def step(
        self, batch: Batch, learning_rate: float, share: float, *, measure: bool
    ) -> float | None:
        """See `longtail.training.loop.Task.step`."""
        points, words, counts = self._read(batch)
        if not counts and processes().count == 1:
            return None
        device = self._tables.words.table.device
        read = torch.from_numpy(words).long().to(device)
        lengths = (read >= 0).sum(dim=1)
        nodes = self._candidates.of(points)
        chosen = torch.from_numpy(nodes).long().to(device)
        labels = self._tables.labels.read(chosen)
        logits = self._module(self._tables.words.read(read), lengths, labels)
        loss = nn.functional.binary_cross_entropy_with_logits(
            logits, self._truth(points, nodes).to(device), reduction="none"
        )
        loss = (loss * ((chosen >= 0) & counts)).sum()
        torch.autograd.backward(loss)
        self._tables.words.step(learning_rate)
        self._tables.labels.step(learning_rate)
        self._adam.step(NETWORK_RATE * share)
        return loss.item() / len(points) if measure else None

    def _read(self, batch: Batch) -> tuple[NDArray[np.int64], NDArray[np.int32], bool]:
        """Return the points that have words, these, and whether there are such points.

        If not, they are one point that does not count: in training by several processes, the others
        wait for the gradient of this one.
        """
        words = self._words[batch.points]  # type: ignore[index]  # `learn` has looked
        has_words = (words >= 0).any(axis=1)
        if has_words.any():
            return batch.points[has_words], words[has_words], True
        return batch.points[:1], np.zeros((1, 1), np.int32), False

    def _truth(self, points: NDArray[np.int64], nodes: NDArray[np.int32]) -> Tensor:
        """Return 1 where a candidate is a point's own, else 0, as float32."""
        true = np.take_along_axis(self._targets[points].toarray(), np.maximum(nodes, 0), axis=1)
        return torch.from_numpy(true > 0).float()

    def weights(self) -> dict[str, Tensor]:
        """Return the live tensors that a trained level keeps."""
        tables = {"words": self._tables.words.table, "labels": self._tables.labels.table}
        return tables | with_prefix("network.", self._module.state_dict())

    def state(self) -> dict[str, Tensor]:
        """See `longtail.training.loop.Task.state`."""
        parts = {
            "words": self._tables.words.state(),
            "labels": self._tables.labels.state(),
            "network": dict(self._module.state_dict()),
            "adam": self._adam.state(),
        }
        return joined_parts(parts, ".")
