"""A trained model whose labels are called otherwise, and are else the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from longtail.data.input_notes import InputNotes
from longtail.data.label_names import check_name, remark_on_new_twins
from longtail.data.text_column import TextColumn
from longtail.errors import InputError, named

if TYPE_CHECKING:
    from longtail.data.label_space import LabelSpace
    from longtail.predictor import Predictor

__all__ = ["check_new_name", "with_changes", "with_names"]

_KINDS = ("added", "removed", "renamed")  # in which order they are told


def with_names(model: Predictor, names: Mapping[str, str]) -> Predictor:
    """Return a model that calls some labels otherwise; the given one stays as it is.

    What was learnt stays, and so do the labels' texts: of labels that had only a name, the name
    that the model has learnt from.

    Parameters
    ----------
    model : Predictor
        Of any recipe.
    names : mapping of str to str
        New names by the present ones. Two labels may change names. Where several labels share a
        name, all of them get the new one.

    Warns
    -----
    InputWarning
        If a new name differs from another one by blanks at its ends or by the form of its accents.

    Raises
    ------
    InputError
        If the labels have no names, none has one of the present ones, or a new one is empty or that
        of another label.

    Examples
    --------
    >>> from longtail import LongtailClassifier
    >>> texts, labels = ["red wine", "old car"] * 10, [["drink"], ["vehicle"]] * 10
    >>> model = LongtailClassifier().fit(texts, labels).predictor_
    >>> model = model.with_names({"drink": "beverage"})
    >>> model.predict("red wine", k=1)[0][0]
    'beverage'
    """
    space = model.label_space
    new = _checked(space, names)
    changed = [new.get(name, name) for name in space.names or ()]
    notes = InputNotes("names")
    remark_on_new_twins(notes, [*new.values()], changed)
    notes.warn()
    n_renamed = sum(len(space.ids_of(name)) for name in new)
    return model.replaced(
        label_space=replace(space, names=TextColumn.from_strings(changed)),
        description=with_changes(model.description, {"renamed": n_renamed}),
    )


def with_changes(description: Mapping[str, Any], changes: Mapping[str, int]) -> dict[str, Any]:
    """Return what a model folder says of the training, with more changes of labels counted.

    Examples
    --------
    >>> from longtail.label_changes.renamed import with_changes
    >>> description = {"recipe": "longtail", "label_changes": {"added": 1, "renamed": 2}}
    >>> with_changes(description, {"renamed": 3})
    {'recipe': 'longtail', 'label_changes': {'added': 1, 'renamed': 5}}
    """
    before = description.get("label_changes", {})
    after = {
        kind: before.get(kind, 0) + changes.get(kind, 0)
        for kind in _KINDS
        if kind in before or kind in changes
    }
    return {**description, "label_changes": after}


def check_new_name(name: str) -> None:
    """Refuse what no label can be called.

    Examples
    --------
    >>> from longtail.label_changes.renamed import check_new_name
    >>> check_new_name("orange wine")
    """
    check_name(name)
    if not name.strip() or TextColumn.from_strings([name])[0] != name:
        raise InputError(
            f"A label cannot be named {name!r}. Use a string that is more than blanks, of "
            "characters that UTF-8 has."
        )


def _checked(space: LabelSpace, names: Mapping[str, str]) -> Mapping[str, str]:
    """Return the new names by the present ones, without those that stay the same."""
    if space.names is None:
        raise InputError(
            "The labels of this model have numbers and no names that could be changed. Train it "
            "with names."
        )
    if not isinstance(names, Mapping) or not names:
        what = named(names) if names else "nothing in it"
        raise InputError(f"Pass a dictionary of new names by the present ones, got {what}.")
    for old, new in names.items():
        space.id_of(old)
        check_new_name(new)
    taken = Counter(names.values())
    for new, count in taken.items():
        if count > 1 or (new in space.ids_by_name and new not in names):
            raise InputError(
                f"Another label is or will be named {new!r}, and two could not be told apart. "
                "Choose another name: labels cannot be merged without training."
            )
    return {old: new for old, new in names.items() if old != new}
