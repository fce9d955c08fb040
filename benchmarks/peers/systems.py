"""The systems of the comparison, with the settings that their own documentation recommends."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from benchmarks.drawing import INK, OURS
from longtail.recipes.names import DEFAULT_RECIPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from .data import Task

__all__ = [
    "DEFAULT_NAME",
    "ENVIRONMENTS",
    "SYSTEMS",
    "Candidate",
    "Environment",
    "System",
    "candidates",
    "refusal",
    "with_encoder",
]

DEFAULT_NAME = f"longtail {DEFAULT_RECIPE}"  # of longtail's default recipe as it comes

ONE_VS_ALL_LIMIT = 5_000  # labels: beyond, time and memory of one-vs-all are out of proportion


@dataclass(frozen=True)
class Environment:
    """What is installed for a worker.

    `cpu_build` is first sought among PyTorch's builds for machines without a GPU, which are a
    tenth of the size; where that index cannot be reached, pip's usual place is used.
    """

    requirements: tuple[str, ...]
    cpu_build: str | None = None


@dataclass(frozen=True, eq=False)  # two settings of one library are two systems
class System:
    """One system with one set of settings."""

    name: str
    environment: str  # a key of ENVIRONMENTS, or "longtail": the one that runs the benchmark
    worker: str  # a module in workers/
    takes: Literal["features", "text", "text and features", "file"]
    settings: Mapping[str, Any] = field(default_factory=dict)
    quick_variant: str = "words + chars"  # of the features, where only one is to be tried
    max_labels: int | None = None
    needs_encoder: bool = False  # the folder of a transformer, which the user names
    in_quick: bool = True  # whether a quick comparison has it without being asked
    title: str | None = None  # what documents call it; its name where there is none
    marker: str = "o"  # of matplotlib, and so is the next: its mark in pictures
    colour: str = INK

    @property
    def shown(self) -> str:
        """What documents call it."""
        return self.title or self.name


@dataclass(frozen=True)
class Candidate:
    """A system on one kind of features: one row of the table."""

    system: System
    variant: str | None  # of the features; None where it takes text or files

    @property
    def name(self) -> str:
        """What the row is called."""
        return f"{self.system.name} ({self.variant})" if self.variant else self.system.name


ENVIRONMENTS: Mapping[str, Environment] = MappingProxyType(
    {
        "omikuji": Environment(("omikuji==0.5.2", "scipy>=1.13")),
        "pecos": Environment(("libpecos==1.2.8", "torch==2.13.0"), cpu_build="torch==2.13.0"),
        # The newest transformers that libpecos' transformer part can be imported with: 4.51 has no
        # AdamW, 4.57 no SequenceSummary. XR-Linear imports none of it, and takes what pip finds.
        "pecos-transformer": Environment(
            ("libpecos==1.2.8", "torch==2.13.0", "transformers==4.49.0"), cpu_build="torch==2.13.0"
        ),
        "napkinxc": Environment(("napkinxc==0.7.2",)),
        "fasttext": Environment(("fasttext-numpy2==0.10.4", "scipy>=1.13")),
        "libmultilabel": Environment(("libmultilabel==0.10.0",)),
        "scikit-learn": Environment(("scikit-learn==1.9.1",)),
    }
)

# The tutorial's settings for many labels a text.
_FASTTEXT = {"lr": 0.5, "epoch": 25, "wordNgrams": 2, "bucket": 200_000, "dim": 50}
# The squared hinge loss goes with C = 1 in the authors' experiments, and three trees with 16-means.
_NAPKINXC = {"loss": "l2", "liblinear_c": 1.0}

SYSTEMS: tuple[System, ...] = (
    *(
        System(
            f"longtail {recipe}",
            "longtail",
            "longtail",
            "file",
            {"recipe": recipe},
            in_quick=recipe == DEFAULT_RECIPE,
            title=title,
            marker=marker,
            colour=OURS,
        )
        for recipe, title, marker in (
            (DEFAULT_RECIPE, "longtail", "o"),
            ("astec", "longtail, astec", "p"),
            ("parabel", "longtail, parabel", "s"),
        )
    ),
    System(
        "longtail-quick",
        "longtail",
        "longtail",
        "file",
        {"recipe": DEFAULT_RECIPE, "set": ("epochs=1", "dimension=128")},
        colour="#e3a583",
    ),
    System(
        "omikuji-parabel",
        "omikuji",
        "omikuji",
        "features",
        title="omikuji Parabel",
        marker="s",
        colour="#3a6ea5",
    ),
    System(
        "omikuji-bonsai",
        "omikuji",
        "omikuji",
        "features",
        {"cluster_k": 100, "cluster_balanced": False, "max_depth": 3},
        title="omikuji Bonsai",
        marker="D",
        colour="#8fb3d9",
    ),
    System(
        "pecos-xr-linear",
        "pecos",
        "pecos",
        "features",
        {"one_vs_all": False},
        title="PECOS XR-Linear",
        marker="^",
        colour="#3f7f4f",
    ),
    System(
        "pecos-one-vs-all",
        "pecos",
        "pecos",
        "features",
        {"one_vs_all": True},
        max_labels=ONE_VS_ALL_LIMIT,
        title="PECOS one-vs-all",
        marker="v",
        colour="#8cc49a",
    ),
    System(
        "pecos-xr-transformer",
        "pecos-transformer",
        "pecos_transformer",
        "text and features",
        needs_encoder=True,
        title="PECOS XR-Transformer",
        marker="H",
        colour="#1f5f5f",
    ),
    System(
        "napkinxc-plt",
        "napkinxc",
        "napkinxc",
        "features",
        _NAPKINXC,
        title="napkinXC tree",
        marker="<",
        colour="#a05a5a",
    ),
    System(
        "napkinxc-plt-3",
        "napkinxc",
        "napkinxc",
        "features",
        _NAPKINXC | {"ensemble": 3, "arity": 16, "kmeans_balanced": False},
        in_quick=False,
        title="napkinXC, three trees",
        marker=">",
        colour="#cf9a9a",
    ),
    System(
        "fasttext-ova",
        "fasttext",
        "fasttext",
        "text",
        _FASTTEXT | {"loss": "ova"},
        max_labels=ONE_VS_ALL_LIMIT,
        title="fastText, one-vs-all",
        marker="d",
        colour="#b9adcf",
    ),
    System(
        "fasttext-hs",
        "fasttext",
        "fasttext",
        "text",
        _FASTTEXT | {"loss": "hs"},
        title="fastText, hierarchical softmax",
        marker="P",
        colour="#8c7aa9",
    ),
    System(
        "libmultilabel-tree",
        "libmultilabel",
        "libmultilabel",
        "features",
        title="LibMultiLabel tree",
        marker="X",
        colour="#b0903c",
    ),
    System(
        "sklearn-one-vs-rest",
        "scikit-learn",
        "sklearn",
        "features",
        {"one_vs_rest": True},
        max_labels=ONE_VS_ALL_LIMIT,
        title="one-vs-rest, scikit-learn",
        marker="h",
        colour="#aaaaaa",
    ),
    System(
        "sklearn-knn",
        "scikit-learn",
        "sklearn",
        "features",
        {"one_vs_rest": False, "n_neighbours": 20},
        title="kNN on TF-IDF, scikit-learn",
        marker="*",
        colour="#777777",
        quick_variant="words + pairs",  # pieces of words bring it points that are not near
    ),
)


def candidates(systems: Iterable[System], task: Task, *, quick: bool) -> list[Candidate]:
    """Return the rows: a system that takes features is tried on every kind of them.

    With `quick` only on one: of linear models words + chars have been the best on nearly all data
    where all three were tried. A system that takes texts beside them always gets that one.
    """
    rows = []
    for system in systems:
        variants: list[str | None] = [None]
        if "features" in system.takes:
            one = quick or system.takes == "text and features"
            is_known = one and system.quick_variant in task.variants
            variants = [system.quick_variant] if is_known else list(task.variants)
        rows += [Candidate(system, variant) for variant in variants]
    return rows


def with_encoder(system: System, encoder: Path | None) -> System:
    """Return the system around the user's transformer, if it needs one and there is one."""
    if encoder is None or not system.needs_encoder:
        return system
    return replace(system, settings={**system.settings, "encoder": str(encoder.resolve())})


def refusal(system: System, task: Task) -> str | None:
    """Return why a system cannot run on these data, or None."""
    if "text" in system.takes and not task.has_texts:
        return "takes text, and these data are features"
    if system.needs_encoder and "encoder" not in system.settings:
        return "needs a pretrained transformer: pass its folder as --encoder FOLDER"
    if system.max_labels is not None and task.n_labels > system.max_labels:
        return f"one-vs-all is for small label sets: at most {system.max_labels:,} here"
    return None
