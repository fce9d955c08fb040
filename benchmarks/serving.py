"""Latency and throughput of `longtail serve` over HTTP, and whether its memory grows.

python -m benchmarks.serving model test.jsonl.gz --seconds 60

First one connection asks one text after the other. Then several do for a while, each waiting for
its answer before it asks again, so that the server is always busy and never flooded. Client and
server share the machine.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import uvloop

from benchmarks.command import heading, parser_of, positive, run
from longtail.data import Dataset, InputWarning
from longtail.errors import InputError

if TYPE_CHECKING:
    import argparse

HEAD = (
    "POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    "content-length: "
)
HOST = "127.0.0.1"
N_WARM = 1_000


class Answer(NamedTuple):
    """What one request took."""

    milliseconds: float
    model_milliseconds: float
    status: int


class Connection(asyncio.Protocol):
    """A kept-alive connection that has one request under way."""

    def __init__(self) -> None:
        self.received = b""
        self.waiting: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if found and self.waiting is not None:
            length = re.search(rb"content-length: (\d+)", head)
            if length is not None and len(body) >= int(length[1]):
                self.waiting.set_result(self.received)
                self.received = b""

    def connection_lost(self, error: Exception | None) -> None:
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(error or ConnectionError("The server closed it."))

    async def ask(self, request: bytes) -> Answer:
        """Send a request and wait for the answer."""
        self.waiting = asyncio.get_running_loop().create_future()
        before = time.perf_counter()
        self.transport.write(request)  # type: ignore[attr-defined]  # a TCP transport has it
        answer = await self.waiting
        took = time.perf_counter() - before
        model_time = re.search(rb'"milliseconds":([0-9.e-]+)', answer)
        return Answer(1e3 * took, float(model_time[1]) if model_time else np.nan, int(answer[9:12]))


async def connected(port: int) -> Connection:
    """Connect to the server."""
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(Connection, HOST, port))[1]


async def first_connected(port: int, server: subprocess.Popen[str], told: Path) -> Connection:
    """Connect as soon as the server has started; if it ends, tell what it said."""
    while server.poll() is None:
        with suppress(OSError):
            return await connected(port)
        await asyncio.sleep(0.1)
    *_, last = told.read_text(encoding="utf-8").splitlines() or ["It said nothing."]
    raise InputError(f"The server did not start. {last.removeprefix('longtail: error: ')}")


async def under_load(
    port: int, requests: list[bytes], n_connections: int, seconds: float
) -> tuple[list[Answer], int]:
    """Ask by several connections for a while; return answers and the number of failures."""
    stop = time.perf_counter() + seconds
    answers: list[Answer] = []
    n_failed = 0

    async def ask_on(first: int) -> None:
        nonlocal n_failed
        connection = await connected(port)
        i = first
        while time.perf_counter() < stop:
            try:
                answers.append(await connection.ask(requests[i % len(requests)]))
            except (OSError, ConnectionError):
                n_failed += 1
                connection = await connected(port)
            i += n_connections

    await asyncio.gather(*(ask_on(first) for first in range(n_connections)))
    return answers, n_failed


def memory_of(pid: int) -> dict[str, float]:
    """Return the memory of a process in MB, by kind."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    parts = {name: int(rest.split()[0]) / 1024 for name, rest in (s.split(":", 1) for s in lines)}
    private = parts["Private_Clean"] + parts["Private_Dirty"]
    return {"rss": parts["Rss"], "own": parts["Anonymous"], "private": private}


def cpu_of(pids: list[int]) -> float:
    """Return the processor seconds that processes have used."""
    return sum(_cpu_of_one(pid) for pid in pids)


def _cpu_of_one(pid: int) -> float:
    """Return those of one."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def children_of(pid: int) -> list[int]:
    """Return the worker processes."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    lines = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in found}
    return [child for child, line in lines.items() if b"spawn_main" in line]


def row(name: str, answers: list[Answer], seconds: float, n_failed: int, cpu_used: float) -> str:
    """Return one line of the table."""
    times = np.percentile([answer.milliseconds for answer in answers], [50, 99])
    model = np.percentile([answer.model_milliseconds for answer in answers], 50)
    n_bad = n_failed + sum(answer.status != 200 for answer in answers)
    return (
        f"| {name} | {len(answers):,} | {n_bad} | {len(answers) / seconds:,.0f} | {times[0]:.3f} | "
        f"{times[1]:.3f} | {model:.3f} | {1e3 * cpu_used / len(answers):.3f} |"
    )


async def measure(
    arguments: argparse.Namespace, requests: list[bytes], connection: Connection, pid: int
) -> None:
    """Measure and print."""
    for request in requests[:N_WARM]:
        await connection.ask(request)
    workers = children_of(pid) or [pid]
    used, started = cpu_of(workers), time.perf_counter()
    alone = [await connection.ask(request) for request in requests]
    seconds = time.perf_counter() - started
    head = "requests | failed | a second | p50, ms | p99, ms | model, p50, ms | server's CPU, ms"
    print(f"| | {head} |\n|---|---|---|---|---|---|---|---|")
    print(row("1 connection", alone, seconds, 0, cpu_of(workers) - used))
    memory = []
    for part in (0.1, 0.9):
        used = cpu_of(workers)
        answers, n_failed = await under_load(
            arguments.port, requests, arguments.connections, part * arguments.seconds
        )
        memory.append([memory_of(worker) for worker in workers])
        name = f"{arguments.connections} connections, {part * arguments.seconds:g} s"
        cpu_used = cpu_of(workers) - used
        print(row(name, answers, part * arguments.seconds, n_failed, cpu_used))
    own = "of that its own (not the mapped model), MB, before"
    print(f"\n{heading('worker', 'resident, MB', own, 'after')}")
    for i, (before, after) in enumerate(zip(*memory, strict=True)):
        print(f"| {i + 1} | {after['rss']:.0f} | {before['own']:.1f} | {after['own']:.1f} |")


async def started(
    arguments: argparse.Namespace,
    requests: list[bytes],
    server: subprocess.Popen[str],
    told: Path,
) -> None:
    """Wait for the server, then measure it."""
    connection = await first_connected(arguments.port, server, told)
    await measure(arguments, requests, connection, server.pid)


def main() -> None:
    """Start a server, measure, and stop it."""
    parser = parser_of(__doc__)
    parser.add_argument("model", metavar="MODEL", help="a folder that `longtail train` wrote")
    parser.add_argument("test", metavar="TEST", help="texts, in any format of `longtail train`")
    parser.add_argument(
        "--n-texts",
        type=positive(int),
        default=5_000,
        metavar="N",
        help="ask the first so many (5000)",
    )
    parser.add_argument(
        "--connections",
        type=positive(int),
        default=8,
        metavar="N",
        help="that ask at the same time (8)",
    )
    parser.add_argument(
        "--seconds", type=positive(float), default=60, metavar="N", help="how long they ask (60)"
    )
    parser.add_argument(
        "--workers", type=positive(int), default=1, metavar="N", help="processes of the server (1)"
    )
    parser.add_argument(
        "--port", type=int, default=8765, metavar="N", help="of the server, which is started (8765)"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    texts = Dataset.read(arguments.test).texts
    if texts is None:
        raise InputError("This benchmark needs points with texts.")
    bodies = [json.dumps({"text": text}).encode() for text in list(texts)[: arguments.n_texts]]
    requests = [f"{HEAD}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    command = ["serve", arguments.model, "--port", arguments.port, "--workers", arguments.workers]
    code = "import sys; from longtail.cli import main; sys.exit(main(sys.argv[1:]))"
    with socket.create_server((HOST, arguments.port)):
        pass  # or another server would be measured, which has the port already
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told.txt"
        with told.open("w", encoding="utf-8") as file:
            server = subprocess.Popen(
                [sys.executable, "-c", code, *map(str, command)], stderr=file, text=True
            )
        try:
            uvloop.run(started(arguments, requests, server, told))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    run(main)
