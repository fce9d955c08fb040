"""Settings as JSON values: for reports, and to tell one training from another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import Field, fields, is_dataclass
from functools import partial
from hashlib import file_digest, sha256
from os import PathLike, fsdecode
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InputError, named

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["code_of", "digest_of_file", "json_value"]

_CONSTANTS = (str, int, float, tuple, type(None))
_OF_PYTHON = {"builtins", "typing", "abc", "torch.nn.modules.module"}


def json_value(value: Any) -> Any:
    """Return a hyper-parameter, which may be a part of a recipe, as JSON values.

    The same settings give the same values in every process: a checkpoint is known by them. So code
    of a user's own counts, too, as training would otherwise go on with another.

    Raises
    ------
    InputError
        If a part holds itself, or a string no file can hold.

    Examples
    --------
    >>> from pathlib import Path
    >>> from longtail.estimators.json_values import json_value
    >>> from longtail.training.schedule import Schedule
    >>> json_value((3, Schedule(epochs=2, learning_rate=0.1)))[1]["epochs"]
    2
    >>> json_value(Path("words.vec"))
    'words.vec'
    """
    try:
        return _json_value(value)
    except RecursionError as error:
        raise InputError(
            f"{named(value, first=True)} holds itself, or something that does, such as a logger, "
            "so it cannot be written down as a setting. Leave that reference out."
        ) from error


def _json_value(value: Any) -> Any:
    """See `json_value`."""
    value = _as_array(value)
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, list | tuple | set | frozenset | Mapping):
        return _of_parts(value)
    value = value.item() if isinstance(value, np.generic) else value
    value = fsdecode(value) if isinstance(value, PathLike) else value
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if value is None or isinstance(value, int | float):
        return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
    return _name_of(value) or _json_object(value)


def _of_parts(value: Any) -> Any:
    """Return a list of what a collection holds, or an object of a mapping's."""
    if isinstance(value, Mapping):
        names = {key: key if isinstance(key, str) else repr(key) for key in value}
        return {_json_value(names[key]): _json_value(value[key]) for key in value}
    parts = [_json_value(part) for part in value]
    return sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts


def _as_array(value: Any) -> Any:
    """Return a tensor, or another library's table, as an array, and one of objects as a list.

    All else stays as it is. What a tensor and a table say of themselves leaves out numbers, and the
    bytes of objects are where they are in memory.
    """
    if hasattr(value, "detach") and hasattr(value, "to_dense"):
        tensor = value.detach().to_dense().cpu()
        is_unknown = str(tensor.dtype) == "torch.bfloat16"  # to numpy
        value = (tensor.float() if is_unknown else tensor).numpy()
    elif hasattr(value, "__array__") and not isinstance(value, type | np.generic):
        value = np.asarray(value)
    is_of_objects = isinstance(value, np.ndarray) and value.dtype.hasobject
    return value.tolist() if is_of_objects else value


def _json_object(value: Any) -> Any:
    """Return what a part is made of; its `repr` may hold where it is in memory."""
    if isinstance(value, partial):
        parts = {"function": value.func, "arguments": value.args, **value.keywords}
    elif is_dataclass(value):
        known = (field for field in fields(value) if _is_set(value, field))
        parts = {field.name: getattr(value, field.name) for field in known}
    elif hasattr(value, "__dict__"):
        parts = vars(value)
    else:
        return repr(value)
    own = {name: _json_value(part) for name, part in parts.items()}
    return {"type": type(value).__name__, **own, **code_of(type(value))}


def _is_set(value: Any, field: Field[Any]) -> bool:
    """Tell the settings of a recipe from what it has learnt, if it has."""
    return field.init or (not _is_ours(value) and hasattr(value, field.name))


def _name_of(value: Any) -> str | None:
    """Return what tells a class or a function from others, if it is one."""
    name: str | None = getattr(value, "__qualname__", None)
    if isinstance(value, FunctionType) and not _is_ours(value):
        return f"{name} {_digest(_content('', value))}"
    if isinstance(value, type) and (code := code_of(value)):
        return f"{name} {code['code']}"
    return name


def code_of(kind: type) -> dict[str, str]:
    """Return a digest of the code of a user's own class; nothing for a class of longtail's.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> from longtail.estimators.json_values import code_of
    >>> code_of(LongtailClassifier)
    {}
    """
    own = [base for base in kind.__mro__ if not (_is_ours(base) or base.__module__ in _OF_PYTHON)]
    members = [(name, member) for base in own for name, member in sorted(vars(base).items())]
    content = [(name, found) for name, member in members if (found := _content(name, member))]
    return {"code": _digest(content)} if content else {}


def _content(name: str, member: Any) -> Any:
    """Return what a function does, or the value of a constant; None for anything else."""
    member = getattr(member, "__func__", getattr(member, "fget", member))
    if isinstance(member, FunctionType):
        held = [cell.cell_contents for cell in member.__closure__ or ()]
        given = [*(member.__defaults__ or ()), *(member.__kwdefaults__ or {}).values(), *held]
        return _of_code(member.__code__), [part for part in given if isinstance(part, _CONSTANTS)]
    is_own = isinstance(member, _CONSTANTS) and not name.startswith("__")
    return (member,) if is_own else None


def _of_code(code: CodeType) -> Any:
    """Return what code does, wherever it stands, and whatever order a set of constants has."""
    parts: list[Any] = []
    for part in code.co_consts:
        is_set = isinstance(part, frozenset)
        parts.append(sorted(map(repr, part)) if is_set else part)
    inner = [_of_code(part) if isinstance(part, CodeType) else part for part in parts]
    return (code.co_code, code.co_names, inner)


def digest_of_file(path: Path) -> str:
    """Return a digest of what is in a file; of none where it is not there, as training will say.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from longtail.estimators.json_values import digest_of_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "weights")
    ...     _ = path.write_bytes(b"1")
    ...     len(digest_of_file(path)), digest_of_file(Path(folder, "others"))
    (64, '')
    """
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _is_ours(value: Any) -> bool:
    """Tell longtail's own code, which stays as it is from one run to the next."""
    return str(value.__module__).partition(".")[0] == "longtail"


def _digest(content: Any) -> str:
    """Return a digest that is the same in every process."""
    return sha256(repr(content).encode(errors="backslashreplace")).hexdigest()
