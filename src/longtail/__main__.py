"""The command ``longtail``, and ``python -m longtail``."""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]

STOPPED_BY_CTRL_C = 130


def main() -> int:
    """Run the command of this process; Ctrl-C is quiet from here on, not only within it.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> from longtail.__main__ import main
    >>> with patch("sys.argv", ["longtail", "predict", "no-such-model", "--text", "red wine"]):
    ...     main()
    2
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    from longtail.cli import main as run  # noqa: PLC0415 - Ctrl-C here would be a traceback

    signal.signal(signal.SIGINT, before)
    return run()


def _leave(*_: object) -> None:
    """End the process, in which nothing has been done yet."""
    os.write(2, b"Stopped.\n")
    os._exit(STOPPED_BY_CTRL_C)


if __name__ == "__main__":  # a started worker imports this file, too
    sys.exit(main())
