"""Networks of points and label texts that a stranger wrote: NGAME trains them, or says why not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from longtail.errors import InputError
from longtail.features.bag_encoder import BagEncoder, UnitBagEncoder
from longtail.recipes.ngame import NGAME
from longtail.siamese.networks import BagArchitecture, BagNetwork
from small_parts import LABELS, TEXTS


class OwnUnit(UnitBagEncoder):
    """An encoder whose vectors are not those of its arrays alone."""

    def encode(self, bags, n_threads=1):
        return -super().encode(bags, n_threads)


class OwnNetwork(BagNetwork):
    """A network of points and label texts whose vectors, or encoder, are what they are."""

    change_vectors = staticmethod(lambda rows: rows)
    change_frozen = staticmethod(lambda encoder: encoder)

    def vectors(self, side):
        return self.change_vectors(super().vectors(side))

    def frozen(self):
        return self.change_frozen(super().frozen())


def siamese(start):
    """Return an NGAME whose architecture starts with what this makes of its network."""

    class Own(NGAME):
        def architecture(self, n_points):
            return Starts()

    class Starts:
        def start(self, data, held_out, run):
            return start(BagArchitecture(dimension=4, dropout=0.0).start(data, held_out, run))

    return Own(dimension=4, encoder_epochs=1, classifier_epochs=1, n_threads=1)


def changed(**changes):
    """Return what makes an `OwnNetwork` of a network."""

    def start(network):
        network.__class__ = OwnNetwork
        vars(network).update(changes)
        return network

    return start


def test_a_siamese_architecture_of_somebody_elses():
    model = siamese(changed(change_vectors=lambda rows: rows.astype(np.float64)))
    assert model.fit(TEXTS, LABELS).predictor_.predict("wine", k=1)[0][0] == "drink"


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (lambda _: None, "what `start` returns must be an object that has dimension, pairs"),
        (changed(vectors=lambda: None), r"`vectors` of OwnNetwork is called as vectors\(side\)"),
        (changed(change_vectors=lambda _: None), r"float32 \(40, 4\), .* got a NoneType"),
        (changed(change_vectors=lambda rows: rows[:-1]), r"got float32 \(39, 4\)"),
        (changed(change_vectors=lambda rows: rows[:, :3]), r"got float32 \(40, 3\)"),
        (changed(change_vectors=torch.from_numpy), "got a Tensor"),
        (changed(change_vectors=lambda rows: rows * np.nan), "holds NaN"),
        (
            changed(change_vectors=lambda rows: rows * 9),
            "of length 1, or of zeros, got one of leng",
        ),
        (changed(change_frozen=lambda _: None), "What `frozen` returns must be an object that has"),
        (changed(change_frozen=lambda e: BagEncoder(e.token_vectors)), "has no dimension"),
        (
            changed(change_frozen=lambda e: UnitBagEncoder(e.token_vectors[1:])),
            "token vectors, but",
        ),
        (
            changed(change_frozen=lambda e: UnitBagEncoder(e.token_vectors[:, :3])),
            "vectors of 3 numbers, but those of the network have 4",
        ),
        (changed(change_frozen=lambda e: OwnUnit(e.token_vectors)), "OwnUnit has an `encode`"),
    ],
)
def test_what_is_no_siamese_network(start, message):
    with pytest.raises(InputError, match=message):
        siamese(start).fit(TEXTS, LABELS)


def test_what_is_no_siamese_architecture():
    class Own(NGAME):
        def architecture(self, n_points):
            return None

    with pytest.raises(InputError, match=r"what `architecture` returns .* a NoneType has no start"):
        Own(n_threads=1).fit(TEXTS, LABELS)


def test_a_loss_of_pairs_may_be_of_torchs_own_gradient():
    class Hinge:
        def slope(self, cosines, rows, columns):
            cosines = cosines.detach().requires_grad_()
            loss = (cosines - 0.2).relu().sum() + (1 - cosines[rows, columns]).sum()
            loss.backward()
            return loss / len(cosines), cosines.grad

    model = NGAME(encoder_loss=Hinge(), dimension=4, n_threads=1).fit(TEXTS, LABELS)
    assert model.predictor_.predict("wine", k=1)[0][0] == "drink"
