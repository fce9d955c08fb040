"""Synthetic data of the shapes of the paper's Table 3, and what a recipe takes to learn them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from benchmarks.command import heading
from longtail import Dataset
from longtail.data import InputWarning
from longtail.data.label_space import LabelSpace
from longtail.metrics import precision_at_k
from longtail.recipes.names import recipe
from longtail.training.peak_memory import peak_memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from longtail.training.run import EpochReport

    Ids = NDArray[np.int32]

__all__ = ["SHAPES", "Shape", "World", "report", "synthetic"]

OWN_TOKENS = 24  # of a topic; half of a point's tokens are among them
LEAST_LABELS = 8  # of a topic; otherwise four times as many as a point has
MOST_TEST_POINTS = 20_000
COLUMNS = (
    "shape",
    "points",
    "labels",
    "training, s",
    "CPU s",
    "memory, MB",
    "training points / s",
    "predictions / s",
    "model, MB",
    "P@1",
)
BLOCK = 20_000  # points that are drawn at a time


class Shape(NamedTuple):
    """A row of Table 3.

    Attributes
    ----------
    n_points, n_features, n_labels, n_test_points : int
    labels_a_point, tokens_a_point : float
    """

    n_points: int
    n_features: int
    n_labels: int
    n_test_points: int
    labels_a_point: float
    tokens_a_point: float

    def cut(self, share: float) -> Shape:
        """Return the shape of a part: of points and labels that share, of tokens its root."""
        return self._replace(
            n_points=max(int(share * self.n_points), 100),
            n_features=max(int(share**0.5 * self.n_features), 100),
            n_labels=max(int(share * self.n_labels), 50),
            n_test_points=max(int(share * self.n_test_points), 100),
        )


# The proprietary Q2B-3M is left out, for the paper gives neither its labels nor its tokens a point.
SHAPES = {
    "WikiSeeAlsoTitles-350K": Shape(629_418, 91_414, 352_072, 162_491, 2.33, 2.73),
    "WikiTitles-500K": Shape(1_699_722, 185_479, 501_070, 722_678, 4.89, 2.73),
    "AmazonTitles-670K": Shape(485_176, 66_666, 670_091, 150_875, 5.39, 5.26),
    "AmazonTitles-3M": Shape(1_517_620, 165_431, 2_812_281, 655_479, 35.06, 7.58),
}


def synthetic(shape: Shape, seed: int) -> tuple[Dataset, Dataset]:
    """Draw training and test points.

    Each point is about one topic. Half of its tokens are among the topic's few, the others any;
    frequencies of both fall as 1 / rank. Its labels are among those of the topic, distinct, the
    first ones likelier. So labels can be learnt, and most are rare.
    """
    world = World(shape, np.random.default_rng(seed))
    n_test = min(shape.n_test_points, MOST_TEST_POINTS)
    return world.points(shape.n_points), world.points(n_test)


class World:
    """Topics with their tokens, ``own_tokens`` (n_topics, 24) int32, and their labels."""

    def __init__(self, shape: Shape, random: np.random.Generator) -> None:
        self._shape, self._random = shape, random
        size = min(max(LEAST_LABELS, round(4 * shape.labels_a_point)), shape.n_labels)
        self._n_topics = shape.n_labels // size  # what is left over goes to the last one
        self._starts = size * np.arange(self._n_topics)
        self._sizes = np.diff(self._starts, append=shape.n_labels)
        own = random.integers(0, shape.n_features, (self._n_topics, OWN_TOKENS))
        self.own_tokens = own.astype(np.int32)

    def points(self, n_points: int) -> Dataset:
        """Draw a data set."""
        blocks = [BLOCK] * (n_points // BLOCK) + [n_points % BLOCK]
        tokens, labels = zip(*(self._block(size) for size in blocks if size), strict=True)
        n_features, n_labels = self._shape.n_features, self._shape.n_labels
        return Dataset(
            None,
            _rows(tokens, n_features),
            _rows(labels, n_labels),
            LabelSpace(n_labels),
        )

    def topic_of(self, label: int) -> int:
        """Return the topic of a label."""
        return min(label // int(self._sizes[0]), self._n_topics - 1)

    def _block(self, size: int) -> tuple[tuple[Ids, Ids], tuple[Ids, Ids]]:
        """Draw tokens and labels of some points, each as lengths and ids."""
        topics = self._random.integers(0, self._n_topics, size)
        return self._tokens(topics), self._labels(topics)

    def _tokens(self, topics: NDArray[np.int64]) -> tuple[Ids, Ids]:
        """Draw tokens: the even ones of the topic, the odd ones of all."""
        lengths = 1 + self._random.poisson(self._shape.tokens_a_point - 1, len(topics))
        shape = (len(topics), int(lengths.max()))
        own = np.take_along_axis(
            self.own_tokens[topics], self._ranks(OWN_TOKENS, shape).astype(np.int64), axis=1
        )
        tokens = np.where(np.arange(shape[1]) % 2, self._ranks(self._shape.n_features, shape), own)
        return _cut(tokens, lengths)

    def _ranks(self, n: int, shape: tuple[int, int]) -> Ids:
        """Draw numbers below n whose frequency falls as 1 / (1 + number)."""
        drawn = (n + 1) ** self._random.random(shape, np.float32) - 1
        return np.minimum(drawn.astype(np.int32), n - 1)

    def _labels(self, topics: NDArray[np.int64]) -> tuple[Ids, Ids]:
        """Draw distinct labels, in an order that favours the first ones of the topic."""
        sizes = self._sizes[topics]
        lengths = np.minimum(
            1 + self._random.poisson(self._shape.labels_a_point - 1, len(topics)), sizes
        )
        ranks = np.arange(self._sizes.max())
        keys = self._random.standard_exponential((len(topics), len(ranks)), np.float32)
        keys *= np.sqrt(1 + ranks, dtype=np.float32)  # weights 1 / sqrt(rank), without replacement
        keys[ranks >= sizes[:, None]] = np.inf
        labels = self._starts[topics][:, None] + np.argsort(keys, axis=1)[:, : lengths.max()]
        return _cut(labels.astype(np.int32), lengths)


def _cut(ids: Ids, lengths: NDArray[np.int64]) -> tuple[Ids, Ids]:
    """Return lengths, and the first so many ids of each row end to end."""
    return lengths.astype(np.int32), ids[np.arange(ids.shape[1]) < lengths[:, None]]


def _rows(parts: tuple[tuple[Ids, Ids], ...], n_columns: int) -> csr_array:
    """Lay rows end to end as a matrix of ones."""
    lengths = np.concatenate([lengths for lengths, _ in parts])
    ids = np.concatenate([ids for _, ids in parts])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    rows = csr_array((np.ones(len(ids), np.float32), ids, starts), (len(lengths), n_columns))
    rows.sum_duplicates()
    rows.data[:] = 1
    return rows


def report(
    names: Sequence[str], share: float, recipe_name: str, settings: dict[str, Any]
) -> Iterator[str]:
    """Train and predict each shape in a process of its own, and yield the lines of a table."""
    yield from heading(*COLUMNS).splitlines()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            train, test = synthetic(SHAPES[name].cut(share), 0)
            facts = [name, f"{train.n_points:,}", f"{train.n_labels:,}"]
            train.save(Path(folder) / "train")
            test.save(Path(folder) / "test")
            del train, test
            found = _measured(Path(folder), recipe_name, settings)
        *figures, precision = found
        cells = [*facts, *(f"{value:,.0f}" for value in figures), f"{precision:.2f}"]
        yield f"| {' | '.join(cells)} |"


def _measured(folder: Path, recipe_name: str, settings: dict[str, Any]) -> list[float]:
    """Run `_train_and_predict` in a new process: the peak of memory is of it alone."""
    code = (
        "import sys, json; from benchmarks.paper.scale import train_and_predict;"
        "train_and_predict(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))"
    )
    command = [sys.executable, "-c", code, str(folder), recipe_name, json.dumps(settings)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    values: list[float] = json.loads(done.stdout)
    return values


class _Told:
    """Say on the error stream how training goes."""

    def on_stage(self, stage: str, seconds: float | None) -> None:
        """Say that a stage begins, or how long it took."""
        end = "" if seconds is None else f": {seconds:.0f} s, {peak_memory() / 2**20:,.0f} MB"
        self._say(f"{stage}{end or ' ...'}")

    def on_batch(self, stage: str, done: int, total: int, loss: float | None) -> None:
        """Say how far it is, now and then."""
        if done % max(total // 10, 1) == 0:
            measured = "" if loss is None else f", loss {loss:.4g}"
            self._say(
                f"{stage}: {done} of {total} batches, {peak_memory() / 2**20:,.0f} MB{measured}"
            )

    def on_epoch(self, report: EpochReport) -> None:
        """Say what was lost."""
        stage, epoch, n_epochs, loss, _ = report
        self._say(f"{stage}: epoch {epoch} of {n_epochs}, loss {loss:.3f}")

    def _say(self, line: str) -> None:
        sys.stderr.write(f"{time.process_time():7.0f} {line}\n")
        sys.stderr.flush()


def train_and_predict(folder: str, recipe_name: str, settings: dict[str, Any]) -> None:
    """Train on the saved data, save the model, predict, and print the figures as JSON."""
    warnings.simplefilter("ignore", InputWarning)
    train, test = (Dataset.open(Path(folder) / part) for part in ("train", "test"))
    started, cpu = time.perf_counter(), time.process_time()
    estimator = recipe(recipe_name)(**settings).fit_dataset(train, callbacks=[_Told()])
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    started = time.perf_counter()
    found, _ = estimator.predict_topk(test.features, 5)
    predictions = test.n_points / (time.perf_counter() - started)
    precision = 100 * precision_at_k(found, test.labels, 1)
    estimator.save(Path(folder) / "model")
    size = sum(path.stat().st_size for path in (Path(folder) / "model").iterdir())
    peak, speed = peak_memory() / 2**20, train.n_points / wall
    print(json.dumps([wall, cpu, peak, speed, predictions, size / 2**20, precision]))
