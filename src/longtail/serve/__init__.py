"""Answer over HTTP: ``longtail serve DIR``, or `app` within a server of your own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from longtail.errors import about_home, needs_extra
from longtail.serve.limits import Limits

if TYPE_CHECKING:
    from longtail.serve.application import Application

__all__ = ["Limits", "app"]


def app(path: str | Path, *, limits: Limits | None = None) -> Application:
    """Return an ASGI application that answers from a model folder.

    It may be run by any ASGI server, or mounted in another application. The folder is loaded when
    the server starts, or at the first request where it is mounted; while there is no usable model
    there, requests are answered with status 503 and what is wrong.

    Parameters
    ----------
    path : str or Path
        A model folder. When it is replaced, so is the model, without a lost request. A relative one
        starts from where the process works now, wherever it works later.
    limits : Limits, optional

    Raises
    ------
    MissingExtraError
        If the libraries of the ``serve`` extra are not installed.

    Examples
    --------
    >>> from longtail.serve import Limits, app
    >>> app("a/model", limits=Limits(k=20)).limits.k
    20
    """
    try:
        from longtail.serve.application import Application  # noqa: PLC0415  # needs the extra
    except ModuleNotFoundError as error:
        raise needs_extra("Serving", error, "serve") from error
    if not about_home(path):  # else the message about it would no longer know the path as given
        path = Path(path).absolute()
    return Application(path, limits=limits or Limits())
