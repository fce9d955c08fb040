"""Tables 1, 9, 10 and 11: whole systems, beside what the paper has for each.

`published.tsv` holds the paper's values: of each table, data set and method, all metrics that it
prints.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scipy.sparse import csr_array

from benchmarks.command import chosen, heading
from longtail.errors import InputError
from longtail.features.precomputed import Precomputed
from longtail.features.resnet18 import ResNet18
from longtail.metrics.propensity import USUAL_PROPENSITY
from longtail.recipes.annexml import AnnexML
from longtail.recipes.astec import Astec, Astec3
from longtail.recipes.attentionxml import AttentionXML
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.end_to_end import XMLCNNClassifier
from longtail.recipes.extremetext import ExtremeText
from longtail.recipes.mach import MACH
from longtail.recipes.parabel import Bonsai, Parabel
from longtail.recipes.pfastrexml import PfastreXML
from longtail.recipes.slice import Slice
from longtail.recipes.xtransformer import XTransformer
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.run import TrainingData, TrainingRun
from longtail.training.schedule import Schedule

from .variants import astec, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from longtail import Dataset
    from longtail.estimators.estimator import LabelEstimator
    from longtail.recipes.deepxml import DeepXML

    Settings = dict[str, Any]
    Make = Callable[[Settings, int], LabelEstimator]

__all__ = ["COMPARISONS", "compared", "propensity_of"]

_FULL = tuple(f"{metric}@{k}" for metric in ("P", "nDCG", "PSP", "PSnDCG") for k in (1, 3, 5))
HOURS = "hours"
# By the Extreme Classification Repository. AmazonCat-13K, Wiki10-31K and the sets of "see also" are
# among the others.
OF_AMAZON = {
    *("Amazon-670K", "Amazon-3M", "AmazonTitles-670K", "AmazonTitles-3M"),
    *("LF-Amazon-131K", "LF-AmazonTitles-131K", "LF-AmazonTitles-1.3M"),
}
OF_WIKIPEDIA = {
    *("Wikipedia-500K", "WikiTitles-500K", "WikiLSHTC-325K"),
    *("LF-Wikipedia-500K", "LF-WikiTitles-500K"),
}


class Comparison(NamedTuple):
    """A table of whole systems.

    Attributes
    ----------
    metrics : tuple of str
        Its columns.
    beside : str
        The data set beside which results on others are shown.
    methods : mapping of str to callable
        What makes each method; what the paper has and longtail has not is missing.
    """

    metrics: tuple[str, ...]
    beside: str
    methods: Mapping[str, Make]


def images(base: DeepXML, settings: Settings) -> Settings:
    """Exchange Astec's bags for images, or for vectors that images have become."""
    if "image_shape" in settings:
        return {"features": _resnet(settings)}
    if not isinstance(base.surrogate, MetaLabelTask):
        return {}
    no_epoch = Schedule(epochs=0, learning_rate=base.surrogate.schedule.learning_rate)
    return {"features": Precomputed(), "surrogate": replace(base.surrogate, schedule=no_epoch)}


def _deepxml_of_images(settings: Settings, n_points: int) -> LabelEstimator:
    """Make DeepXML as in Table 9: Astec with other features."""
    return astec(lambda base: images(base, settings))(settings, n_points)


def _resnet(settings: Settings) -> ResNet18:
    """Return the network that the settings describe."""
    return ResNet18(image_shape=tuple(settings["image_shape"]), weights=settings.get("weights"))


# Words alone, as in the paper; `--set char_ngrams=[3,5]` adds pieces of words.
TEXT_METHODS: Mapping[str, Make] = {
    "Astec": named(Astec, char_ngrams=None),
    "Astec-3": named(Astec3, char_ngrams=None),
    "MACH": named(MACH, char_ngrams=None),
    "XML-CNN": named(XMLCNNClassifier, char_ngrams=None),
    "Slice + fastText": named(Slice, char_ngrams=None),  # vectors by SVD, unless others are given
    "AttentionXML": named(AttentionXML),
    "XT": named(ExtremeText, char_ngrams=None),
    "X-Transformer": named(XTransformer, char_ngrams=None),
    "Parabel": named(Parabel),
    "Bonsai": named(Bonsai),
    "DiSMEC": named(DiSMEC),
    "AnnexML": named(AnnexML),
    "PfastreXML": named(PfastreXML),
}
IMAGE_METHODS: Mapping[str, Make] = {
    "DeepXML": _deepxml_of_images,
    "MACH": named(MACH),
    "Slice": named(Slice),
    "DiSMEC": named(DiSMEC),
    "Parabel": named(Parabel),
}
COMPARISONS = {
    "table1": Comparison(
        ("P@1", "P@3", "P@5", "PSP@3", "PSP@5"), "AmazonTitles-670K", TEXT_METHODS
    ),
    "table9": Comparison(
        ("P@1", "P@3", "P@5", "nDCG@3", "nDCG@5"), "AmazonImagesCat-13K", IMAGE_METHODS
    ),
    "table10": Comparison(_FULL, "Amazon-670K", TEXT_METHODS),
    "table11": Comparison(_FULL, "AmazonTitles-670K", TEXT_METHODS),
}


def published(table: str, data: str) -> dict[str, dict[str, float]]:
    """Return what the paper has of a data set: metrics of each method, in its order."""
    lines = Path(__file__).with_name("published.tsv").read_text(encoding="utf-8").splitlines()
    rows = (line.split("\t") for line in lines[1:])
    return {
        method: {name: float(value) for name, value in (v.split("=") for v in values.split())}
        for of_table, of_data, method, values in rows
        if (of_table, of_data) == (table, data)
    }


def propensity_of(data: str) -> tuple[float, float]:
    """Return A and B of the propensities that published tables use for a data set."""
    if data in OF_AMAZON:
        return 0.6, 2.6
    return (0.5, 0.4) if data in OF_WIKIPEDIA else USUAL_PROPENSITY


def compared(
    table: str,
    data: str,
    train: Dataset,
    test: Dataset,
    settings: Settings,
    only: Sequence[str] | None = None,
) -> Iterator[str]:
    """Yield the lines of a table: a line for each method that is run, and the paper's below it.

    Parameters
    ----------
    table : str
        A key of `COMPARISONS`.
    data : str
        What the data set is called; if the paper has no such, another one's values are shown.
    train, test : Dataset
    settings : dict
        Of the recipes, as far as each knows them; `image_shape` and `weights` for Table 9.
    only : sequence of str, optional
        Methods; all by default.
    """
    comparison = COMPARISONS[table]
    theirs = published(table, data)
    known = data if theirs else comparison.beside
    beside = theirs or published(table, known)
    wanted = chosen(only, beside, "method")
    if not theirs:
        yield f"The paper has no {data}: its values are those on {known}, another data set.\n"
    yield from heading("method", *comparison.metrics, "training").splitlines()
    for method, values in beside.items():
        if method in wanted:
            own = train, test
            if "image_shape" in settings and method != "DeepXML":
                own = _vectors(train, settings), _vectors(test, settings)
            yield _row_of(method, comparison, settings, own, propensity_of(data))
            hours = f"{values[HOURS]:g} h" if HOURS in values else ""
            yield _line(f"the paper's, on {known}", comparison.metrics, values, hours)


def _row_of(
    method: str,
    comparison: Comparison,
    settings: Settings,
    data: tuple[Dataset, Dataset],
    propensity: tuple[float, float],
) -> str:
    """Train a method and return its line, or why there is none."""
    train, test = data
    make = comparison.methods.get(method)
    if make is None:
        return _line(f"{method}: not in longtail", comparison.metrics, {}, "")
    started = time.process_time()
    try:
        estimator = make(settings, train.n_points).fit_dataset(train)
    except InputError as error:
        reason = str(error).partition(". ")[0]
        return _line(f"{method}: not run. {reason}", comparison.metrics, {}, "")
    seconds = time.process_time() - started
    metrics = estimator.predictor_.evaluate(test, propensity=propensity)
    return _line(method, comparison.metrics, metrics, f"{seconds:.0f} CPU s")


def _line(first: str, names: Sequence[str], values: Mapping[str, float], last: str) -> str:
    """Return a line of a Markdown table."""
    cells = [f"{values[name]:.2f}" if name in values else "" for name in names]
    return f"| {' | '.join([first, *cells, last])} |"


def _vectors(dataset: Dataset, settings: Settings) -> Dataset:
    """Return the features of images by the network as it comes, which other methods learn from."""
    resnet, data = _resnet(settings), TrainingData(dataset.features, dataset.labels)
    run = TrainingRun(settings.get("random_state", 0), n_threads=1)
    encoder = resnet.frozen(resnet.network(data, dataset.labels, run))
    return replace(dataset, features=csr_array(encoder.encode(data.bags())))
