"""Every recipe, small enough for a second of training, and texts that it learns from."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.classifiers.shortlisted import ShortlistedOneVsAll, ShortlistTraining
from longtail.data.from_python import labels_from
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.negatives.nearest_labels import NearestLabels
from longtail.recipes.annexml import AnnexML
from longtail.recipes.astec import Astec, Astec3
from longtail.recipes.attentionxml import AttentionXML
from longtail.recipes.deepxml import DeepXML
from longtail.recipes.deepxml_with import DeepXMLKimCNN, DeepXMLMACH, DeepXMLXMLCNN
from longtail.recipes.dexa import DEXA
from longtail.recipes.dismec import DiSMEC
from longtail.recipes.end_to_end import KimCNNClassifier, XMLCNNClassifier
from longtail.recipes.extremetext import ExtremeText
from longtail.recipes.icnn import ICNN
from longtail.recipes.longtail import LongtailClassifier
from longtail.recipes.mach import MACH
from longtail.recipes.one_vs_all import OneVsAll
from longtail.recipes.parabel import Bonsai, Parabel
from longtail.recipes.pfastrexml import PfastreXML
from longtail.recipes.siamesexml import SiameseXML
from longtail.recipes.slice import Slice
from longtail.recipes.spen import SPEN
from longtail.recipes.xtransformer import XTransformer
from longtail.surrogates.meta_label_task import MetaLabelTask
from longtail.training.schedule import Schedule

SMALL = {
    "dimension": 16,
    "surrogate_epochs": 5,
    "extreme_epochs": 5,
    "reranker_epochs": 3,
    "n_near_labels": 20,
    "n_near_points": 10,
    "n_threads": 1,  # threads cost more than they bring here
}

BRIEF = {"dimension": 16, "encoder_epochs": 5, "classifier_epochs": 3, "n_threads": 1}
IN_FRAMEWORK = {
    "surrogate_epochs": 10,
    "extreme_epochs": 10,
    "n_near_labels": 20,
    "n_near_points": 10,
    "n_threads": 1,
}
TINY_XMLCNN = {"dimension": 16, "n_filters": 8, "n_chunks": 2, "n_words": 8, "bottleneck": 16}
SMALL_TREE = {
    "dimension": 16,
    "leaf_size": 2,
    "batch_size": 16,
    "epochs": 8,
    "learning_rate": 0.4,
    "n_threads": 1,
}
SMALL_ENERGY = {
    "n_hidden": 4,
    "batch_size": 16,
    "energy_epochs": 3,
    "joint_epochs": 3,
    "n_threads": 1,
}


def small_deepxml():
    brief = Schedule(epochs=10, learning_rate=0.1)
    return DeepXML(
        features=BagOfTokens(dimension=16),
        surrogate=MetaLabelTask(schedule=brief),
        negatives=NearestLabels(n_near_labels=20, n_near_points=10),
        classifier=ShortlistedOneVsAll(training=ShortlistTraining(schedule=brief)),
        n_threads=1,
    )


RECIPES = {
    "Astec": lambda: Astec(**SMALL),
    "Astec, as in code": lambda: Astec(**SMALL, as_in_code=True),
    "Astec3": lambda: Astec3(**SMALL),
    "DeepXML": small_deepxml,
    "LongtailClassifier": lambda: LongtailClassifier(dimension=16, n_threads=1),
    "Parabel": lambda: Parabel(leaf_size=2, n_threads=1),
    "XTransformer": lambda: XTransformer(dimension=16, leaf_size=2, n_threads=1),
    "XTransformer, linear matcher": lambda: XTransformer(
        dimension=16, leaf_size=2, matcher="linear", n_threads=1
    ),
    "Bonsai": lambda: Bonsai(leaf_size=1, n_children=2, n_threads=1),
    "SPEN": lambda: SPEN(dimension=16, **SMALL_ENERGY),
    "ICNN": lambda: ICNN(dimension=16, inference="bundle", **SMALL_ENERGY),
    "DiSMEC": lambda: DiSMEC(n_threads=1),
    "AnnexML": lambda: AnnexML(n_learners=3, dimension=16, partition_size=20, n_threads=1),
    "OneVsAll": lambda: OneVsAll(
        dimension=16, epochs=8, learning_rate=0.4, batch_size=16, n_threads=1
    ),
    "ExtremeText": lambda: ExtremeText(**SMALL_TREE),
    "PfastreXML": lambda: PfastreXML(leaf_size=2, n_learners=5, n_threads=1),
    "Slice": lambda: Slice(dimension=16, n_threads=1),
    "MACH": lambda: MACH(n_hashes=4, dimension=16, epochs=7, n_threads=1),
    "DeepXMLMACH": lambda: DeepXMLMACH(dimension=16, **IN_FRAMEWORK),
    "KimCNNClassifier": lambda: KimCNNClassifier(dimension=16, n_filters=8, epochs=7, n_threads=1),
    "DeepXMLKimCNN": lambda: DeepXMLKimCNN(dimension=16, n_filters=8, **IN_FRAMEWORK),
    "XMLCNNClassifier": lambda: XMLCNNClassifier(**TINY_XMLCNN, epochs=7, n_threads=1),
    "XMLCNNClassifier, along the embedding": lambda: XMLCNNClassifier(
        **TINY_XMLCNN, along_embedding=True, n_threads=1
    ),
    "AttentionXML": lambda: AttentionXML(
        dimension=16,
        n_hidden=16,
        n_words=8,
        epochs=15,
        batch_size=16,
        learning_rate=0.5,
        n_threads=1,
    ),
    "DeepXMLXMLCNN": lambda: DeepXMLXMLCNN(**TINY_XMLCNN, **IN_FRAMEWORK),
    # Most of their code is the default recipe's.
    "DEXA": lambda: DEXA(**BRIEF),
    "SiameseXML": lambda: SiameseXML(**BRIEF),
}
# Those that take texts alone.
READ_WORDS = {name for name in RECIPES if "CNN" in name or "Attention" in name} - {"ICNN"}
# Other settings of a recipe, parts of others in the framework, and what has long tests of its own.
VARIANTS = {
    "Astec, as in code",
    "Astec3",
    "AttentionXML",
    "Bonsai",
    "DeepXMLKimCNN",
    "DeepXMLMACH",
    "DeepXMLXMLCNN",
    "ICNN",
    "SPEN",
    "XMLCNNClassifier, along the embedding",
    "XTransformer, linear matcher",
}
CASES = {
    name: pytest.param(make, id=name, marks=[pytest.mark.thorough] * (name in VARIANTS))
    for name, make in RECIPES.items()
}


THINGS = {
    "drink": ["red wine", "white wine", "dark beer", "cold beer", "green tea"],
    "vehicle": ["fast car", "old car", "city bus", "red bus", "night train"],
    "plant": ["red rose", "tall oak", "old oak", "wild rose", "green fern"],
}
TEXTS = [text for texts in THINGS.values() for text in texts] * 3
CLASSES = np.array([name for name, texts in THINGS.items() for _ in texts] * 3)
NAMES = [
    [name, "red"] if "red" in text else [name]
    for text, name in zip(TEXTS, CLASSES.tolist(), strict=True)
]
LABELS, SPACE, _ = labels_from(NAMES, len(NAMES))
IDS = [row.tolist() for row in np.split(LABELS.indices, LABELS.indptr[1:-1])]
WORDS = sorted({word for text in TEXTS for word in text.split()})
DENSE = np.array([[word in text.split() for word in WORDS] for text in TEXTS], np.float64)
