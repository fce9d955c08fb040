"""What the workers share: the job, the clock and the form of an answer.

A worker runs in the environment of the system that it measures. So this file imports only what all
of them have: numpy, scipy and the standard library.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

TOP = 100  # labels in an answer of a batch: R@100 needs them
TOP_OF_ONE = 5  # labels in an answer to one text
N_QUERIES = 1000
QUERY_SECONDS = 15.0
WARM_UP = 16

Ranked: TypeAlias = "tuple[NDArray[np.int32], NDArray[np.float32]]"


@dataclass(frozen=True)
class Job:
    """What the benchmark wants: files, settings, cores, seed."""

    train_points: str  # .npz of sparse rows or .json of texts
    train_labels: str  # .npz
    test_points: str
    train_file: str  # as the user has it, and so is the next
    labels_file: str | None
    filter_file: str | None
    model_folder: str  # measured as the model's size
    scratch_folder: str  # not measured
    settings: dict[str, Any]
    n_threads: int
    seed: int
    train_features: str | None = None  # .npz beside texts, for a system that takes both
    test_features: str | None = None

    @property
    def model(self) -> Path:
        """Where the model goes."""
        return Path(self.model_folder)

    @property
    def scratch(self) -> Path:
        """Where other files go."""
        return Path(self.scratch_folder)


@dataclass(frozen=True)
class TextsWithFeatures:
    """Points for a system that takes both; a slice or one point of them is of the same kind."""

    texts: list[str]
    features: Any  # sparse rows, as many

    def __post_init__(self) -> None:
        if self.features.shape[0] != len(self.texts):
            raise ValueError(f"{len(self.texts)} texts, {self.features.shape[0]} rows of features")

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, place: Any) -> TextsWithFeatures:
        texts = self.texts[place]
        return TextsWithFeatures([texts] if isinstance(texts, str) else texts, self.features[place])


class Model(Protocol):
    """A trained system, loaded from its folder by its constructor."""

    def __init__(self, job: Job) -> None: ...

    def batch(self, points: Any, k: int) -> Any:
        """Answer many points, in the system's own form. Timed."""

    def ranked(self, answer: Any, k: int) -> Ranked:
        """Return what `batch` gave as ids and scores (n, k), -1 and -inf where there is none."""

    def query(self, point: Any) -> Any:
        """Return one point in the form that the system takes."""

    def one(self, query: Any, k: int) -> Any:
        """Answer one point. Timed."""


Step: TypeAlias = "Callable[[Job, Any, Any], None]"


def run_worker(train: Step, model: type[Model], write: Step | None = None) -> None:
    """Do what the command line says: ``WORKER train JOB`` or ``WORKER predict JOB``.

    `write` puts the data into the file that the system wants, which is not timed.
    """
    action, path = sys.argv[1:]
    job = Job(**json.loads(Path(path).read_text(encoding="utf-8")))
    if hasattr(os, "sched_setaffinity"):  # no system may use more cores than it was given
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job.n_threads])
    measured = _train(train, job, write) if action == "train" else _predict(model, job)
    Path(path).with_name(f"{action}.json").write_text(json.dumps(measured), encoding="utf-8")


def _train(train: Step, job: Job, write: Step | None) -> dict[str, float]:
    """Time everything from data as the system wants it to a model on disk."""
    points = read_points(job.train_points, job.train_features)
    labels = read_points(job.train_labels)
    if write is not None:
        write(job, points, labels)
    wall, cpu = time.perf_counter(), cpu_seconds()
    train(job, points, labels)
    return {
        "training_seconds": time.perf_counter() - wall,
        "training_cpu_seconds": cpu_seconds() - cpu,
        "training_memory": peak_memory(),
        "model_size": sum(f.stat().st_size for f in job.model.rglob("*") if f.is_file()),
    }


def _predict(model_type: type[Model], job: Job) -> dict[str, float]:
    """Load, answer all test points at once, then some one by one."""
    points = read_points(job.test_points, job.test_features)
    n_points = points.shape[0] if sparse.issparse(points) else len(points)
    started = time.perf_counter()
    model = model_type(job)
    load_seconds = time.perf_counter() - started
    model.batch(points[:WARM_UP], TOP)

    wall, cpu = time.perf_counter(), cpu_seconds()
    answer = model.batch(points, TOP)
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    ids, scores = model.ranked(answer, TOP)
    np.savez(job.scratch / "predictions.npz", ids=ids, scores=scores)

    rows = np.linspace(0, n_points - 1, min(N_QUERIES, n_points)).astype(int)
    p50, p99 = np.percentile(_milliseconds(model, [model.query(points[i]) for i in rows]), [50, 99])
    return {
        "load_seconds": load_seconds,
        "points_per_second": n_points / wall,
        "prediction_cpu_seconds": cpu,
        "latency_p50_ms": float(p50),
        "latency_p99_ms": float(p99),
        "prediction_memory": peak_memory(),
    }


def _milliseconds(model: Model, queries: Sequence[Any]) -> list[float]:
    """Time queries one by one, as many as there is time for."""
    for query in queries[:WARM_UP]:
        model.one(query, TOP_OF_ONE)
    times = []
    stop = time.perf_counter() + QUERY_SECONDS
    for query in queries:
        before = time.perf_counter()
        model.one(query, TOP_OF_ONE)
        after = time.perf_counter()
        times.append(1e3 * (after - before))
        if after > stop:
            break
    return times


def read_points(path: str, features: str | None = None) -> Any:
    """Return sparse rows, as the older scipy class that all peers know, or a list of texts.

    Texts with a file of `features` are both, as `TextsWithFeatures`.
    """
    if path.endswith(".npz"):
        return sparse.csr_matrix(sparse.load_npz(path))
    texts = json.loads(Path(path).read_text(encoding="utf-8"))
    return texts if features is None else TextsWithFeatures(texts, read_points(features))


def cpu_seconds() -> float:
    """Return the CPU time of this process, its threads and its finished children."""
    return sum(os.times()[:4])


def peak_memory() -> float:
    """Return the largest resident size so far, in bytes, of this process or of a child.

    As `longtail.training.peak_memory`, which the environments of the peers do not have.
    """
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss counts the parent's memory from before exec too
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM:"))
        return float(max(int(line.split()[1]) * 1024, children))
    return float(max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, children))


def empty_ranking(n_points: int, k: int) -> Ranked:
    """Return ids and scores of no labels at all, to be filled."""
    return np.full((n_points, k), -1, np.int32), np.full((n_points, k), -np.inf, np.float32)


def ranked_pairs(rows: Iterable[Sequence[tuple[int, float]]], n_points: int, k: int) -> Ranked:
    """Return lists of (label, score), the best first, as ids and scores."""
    ids, scores = empty_ranking(n_points, k)
    for row, pairs in enumerate(rows):
        for place, (label, score) in enumerate(pairs[:k]):
            ids[row, place], scores[row, place] = label, score
    return ids, scores


def ranked_matrix(matrix: Any, k: int) -> Ranked:
    """Return the k largest entries of each row of a sparse matrix as ids and scores."""
    ids, scores = empty_ranking(matrix.shape[0], k)
    for row in range(matrix.shape[0]):
        entries = slice(matrix.indptr[row], matrix.indptr[row + 1])
        best = np.argsort(-matrix.data[entries], kind="stable")[:k]
        ids[row, : best.size] = matrix.indices[entries][best]
        scores[row, : best.size] = matrix.data[entries][best]
    return ids, scores


def best_of_dense(scores: NDArray[Any], k: int, label_ids: NDArray[Any]) -> Ranked:
    """Return the k best columns of dense scores; `label_ids` says which label a column is."""
    k_found = min(k, scores.shape[1])
    columns = np.argpartition(-scores, k_found - 1, axis=1)[:, :k_found]
    order = np.argsort(-np.take_along_axis(scores, columns, axis=1), axis=1, kind="stable")
    columns = np.take_along_axis(columns, order, axis=1)
    ids, best = empty_ranking(scores.shape[0], k)
    ids[:, :k_found] = label_ids[columns]
    best[:, :k_found] = np.take_along_axis(scores, columns, axis=1)
    return ids, best


def labels_with_points(labels: Any) -> NDArray[np.int64]:
    """Return the labels that some training point has; the others cannot be learnt by anybody."""
    return np.flatnonzero(np.bincount(labels.indices, minlength=labels.shape[1]))
