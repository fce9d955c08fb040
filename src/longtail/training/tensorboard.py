"""How training goes, as TensorBoard shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    from torch.utils.tensorboard import SummaryWriter

    from longtail.training.run import EpochReport

__all__ = ["TensorBoard", "summary_writer"]


def summary_writer() -> type[SummaryWriter]:
    """Return what writes the files of events, or say that it is missing, before it is needed.

    Raises
    ------
    MissingExtraError
        If tensorboard, or torch, is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"Curves for TensorBoard need {error.name}. Install it with `pip install "
            "'longtail[tensorboard]'`, or train without them."
        ) from error
    return SummaryWriter


class TensorBoard:
    """A callback that writes losses and times as files of events for TensorBoard.

    Each stage has a curve of its batches' losses, one of its epochs' mean losses, one of their
    qualities on held-out points, with early stopping, and the seconds that it took.

    Parameters
    ----------
    folder : str or Path
        Of this run; that of all runs is what ``tensorboard --logdir`` wants.

    Raises
    ------
    MissingExtraError
        If tensorboard, or torch, is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        self._writer = summary_writer()(str(folder))

    def on_stage(self, stage: str, seconds: float | None) -> None:
        """Write how long a stage took: one without batches has its time alone."""
        if seconds is not None:
            self._write("seconds", stage, seconds, 0)

    # The loop tells every callback how many batches there are.
    def on_batch(self, stage: str, done: int, total: int, loss: float | None) -> None:  # noqa: ARG002
        """Write the loss of a batch, where it was measured."""
        if loss is not None:
            self._write("loss of a batch", stage, loss, done)

    def on_epoch(self, report: EpochReport) -> None:
        """Write the mean loss of an epoch and its quality, and bring all to the disk."""
        self._write("loss of an epoch", report.stage, report.loss, report.epoch)
        if report.quality is not None:
            self._write("quality of an epoch", report.stage, report.quality, report.epoch)
        self._writer.flush()

    def close(self) -> None:
        """End the file."""
        self._writer.close()

    def _write(self, what: str, stage: str, value: float, step: int) -> None:
        """Write a point of a curve."""
        self._writer.add_scalar(f"{what}/{stage}", value, step)
