"""``longtail train``: from a file of points to a model folder."""

from __future__ import annotations

import os
import secrets
import shlex
import tempfile
import time
from contextlib import ExitStack, closing, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.amounts import bytes_text, time_text
from longtail.cli.files import check_inputs, say_what_stayed
from longtail.cli.interrupts import code_of
from longtail.cli.near_names import told_of_spellings
from longtail.cli.notices import notice
from longtail.cli.one_at_a_time import alone_in
from longtail.cli.output import result
from longtail.cli.own_columns import remember_columns, told_columns
from longtail.cli.training_options import (
    add_data_arguments,
    add_points_argument,
    add_recipe_arguments,
    add_recipe_help,
    configured,
    option_hint,
    statistics,
    training_set,
)
from longtail.data.copies import points_of_rows
from longtail.data.repository import read_filter
from longtail.errors import (
    InputError,
    LongtailError,
    ModelFolderError,
    source_name,
)
from longtail.folder_exchange import is_fixed, obstacle_to
from longtail.model_folder import ModelFolder, check_target
from longtail.progress import ProgressBar
from longtail.training.tensorboard import TensorBoard, summary_writer

if TYPE_CHECKING:
    import argparse

    from scipy.sparse import csr_array

    from longtail.data.columns import Columns
    from longtail.data.dataset import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.training.run import Callback

__all__ = ["add_arguments", "option_hint", "run_command"]

EXAMPLE = "longtail train train.jsonl --model model"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_points_argument(parser)
    parser.add_argument(
        "--model",
        metavar="DIR",
        required=True,
        help="the folder to write; a model that is there is replaced in the end",
    )
    add_data_arguments(parser)
    parser.add_argument(
        "--filter",
        metavar="FILE",
        help="pairs `point label` that answers are not to be judged by, where `evaluate --filter` "
        "leaves such pairs out; ids of labels are lines of --labels",
    )
    add_recipe_arguments(parser)
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="start over: delete the checkpoints of interrupted trainings instead of resuming",
    )
    parser.add_argument(
        "--tensorboard", metavar="DIR", help="write curves of the training for TensorBoard"
    )
    add_recipe_help(parser)


def run_command(arguments: argparse.Namespace) -> int:
    """Train, save, and return the exit code."""
    if not _is_later_process():
        return _train(arguments)
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere), redirect_stdout(nowhere):
        return _train(arguments)  # only the first process says something


def _train(arguments: argparse.Namespace) -> int:
    """See `run_command`."""
    started = time.perf_counter()
    # Before some seconds go by with importing the recipe.
    check_inputs(arguments.train, arguments.labels, arguments.label_pairs, arguments.filter)
    columns = told_columns(arguments)
    estimator = _configured(arguments)
    checkpoints = _checkpoint_folder(arguments.model)
    with nullcontext() if _is_later_process() else alone_in(checkpoints, arguments.model):
        stop = _read_train_save(estimator, arguments, columns, checkpoints)
        if stop is not None:
            return code_of(stop)
        if not _is_later_process():
            _summarise(estimator, arguments, time.perf_counter() - started)
    return 0


def _read_train_save(
    estimator: LabelEstimator, arguments: argparse.Namespace, columns: Columns, checkpoints: Path
) -> KeyboardInterrupt | None:
    """Read, train and save; return what has stopped that, if anything."""
    from longtail.training.checkpoints import CheckpointFolder  # noqa: PLC0415 - loads much

    if arguments.fresh:
        CheckpointFolder.clear_all(checkpoints)
    dataset = training_set(arguments, columns)
    set_aside = None if arguments.filter is None else _pairs_set_aside(arguments, dataset)
    dataset, set_aside = points_of_rows(dataset, set_aside)
    notice(statistics(dataset))
    # With a file of labels, their names are as the user wants them.
    if arguments.labels is None and (told := told_of_spellings(dataset.label_space.names or ())):
        notice(told)
    from longtail.cli.training_costs import announce  # noqa: PLC0415 - loads much

    announce(estimator, dataset, ignore_memory=arguments.ignore_memory)
    try:
        _fit(estimator, dataset, set_aside, checkpoints, arguments.tensorboard)
    except KeyboardInterrupt as stop:
        kept = CheckpointFolder.has_any(checkpoints)
        resumes = "the same command resumes from the last checkpoint"
        what = f"{resumes}, a minute or an epoch old at most" if kept else "nothing was kept"
        notice(f"Stopped: {what}.")
        return stop
    remember_columns(estimator.predictor_, columns)
    _save(estimator, arguments.model)
    return None


def _save(estimator: LabelEstimator, target: str) -> None:
    """Save the model; where that fails, save it elsewhere and say where."""
    try:
        estimator.save(target)
    except ModelFolderError as error:
        name = Path(target).resolve().name or "model"
        for place in (Path.cwd(), Path(tempfile.gettempdir())):
            kept = place / f"{name}.{secrets.token_hex(4)}"
            try:
                estimator.save(kept)
            except (LongtailError, OSError):
                continue
            raise ModelFolderError(
                f"{error} The trained model is not lost: it is in {kept}. Move it from there."
            ) from error
        raise


def _configured(arguments: argparse.Namespace) -> LabelEstimator:
    """Make the estimator, and find out what is wrong before any data is read."""
    estimator = configured(arguments)
    if arguments.tensorboard is not None:
        summary_writer()
        _check_curves(Path(arguments.tensorboard))
    return estimator


def _check_curves(folder: Path) -> None:
    """Check that curves can be written, before minutes go by."""
    obstacle = obstacle_to(folder)
    if obstacle is not None:
        raise InputError(
            f"--tensorboard {folder}: {obstacle} is no folder that can be written to. Name another "
            "place, or make that one writable."
        )


def _checkpoint_folder(model: str) -> Path:
    """Check that model and checkpoints can be written, and return the place of the latter."""
    check_target(model)
    target = Path(model).resolve()
    # Beside the model; or within it, where the place beside it is another disk, or not kept.
    folder = target.with_name(f"{target.name}.checkpoint")
    if is_fixed(target):
        folder = target / ".checkpoint"
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"{folder} is where checkpoints would be kept, but it is a file. Move it away, or name "
            "another model folder."
        )
    return folder


def _pairs_set_aside(arguments: argparse.Namespace, dataset: Dataset) -> csr_array:
    """Return the pairs of a filter file, whose labels are ids."""
    if arguments.labels is None and dataset.label_space.names is not None:
        raise InputError(
            f"The pairs of {source_name(arguments.filter)} have ids of labels, but the labels of "
            f"{source_name(arguments.train)} have names. Pass ids and names by --labels FILE."
        )
    return read_filter(arguments.filter, dataset.n_points, dataset.n_labels)


def _fit(
    estimator: LabelEstimator,
    dataset: Dataset,
    set_aside: csr_array | None,
    checkpoints: Path,
    curves: str | None,
) -> None:
    """Train with progress and checkpoints, and curves if wanted."""
    with ExitStack() as stack:
        callbacks: list[Callback] = [stack.enter_context(ProgressBar())]
        if curves is not None and not _is_later_process():
            callbacks.append(stack.enter_context(closing(TensorBoard(curves))))
        estimator.fit_dataset(
            dataset, set_aside=set_aside, callbacks=callbacks, checkpoint_folder=checkpoints
        )


def _is_later_process() -> bool:
    """Tell whether torchrun has started this process beside a first one."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("RANK", "0")) > 0


def _summarise(estimator: LabelEstimator, arguments: argparse.Namespace, seconds: float) -> None:
    """Say what there is now, and what can be done with it."""
    report = estimator.training_report()
    size = sum(ModelFolder.open(arguments.model).sizes.values())
    folder = shlex.quote(arguments.model)
    what = '--text "..."' if estimator.predictor_.vectorizer is not None else "FILE"
    result(
        f"{arguments.recipe} trained in {time_text(seconds)}, at most "
        f"{bytes_text(report['peak_memory_mb'] * 10**6)} of memory; {bytes_text(size)} in "
        f"{arguments.model}"
    )
    result(f"  longtail predict {folder} {what}")
    result(f"  longtail evaluate {folder} TEST")
    result(f"  longtail inspect {folder}")
    say_what_stayed(arguments.model)
