"""The ASGI application: paths, answers and refusals.

Plain ASGI and not a framework: what a framework adds to each request is a good part of what a
prediction takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import threading
import traceback
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from longtail.serve.answers import answer_batch, answer_explained, answer_text
from longtail.serve.body import ClientLeft, read_body
from longtail.serve.live_model import LiveModel
from longtail.serve.messages import (
    ONE_EXPLAINED,
    ErrorMessage,
    Health,
    Refusal,
    decoded,
    encoded_refusal,
)
from longtail.serve.metrics import CONTENT_TYPE, Metrics
from longtail.serve.openapi import openapi_document
from longtail.serve.page import content_security_policy, page
from longtail.serve.threads import LATER, AnsweringThreads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping
    from pathlib import Path

    from longtail.predictor import Predictor
    from longtail.serve.answers import Timed
    from longtail.serve.body import Message, Receive
    from longtail.serve.limits import Limits
    from longtail.serve.messages import PredictRequest

    Scope = MutableMapping[str, Any]
    Send = Callable[[Message], Awaitable[None]]
    Headers = tuple[tuple[bytes, bytes], ...]

__all__ = ["Application", "Reply"]

SECONDS_BETWEEN_LOOKS = 1.0
# Longer texts are answered by other threads, so that short ones need not wait for them.
SHORT_TEXT = 1_000
OTHER = "other"  # how a path that is not ours is counted
CLIENT_LEFT = 499  # how a request is counted that nobody waits for any more; as nginx does
NOSNIFF = (b"x-content-type-options", b"nosniff")
JSON: Headers = ((b"content-type", b"application/json"), NOSNIFF)

_log = logging.getLogger("longtail.serve")
_encode = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    """What is sent back."""

    body: bytes
    status: int = 200
    headers: Headers = JSON


class Application:
    """Answers from a model folder; see `longtail.serve.app`.

    Parameters
    ----------
    path : str or Path
    limits : Limits
    reload_on_hangup : bool
        Load the folder anew on SIGHUP. Not for applications mounted in another one, which may want
        the signal itself.
    """

    def __init__(self, path: str | Path, *, limits: Limits, reload_on_hangup: bool = False) -> None:
        self.path = path
        self.limits = limits
        self.reload_on_hangup = reload_on_hangup
        self._begin()

    def _begin(self) -> None:
        """Set up all but the settings."""
        self.model = LiveModel(self.path)
        self._metrics = Metrics()
        self._openapi = openapi_document(self.limits)
        self._begin_process()

    def _begin_process(self) -> None:
        """Set up what belongs to one process, and does not outlive a fork."""
        self._process = os.getpid()
        self._threads = AnsweringThreads(self.limits)
        self._watcher: asyncio.Task[None] | None = None
        # Of threads, not of asyncio, whose locks serve one loop: several may ask first.
        self._one_load_at_a_time = threading.Lock()
        self._is_wanted_anew = threading.Event()

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what cannot go to another process."""
        return {name: getattr(self, name) for name in ("path", "limits", "reload_on_hangup")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Begin in a worker."""
        self.__dict__.update(state)
        self._begin()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, as ASGI has it."""
        if scope["type"] == "http":
            if not self._is_watching():
                await self.start()
            await self._serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def start(self) -> None:
        """Load the model and watch its folder."""
        if self._process != os.getpid():  # forked from one that may have answered already
            self._begin_process()
        self._threads.start()
        await asyncio.to_thread(self._load)
        if not self._is_watching():  # other requests start it, too
            self._watcher = asyncio.create_task(self._watch())

    def _is_watching(self) -> bool:
        """Return whether this process looks at the folder."""
        watcher = self._watcher
        if watcher is None or watcher.done() or watcher.get_loop().is_closed():
            return False
        return self._process == os.getpid()

    async def stop(self) -> None:
        """Stop watching; requests that are being answered are left alone."""
        if self._watcher is not None:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher
        self._is_wanted_anew.clear()
        self._threads.stop()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        """Start and stop with the server."""
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                if self.reload_on_hangup:  # before a model is loaded, which may take a while
                    self._reload_on_hangup()
                await self.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _reload_on_hangup(self) -> None:
        """Load the folder anew on SIGHUP: once for all that come before that load begins."""
        loop = asyncio.get_running_loop()

        def want_anew() -> None:
            if not self._is_wanted_anew.is_set():  # else a load is waiting to begin
                self._is_wanted_anew.set()
                loop.run_in_executor(None, self._load)

        loop.add_signal_handler(signal.SIGHUP, want_anew)

    def _load(self) -> None:
        """Load the model if there is a new one, or if it is wanted anew in any case."""
        with self._one_load_at_a_time:
            is_wanted = self._is_wanted_anew.is_set()
            if is_wanted:
                self._is_wanted_anew.clear()
            if not (is_wanted or self.model.has_changed):
                return
            n_before = self.model.n_loads
            self.model.load()
            self._metrics.note_model(
                is_ready=self.model.problem is None, n_new_loads=self.model.n_loads - n_before
            )

    async def _watch(self) -> None:
        """Look at the folder again and again, and load it when it has changed."""
        while True:
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
            if self.model.has_changed:
                await asyncio.to_thread(self._load)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        started = perf_counter()
        path = _own_path(scope)
        try:
            reply = await self._reply(path, scope, receive)
        except Refusal as refusal:
            reply = _refused(refusal)
        except ClientLeft:
            self._count(path, CLIENT_LEFT, started)
            return
        except Exception as error:  # noqa: BLE001  # whatever it is, the client gets a sentence
            _log_failure(error)
            reply = _refused(Refusal(500, "Something went wrong here. The server's log says more."))
        body = reply.body if scope["method"] != "HEAD" else b""
        length = (b"content-length", str(len(reply.body)).encode())
        headers = [length, *reply.headers]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        self._count(path, reply.status, started)

    def _count(self, path: str, status: int, started: float) -> None:
        """Count a request."""
        known = path if path in _PATHS else OTHER
        self._metrics.count(known, status, perf_counter() - started)

    async def _reply(self, path: str, scope: Scope, receive: Receive) -> Reply:
        """Return the reply to one request."""
        if path not in _PATHS:
            if not path and scope["method"] in {"GET", "HEAD"}:  # mounted, without its slash
                where = quote(scope.get("root_path", "").rstrip("/") + "/").encode()
                return Reply(b"", 307, ((b"location", where),))
            raise Refusal(
                404, f"There is nothing at this path. Those that exist: {', '.join(_PATHS)}."
            )
        method, answer = _PATHS[path]
        if scope["method"] != method and (scope["method"], method) != ("HEAD", "GET"):
            allowed = b"POST" if method == "POST" else b"GET, HEAD"
            raise Refusal(405, f"This path answers {method} only.", ((b"allow", allowed),))
        return await answer(self, scope, receive)

    async def _request(self, scope: Scope, receive: Receive) -> PredictRequest:
        """Read what is asked."""
        body = await read_body(receive, self.limits, scope["headers"])
        for name, value in scope["headers"]:
            if name == b"content-encoding" and value.lower() != b"identity":
                raise encoded_refusal(value.decode("latin-1"))
        return decoded(body, self.limits)

    async def _predict(self, scope: Scope, receive: Receive) -> Reply:
        """Answer ``POST /predict``."""
        request = await self._request(scope, receive)
        if request.explain:
            return await self._explained(request, receive)
        model = self._current()
        if request.text is None:
            given_up = threading.Event()
            work = partial(answer_batch, model, request, given_up)
            timed = await self._threads.at_length(work, receive, given_up)
        elif len(request.text) > SHORT_TEXT:
            timed = await self._threads.at_length(partial(answer_text, model, request), receive)
        elif request.is_restricted or not model.answers_at_once:
            timed = await self._threads.shortly(partial(answer_text, model, request), receive)
        else:
            timed = answer_text(model, request)
        return self._counted(timed)

    async def _explain(self, scope: Scope, receive: Receive) -> Reply:
        """Answer ``POST /explain``."""
        return await self._explained(await self._request(scope, receive), receive)

    async def _explained(self, request: PredictRequest, receive: Receive) -> Reply:
        """Answer and say why."""
        if request.text is None:
            raise Refusal(400, ONE_EXPLAINED)
        model = self._current()
        work = partial(answer_explained, model, request)
        return self._counted(await self._threads.at_length(work, receive))

    def _counted(self, timed: Timed) -> Reply:
        """Count an answer and return it."""
        self._metrics.count_texts(timed.n_texts, timed.seconds)
        return Reply(_encode(timed.answer))

    def _current(self) -> Predictor:
        """Return the model, or refuse."""
        current = self.model.current
        if current is None:
            raise Refusal(503, f"There is no model to answer with. {self.model.problem}", LATER)
        return current.predictor

    async def _health(self, _: Scope, __: Receive) -> Reply:
        """Answer ``GET /healthz``."""
        current, problem = self.model.current, self.model.problem
        if current is None:
            return Reply(_encode(Health("unavailable", problem)), 503)
        facts = current.predictor.description
        health = Health(
            status="ok" if problem is None else "outdated",
            problem=problem,
            recipe=facts.get("recipe"),
            n_labels=current.predictor.n_labels,
            n_training_points=facts.get("n_points"),
            model=current.identity,
        )
        return Reply(_encode(health))

    async def _show_metrics(self, _: Scope, __: Receive) -> Reply:
        """Answer ``GET /metrics``."""
        return Reply(self._metrics.text(), 200, ((b"content-type", CONTENT_TYPE), NOSNIFF))

    async def _show_page(self, _: Scope, __: Receive) -> Reply:
        """Answer ``GET /``."""
        headers = (
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", content_security_policy()),
            (b"referrer-policy", b"no-referrer"),
            NOSNIFF,
        )
        return Reply(page(self.limits), 200, headers)

    async def _show_openapi(self, scope: Scope, _: Receive) -> Reply:
        """Answer ``GET /openapi.json``."""
        here = {"servers": [{"url": quote(scope.get("root_path", "")) or "/"}]}
        return Reply(_encode(self._openapi | here))


_PATHS: Mapping[str, tuple[str, Callable[[Application, Scope, Receive], Awaitable[Reply]]]] = (
    MappingProxyType(
        {
            "/predict": ("POST", Application._predict),
            "/explain": ("POST", Application._explain),
            "/healthz": ("GET", Application._health),
            "/metrics": ("GET", Application._show_metrics),
            "/openapi.json": ("GET", Application._show_openapi),
            "/": ("GET", Application._show_page),
        }
    )
)


def _own_path(scope: Scope) -> str:
    """Return the path below the place where this application is mounted, or a proxy shows it.

    A server puts the root path before every path that it gets. Of a proxy that takes the path away
    before it passes a request on, it is then there once, and twice of one that leaves it there.
    What is left may be called as the root path is: once it is a path of ours, no more is taken.
    """
    path: str = scope["path"]
    root = scope.get("root_path", "").rstrip("/")
    if not root:
        return path
    for _ in range(2):
        if path == root or path.startswith(f"{root}/"):
            path = path.removeprefix(root)
        if path in _PATHS:
            break
    return path


def _refused(refusal: Refusal) -> Reply:
    """Return a refusal as it is sent."""
    return Reply(_encode(ErrorMessage(str(refusal))), refusal.status, JSON + refusal.headers)


def _log_failure(error: Exception) -> None:
    """Log where an error arose, but not its message, which may hold what a client sent."""
    place = "".join(traceback.format_tb(error.__traceback__))
    _log.error("A request failed with %s.\n%s", type(error).__name__, place)
