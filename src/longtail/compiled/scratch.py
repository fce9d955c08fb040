"""How much a prediction looks at, and the room that it needs for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from longtail.blend.score_network import count_sources
from longtail.compiled.parts import dimension_of
from longtail.kernels.answer_parts import AnswerScratch
from longtail.kernels.arrays import read_only
from longtail.kernels.byte_rows import SplitQuery, split_width
from longtail.kernels.coded_graph import new_keys, new_walk
from longtail.kernels.instructions import LANES
from longtail.kernels.packed_ids import unpacked_ids
from longtail.kernels.sparse_lanes import N_MORE_SLOTS
from longtail.kernels.wide_network import NetworkScratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from longtail.blend.candidates import SearchSizes
    from longtail.blend.relations import RelationSizes
    from longtail.kernels.answer_parts import Answerer

    Floats = NDArray[np.float32]
    Ids = NDArray[np.int32]

__all__ = ["count_places", "label_beam", "log_ranks_of", "new_scratch"]

MOST_LOGGED = 8192  # nodes that a walk has compared after the entries: usually about 2,000
N_NAMED = 64  # labels that may follow the candidates because of their texts, in a long answer
MOST_TOUCHED = 4096  # labels that the matches of one text are linked to


def log_ranks_of(width: int) -> Floats:
    """Return the logarithms of all ranks among `width` candidates, in whole vectors of them.

    Examples
    --------
    >>> from longtail.compiled.scratch import log_ranks_of
    >>> len(log_ranks_of(3)), len(log_ranks_of(17))
    (16, 32)
    >>> log_ranks_of(3)[:3].astype(float).round(2).tolist()
    [0.0, 0.69, 1.1]
    """
    n_ranks = -(-width // LANES) * LANES
    return read_only(np.log1p(np.arange(n_ranks, dtype=np.float32)), np.float32)


def label_beam(sizes: SearchSizes) -> int:
    """Return how long the beam of a walk of the labels is.

    Three quarters of ``sizes.beam_size``, since the walk goes on from two nodes at a time.

    Examples
    --------
    A beam is never shorter than what it is to find.

    >>> from longtail.blend.candidates import SearchSizes
    >>> from longtail.compiled.scratch import label_beam
    >>> [label_beam(SearchSizes(beam_size=64, n_near_labels=n)) for n in (30, 60)]
    [48, 60]
    """
    return max(sizes.n_near_labels, 3 * sizes.beam_size // 4)


def point_beam(sizes: SearchSizes) -> int:
    """Return how long the beam of a walk of the points is: half, since the walk starts near."""
    return max(sizes.n_near_points, sizes.beam_size // 2)


def new_scratch(
    parts: Answerer, sizes: SearchSizes, related: RelationSizes, n_places: int
) -> AnswerScratch:
    """Return scratch for one thread; a walk of labels keeps a log, to go on with a longer beam.

    `n_places` is what `count_places` says of the parts.
    """
    n_found = min(sizes.n_near_labels, len(parts.label_of_row))
    n_near = min(sizes.n_near_points, len(parts.points.members))
    n_tokens, dimension = len(parts.tokens.values), dimension_of(parts)
    n_labels, network = len(parts.commonness), parts.network
    width = len(network.log_ranks)
    walk = new_walk(parts.labels, label_beam(sizes), width, MOST_LOGGED + len(parts.labels.entries))

    def ids(size: int) -> Ids:
        return np.zeros(size, np.int32)

    def floats(*shape: int) -> Floats:
        return np.zeros(shape, np.float32)

    return AnswerScratch(
        point=floats(dimension),
        codes=np.zeros(2 * parts.labels.codes.shape[1], np.int8),
        split=SplitQuery(
            np.zeros((2, split_width(dimension)), np.int8), np.zeros(2, np.int32), floats(1)
        ),
        places=ids(width),
        label_walk=walk,
        wide_walk=walk._replace(keys=new_keys(2 * label_beam(sizes))),
        starts=ids(width),
        point_walk=new_walk(parts.points, point_beam(sizes), width),
        found=ids(n_found),
        found_similarities=floats(n_found),
        near=ids(n_near),
        near_similarities=floats(n_near),
        likely=ids(related.n_likely),
        likely_sums=floats(related.n_likely),
        matches=ids(related.n_matches),
        match_strengths=floats(related.n_matches),
        named=ids(N_NAMED),
        named_sums=floats(N_NAMED),
        linked=ids(related.n_linked),
        linked_votes=floats(related.n_linked),
        touched=ids(min(MOST_TOUCHED, n_labels)),
        voted=ids(n_labels),
        best_voted=ids(sizes.n_voted),
        best_votes=floats(sizes.n_voted),
        votes=floats(n_labels),
        links=floats(n_labels),
        slots=np.zeros(n_labels + N_MORE_SLOTS, np.uint16),
        text_sums=floats(n_labels if parts.has_relations else 0),
        dense=floats(n_places),
        read_columns=ids(n_tokens),
        read_values=floats(n_tokens),
        candidates=ids(min(width, n_labels)),
        candidate_votes=floats(width),
        evidence=floats(count_sources(len(parts.heads), has_relations=parts.has_relations), width),
        commonness=floats(width),
        network=NetworkScratch(
            views=floats(len(network.centre), width),
            hidden1=floats(len(network.bias1), width),
            hidden2=floats(len(network.bias2), width),
            ranks=ids(width),
            log_ranks=floats(width),
        ),
        scores=floats(width),
    )


def count_places(parts: Answerer) -> int:
    """Return how many features of split rows are common, at most, and one for all others."""
    split = [parts.linear, *([parts.relations.texts] if parts.has_relations else [])]
    most = max(int(unpacked_ids(rows.places).max(initial=0)) for rows in split)
    return 1 + min(most, len(parts.tokens.values))  # of a damaged file, too
