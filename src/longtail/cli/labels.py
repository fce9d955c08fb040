"""``longtail labels``: a trained model's labels, and it with further, fewer or renamed ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from longtail.amounts import counted
from longtail.cli.files import check_inputs, say_what_stayed
from longtail.cli.near_names import check_label_names, names_in_file
from longtail.cli.notices import notice
from longtail.cli.one_at_a_time import turn_to_change
from longtail.cli.output import one_line, result
from longtail.cli.own_columns import (
    add_column_arguments,
    check_file_of,
    columns_as_in_training,
)
from longtail.cli.parser import HintingParser, OnlyOnce, word
from longtail.data.dataset import Dataset
from longtail.data.formats import FORMATS
from longtail.data.input_notes import warn
from longtail.data.label_space import LabelSpace
from longtail.errors import InputError, source_name
from longtail.model_folder import ModelFolder, check_target
from longtail.predictor import Predictor, load

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from longtail.data.columns import Columns

__all__ = ["add_arguments", "run_command"]

EXAMPLE = "longtail labels add model labels.txt larger"
ANY_RECIPE = "any recipe"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the commands and their options."""
    commands = parser.add_subparsers(
        metavar="list | add | remove | rename",
        required=True,
        dest="change",
        parser_class=HintingParser,
    )
    listing = _command(commands, "list", "Write the names of all labels, one a line", ANY_RECIPE)
    listing.set_defaults(run_labels=_list)
    add = _command(commands, "add", "Add labels that have a text, or some points, or both")
    add.set_defaults(run_labels=_change, change_model=_added)
    add.add_argument(
        "labels",
        metavar="LABELS_FILE",
        help="the new labels, one a line: a name, or a name, a TAB and a text; - reads "
        "standard input",
    )
    add.add_argument(
        "--examples", metavar="FILE", action=OnlyOnce, help="points that have the new labels"
    )
    add.add_argument("--format", choices=FORMATS, help="of the examples; guessed without it")
    add_column_arguments(add, "the examples")
    remove = _command(commands, "remove", "Remove labels")
    remove.set_defaults(run_labels=_change, change_model=_removed)
    remove.add_argument("names", metavar="NAME", type=word, nargs="*", help="labels to remove")
    remove.add_argument(
        "--from",
        metavar="FILE",
        action=OnlyOnce,
        dest="source",
        help="a file of labels to remove, one a line; - reads standard input",
    )
    rename = _command(commands, "rename", "Call labels otherwise", ANY_RECIPE)
    rename.set_defaults(run_labels=_change, change_model=_renamed)
    rename.add_argument(
        "names",
        metavar="NAME",
        type=word,
        nargs="+",
        help="a label's name and its new one, in turn",
    )
    places = {
        add: "LABELS_FILE",
        remove: "(NAME ... | --from FILE)",
        rename: "NAME NEW_NAME ...",
    }
    for command, own in places.items():
        command.add_argument("target", metavar="OUT", help="the folder to write; may be DIR")
        command.usage = f"%(prog)s DIR {own} OUT [options]"


def _command(
    commands: argparse._SubParsersAction[HintingParser],
    name: str,
    summary: str,
    of: str = "the default recipe, dexa, ngame or siamesexml",
) -> HintingParser:
    """Return the parser of one of them, which all begin with a model."""
    command = commands.add_parser(name, help=summary, description=f"{summary}.")
    command.add_argument("model", metavar="DIR", help=f"a model folder of {of}")
    return command


def run_command(arguments: argparse.Namespace) -> int:
    """List or change the labels, and return the exit code."""
    run: Callable[[argparse.Namespace], int] = arguments.run_labels
    return run(arguments)


def _list(arguments: argparse.Namespace) -> int:
    """Write the names of the labels, in the order of their ids."""
    space = load(arguments.model).label_space
    for label in range(space.n_labels):
        result(one_line(space.name(label)))
    return 0


def _change(arguments: argparse.Namespace) -> int:
    """Change the labels."""
    check_target(arguments.target)
    change: Callable[[Predictor, argparse.Namespace], Predictor] = arguments.change_model
    with turn_to_change(arguments.model, arguments.target) as check_unchanged:
        folder = ModelFolder.open(arguments.model)
        folder.check_arrays()  # what is damaged would get a checksum that says it is not
        model = Predictor.from_folder(folder)
        changed = change(model, arguments)
        check_unchanged()
        changed.save(arguments.target)
    say_what_stayed(arguments.target)
    said = f"{arguments.model} knew {model.n_labels:,}"
    if changed.n_labels == model.n_labels:
        n_renamed = _n_renamed(changed) - _n_renamed(model)
        said = f"{counted(n_renamed, 'name')} of {arguments.model} changed"
    notice(f"{arguments.target} knows {counted(changed.n_labels, 'label')}; {said}.")
    if model.label_space.names is None and changed.n_labels < model.n_labels:
        notice("The labels have numbers for names, and those behind a removed one have moved up.")
    return 0


def _added(model: Predictor, arguments: argparse.Namespace) -> Predictor:
    """Return the model with the labels of a file."""
    options = ["format", "text_column", "labels_column", "label_separator"]
    check_file_of(arguments, "examples", options)
    check_inputs(arguments.labels, arguments.examples)
    space = LabelSpace.read(arguments.labels)
    if space.names is None or space.texts is None or not space.names_are_unique:
        twice = next(iter(space.shared_names))
        raise InputError(
            f"{source_name(arguments.labels)} names {twice!r} more than once. Name each label once."
        )
    labels = dict(zip(space.names, space.texts, strict=True))
    if arguments.examples is None:
        return model.with_labels(labels)
    columns = columns_as_in_training(model, arguments, arguments.examples, arguments.format)
    return model.with_labels(labels, _examples(arguments, columns, space))


def _examples(
    arguments: argparse.Namespace, columns: Columns, space: LabelSpace
) -> Mapping[str, Sequence[str]]:
    """Return the points of each label."""
    dataset = Dataset.read(
        arguments.examples,
        format=arguments.format,
        label_space=space,
        unknown_labels="extend",
        text_column=columns.text,
        labels_column=columns.labels,
        label_separator=columns.separator,
    )
    _check_ids(dataset.label_space, space, arguments)
    by_label = dataset.labels[:, : space.n_labels].T.tocsr()
    rows = np.split(by_label.indices, by_label.indptr[1:-1])
    if dataset.texts is None:
        raise InputError(
            f"{source_name(arguments.examples)} holds features. Pass texts as examples, or use "
            "Python."
        )
    if not by_label.nnz:
        raise InputError(
            f"No point of {source_name(arguments.examples)} has one of the new labels, such as "
            f"{space.name(0)!r}. Names must match exactly, capital letters and spaces included. "
            "Correct them, or omit --examples."
        )
    without = [space.name(label) for label, own in enumerate(rows) if not len(own)]
    if without:
        warn(
            f"{source_name(arguments.examples)} has no point of {len(without):,} of the "
            f"{counted(space.n_labels, 'new label')}, such as {without[0]!r}: of these the text "
            "alone is known. Names must match exactly, capital letters and spaces included."
        )
    return {
        space.name(label): dataset.texts.take(own) for label, own in enumerate(rows) if len(own)
    }


def _check_ids(found: LabelSpace, new: LabelSpace, arguments: argparse.Namespace) -> None:
    """Raise InputError if examples have ids that are no lines of the file of new labels."""
    others = range(new.n_labels, found.n_labels)
    if others and [found.name(label) for label in others] == [str(label) for label in others]:
        raise InputError(
            f"{source_name(arguments.examples)} has ids of labels, up to {others[-1]:,}. Here ids "
            f"are lines of {source_name(arguments.labels)}, from 0 to {others[0] - 1:,}. Write "
            "names in place of ids."
        )


def _removed(model: Predictor, arguments: argparse.Namespace) -> Predictor:
    """Return the model without the named labels."""
    names, target = arguments.names, arguments.target
    if bool(names) == (arguments.source is not None):
        raise InputError("Name the labels to remove, or a file of them by --from FILE.")
    if arguments.source is not None:
        check_inputs(arguments.source)
        names = names_in_file(model.label_space, arguments.source)
    elif target in model.label_space.ids_by_name and not Path(target).exists():
        raise InputError(
            f"The last argument is the folder to write, but {target!r} is a label, too. Name the "
            f"folder behind the labels, or write ./{target} if it is to be called so."
        )
    check_label_names(model.label_space, names)
    return model.without_labels(names)


def _n_renamed(model: Predictor) -> int:
    """Return how many labels were renamed since the training."""
    return int(model.description.get("label_changes", {}).get("renamed", 0))


def _renamed(model: Predictor, arguments: argparse.Namespace) -> Predictor:
    """Return the model with new names of some labels."""
    names: list[str] = arguments.names
    if len(names) % 2:
        raise InputError(
            f"Name each label and its new name, in turn, and then the folder to write: "
            f"{names[-1]!r} has no new name."
        )
    old, new = names[::2], names[1::2]
    if repeated := [name for name in old if old.count(name) > 1]:
        raise InputError(f"{repeated[0]!r} is given two new names. Name each label once.")
    check_label_names(model.label_space, old)
    return model.with_names(dict(zip(old, new, strict=True)))
