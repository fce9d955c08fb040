"""Connections to ``longtail serve``, of clients that are slow, silent or odd."""

from __future__ import annotations

import http.client
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest

from serving import ask, server


@pytest.fixture(scope="module")
def usual_port(text_model_path):
    """Of a server for clients that it goes on after, without any options."""
    with server(text_model_path) as (_, port):
        yield port


@pytest.fixture(scope="module")
def unwarned_port(text_model_path):
    """Of a server that is told at its end to have warned of nothing."""
    with server(text_model_path) as (process, port):
        yield port
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert "WARNING" not in err


def test_only_this_machine_can_reach_it_and_bad_http_is_refused(text_model_path):
    with server(text_model_path) as (process, port):
        table = Path(f"/proc/{process.pid}/net/tcp")  # Linux
        if table.exists():
            rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()]
            mine = [row[1] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]
            assert mine == [f"0100007F:{port:04X}"]
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        connection.sendall(b"\x00\x01 nonsense\x1b[31m\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 400")
        connection.close()
        assert ask(port, "POST", "/predict", {"text": "\x1b[31mforged\nINFO line"})[0] == 200
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert "\x1b" not in err
    assert "forged" not in err


def closed_after(connection):
    """Return after how many seconds the other side closes a connection, and what it has sent."""
    started, parts = time.monotonic(), []
    connection.settimeout(20)
    while part := connection.recv(4096):
        parts.append(part)
    connection.close()
    return time.monotonic() - started, b"".join(parts)


@pytest.mark.thorough
def test_who_sends_no_whole_head_is_not_waited_for(text_model_path):
    head = b"GET /healthz HTTP/1.1\r\nhost: x\r\n"
    with server(text_model_path, "--max-seconds", 1) as (process, port):
        waiting = []
        for sent in (b"", b"POST /predict HTT", head, b"\r\n"):
            connection = socket.create_connection(("127.0.0.1", port), timeout=20)
            connection.sendall(sent)
            waiting.append(connection)
        with ThreadPoolExecutor(len(waiting)) as threads:
            for seconds, answer in threads.map(closed_after, waiting):
                assert (0.5 < seconds < 10, answer) == (True, b"")
        # Neither is who keeps on sending little, nor who does so after an answer.
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        connection.sendall(head + b"\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        connection.sendall(head)
        stop = time.monotonic() + 20
        with suppress(OSError):
            while time.monotonic() < stop:
                connection.sendall(b"a: b\r\n")
                time.sleep(0.1)
        assert time.monotonic() < stop
        connection.close()
        # Who asks again and again is never cut off.
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        stop = time.monotonic() + 2
        while time.monotonic() < stop:
            connection.request("GET", "/healthz")
            assert connection.getresponse().read()
            time.sleep(0.1)
        connection.close()
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("keep_alive", "least", "most"),
    [(0.4, 0.2, 4.5), pytest.param(6.5, 5.5, 15, marks=pytest.mark.thorough)],
)
def test_a_silent_connection_is_kept_for_as_long_as_it_is_said(
    text_model_path, keep_alive, least, most
):
    with server(text_model_path, "--keep-alive", keep_alive, "--max-seconds", 1) as (_, port):
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        seconds, answer = closed_after(connection)
    assert (answer.startswith(b"HTTP/1.1 200"), least < seconds < most) == (True, True)


def status_of(connection, request):
    """Send a request, read its answer to the end, and return the status."""
    connection.sendall(request)
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    response.close()
    return response.status


@pytest.mark.thorough
def test_what_comes_behind_an_answer_does_not_shorten_the_silence(text_model_path):
    head = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n"
    wrong_path, wrong_method = head.replace(b"dict", b""), head.replace(b"POST", b"PUT")
    get = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    pairs = [(wrong_path, b"body"), (wrong_method, b"body"), (get, b"\r\n"), (head + b"body", b"")]
    with server(text_model_path, "--keep-alive", 60, "--max-seconds", 1) as (_, port):
        connections = []
        for first, then in pairs:
            connection = socket.create_connection(("127.0.0.1", port), timeout=20)
            assert status_of(connection, first) in {200, 400, 404, 405}
            connection.sendall(then)
            connections.append(connection)
        time.sleep(1.5)
        for connection in connections:
            assert status_of(connection, get) == 200
            connection.close()
        # The rest of a body that has been refused is not waited for as long as that.
        connection = socket.create_connection(("127.0.0.1", port), timeout=20)
        connection.sendall(wrong_path + b"bo")
        assert closed_after(connection)[1].startswith(b"HTTP/1.1 404")


@contextmanager
def many_answers_asked_for(port):
    """Ask for more than the system keeps for a client; yield the connection and their number."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        connection.connect(("127.0.0.1", port))
        n_asked = 10_000_000 // len(ask(port, "GET", "/")[1])
        connection.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" * n_asked)
        yield connection, n_asked


def test_a_body_that_is_announced_as_too_long_is_refused_at_once(usual_port):
    head = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n"
    sent = {
        head % 99_999_999 + b"expect: 100-continue\r\n\r\n": b" 413 ",
        head % 99_999_999 + b"\r\n{}": b" 413 ",
        head % -9 + b"\r\n": b" 400 ",
    }
    for request, status in sent.items():
        with socket.create_connection(("127.0.0.1", usual_port), timeout=5) as connection:
            connection.sendall(request)
            assert status in connection.recv(4096)[:13]
    # Who is still sending sees the answer, and may ask again.
    connection = http.client.HTTPConnection("127.0.0.1", usual_port, timeout=20)
    for body, status in ((b" " * 20_000_000, 413), (b'{"text": "wine"}', 200)):
        connection.request("POST", "/predict", body)
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (status, True)
    connection.close()


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (b"no HTTP at all\r\n\r\n", b"Invalid HTTP request received."),
        (
            b"GET /healthz HTTP/1.1\r\nhost: x\r\na: " + b"b" * 400_000,
            b"The header lines of the request are too long.",
        ),
    ],
    ids=["no HTTP", "a long head"],
)
def test_what_the_application_never_sees_is_refused_as_the_docs_say(usual_port, request_, sentence):
    with socket.create_connection(("127.0.0.1", usual_port), timeout=20) as connection:
        with suppress(ConnectionError):
            connection.sendall(request_)
        head, _, said = connection.recv(4096).partition(b"\r\n\r\n")
    counts = ask(usual_port, "GET", "/metrics")[1]
    assert head.startswith(b"HTTP/1.1 400")
    assert b"content-type: text/plain" in head
    assert said == sentence
    assert b'status="400"' not in counts
    docs = Path(__file__).parents[1] / "docs" / "serving.md"
    assert "as plain text, such as `Invalid HTTP request received.`" in docs.read_text("utf-8")


@pytest.mark.thorough
def test_who_takes_nothing_of_an_answer_is_cut_off(text_model_path):
    with server(text_model_path, "--max-seconds", 1, "--keep-alive", 60) as (process, port):
        with many_answers_asked_for(port) as (connection, _):
            stop = time.monotonic() + 30
            with suppress(ConnectionError):
                while time.monotonic() < stop:
                    connection.sendall(b"\r\n")
                    time.sleep(0.1)
            assert time.monotonic() < stop
        process.terminate()
        _, err = process.communicate(timeout=15)
    assert (process.returncode, "Traceback" in err) == (0, False)


@pytest.mark.thorough
def test_who_takes_answers_slowly_gets_them_all(text_model_path):
    with (
        server(text_model_path, "--max-seconds", 1, "--keep-alive", 60) as (_, port),
        many_answers_asked_for(port) as (connection, n_asked),
    ):
        n_answers, end = 0, b""
        stop = time.monotonic() + 4
        while n_answers < n_asked and (part := connection.recv(65_536)):
            n_answers += (end + part).count(b"HTTP/1.1 200")
            end = part[-11:]
            time.sleep(0.1 if time.monotonic() < stop else 0)
    assert n_answers == n_asked


@pytest.mark.parametrize("offered", ["h2c", "websocket"])
@pytest.mark.thorough
def test_who_offers_another_protocol_gets_this_one_and_no_advice_is_logged(
    text_model_path, offered
):
    headers = {"connection": "Upgrade", "upgrade": offered}
    with server(text_model_path) as (process, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        for _ in range(2):
            connection.request("GET", "/healthz", headers=headers)
            response = connection.getresponse()
            assert (response.status, bool(response.read())) == (200, True)
        connection.close()
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert "WebSocket" not in err
    assert "WARNING" not in err


@pytest.mark.parametrize("pieces", ["together", "head first", "one byte at a time"])
def test_a_request_that_offers_another_protocol_keeps_its_body(unwarned_port, pieces):
    body = b'{"text": "wine", "k": 1}'
    offer = b"POST /predict HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\n"
    offer += b"upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n"
    whole = offer + f"content-length: {len(body)}\r\n\r\n".encode() + body
    chunked = offer + b"transfer-encoding: chunked\r\n\r\n"
    chunked += f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
    sent = whole + chunked + whole.replace(b"Upgrade,", b"Upgrade, close,")
    edges = {"together": [], "head first": [sent.find(b"{")]}
    cuts = [0, *edges.get(pieces, range(1, len(sent))), len(sent)]
    connection = socket.create_connection(("127.0.0.1", unwarned_port), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for start, stop in pairwise(cuts):
        connection.sendall(sent[start:stop])
        time.sleep(0.001)
    answer = closed_after(connection)[1]
    assert (answer.count(b"HTTP/1.1 200"), answer.count(b'{"labels":["')) == (3, 3)
    connection = socket.create_connection(("127.0.0.1", unwarned_port), timeout=20)
    connection.sendall(b"CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n")
    assert closed_after(connection)[1].startswith(b"HTTP/1.1 400")


def is_refused(connection, line):
    """Return whether the other side closes a connection before it has got 50 MB of a line."""
    n_sent = 0
    with suppress(OSError):
        while n_sent < 50_000_000:
            connection.sendall(line * 10_000)
            n_sent += 10_000 * len(line)
    connection.close()
    return n_sent < 50_000_000


@pytest.mark.parametrize("line", [b"a: b\r\n", b"b"], ids=["lines", "one line"])
def test_a_head_without_end_is_not_kept(usual_port, line):
    connection = socket.create_connection(("127.0.0.1", usual_port), timeout=20)
    connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\na: ")
    assert is_refused(connection, line)
    connection = socket.create_connection(("127.0.0.1", usual_port), timeout=20)
    connection.sendall(b"POST /predict HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n")
    connection.sendall(b"\r\n2\r\n{}\r\n0\r\na: ")
    assert is_refused(connection, line)
    connection = http.client.HTTPConnection("127.0.0.1", usual_port, timeout=20)
    for _ in range(4):  # a long one, again and again, is none
        connection.request("GET", "/healthz", headers={"a": "b" * 30_000})
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (200, True)
    connection.close()
