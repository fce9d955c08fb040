"""How long training will take and how much memory, from the arithmetic, before it starts."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from longtail.data.vectorizer import TextVectorizer
from longtail.kernels.jit import n_usable_cores
from longtail.training.label_table import product_dtype

if TYPE_CHECKING:
    from collections.abc import Mapping

    from longtail.data.dataset import Dataset
    from longtail.recipes.astec import Astec
    from longtail.recipes.estimator import LabelEstimator

__all__ = [
    "Estimate",
    "Workload",
    "available_memory",
    "estimate_training",
    "product_rate",
    "workload_of",
]

SAMPLE = 12_000  # texts that are looked at to learn how long bags are
# Core-seconds for what is bound by memory, measured with 256 dimensions on two cores of a server.
VECTORISE = 4e-7  # an entry of the features
CLUSTER = 1.5e-7  # a label of a point, times the entries of the point
SKETCH = 4.6e-10  # an entry of the features, times the dimension
BAG = 8e-10  # an entry of the features, times the dimension: forward, backward and step
LOGIT = 3.5e-9  # sigmoid and slope of one logit
INDEX = 3e-4 / 256  # putting a vector into a graph, times the dimension
VISIT = 1.8e-6 / 256  # a neighbour asked for, times the dimension
SCORE = 1.4e-9  # re-scoring a shortlisted label, times the dimension
SHARED = 0.3  # share of the hard negatives drawn in a neighbourhood that are distinct
START = 3.0  # seconds: reading compiled code, threads
PROCESS = 600e6  # bytes: interpreter, torch, compiled code
TEMPORARIES = 2.0  # the peak over what is kept, as measured on three data sets


@dataclass(frozen=True, kw_only=True)
class Workload:
    """The size of a training set as training sees it.

    Parameters
    ----------
    n_points, n_features, n_labels : int
    n_nonzero : int
        Entries of the feature matrix.
    n_label_pairs : int
        Entries of the label matrix.
    """

    n_points: int
    n_features: int
    n_labels: int
    n_nonzero: int
    n_label_pairs: int


@dataclass(frozen=True)
class Estimate:
    """What training will take, within a factor of about two; on a GPU, at most.

    Parameters
    ----------
    stages : mapping of str to float
        Seconds of each stage.
    memory : int
        Bytes at the peak.
    """

    stages: Mapping[str, float]
    memory: int

    @property
    def seconds(self) -> float:
        """Wall seconds of all stages."""
        return sum(self.stages.values())


def estimate_training(
    workload: Workload, astec: Astec, *, rate: float | None = None, n_threads: int | None = None
) -> Estimate:
    """Return what training Astec will take.

    Parameters
    ----------
    workload : Workload
    astec : Astec
        Its settings.
    rate : float, optional
        Floating-point operations a second of the machine's matrix products; measured without it.
    n_threads : int, optional
        As the settings say by default.

    Returns
    -------
    Estimate

    Examples
    --------
    >>> from longtail import Astec
    >>> from longtail.training.estimate import Workload, estimate_training
    >>> small = Workload(
    ...     n_points=10_000, n_features=5_000, n_labels=1_000, n_nonzero=10**6, n_label_pairs=20_000
    ... )
    >>> once = estimate_training(small, Astec(), rate=1e11, n_threads=2)
    >>> thrice = estimate_training(small, Astec(n_learners=3), rate=1e11, n_threads=2)
    >>> round(thrice.stages["module I"] / once.stages["module I"])
    3
    """
    threads = n_threads or astec.n_threads or n_usable_cores()
    rate = product_rate(torch.device(astec.device), threads) if rate is None else rate
    stages = {
        "vectoriser": START + workload.n_nonzero * VECTORISE / threads,
        **{
            stage: astec.n_learners * seconds
            for stage, seconds in _learner_stages(workload, astec, rate, threads).items()
        },
    }
    return Estimate(stages, int(_memory(workload, astec)))


def _learner_stages(w: Workload, astec: Astec, rate: float, threads: int) -> dict[str, float]:
    """Return the seconds of each stage of one learner."""
    D = astec.sizes_for(w.n_points).dimension
    n_meta = _n_meta_labels(w, astec)
    sketch = w.n_nonzero * D * SKETCH
    bags = w.n_nonzero * D * BAG / threads
    size = min(astec.shortlist_size, w.n_labels)
    n_visits = astec.n_near_labels + astec.n_near_points
    n_indexed = w.n_labels + (w.n_points if astec.n_near_points else 0)

    def products(width: float) -> float:
        """Return the seconds of an epoch against `width` labels."""
        logits = w.n_points * width
        return 6 * logits * D / rate + logits * LOGIT / threads

    on_pool = products(_pool_size(w, astec))
    seconds = {
        "label clusters": w.n_label_pairs * w.n_nonzero / w.n_points * CLUSTER / threads,
        "module I": sketch + astec.surrogate_epochs * (products(n_meta) + bags),
        "module II": (n_indexed * INDEX + w.n_points * n_visits * VISIT) * D / threads,
        "module IV": astec.extreme_epochs * on_pool,
    }
    if astec.reranker:
        mining = w.n_points * size * D * SCORE / threads
        seconds["re-ranker"] = sketch + mining + astec.reranker_epochs * (on_pool + bags)
    return seconds


def _memory(w: Workload, astec: Astec) -> float:
    """Return the bytes at the peak: all tables, what is known of each point, and one batch."""
    D, batch_size, _ = astec.sizes_for(w.n_points)
    n_networks = 2 if astec.reranker else 1
    tables = 4 * D * (w.n_features + w.n_labels) * n_networks * astec.n_learners
    tables += 4 * D * (_n_meta_labels(w, astec) + w.n_features)  # meta-labels; a table being made
    bags = 2 * 8 * w.n_nonzero  # all points, and the training part of them
    points = 3 * 4 * D * w.n_points  # features, unit features in the graph, a temporary
    shortlists = w.n_points * min(astec.shortlist_size, w.n_labels) * 8
    width = max(_pool_size(w, astec), _n_meta_labels(w, astec))
    batch = 3 * 4 * 2 * batch_size * width
    return PROCESS + TEMPORARIES * (tables + bags + points + shortlists + batch)


def _n_meta_labels(w: Workload, astec: Astec) -> int:
    """Return how many label clusters there will be."""
    half = max(w.n_labels // 2, 1)
    return min(astec.n_meta_labels, 1 << (half.bit_length() - 1))


def _pool_size(w: Workload, astec: Astec) -> float:
    """Return about how many labels a batch on shortlists is scored against."""
    n_points = 2 * astec.sizes_for(w.n_points).batch_size
    own = 0.5 * n_points * w.n_label_pairs / w.n_points
    return min(w.n_labels, own + SHARED * n_points * astec.n_hard + astec.n_random)


def workload_of(dataset: Dataset, settings: LabelEstimator) -> Workload:
    """Return the size of a data set; of texts, from the bags of a sample.

    Parameters
    ----------
    dataset : Dataset
    settings : LabelEstimator
        Says how texts become bags.
    """
    n_labels, n_label_pairs = dataset.n_labels, int(dataset.labels.nnz)
    if dataset.features is not None:
        n_features, n_nonzero = dataset.features.shape[1], int(dataset.features.nnz)
    else:
        n_features, n_nonzero = _bags_of_texts(dataset, settings)
    return Workload(
        n_points=dataset.n_points,
        n_features=n_features,
        n_labels=n_labels,
        n_nonzero=n_nonzero,
        n_label_pairs=n_label_pairs,
    )


def _bags_of_texts(dataset: Dataset, settings: LabelEstimator) -> tuple[int, int]:
    """Return the numbers of features and entries, by the growth of the vocabulary (Heaps' law)."""
    step = max(1, dataset.n_points // SAMPLE)
    some = dataset.texts[::step]  # type: ignore[index]  # the caller has texts
    vectorizer = TextVectorizer(
        word_ngrams=settings.word_ngrams, char_ngrams=settings.char_ngrams, min_df=1
    ).fit(some)
    entries = vectorizer.transform(some)
    n_tokens = [
        int((np.bincount(part.indices, minlength=part.shape[1]) >= settings.min_df).sum())
        for part in (entries[: len(some) // 2], entries)
    ]
    growth = math.log2(n_tokens[1] / n_tokens[0]) if n_tokens[0] else 1.0
    n_features = n_tokens[1] * (dataset.n_points / len(some)) ** min(max(growth, 0.0), 0.9)
    most = settings.max_features or n_features
    return int(min(n_features, most)), int(entries.nnz * dataset.n_points / len(some))


def product_rate(device: torch.device, n_threads: int, seconds: float = 0.2) -> float:
    """Measure the matrix products of training, in floating-point operations a second."""
    torch.set_num_threads(n_threads)
    left = torch.ones(512, 256, dtype=product_dtype(device), device=device)
    right = torch.ones(256, 4096, dtype=left.dtype, device=device)
    float((left @ right)[0, 0])  # the first product prepares the library, and on a GPU waits for it
    n_products, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        float((left @ right)[0, 0])
        n_products += 1
    return 2.0 * n_products * left.numel() * right.shape[1] / elapsed


def available_memory() -> int:
    """Return how many bytes this process can still take, as far as the system tells."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path, marker in (("/proc/meminfo", "MemAvailable:"), ("/sys/fs/cgroup/memory.max", "")):
        try:
            text = Path(path).read_text(encoding="ascii")
        except OSError:
            continue  # another system, or no such limit
        words = text.partition(marker)[2].split() if marker else text.split()
        if words and words[0].isdecimal():
            limits.append(int(words[0]) * (1024 if marker else 1))
    return min(limits)
