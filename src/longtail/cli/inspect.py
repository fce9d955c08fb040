"""``longtail inspect``: what is in a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.amounts import bytes_text, counted, time_text
from longtail.cli.compile import places_of_code
from longtail.cli.files import (
    CARD,
    TRAINING,
    check_output,
    is_stdout,
    reading_training,
    write_text,
)
from longtail.cli.metrics_file import read_metrics
from longtail.cli.model_card import ON_HUBS, changes_text, model_card
from longtail.cli.near_names import check_label_names, near_names
from longtail.cli.notices import notice, warning
from longtail.cli.output import result, short, table
from longtail.cli.parser import word
from longtail.compiled.blended import compiled_of
from longtail.compiled.scorer import CompiledScorer
from longtail.compiled.search_recall import MANY, has_bias, label_recall, n_queries
from longtail.data.rows import unit_vectors
from longtail.errors import InputError, ModelFolderError, named, source_name
from longtail.explain import words_of
from longtail.kernels.text import TokenKind
from longtail.metrics.hits import row_chunks
from longtail.model_folder import ModelFolder
from longtail.predictor import Predictor
from longtail.scorers.energy_reranker import EnergyReranker
from longtail.scorers.ensemble import EnsembleScorer
from longtail.scorers.protocols import HasVectors
from longtail.warm_up import warm_up

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from longtail.scorers.protocols import Scorer

__all__ = ["add_arguments", "run_command"]

EXAMPLE = "longtail inspect model"

N_SHOWN = 10
N_CLUSTERS, N_IN_CLUSTER = 5, 8
_MARKDOWN, _OF_MODELS = {".md", ".markdown"}, ("*.json", "*.safetensors")
ROWS_AT_ONCE = 65_536  # table rows that are scaled to unit length together


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("model", metavar="DIR", help="a model folder")
    parser.add_argument("--label", metavar="NAME", help="show the labels nearest to this one")
    parser.add_argument("--token", metavar="TEXT", help="show the tokens nearest to this one")
    parser.add_argument("--verify", action="store_true", help="check every file's checksum")
    parser.add_argument(
        "--compile",
        action="store_true",
        help="compile and keep all code that answers need, as when an image is built; show where",
    )
    parser.add_argument(
        "--card",
        metavar="FILE",
        type=Path,
        nargs="?",
        const=Path("-"),
        help="write a model card, in Markdown with what model hubs read in front, to a file such "
        f"as DIR/{CARD}, or to standard output",
    )
    parser.add_argument(
        "--metrics",
        metavar="FILE",
        help="what `evaluate --json` has written, to be in the card; - is standard input",
    )
    parser.add_argument(
        "--measured-on",
        metavar="NAME",
        type=word,
        help="what the card calls the points of --metrics; the name of their file by default",
    )


def run_command(arguments: argparse.Namespace) -> int:
    """Show, and return the exit code."""
    if arguments.card is not None:
        return _write_card(arguments)
    for option in ("metrics", "measured_on"):
        if getattr(arguments, option) is not None:
            name = f"--{option.replace('_', '-')}"
            raise InputError(f"{name} is for a model card. Add --card, or omit {name}.")
    folder = ModelFolder.open(arguments.model, verify=arguments.verify)
    model = Predictor.from_folder(folder)
    if arguments.compile:
        _compile(model)
        return 0
    if arguments.label is not None or arguments.token is not None:
        folder.check_arrays()  # what is damaged may lead out of the tables
    if arguments.label is not None:
        _show_near_labels(model, arguments.label)
    if arguments.token is not None:
        _show_near_tokens(model, arguments.token)
    if arguments.label is None and arguments.token is None:
        _show_all(model, folder)
    if arguments.verify:
        result(f"All {len(folder.files)} files have the checksums that they were written with.")
    return 0


def _write_card(arguments: argparse.Namespace) -> int:
    """Write the card, and return the exit code."""
    _check_card(arguments)
    measured = None if arguments.metrics is None else read_metrics(arguments.metrics, [*ON_HUBS])
    folder = ModelFolder.open(arguments.model, verify=arguments.verify)
    folder.check_arrays()  # names in what is damaged would be others
    if measured is not None and measured.model_checksum not in {None, folder.checksum}:
        warning(
            f"{source_name(arguments.metrics)} was measured with another model, or before labels "
            f"of this one were changed. Measure anew: longtail evaluate {arguments.model} TEST "
            "--json FILE"
        )
    card = model_card(Predictor.from_folder(folder), folder, measured, arguments.measured_on)
    write_text(arguments.card, card)
    if not is_stdout(arguments.card):
        notice(f"The card is {arguments.card}.")
    return 0


def _check_card(arguments: argparse.Namespace) -> None:
    """Refuse what no card can be written to, or what it would not have."""
    for option in ("label", "token", "compile"):
        if getattr(arguments, option):
            raise InputError(f"--card shows the model as a whole. Omit --{option}, or --card.")
    if arguments.measured_on is not None and arguments.metrics is None:
        raise InputError("--measured-on is what was measured on: add --metrics FILE, or omit it.")
    if is_stdout(arguments.card):
        return
    if arguments.card.suffix.lower() not in _MARKDOWN:
        # A name such as train.jsonl would be replaced by the card.
        raise InputError(
            f"A card is Markdown: name a file that ends in .md, such as {CARD}, got "
            f"{arguments.card}."
        )
    own = [file for kind in _OF_MODELS for file in Path(arguments.model).glob(kind)]  # by a link
    check_output(arguments.card, read=[arguments.metrics, *own], beside=arguments.model)


def _compile(model: Predictor) -> None:
    """Compile what answers need, and say where it is."""
    warm_up(model)
    result(f"The code that this model answers with is in {places_of_code()}.")


def _show_all(model: Predictor, folder: ModelFolder) -> None:
    """Show one section after the other."""
    _show_sizes(model, folder)
    _show_settings(model.description)
    _show_search(model)
    _show_frequent_labels(model)
    _show_clusters(model, folder)
    _show_tokens(model)
    _show_training(folder)


def _show_sizes(model: Predictor, folder: ModelFolder) -> None:
    """Show counts, and the size of each file."""
    facts = model.description
    kind = "texts" if model.vectorizer is not None else "ready-made features"
    learners = _learners(model)
    learner = learners[0]
    counts = [counted(model.n_labels, "label"), counted(model.n_features, "feature")]
    if isinstance(learner, HasVectors):
        stored = f" in {learner.storage}" if isinstance(learner, CompiledScorer) else ""
        counts.append(f"{learner.dimension} dimensions{stored}")
    if len(learners) > 1:
        counts.append(f"{len(learners)} learners")
    trained = f", trained on {counted(facts['n_points'], 'point')}" if "n_points" in facts else ""
    result(
        f"{facts.get('recipe', 'made by hand')}{trained} ({kind}): "
        f"{', '.join(counts)}{_told_text(facts.get('n_set_aside', 0))}"
        f"{changes_text(facts.get('label_changes', {}))}"
    )
    result(f"saved by longtail {folder.version}")
    sizes = folder.sizes
    rows = [[name, bytes_text(size)] for name, size in sorted(sizes.items())]
    _section("Files", table(["file", "size"], [*rows, ["in all", bytes_text(sum(sizes.values()))]]))


def _told_text(n_pairs: int) -> str:
    """Say of how many pairs the training was told that answers are not judged by them."""
    return f"; not judged by {counted(n_pairs, 'pair')}" if n_pairs else ""


def _show_settings(facts: dict[str, Any]) -> None:
    """Show the hyper-parameters; a model made by hand may have none."""
    settings = facts.get("settings")
    if settings:
        _section("Settings", "\n".join(f"{key} = {value}" for key, value in settings.items()))


def _show_search(model: Predictor) -> None:
    """Show how well the graph finds labels."""
    learner = _learners(model)[0]
    scorer = compiled_of(learner)
    if scorer is not None and len(scorer.parts.labels.codes):
        recall = label_recall(scorer)
        what = "training point" if len(scorer.parts.points.codes) else "label"
        n_there = len(scorer.parts.labels.codes)
        n, many = min(scorer.sizes.n_near_labels, n_there), min(MANY, n_there)
        nearest = "labels of the largest logits" if has_bias(scorer) else "nearest labels"
        _section(
            "Search",
            f"{100 * recall.of_candidates:.1f} % of the {n} {nearest} that an exact search finds "
            f"({counted(n_queries(scorer), what)})\n"
            f"{100 * recall.of_hundred:.1f} % of the {many} are met on the way, from which longer "
            "answers go on",
        )


def _show_frequent_labels(model: Predictor) -> None:
    """Show the labels with the most training points."""
    order = np.argsort(-model.train_label_counts, kind="stable")[:N_SHOWN]
    rows = [[_label(model, i), f"{model.train_label_counts[i]:,}"] for i in order.tolist()]
    _section("Most frequent labels", table(["label", "training points"], rows))


def _label(model: Predictor, label: int) -> str:
    """Return a label's name as it is shown in a table."""
    return short(model.label_space.name(label))


def _show_clusters(model: Predictor, folder: ModelFolder) -> None:
    """Show the label clusters of the surrogate task, if any, around some frequent labels."""
    name = next((name for name in folder.arrays if name.endswith("labels/clusters")), None)
    if name is None:
        return
    cluster_of = np.asarray(folder.arrays[name])
    counts = model.train_label_counts
    lines = []
    for cluster in _some_clusters(cluster_of, counts):
        members = np.flatnonzero(cluster_of == cluster)
        members = members[np.argsort(-counts[members], kind="stable")]
        names = [_label(model, i) for i in members[:N_IN_CLUSTER].tolist()]
        more = f" | {len(members) - len(names)} more" if len(members) > len(names) else ""
        lines.append(f"{cluster}: {' | '.join(names)}{more}")
    _section(f"Label clusters ({len(np.unique(cluster_of)):,} in all)", "\n".join(lines))


def _some_clusters(cluster_of: NDArray[Any], counts: NDArray[np.int64]) -> list[int]:
    """Return the clusters of the most frequent labels."""
    by_frequency = cluster_of[np.argsort(-counts, kind="stable")[: 100 * N_CLUSTERS]]
    return list(dict.fromkeys(by_frequency.tolist()))[:N_CLUSTERS]


def _show_tokens(model: Predictor) -> None:
    """Show the most frequent words: columns are in that order."""
    if model.vectorizer is None:
        return
    words = np.flatnonzero(model.vectorizer.kinds_ == TokenKind.WORD)
    tokens = [model.vectorizer.token(column) for column in words[: 3 * N_SHOWN].tolist()]
    _section(f"Most frequent words ({len(words):,} in all)", " ".join(map(short, tokens)))


def _show_training(folder: ModelFolder) -> None:
    """Show how training went, from training.json."""
    try:
        training = folder.document(TRAINING)
    except ModelFolderError:
        return  # a model that was not written by `train` or `.save`
    with reading_training(folder.path):
        _show_stages(training)


def _show_stages(training: Mapping[str, Any]) -> None:
    """Show losses and times of each stage."""
    stages: dict[str, list[dict[str, Any]]] = {}
    for entry in training.get("history", []):
        stages.setdefault(entry["stage"], []).append(entry)
    if stages:  # recipes without gradient steps have no epochs
        _section("Training", _learning_table(stages))
    times = [
        [stage, f"{spent['wall_seconds']:.1f}", f"{spent['cpu_seconds']:.1f}"]
        for stage, spent in training.get("stages", {}).items()
    ]
    _section("Time", table(["stage", "wall seconds", "CPU seconds"], times))
    result(
        f"{time_text(training['wall_seconds'])} in all, at most "
        f"{bytes_text(training['peak_memory_mb'] * 10**6)} of memory"
    )


def _learning_table(stages: Mapping[str, list[dict[str, Any]]]) -> str:
    """Return how each stage was learnt, with the best quality where one has been measured."""
    is_judged = any("quality" in epoch for epochs in stages.values() for epoch in epochs)
    head = ["stage", "epochs", "first loss", "last loss", *["best quality"] * is_judged, "seconds"]
    rows = []
    for stage, epochs in stages.items():
        losses = [f"{epochs[place]['loss']:.4g}" for place in (0, -1)]
        qualities = [epoch["quality"] for epoch in epochs if "quality" in epoch]
        best = [f"{max(qualities):.4g}" if qualities else ""] * is_judged
        seconds = f"{sum(epoch['seconds'] for epoch in epochs):.1f}"
        rows.append([stage, str(len(epochs)), *losses, *best, seconds])
    return table(head, rows)


def _show_near_labels(model: Predictor, name: str) -> None:
    """Show the labels whose classifiers point in similar directions."""
    check_label_names(model.label_space, [name])
    label = model.label_space.id_of(name)
    learner = _learners(model)[0]
    if not isinstance(learner, HasVectors):
        raise _no_vectors(learner, "labels", "--label")
    vectors = learner.vectors_of_labels()
    if not vectors[label].any():
        raise InputError(
            f"The model has no vector of {name!r}: no training point has that label. Name another."
        )
    ids, cosines = _nearest(vectors, label)
    rows = [
        [_label(model, i), f"{cosine:.3f}", f"{model.train_label_counts[i]:,}"]
        for i, cosine in zip(ids, cosines, strict=True)
    ]
    result(table([f"labels near {short(repr(name))}", "cosine", "training points"], rows))


def _show_near_tokens(model: Predictor, text: str) -> None:
    """Show the tokens of the same kind whose vectors point in similar directions."""
    if model.vectorizer is None:
        raise InputError(
            "This model was trained on ready-made features and has no tokens. Omit --token."
        )
    tokens = model.vectorizer.tokens_
    # As texts are read; a piece of a word, such as "<win", is looked for as it stands.
    spellings = (text.casefold(), " ".join(words_of(text)))
    kinds = model.vectorizer.kinds_
    columns = [i for i, token in enumerate(tokens) if token in spellings]
    wanted = tokens[columns[0]] if columns else spellings[0]
    if not columns:
        raise InputError(
            f"The model has no token {wanted!r}: it was in too few training texts."
            f"{near_names(wanted, tokens)}"
        )
    learner = _learners(model)[0]
    vectors = learner.vectors_of_tokens() if isinstance(learner, HasVectors) else None
    if vectors is None:
        raise _no_vectors(learner, "tokens", "--token")
    column = min(columns, key=lambda i: int(kinds[i]))  # the word, if a word piece is spelt alike
    same_kind = np.flatnonzero(kinds == kinds[column])
    place = int(np.searchsorted(same_kind, column))
    ids, cosines = _nearest(vectors[same_kind], place)
    rows = [
        [short(tokens[int(same_kind[i])]), f"{cosine:.3f}"]
        for i, cosine in zip(ids, cosines, strict=True)
    ]
    result(table([f"tokens near {short(repr(wanted))}", "cosine"], rows))


def _nearest(vectors: NDArray[np.float32], row: int) -> tuple[list[int], list[float]]:
    """Return the rows of the greatest cosine with one row, and the cosines."""
    wanted = unit_vectors(vectors[row : row + 1])[0]
    cosines = np.concatenate(
        [unit_vectors(vectors[some]) @ wanted for some in row_chunks(len(vectors), ROWS_AT_ONCE)]
    )
    cosines[row] = -np.inf
    best = np.argsort(-cosines, kind="stable")[: min(N_SHOWN, len(vectors) - 1)]
    return best.tolist(), cosines[best].tolist()


def _learners(model: Predictor) -> Sequence[Scorer]:
    """Return the learners, of which the first one's vectors are shown."""
    scorer = model.scorer
    if isinstance(scorer, EnergyReranker):
        scorer = scorer.scorer
    return scorer.members if isinstance(scorer, EnsembleScorer) else (scorer,)


def _no_vectors(learner: Scorer, things: str, option: str) -> InputError:
    """Return what is said where nothing can be near anything."""
    return InputError(
        f"{named(learner, first=True)} has no vectors of {things} that could be near each other. "
        f"Omit {option}."
    )


def _section(title: str, body: str) -> None:
    """Write a titled part."""
    result(f"\n{title}\n{'-' * len(title)}\n{body}")
