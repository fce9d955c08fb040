"""An application of `longtail serve`, asked in-process."""

from __future__ import annotations

import asyncio
import json
import time


class Asked:
    """An application in a loop of its own, asked without a network."""

    def __init__(self, application):
        self.application = application
        self.runner = asyncio.Runner()

    def __call__(
        self, method, path, body=None, *, root_path="", parts=None, raw=False, headers=(), then=()
    ):
        """Return status, headers and what the body says; `then` is what comes after the request."""
        if parts is None:
            parts = [body if isinstance(body, bytes) else json.dumps(body).encode()]
        scope = {"method": method, "path": path, "root_path": root_path, "headers": headers}
        status, headers, content = self.runner.run(self._ask(scope, parts, then))
        if raw or headers.get("content-type") != "application/json":
            return status, headers, content
        return status, headers, json.loads(content) if content else None

    def together(self, bodies):
        """Return status, headers and what is sent in answer to requests that come at once."""

        async def ask_all():
            return await asyncio.gather(*map(self.posted, bodies))

        return self.runner.run(ask_all())

    async def posted(self, body):
        """Return the same of one request, asked within the loop."""
        scope = {"method": "POST", "path": "/predict", "root_path": "", "headers": ()}
        return await self._ask(scope, [json.dumps(body).encode()], ())

    async def _ask(self, scope, parts, then):
        scope = {"type": "http", "query_string": b"", **scope}
        rest, later = list(parts), list(then)
        sent = []

        async def receive():
            if not rest and later:
                return later.pop(0)
            if not rest:
                await asyncio.sleep(60)
            if rest[0] is None:
                return {"type": "http.disconnect"}
            part = rest.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(rest)}

        async def send(message):
            sent.append(message)

        await self.application(scope, receive, send)
        if not sent:
            return None, {}, b""
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], headers, b"".join(m["body"] for m in sent[1:])

    def wait(self, seconds):
        self.runner.run(asyncio.sleep(seconds))

    def close(self):
        self.runner.run(self.application.stop())
        self.runner.close()


def refusal(answer):
    """Return status and sentence of an answer that must be a refusal."""
    status, headers, content = answer
    assert headers["content-type"] == "application/json"
    assert set(content) == {"error"}
    assert content["error"].endswith(".")
    return status, content["error"]


def until(asked, condition):
    """Wait until something holds, at most a minute: kernels may have to be compiled first."""
    stop = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < stop
        asked.wait(0.02)
