"""The playground: one HTML file without any outside part, and headers that forbid any."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longtail.serve.limits import Limits

__all__ = ["content_security_policy", "page"]

_MOST = b'data-most="100"'


@lru_cache(maxsize=8)
def page(limits: Limits) -> bytes:
    """Return the page, which offers no more labels than the server allows.

    Examples
    --------
    >>> from longtail.serve.limits import Limits
    >>> from longtail.serve.page import page
    >>> b'data-most="20"' in page(Limits(k=20))
    True
    """
    return _template().replace(_MOST, f'data-most="{limits.k}"'.encode())


@lru_cache(maxsize=1)
def _template() -> bytes:
    """Return the page as it is in its file."""
    return files("longtail.serve").joinpath("page.html").read_bytes()


@lru_cache(maxsize=1)
def content_security_policy() -> bytes:
    """Return the policy: the page's own script and style, requests to its own server, no more.

    Examples
    --------
    >>> from longtail.serve.page import content_security_policy
    >>> parts = content_security_policy().decode().split("; ")
    >>> parts[0], parts[3]
    ("default-src 'none'", "connect-src 'self'")
    """
    html = _template()  # script and style are the same at all limits
    sources = {
        tag: " ".join(
            f"'sha256-{base64.b64encode(hashlib.sha256(body).digest()).decode()}'"
            for body in re.findall(rf"<{tag}>(.*?)</{tag}>".encode(), html, re.DOTALL)
        )
        for tag in ("script", "style")
    }
    return (
        f"default-src 'none'; script-src {sources['script']}; style-src {sources['style']}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ).encode()
