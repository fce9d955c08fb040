"""Labels added to and removed from a trained model, which is not trained again."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from longtail.blend.encoded import EncodedScorer
from longtail.compiled.blended import BlendedScorer
from longtail.compiled.expanded import expanded
from longtail.compiled.scorer import CompiledScorer
from longtail.data.bags import Bags
from longtail.data.input_notes import InputNotes, warn
from longtail.data.label_names import names_in, remark_on_new_twins
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError, interruptible, named
from longtail.kernels.jit import n_usable_cores
from longtail.label_changes.kept_labels import keep_labels
from longtail.label_changes.new_labels import (
    NewLabels,
    SharedSpaceVectors,
    SiameseVectors,
    add_labels,
)
from longtail.label_changes.renamed import check_new_name, with_changes
from longtail.scorers.energy_reranker import EnergyReranker

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from longtail.label_changes.new_labels import ChangeableScorer, NewLabelVectors
    from longtail.predictor import Predictor
    from longtail.scorers.protocols import Scorer

__all__ = ["with_labels", "without_labels"]

# By the name of the recipe: several answer by a blend, but make their label vectors differently.
VECTORS_OF: Mapping[str, NewLabelVectors] = MappingProxyType(
    {
        "longtail": SharedSpaceVectors(),
        "dexa": SiameseVectors(),
        "ngame": SiameseVectors(),
        "siamesexml": SiameseVectors(),
    }
)


@interruptible()
def with_labels(
    model: Predictor,
    labels: Mapping[str, str] | Iterable[str],
    examples: Mapping[str, Any] | None = None,
    vectors: NewLabelVectors | None = None,
) -> Predictor:
    """Return a model that knows further labels; the given one stays as it is.

    What each part of the model makes of them is told in `add_labels`, and what their vectors are in
    `SharedSpaceVectors` and in `SiameseVectors`. Nothing is trained, so a label that has many
    points is better trained on them.

    Parameters
    ----------
    model : Predictor
        Of the default recipe without an `energy_reranker`, DEXA, NGAME or SiameseXML, compressed
        or not.
    labels : mapping of str to str, or iterable of str
        Names and texts of the new labels, or names that are the texts too.
    examples : mapping of str to points, optional
        By the names of new labels, points that have the label: texts, or rows of features if the
        model reads those. Three help much.
    vectors : NewLabelVectors, optional
        What makes their vectors, for a recipe of one's own; by default what the recipe has.

    Returns
    -------
    Predictor
        The new labels' ids follow those of the others.

    Warns
    -----
    InputWarning
        If a new name differs from another one by blanks at its ends or by the form of its accents,
        or an example holds nothing that the model knows.

    Raises
    ------
    InputError
        If the recipe is another, or has a text block; a name is taken, empty or there twice,
        examples are for labels that are not new, or nothing that the model knows is said of a
        label.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> texts = ["red wine", "white wine", "fast car", "old car"] * 5
    >>> labels = [["drink"], ["drink"], ["vehicle"], ["vehicle"]] * 5
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> model = model.with_labels(["antiquity"], examples={"antiquity": ["old wine", "old car"]})
    >>> sorted(name for name, _ in model.predict("old"))
    ['antiquity', 'drink', 'vehicle']
    """
    scorer = _changeable(model)
    vectors = vectors or _vectors_of(model)
    _check_no_text_block(model)
    texts = dict(labels) if isinstance(labels, Mapping) else _texts_of(names_in(labels))
    given = {} if examples is None else examples
    _check_new_names(model.label_space, texts, given)
    _remark_on_names(model.label_space, texts)
    new = _new_labels(model, texts, given)
    _check_known(new, list(texts), reads_texts=vectors.reads_texts(scorer))
    return _changed(
        model,
        {"added": new.n},
        add_labels(scorer, new, vectors, n_usable_cores()),
        model.label_space.extended(texts, texts.values()),
        np.concatenate([model.train_label_counts, new.counts()]),
    )


@interruptible()
def without_labels(model: Predictor, names: Iterable[str]) -> Predictor:
    """Return a model that has never heard of some labels; the given one stays as it is.

    Of texts that were about these alone, it calls the next best labels too probable. `masked` of
    `Predictor.predict` takes labels out of answers, and leaves the probabilities of others.

    Parameters
    ----------
    model : Predictor
        Of the default recipe without an `energy_reranker`, DEXA, NGAME or SiameseXML, compressed
        or not.
    names : iterable of str
        Where several labels share a name, all of them go.

    Returns
    -------
    Predictor
        The ids of the other labels close up.

    Raises
    ------
    InputError
        If the recipe is another, no label has one of the names, or no label would be left.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink", "red"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> [name for name, _ in model.without_labels(["drink"]).predict("red wine", k=3)]
    ['red', 'vehicle']
    """
    scorer, space = _changeable(model), model.label_space
    unwanted = {*names_in(names)}
    if not unwanted:
        raise InputError("There is no label to remove. Name at least one.")
    gone = [label for name in unwanted for label in space.ids_of(name)]
    kept = np.setdiff1d(np.arange(space.n_labels), np.array(gone, np.int64))
    if not len(kept):
        raise InputError(
            f"These are all {space.n_labels} labels of the model, and one without labels answers "
            "nothing. Keep at least one."
        )
    return _changed(
        model,
        {"removed": space.n_labels - len(kept)},
        keep_labels(scorer, kept, n_usable_cores()),
        LabelSpace(
            len(kept),
            None if space.names is None else space.names.take(kept),
            None if space.texts is None else space.texts.take(kept),
        ),
        model.train_label_counts[kept],
    )


def _changeable(model: Predictor) -> ChangeableScorer:
    """Return the scorer as parts that can be changed."""
    scorer = expanded(model.scorer) if isinstance(model.scorer, CompiledScorer) else model.scorer
    if isinstance(scorer, BlendedScorer | EncodedScorer):
        return scorer
    if isinstance(scorer, EnergyReranker):
        raise InputError(
            "The model re-orders its answers by an energy (`energy_reranker`), which was taught "
            "for these labels. Train one without, or, to leave labels out of answers, pass "
            "`masked` to predict."
        )
    raise InputError(
        "Only the labels of a model of the default recipe, dexa, ngame or siamesexml can be "
        f"changed without training; this one is of {model.description.get('recipe', 'none')}. "
        "Train it again, or, to leave labels out of answers, pass `masked` to predict."
    )


def _vectors_of(model: Predictor) -> NewLabelVectors:
    """Return what makes vectors of labels as the model's recipe has them."""
    recipe = model.description.get("recipe", "")
    if recipe not in VECTORS_OF:
        raise InputError(
            f"How {recipe or 'this recipe'} makes vectors of new labels is not known, only how "
            f"{', '.join(VECTORS_OF)} do. Pass `vectors` to longtail.label_changes.changes."
            "with_labels, such as SiameseVectors()."
        )
    return VECTORS_OF[recipe]


def _check_no_text_block(model: Predictor) -> None:
    """Refuse a model whose label vectors went through a block that it has not kept."""
    if model.description.get("settings", {}).get("text_block"):
        raise InputError(
            "This model was trained with text_block=True, and a model does not keep the block that "
            "the texts of new labels would go through. Train it again, with the new labels' texts "
            "or without the block."
        )


def _changed(
    model: Predictor,
    change: Mapping[str, int],
    scorer: ChangeableScorer,
    space: LabelSpace,
    counts: NDArray[np.int64],
) -> Predictor:
    """Return the model with other labels, stored as it was, and what was changed in all noted."""
    description = with_changes(model.description, {"added": 0, "removed": 0, **change})
    return model.replaced(
        scorer=_stored_as(model.scorer, scorer),
        label_space=space,
        train_label_counts=counts,
        description={**description, "n_labels": space.n_labels},
    )


def _stored_as(was: Scorer, scorer: ChangeableScorer) -> Scorer:
    """Return a changed scorer as the one that it was made of is kept."""
    if isinstance(was, CompiledScorer) and isinstance(scorer, BlendedScorer):
        return CompiledScorer.of(scorer, was.storage, n_usable_cores(), like=was)
    return scorer


def _texts_of(names: Sequence[str]) -> dict[str, str]:
    """Return the texts of labels that are their names, each of which is there once."""
    texts = {name: name for name in names}
    if len(texts) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{twice!r} is among the labels to add more than once. Name each once.")
    return texts


def _check_new_names(space: LabelSpace, texts: Mapping[str, str], examples: object) -> None:
    """Refuse names that are there, and examples of labels that are not being added."""
    if space.names is None:
        raise InputError(
            "The labels of this model have numbers and no names, so none can be added by name. "
            "Train it with names."
        )
    if not texts:
        raise InputError("There is no label to add. Name at least one.")
    if not isinstance(examples, Mapping):
        raise InputError(
            "examples must be a dictionary of points by the names of their labels, "
            f"got {named(examples)}."
        )
    for name in texts:
        check_new_name(name)
        if name in space.ids_by_name:
            raise InputError(
                f"The model has a label named {name!r} already. Remove that one first, or choose "
                "another name."
            )
    if strange := [name for name in examples if name not in texts]:
        raise InputError(
            f"There are examples of {strange[0]!r}, which is not one of the labels to be added. "
            "Add it, too, or leave its examples out."
        )


def _remark_on_names(space: LabelSpace, texts: Mapping[str, str]) -> None:
    """Warn of new names that look like others."""
    notes = InputNotes("labels")
    remark_on_new_twins(notes, texts, space.names or ())
    notes.warn()


def _new_labels(
    model: Predictor, texts: Mapping[str, str], examples: Mapping[str, Any]
) -> NewLabels:
    """Return what the model reads of new labels and of their points."""
    width, every, owners = model.reads.width(model.n_features), [], []
    for label, name in enumerate(texts):
        if name in examples:
            every.append(model.bags(examples[name]))
            owners += [label] * every[-1].n_rows
    none = Bags.of(csr_array((0, width), dtype=np.float32))._replace(texts=model.reads.texts(()))
    points = Bags.joined([none, *every])
    known = np.flatnonzero(~points.silent())
    _remark_on_silent(list(texts), np.array(owners, np.int64), known)
    some = Bags.of(csr_array(points.matrix(width)[known]))
    if points.texts is not None:
        some = some._replace(texts=points.texts[known])
    read = None if model.vectorizer is None else model.bags(list(texts.values()))
    return NewLabels(read, some, np.array(owners, np.int64)[known], len(texts))


def _remark_on_silent(
    names: Sequence[str], owners: NDArray[np.int64], known: NDArray[np.int64]
) -> None:
    """Warn of examples of which nothing is known: they tell nothing, and are left out."""
    silent = np.delete(owners, known)
    if len(silent):
        warn(
            f"examples: {len(silent):,} of {len(owners):,} hold nothing that the model knows and "
            f"are left out, {np.count_nonzero(silent == silent[0]):,} of them of "
            f"{names[silent[0]]!r}: it is found by what else is known of it. Pass examples with "
            "words of the training texts."
        )


def _check_known(new: NewLabels, names: Sequence[str], *, reads_texts: bool) -> None:
    """Refuse labels that could never be found."""
    known = new.counts() > 0
    texts = new.texts if reads_texts else None
    if texts is not None:
        known |= ~texts.silent()
    if not known.all():
        name = names[int(np.flatnonzero(~known)[0])]
        why = "does not read label texts" if texts is None else "knows no word of its text"
        raise InputError(
            f"Nothing is known of the new label {name!r}: the model {why}, and there is no example "
            "of it with a known word. Pass texts that have the label as its examples."
        )
