"""The environments of the peers: one each, made from package registries where it is missing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import longtail
from longtail.errors import LongtailError

from .systems import ENVIRONMENTS, Environment

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["EnvironmentFailedError", "installed_packages", "python_of"]

STAMP = "longtail-benchmark.json"  # written last: an environment with it is complete
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
OWN_PACKAGES = ("numpy", "numba", "scipy", "torch")  # what longtail's figures depend on
PIP = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")


class EnvironmentFailedError(LongtailError):
    """Says in one line why there is no environment."""


def python_of(name: str, folder: Path) -> Path:
    """Return the Python that runs the workers of an environment, making it if need be.

    Parameters
    ----------
    name : str
        A key of `ENVIRONMENTS`, or "longtail".
    folder : Path
        Where the environments are kept between runs.

    Raises
    ------
    EnvironmentFailedError
        If it cannot be made; the log beside it has all that was said.
    """
    if name == "longtail":
        return Path(sys.executable)
    environment, home = ENVIRONMENTS[name], folder / name
    python = home / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    is_whole = python.exists()  # its link outlives the Python that it was made of
    if not is_whole or _stamp(home).get("requirements") != list(environment.requirements):
        shutil.rmtree(home, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        _build(environment, home, python, folder / f"{name}.log")
    return python


def installed_packages(name: str, folder: Path) -> list[str]:
    """Return what pip installed, with versions; of "longtail" which one runs, and on what."""
    if name == "longtail":
        place = Path(longtail.__file__).parent
        return [f"longtail=={longtail.__version__} in {place}", *_own_versions()]
    return list(_stamp(folder / name).get("packages", []))


def _own_versions() -> Iterator[str]:
    """Yield the versions of what is installed beside longtail."""
    for package in OWN_PACKAGES:
        with suppress(PackageNotFoundError):  # torch is optional
            yield f"{package}=={version(package)}"


def _build(environment: Environment, home: Path, python: Path, log: Path) -> None:
    """Make an environment."""
    log.unlink(missing_ok=True)
    _logged([sys.executable, "-m", "venv", str(home)], log)
    if environment.cpu_build is not None:
        index = ("--no-deps", "--retries", "0", "--index-url", CPU_INDEX, environment.cpu_build)
        with suppress(EnvironmentFailedError):  # without it, the usual place has a larger build
            _logged([str(python), *PIP, *index], log)
    _logged([str(python), *PIP, *environment.requirements], log)
    freeze = [str(python), "-m", "pip", "freeze", "--disable-pip-version-check"]
    packages = subprocess.run(freeze, capture_output=True, text=True, check=True).stdout.split("\n")
    content = {"requirements": environment.requirements, "packages": [p for p in packages if p]}
    (home / STAMP).write_text(json.dumps(content), encoding="utf-8")


def _stamp(home: Path) -> dict[str, list[str]]:
    """Return what a complete environment says of itself."""
    path = home / STAMP
    if not path.exists():
        return {}
    content: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _logged(command: list[str], log: Path) -> None:
    """Run a command, all output to the log."""
    with log.open("a", encoding="utf-8") as file:
        code = subprocess.run(command, stdout=file, stderr=file, check=False).returncode
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if line.startswith(("ERROR", "error"))]
        raise EnvironmentFailedError(
            f"cannot be installed: {(errors or lines or ['?'])[-1].strip()}"
        )
