"""longtail: extreme multi-label classification of short text.

Raw text in, the most relevant few of up to millions of label names out::

    from longtail import LongtailClassifier, load

    LongtailClassifier().fit(texts, labels).save("model")
    load("model").predict("some text", k=5)

Importing `longtail` alone loads next to nothing: what it offers is imported when it is first asked
for, and torch and scikit-learn with the first recipe.
"""

from __future__ import annotations

import importlib
import os

if os.name != "posix":  # files that are locked, or replaced while they are mapped into memory
    raise ImportError(
        "longtail runs on Linux and macOS, and not on Windows itself. Use it in the Windows "
        "Subsystem for Linux (`wsl --install`), or in a container of Linux."
    )

# Torch's threads and ours take turns: while one kind waits, or another process computes, it must
# not keep a core busy (on crowded cores training took four times as long). OpenMP reads it once,
# when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

TYPE_CHECKING = False  # as in typing, which takes a while to import
if TYPE_CHECKING:
    from longtail.data.dataset import Dataset
    from longtail.data.vectorizer import TextVectorizer
    from longtail.metrics import evaluate
    from longtail.predictor import Predictor, load
    from longtail.recipes.astec import Astec, Astec3
    from longtail.recipes.deepxml import DeepXML
    from longtail.recipes.longtail import LongtailClassifier

    # What there is without torch is known when somebody asks: `__getattr__`.
    __all__ = [
        "Astec",
        "Astec3",
        "Dataset",
        "DeepXML",
        "LongtailClassifier",
        "Predictor",
        "TextVectorizer",
        "__version__",
        "evaluate",
        "load",
    ]

__version__ = "0.1.0"

# Where each name lives. Importing these takes a second, and those that train take torch.
_HOMES = {
    "Astec": "longtail.recipes.astec",
    "Astec3": "longtail.recipes.astec",
    "Dataset": "longtail.data.dataset",
    "DeepXML": "longtail.recipes.deepxml",
    "LongtailClassifier": "longtail.recipes.longtail",
    "Predictor": "longtail.predictor",
    "TextVectorizer": "longtail.data.vectorizer",
    "evaluate": "longtail.metrics",
    "load": "longtail.predictor",
}
_TRAINED_BY_TORCH = {"Astec", "Astec3", "DeepXML"}
# Modules that one finds without importing them by name.
_ROOMS = {"data", "errors", "metrics", "predictor", "progress", "recipes", "review"}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return _names_to_import()
    if name in _ROOMS:
        return importlib.import_module(f"longtail.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'longtail' has no attribute {name!r}")
    try:
        found = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in {"torch", "sklearn"}:
            raise
        from longtail.errors import needs_extra  # noqa: PLC0415 - for this alone

        raise needs_extra(f"longtail.{name} trains models and", error, "train") from error
    return found


def _names_to_import() -> list[str]:
    """Return what `help` and ``from longtail import *`` look at: what needs torch where that is."""
    from importlib.util import find_spec  # noqa: PLC0415 - for this alone

    missing = _TRAINED_BY_TORCH if find_spec("torch") is None else set()
    return sorted({*_HOMES, "__version__"} - missing)


def __dir__() -> list[str]:
    dunders = {name for name in globals() if name.startswith("__")}
    return sorted({*dunders, *_names_to_import(), *_ROOMS})
