"""What a training was begun with: its settings, and a digest of its data."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.data.text_column import TextColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

__all__ = ["Fingerprint", "fingerprint"]

N_SHOWN = 4  # settings


@dataclass(frozen=True)
class Fingerprint:
    """What two trainings must have alike, if one is to go on from the other's checkpoints.

    Attributes
    ----------
    settings : str
        JSON, in the order of the keys.
    data : str
        A digest.

    Examples
    --------
    >>> from longtail.training.fingerprint import Fingerprint
    >>> first, second = Fingerprint('{"epochs": 7}', "data"), Fingerprint('{"epochs": 7}', "other")
    >>> first.digest == second.digest, first.differences(second)
    (False, 'other training data')
    """

    settings: str
    data: str

    @property
    def digest(self) -> str:
        """A short name of both."""
        return hashlib.sha256(f"{self.settings}\n{self.data}".encode()).hexdigest()[:12]

    def differences(self, other: Fingerprint) -> str:
        """Say what another one has that this one has not.

        Examples
        --------
        >>> from longtail.training.fingerprint import Fingerprint
        >>> earlier = Fingerprint('{"dimension": 300, "epochs": 7}', "data")
        >>> Fingerprint('{"dimension": 64, "epochs": 7}', "data").differences(earlier)
        'dimension=300, not 64'

        Of a part, only what differs:

        >>> first = Fingerprint('{"negatives": {"type": "Mine", "size": 5, "code": "a"}}', "data")
        >>> Fingerprint(first.settings.replace("5", "7"), "data").differences(first)
        'negatives.size=5, not 7'
        >>> Fingerprint(first.settings.replace('"a"', '"b"'), "data").differences(first)
        'another code of negatives'
        """
        own, others = json.loads(self.settings), json.loads(other.settings)
        changed = list(_changes("", own, others))
        if own.get("recipe") != others.get("recipe"):
            changed = [f"the recipe {others.get('recipe')}, not {own.get('recipe')}"]
        more = [f"{len(changed) - N_SHOWN} further settings"] if len(changed) > N_SHOWN else []
        data = ["other training data"] if self.data != other.data else []
        return "; ".join([*changed[:N_SHOWN], *more, *data])


def fingerprint(settings: dict[str, Any], *data: csr_array | TextColumn | None) -> Fingerprint:
    """Return what a training with these settings and data is known by.

    Parameters
    ----------
    settings : dict
        JSON values.
    *data : csr_array, TextColumn or None
        None for what is not there.

    Examples
    --------
    In whichever order settings come, they are the same.

    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from longtail.training.fingerprint import fingerprint
    >>> labels = csr_array(np.eye(2, dtype=np.float32))
    >>> first = fingerprint({"seed": 0, "epochs": 7}, labels, None)
    >>> first.settings
    '{"epochs": 7, "seed": 0}'
    >>> fingerprint({"epochs": 7, "seed": 0}, labels, None) == first
    True
    >>> fingerprint({"epochs": 7, "seed": 0}, 2 * labels, None) == first
    False
    """
    digest = hashlib.sha256()
    for part in data:
        arrays = _arrays_of(part)
        digest.update(repr([array.shape for array in arrays]).encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return Fingerprint(json.dumps(settings, sort_keys=True, default=str), digest.hexdigest())


def _changes(name: str, own: Any, others: Any) -> Iterator[str]:
    """Say what differs between two values of a setting, of parts of one kind setting by setting."""
    if own == others:
        return
    both = isinstance(own, dict) and isinstance(others, dict)
    if both and own.get("type") == others.get("type"):
        for key in {**own, **others}:
            yield from _changes(f"{name}.{key}".lstrip("."), own.get(key), others.get(key))
    elif name.rpartition(".")[2] == "code":
        yield f"another code of {name.rpartition('.')[0] or 'the recipe'}"
    else:
        yield f"{name}={_shown(others)}, not {_shown(own)}"


def _shown(value: Any) -> str:
    """Write a setting as ``--set`` takes it, and a part by its name."""
    if isinstance(value, dict) and "type" in value:
        return str(value["type"])
    return "none" if value is None else json.dumps(value).strip('"[]')


def _arrays_of(part: csr_array | TextColumn | None) -> tuple[NDArray[Any], ...]:
    """Return what a matrix or a column of texts is made of."""
    if part is None:
        return ()
    if isinstance(part, TextColumn):
        return part.buffer, part.offsets
    return np.array(part.shape), part.indptr, part.indices, part.data
