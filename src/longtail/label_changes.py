"""Labels added to and removed from a trained model, which is not trained again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, vstack

from longtail.blend.blended import BlendedScorer
from longtail.blend.kept_labels import keep_labels
from longtail.blend.new_labels import NewLabels, add_labels
from longtail.compiled.expanded import expanded
from longtail.compiled.scorer import CompiledScorer
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.errors import InputError
from longtail.kernels.jit import n_usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from longtail.predictor import Predictor

__all__ = ["with_labels", "without_labels"]

CHANGEABLE = "LongtailClassifier"  # the recipe; see `_changeable`


def with_labels(
    model: Predictor,
    labels: Mapping[str, str] | Iterable[str],
    examples: Mapping[str, Sequence[str] | csr_array] | None = None,
) -> Predictor:
    """Return a model that knows further labels; the given one stays as it is.

    What each part of the model makes of them is told in
    `longtail.blend.new_labels.add_labels`. Nothing is trained, so a label that has many
    points is better trained on them.

    Parameters
    ----------
    model : Predictor
        Of the default recipe, compressed or not.
    labels : mapping of str to str, or iterable of str
        Names and texts of the new labels, or names that are the texts too.
    examples : mapping of str to points, optional
        By the names of new labels, points that have the label: texts, or rows of features if the
        model reads those. Three help much.

    Returns
    -------
    Predictor
        The new labels' ids follow those of the others.

    Raises
    ------
    InputError
        If the recipe is another, a name is taken or empty, examples are for labels that are not
        new, or nothing that the model knows is said of a label.

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
    texts = dict(labels) if isinstance(labels, Mapping) else {n: n for n in _names(labels)}
    given = dict(examples or {})
    _check_new_names(model.label_space, texts, given)
    new = _new_labels(model, texts, given)
    _check_known(scorer, new, list(texts))
    space = model.label_space
    return _changed(
        model,
        {"added": len(new)},
        add_labels(scorer, new, n_usable_cores()),
        LabelSpace(
            space.n_labels + len(new),
            _joined(space.names, list(texts)),
            _joined(space.texts, list(texts.values())),
        ),
        np.concatenate([model.train_label_counts, new.counts()]),
    )


def without_labels(model: Predictor, names: Iterable[str]) -> Predictor:
    """Return a model that has never heard of some labels; the given one stays as it is.

    Parameters
    ----------
    model : Predictor
        Of the default recipe, compressed or not.
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
    unwanted = {*_names(names)}
    gone = {space.id_of(name) for name in unwanted}  # says which name no label has
    if space.names is not None:
        gone |= {label for label, name in enumerate(space.names) if name in unwanted}
    kept = np.setdiff1d(np.arange(space.n_labels), np.array(sorted(gone), np.int64))
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


def _changeable(model: Predictor) -> BlendedScorer:
    """Return the scorer as parts that can be changed."""
    recipe = model.description.get("recipe")
    # NGAME and its kin answer by a blend as well, but of other label vectors.
    if recipe == CHANGEABLE and isinstance(model.scorer, CompiledScorer):
        return expanded(model.scorer)
    if recipe == CHANGEABLE and isinstance(model.scorer, BlendedScorer):
        return model.scorer
    raise InputError(
        "Only the labels of a model of the default recipe can be changed without training; this "
        f"one is of {recipe} and answers with {type(model.scorer).__name__}. Train it again, or, "
        "to leave labels out of answers, pass `masked` to predict."
    )


def _changed(
    model: Predictor,
    change: Mapping[str, int],
    scorer: BlendedScorer,
    space: LabelSpace,
    counts: NDArray[np.int64],
) -> Predictor:
    """Return the model with other labels, stored as it was, and what was changed in all noted."""
    was = model.scorer
    before = {"added": 0, "removed": 0, **model.description.get("label_changes", {})}
    changes = {kind: n + change.get(kind, 0) for kind, n in before.items()}
    return model.replaced(
        scorer=CompiledScorer.of(scorer, was.dtype) if isinstance(was, CompiledScorer) else scorer,
        label_space=space,
        train_label_counts=counts,
        description={
            **model.description,
            "n_labels": space.n_labels,
            "label_changes": changes,
        },
    )


def _names(names: Iterable[str]) -> list[str]:
    """Return names as a list; one string is not several."""
    if isinstance(names, str):
        raise InputError(f"Expected a list of label names, got one string. Pass [{names!r}].")
    return list(names)


def _check_new_names(
    space: LabelSpace, texts: Mapping[str, str], examples: Mapping[str, Any]
) -> None:
    """Refuse names that are there, and examples of labels that are not being added."""
    if space.names is None:
        raise InputError(
            "The labels of this model have numbers and no names, so none can be added by name. "
            "Train it with names."
        )
    if not texts:
        raise InputError("There is no label to add. Name at least one.")
    for name in texts:
        if not isinstance(name, str) or not name:
            raise InputError(f"A label cannot be named {name!r}. Use a string that is not empty.")
        if name in space.ids_by_name:
            raise InputError(
                f"The model has a label named {name!r} already. Remove that one first, or choose "
                "another name."
            )
    if strange := [name for name in examples if name not in texts]:
        raise InputError(
            f"There are examples of {strange[0]!r}, which is not one of the labels to be added."
        )


def _new_labels(
    model: Predictor, texts: Mapping[str, str], examples: Mapping[str, Any]
) -> NewLabels:
    """Return what the model reads of new labels and of their points."""
    width = model.n_features
    none = csr_array((0, width), dtype=np.float32)
    bags, owners = [none], []
    for label, name in enumerate(texts):
        if name in examples:
            bags.append(model.bags(examples[name]).matrix(width))
            owners += [label] * bags[-1].shape[0]
    own = csr_array((len(texts), width), dtype=np.float32)
    if model.vectorizer is not None:
        own = model.vectorizer.transform(list(texts.values()))
    points = vstack(bags, format="csr")
    known = np.diff(points.indptr) > 0  # a point of which nothing is known tells nothing
    return NewLabels(own, csr_array(points[known]), np.array(owners, np.int64)[known])


def _check_known(scorer: BlendedScorer, new: NewLabels, names: Sequence[str]) -> None:
    """Refuse labels that could never be found."""
    known = new.counts() > 0
    texts_are_read = scorer.reads_label_texts
    if texts_are_read:
        known |= np.diff(new.texts.indptr) > 0
    if not known.all():
        name = names[int(np.flatnonzero(~known)[0])]
        why = "knows no word of its text" if texts_are_read else "does not read label texts"
        raise InputError(
            f"Nothing is known of the new label {name!r}: the model {why}, and there is no example "
            "of it with a known word. Pass texts that have the label as its examples."
        )


def _joined(column: TextColumn | None, more: Sequence[str]) -> TextColumn | None:
    """Return a column with more strings, if there is one."""
    return None if column is None else column.joined(TextColumn.from_strings(more))
