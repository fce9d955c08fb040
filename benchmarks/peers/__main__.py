"""Train and measure longtail and its peers on one data set, and write one table.

python -m benchmarks.peers --data FOLDER --out OUT
python -m benchmarks.peers --train train.jsonl.gz --test test.jsonl.gz --labels labels.txt --out OUT
"""

from __future__ import annotations

import os
import platform
import shlex
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.command import parser_of, positive, run
from longtail.data import InputWarning
from longtail.errors import InputError, LongtailError
from longtail.kernels.jit import n_usable_cores

from .data import Files, files_in, prepare
from .environments import EnvironmentFailedError, installed_packages, python_of
from .report import write_report
from .running import Run, Settings, run_once
from .systems import SYSTEMS, Candidate, System, candidates, refusal, with_encoder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from .data import Task


@dataclass
class Clock:
    """Says on standard error what happens, and when it did."""

    started: float = field(default_factory=time.monotonic)

    def say(self, line: str) -> None:
        """Write one line."""
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        print(f"[{minutes:3d}:{seconds:02d}] {line}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.threads > n_usable_cores():
        parser.error(
            f"argument --threads: at most {n_usable_cores()} on this machine, got {given.threads}"
        )
    warnings.simplefilter("ignore", InputWarning)
    try:
        _check_encoder(given.encoder)
        chosen = _chosen(given.systems, quick=given.quick)
        _compare(given, _files(given), [with_encoder(one, given.encoder) for one in chosen])
    except LongtailError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print((given.out / "table.md").read_text(encoding="utf-8"))
    return 0


def _parser() -> argparse.ArgumentParser:
    """Return the command line."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="a folder with train.*, test.* and labels.*"
    )
    parser.add_argument(
        "--train",
        type=Path,
        metavar="FILE",
        help="points to learn from, in any format of `longtail train`",
    )
    parser.add_argument(
        "--test", type=Path, metavar="FILE", help="points to ask, in any such format"
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="names of labels that are ids: line number = id"
    )
    parser.add_argument(
        "--train-filter",
        type=Path,
        metavar="FILE",
        help="pairs that longtail is told of: `longtail train --filter`",
    )
    parser.add_argument(
        "--test-filter",
        type=Path,
        metavar="FILE",
        help="pairs `point label` that are left out of all predictions",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="OUT", help="the folder that the report goes to"
    )
    parser.add_argument(
        "--systems",
        nargs="+",
        metavar="NAME",
        help=f"names or beginnings of names: {', '.join(system.name for system in SYSTEMS)}",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="one kind of features a system, the likely best; no slow ensembles",
    )
    parser.add_argument(
        "--repeats", type=positive(int), default=1, metavar="N", help="runs of each, in turns (1)"
    )
    parser.add_argument(
        "--threads",
        type=positive(int),
        default=min(2, n_usable_cores()),
        metavar="N",
        help="cores that a system may use (2)",
    )
    parser.add_argument(
        "--time-limit",
        type=positive(float),
        default=600,
        metavar="SECONDS",
        help="of one run (600)",
    )
    parser.add_argument(
        "--encoder",
        type=Path,
        metavar="FOLDER",
        help="of a pretrained transformer, for pecos-xr-transformer",
    )
    parser.add_argument(
        "--environments",
        type=Path,
        default=Path.home() / ".cache" / "longtail-benchmarks",
        metavar="DIR",
        help="where the peers are installed and kept (~/.cache/longtail-benchmarks)",
    )
    return parser


def _files(given: argparse.Namespace) -> Files:
    """Return the data that the user named."""
    if given.data is not None:
        if given.train or given.test or given.labels:
            raise InputError("--data names all files. Pass it, or --train, --test and --labels.")
        files = files_in(given.data)
        return replace(files, train_filter=given.train_filter, test_filter=given.test_filter)
    if given.train is None or given.test is None:
        raise InputError("Pass --data FOLDER, or --train FILE and --test FILE.")
    return Files(given.train, given.test, given.labels, given.train_filter, given.test_filter)


def _check_encoder(folder: Path | None) -> None:
    """Refuse a folder that holds no transformer before anything is trained."""
    if folder is not None and not (folder / "config.json").is_file():
        raise InputError(
            f"{folder} is not a transformer folder: config.json not found. Pass one as --encoder."
        )


def _chosen(names: Sequence[str] | None, *, quick: bool) -> list[System]:
    """Return the systems that the user wants."""
    if names is None:
        return [system for system in SYSTEMS if system.in_quick or not quick]
    unknown = [n for n in names if not any(s.name.startswith(n) for s in SYSTEMS)]
    if unknown:
        known = ", ".join(system.name for system in SYSTEMS)
        raise InputError(f"There is no system {unknown[0]!r}. The systems are {known}.")
    return [system for system in SYSTEMS if system.name.startswith(tuple(names))]


def _compare(given: argparse.Namespace, files: Files, systems: list[System]) -> None:
    """Run everything and keep the report up to date."""
    clock = Clock()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.out.resolve(), prefix=".work-") as folder:
        task = prepare(files, Path(folder))
        clock.say(
            f"{task.n_train_points:,} training points, {task.n_labels:,} labels; "
            f"features: {', '.join(task.variants)}"
        )
        rows = candidates(systems, task, quick=given.quick)
        pythons, refused = _environments(rows, task, given.environments, clock)
        settings = Settings(given.threads, given.time_limit, Path(folder))
        about = _about(given, task, systems)
        runs = list(refused)
        for run in _in_turns(rows, task, pythons, settings, given.repeats, clock):
            runs.append(run)
            write_report(given.out, runs, about)  # so that nothing is lost if it is stopped
        write_report(given.out, runs, about)
    clock.say(f"Done: {given.out / 'table.md'}")


def _environments(
    rows: list[Candidate], task: Task, folder: Path, clock: Clock
) -> tuple[dict[str, Path], list[Run]]:
    """Make the environments; return them by system, and why some systems cannot run."""
    pythons: dict[str, Path] = {}
    refused = []
    for system in dict.fromkeys(candidate.system for candidate in rows):
        try:
            reason = refusal(system, task)
            if reason is None:
                clock.say(f"environment of {system.name}")
                pythons[system.name] = python_of(system.environment, folder)
        except EnvironmentFailedError as error:
            reason = str(error)
        if reason is not None:
            refused.append(Run(system.name, None, system.name, 0, failure=reason))
    return pythons, refused


def _in_turns(
    rows: list[Candidate],
    task: Task,
    pythons: dict[str, Path],
    settings: Settings,
    n_repeats: int,
    clock: Clock,
) -> Iterator[Run]:
    """Run every row once, then every row again; a row that failed is not tried again."""
    left = [candidate for candidate in rows if candidate.system.name in pythons]
    for seed in range(n_repeats):
        turn = list(left)
        for number, candidate in enumerate(turn, 1):
            where = f"run {seed + 1} of {n_repeats}, {number} of {len(turn)}: {candidate.name}"
            clock.say(where)
            run = run_once(candidate, task, pythons[candidate.system.name], seed, settings)
            clock.say(f"{where}: {_in_short(run)}")
            if run.failure is not None:
                left.remove(candidate)
            yield run


def _in_short(run: Run) -> str:
    """Return the result of one run in a few words."""
    if run.failure is not None:
        return run.failure
    v = run.values
    return f"{v['training_seconds']:,.1f} s, P@1 {v['P@1']:.2f}, {v['points_per_second']:,.0f}/s"


def _about(given: argparse.Namespace, task: Task, systems: list[System]) -> dict[str, Any]:
    """Return what the figures depend on."""
    environments = {system.environment for system in systems}
    return {
        "command": shlex.join(["python", "-m", "benchmarks.peers", *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": task.facts(),
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "n_cores": os.cpu_count(),
            "n_threads": given.threads,
            "memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
            "python": platform.python_version(),
        },
        "settings": {s.name: dict(s.settings) for s in (*SYSTEMS, *systems)},
        "packages": {
            name: installed_packages(name, given.environments) for name in sorted(environments)
        },
    }


def _processor() -> str:
    """Return what the processor calls itself."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


if __name__ == "__main__":
    run(main)
