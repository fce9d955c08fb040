"""Progress of training for people: a bar a stage, or a line an epoch where nobody watches."""

from __future__ import annotations

import io
import math
import shutil
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Self

from tqdm import tqdm

from longtail.log import heard_by

if TYPE_CHECKING:
    from types import TracebackType
    from typing import TextIO

    from longtail.training.run import EpochReport

__all__ = ["ProgressBar", "bar"]


def bar(
    title: str, total: int | None, *, unit: str, initial: int = 0, stream: TextIO | None = None
) -> Any:
    """Return a tqdm bar that is silent where the stream is no terminal.

    Parameters
    ----------
    title : str
    total : int or None
        None where it is not known.
    unit : str
    initial : int
        How much was done before.
    stream : text stream, optional
        Standard error by default.

    Examples
    --------
    >>> import io
    >>> from longtail.progress import bar
    >>> with bar("predict", 10, unit=" points", stream=io.StringIO()) as shown:
    ...     shown.update(10)
    """
    stream = _standard_error() if stream is None else stream
    # Unlike tqdm's own guess, this is 80 by 24 where a terminal does not tell: tqdm shows nothing.
    size = shutil.get_terminal_size()
    return tqdm(
        total=total,
        initial=initial,
        desc=title,
        unit=unit,
        file=stream,
        disable=not stream.isatty(),
        ncols=min(size.columns, 100),
        nrows=size.lines,
    )


class ProgressBar:
    """A `Callback` that shows each stage with its loss and the time it still needs.

    On a terminal each stage has a bar; into a file or a pipe, each epoch has a line. A stage that
    has no batches to count has a line with its time.

    Parameters
    ----------
    stream : text stream, optional
        Standard error by default.

    Examples
    --------
    >>> import io
    >>> from longtail.progress import ProgressBar
    >>> from longtail.training.run import EpochReport
    >>> stream = io.StringIO()
    >>> with ProgressBar(stream) as progress:
    ...     progress.on_stage("search", None)
    ...     progress.on_stage("search", 12.2)
    ...     progress.on_batch("module I", 4, 8, 12.5)
    ...     progress.on_epoch(EpochReport("module I", 1, 2, 12.5))
    >>> print(stream.getvalue(), end="")
    search ... 12 s
    module I: resumes after 3 of 8 batches
    module I: epoch 1 of 2, loss 12.5, 0 s left
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = _standard_error() if stream is None else stream
        self._shows_bar = self._stream.isatty()
        self._stage = ""
        self._open_line = ""  # the name of a stage that was written, and nothing after it yet
        self._bar: Any = None
        self._loss = math.nan
        self._first = 0  # batches that an earlier run had done
        self._done = self._total = 0
        self._started = 0.0
        self._stack = ExitStack()

    def on_stage(self, stage: str, seconds: float | None) -> None:
        """Say what is done now, as not every stage has batches to count, and how long it took.

        How long, unless batches and epochs were shown.
        """
        if seconds is None:
            self.close()
            if stage == self._stage:  # that of another training, or of one that was stopped
                self._stage = ""
            self._open(f"{stage} ...")
        elif self._open_line:
            self._open_line = ""
            self._write(f" {seconds:,.0f} s")

    def on_batch(self, stage: str, done: int, total: int, loss: float | None) -> None:
        """Show that `done` of the `total` batches of a stage are behind."""
        if stage != self._stage:
            self._begin(stage, done - 1, total)
        if loss is not None:
            # A single batch is noisy: follow it slowly.
            self._loss = loss if math.isnan(self._loss) else 0.9 * self._loss + 0.1 * loss
        if self._bar is not None:
            if not math.isnan(self._loss):
                self._bar.set_postfix_str(f"loss {self._loss:.4g}", refresh=False)
            self._bar.update(done - self._done)
        self._done = done

    def on_epoch(self, report: EpochReport) -> None:
        """Write the epoch's line where there is no bar, and end the bar with the stage."""
        stage, epoch, n_epochs, loss, quality = report
        if self._bar is None:
            self.close()
            per_batch = (time.perf_counter() - self._started) / max(self._done - self._first, 1)
            left = tqdm.format_interval(per_batch * (self._total - self._done))
            left = left if self._total > self._done and left != "00:00" else "0 s"
            found = f"loss {loss:.4g}" + ("" if quality is None else f", quality {quality:.4g}")
            self._write(f"{stage}: epoch {epoch} of {n_epochs}, {found}, {left} left")
        elif epoch == n_epochs:
            self.close()

    def say(self, line: str) -> None:
        """Write a line of somebody else's, which neither a bar nor an open line must spoil."""
        if self._bar is not None:
            self._bar.write(line, file=self._stream)
            return
        still_open = self._open_line
        self.close()
        self._write(line)
        if still_open:
            self._open(still_open)

    def close(self) -> None:
        """End the bar or the line, if there is one."""
        if self._open_line:
            self._open_line = ""
            self._write("")
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        """Have what the library says shown between the lines of the progress."""
        self._stack.enter_context(heard_by(self.say))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        self._stack.close()

    def _begin(self, stage: str, already_done: int, total: int) -> None:
        """Start the bar of a stage, further along if an earlier run had begun it."""
        if self._shows_bar or already_done:
            self.close()  # else the line of the stage stays open: there may be no epochs to tell of
        self._stage, self._loss, self._started = stage, math.nan, time.perf_counter()
        self._first = self._done = already_done
        self._total = total
        if already_done:
            self._write(f"{stage}: resumes after {already_done:,} of {total:,} batches")
        if self._shows_bar:
            self._bar = bar(
                stage, total, unit=" batches", initial=already_done, stream=self._stream
            )

    def _open(self, line: str) -> None:
        """Begin a line."""
        self._stream.write(line)
        self._stream.flush()
        self._open_line = line

    def _write(self, line: str) -> None:
        """Write a line at once: a log may be followed."""
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _standard_error() -> TextIO:
    """Return the stream; one that leads nowhere for a process without any, such as a service."""
    return io.StringIO() if sys.stderr is None else sys.stderr
