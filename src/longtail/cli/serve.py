"""``longtail serve``: answer over HTTP, with a page to try the model."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.cli.interrupts import hang_ups_held_back
from longtail.cli.settings import documented_parameters
from longtail.errors import InputError, needs_extra
from longtail.predictor import load
from longtail.serve.limits import Limits, fault_of
from longtail.serve.live_model import check_reads_texts

if TYPE_CHECKING:
    import argparse

__all__ = ["add_arguments", "run_command"]

EXAMPLE = "longtail serve model --port 8000"
_ROOT_PATH = re.compile(r"[\w.~/-]*", re.ASCII)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="DIR", type=Path, help="a model folder")
    parser.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on; only this machine can reach that by default (%(default)s)",
    )
    parser.add_argument(
        "--port",
        metavar="N",
        type=int,
        default=8000,
        help="port to listen on (%(default)s); 0 picks a free one",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=int,
        default=1,
        help="processes, which share the model (%(default)s)",
    )
    parser.add_argument(
        "--root-path",
        default="",
        metavar="PATH",
        help="path at which a proxy serves it, such as /labels",
    )
    parser.add_argument(
        "--keep-alive",
        metavar="SECONDS",
        type=float,
        default=5.0,
        help="how long a connection may be silent after an answer; longer than a proxy keeps it "
        "(%(default)s)",
    )
    texts = documented_parameters(Limits)
    for limit in fields(Limits):
        parser.add_argument(
            _option_of(limit.name),
            dest=limit.name,
            metavar="N",
            type=type(limit.default),
            default=limit.default,
            help=f"{_as_help(texts.get(limit.name, ''))} ({limit.default:,})",
        )


@hang_ups_held_back()
def run_command(arguments: argparse.Namespace) -> int:
    """Serve until stopped, and return the exit code."""
    limits = {limit.name: getattr(arguments, limit.name) for limit in fields(Limits)}
    for name, most in limits.items():
        _check_number(_option_of(name), name, most)
    _check_number("--workers", "workers", arguments.workers)
    _check_number("--keep-alive", "keep_alive", arguments.keep_alive)
    if not 0 <= arguments.port <= 65_535:
        raise InputError(f"--port must be between 0 and 65535, got {arguments.port}.")
    root_path = _checked_root_path(arguments.root_path)
    check_reads_texts(load(arguments.model), str(arguments.model))
    try:
        from longtail.serve.runner import ServerSettings, serve  # noqa: PLC0415  # needs the extra
    except ModuleNotFoundError as error:
        raise needs_extra("`longtail serve`", error, "serve") from error
    settings = ServerSettings(
        host=arguments.host,
        port=arguments.port,
        workers=arguments.workers,
        root_path=root_path,
        keep_alive=arguments.keep_alive,
    )
    return serve(arguments.model, settings, Limits(**limits))


def _as_help(text: str) -> str:
    """Return the first sentence of a docstring's text as options are described."""
    sentence = text.partition(". ")[0].removesuffix(".")
    return sentence[:1].lower() + sentence[1:]


def _option_of(limit: str) -> str:
    """Return the option that sets a limit."""
    return f"--max-{limit.replace('_', '-')}"


def _check_number(option: str, name: str, value: float) -> None:
    """Raise InputError for what `fault_of` finds fault with."""
    fault = fault_of(name, value)
    if fault is not None:
        raise InputError(f"{option} {fault}.")


def _checked_root_path(given: str) -> str:
    """Return the path with a slash before and none behind it; none of its own is none."""
    if not _ROOT_PATH.fullmatch(given):
        raise InputError(
            f"--root-path must be a path of letters, digits, -, _, ., ~ and /, such as /labels, "
            f"got {given!r}."
        )
    inner = given.strip("/")
    return f"/{inner}" if inner else ""
