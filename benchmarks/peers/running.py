"""One run of one candidate: train, predict, evaluate, or say what went wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError, LongtailError
from longtail.metrics import evaluate

from .workers.measuring import Job

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .data import Task
    from .systems import Candidate

__all__ = ["Run", "Settings", "WorkerFailedError", "call_worker", "carried_out", "run_once"]

ROOT = Path(__file__).parents[2]
WORKERS = "benchmarks.peers.workers"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
NOT_INHERITED = {"PYTHONDONTWRITEBYTECODE"}  # each keeps bytecode, as it does for who uses it
LONGEST_REASON = 160


class WorkerFailedError(LongtailError):
    """Says in one line why a worker gave no result."""


@dataclass(frozen=True)
class Settings:
    """What is the same for all runs."""

    n_threads: int
    time_limit: float  # seconds, training and prediction together
    work_folder: Path


@dataclass(frozen=True)
class Run:
    """What one run measured, and why it did not measure the rest."""

    system: str
    variant: str | None
    name: str
    seed: int
    failure: str | None = None
    values: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return a flat object."""
        facts = asdict(self)
        return {key: value for key, value in facts.items() if key != "values"} | self.values

    @classmethod
    def of_json(cls, flat: Mapping[str, Any]) -> Run:
        """Make it again from that object."""
        names = [one.name for one in fields(cls) if one.name != "values"]
        values = {key: value for key, value in flat.items() if key not in names}
        return cls(**{name: flat[name] for name in names}, values=values)


def run_once(candidate: Candidate, task: Task, python: Path, seed: int, settings: Settings) -> Run:
    """Train and predict in the candidate's environment, and evaluate here."""
    about = (candidate.system.name, candidate.variant, candidate.name, seed)
    values: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=settings.work_folder) as folder:
        try:
            for some in _measured(candidate, task, python, seed, settings, Path(folder)):
                values |= some
        except WorkerFailedError as error:
            return Run(*about, failure=str(error), values=values)
    return Run(*about, values=values)


def _measured(
    candidate: Candidate, task: Task, python: Path, seed: int, settings: Settings, folder: Path
) -> Iterator[dict[str, float]]:
    """Yield what a run measures, step by step, under the names of the table's columns."""
    takes_both = candidate.system.takes == "text and features"
    points = task.points_for(None if takes_both else candidate.variant)
    beside = task.points_for(candidate.variant) if takes_both else None
    files = task.files
    job = Job(
        train_points=str(points.train_points),
        train_labels=str(task.train_labels),
        test_points=str(points.test_points),
        train_file=str(files.train.resolve()),
        labels_file=str(files.labels.resolve()) if files.labels else None,
        filter_file=str(files.train_filter.resolve()) if files.train_filter else None,
        model_folder=str(folder / "model"),
        scratch_folder=str(folder),
        settings=dict(candidate.system.settings),
        n_threads=settings.n_threads,
        seed=seed,
        train_features=str(beside.train_points) if beside else None,
        test_features=str(beside.test_points) if beside else None,
    )
    yield from carried_out(job, candidate.system.worker, python, settings.time_limit)
    yield _metrics(task, folder / "predictions.npz")


def carried_out(
    job: Job, worker: str, python: Path, time_limit: float
) -> Iterator[dict[str, float]]:
    """Yield what a worker measures while it trains, and then while it predicts.

    Raises
    ------
    WorkerFailedError
        If it fails, or both take more than `time_limit` seconds.
    """
    path = job.scratch / "job.json"
    path.write_text(json.dumps(asdict(job)), encoding="utf-8")
    deadline = time.monotonic() + time_limit
    for action in ("train", "predict"):
        command = [str(python), "-m", f"{WORKERS}.{worker}", action, str(path)]
        try:
            call_worker(command, job.n_threads, deadline, job.scratch)
        except TimeoutError:
            what = f"not done within {time_limit:,.0f} s (while it had to {action})"
            raise WorkerFailedError(what) from None
        yield json.loads((job.scratch / f"{action}.json").read_text(encoding="utf-8"))


def call_worker(command: list[str], n_threads: int, deadline: float, folder: Path) -> None:
    """Run a worker to its end.

    Raises
    ------
    WorkerFailedError
        If it cannot start, or fails, with the last line that it wrote to standard error.
    TimeoutError
        If it is not done by `deadline`, in seconds of `time.monotonic`; it is ended then.
    """
    log = folder / "errors.log"
    with log.open("wb") as errors:
        try:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=_environment(command[0], n_threads),
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerFailedError(f"{command[0]} cannot be run: {error.strerror}") from error
        try:
            code = process.wait(max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
        finally:
            _end(process)
    if code:
        raise WorkerFailedError(_reason(code, log.read_text(encoding="utf-8", errors="replace")))


def _environment(python: str, n_threads: int) -> dict[str, str]:
    """Return the variables of a worker; a peer has packages of its own, and finds no others."""
    dropped = NOT_INHERITED if python == sys.executable else NOT_INHERITED | {"PYTHONPATH"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | dict.fromkeys(THREAD_VARIABLES, str(n_threads))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a worker that is still there, with all that it started; Ctrl-C comes here too."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _reason(code: int, errors: str) -> str:
    """Return in one line why a worker failed."""
    lines = [line.strip() for line in errors.replace("\r", "\n").split("\n")]
    said = [line for line in lines if line and not line.startswith("note:")]
    died = f"killed by {signal.Signals(-code).name}" if code < 0 else ""
    reason = ": ".join(part for part in (died, said[-1] if said else "") if part)
    return (reason or f"ended with code {code}")[:LONGEST_REASON]


def _metrics(task: Task, path: Path) -> dict[str, float]:
    """Evaluate predictions; the same measure for all."""
    with np.load(path) as predictions:
        ids, scores = predictions["ids"], predictions["scores"]
    if np.isnan(scores).any():
        raise WorkerFailedError("its scores are not numbers")
    try:
        return evaluate(
            ids,
            scores,
            task.truth,
            train_label_counts=task.train_label_counts,
            n_train_points=task.n_train_points,
            recall_ks=(10, 100),
            set_aside=task.set_aside,
        )
    except InputError as error:
        raise WorkerFailedError(f"its predictions cannot be evaluated: {error}") from error
