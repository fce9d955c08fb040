"""Two processes under torchrun train the model that one does."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys

import numpy as np
import pytest
import torch

import longtail
from longtail.cli import main
from longtail.errors import TrainingError
from longtail.model_folder import ModelFolder
from longtail.training import processes
from longtail.training.batches import Batch

WORDS = ["red", "white", "wine", "fast", "old", "car", "bottle", "ship", "sea", "blue", "sky"]
# Without dropout and texts that stand alone, which each process draws for itself.
SAME = ["held_out=0", "n_threads=1", "min_df=1", "dropout=0"]
RECIPES = {
    "xtransformer": ["dimension=16", "leaf_size=4", "batch_size=32"],
    "attentionxml": ["dimension=8", "n_hidden=8", "epochs=2", "first_level=4", "leaf_size=4"],
    # Whose labels are confused with a point's turns on the last bits of its vector.
    "dexa": ["dimension=16", "n_private=4", "batch_size=32", "linear=false"],
    "siamesexml": ["dimension=16", "batch_size=16", "linear=false"],
    "astec": ["dimension=16", "batch_size=32"],
    "longtail": ["dimension=16", "texts_alone=0"],
}
# Numbers that all machines multiply alike, so that sums in another order differ by little.
PREPARE = "import torch; torch.cpu.get_capabilities = dict; from longtail.cli import main"


def command(recipe, train, model):
    settings = ["--set", *SAME, *RECIPES[recipe]]
    return ["train", str(train), "--model", str(model), "--recipe", recipe, *settings]


@pytest.fixture(scope="module")
def train(tmp_path_factory):
    """Texts of random words, each with the labels of its first and its last."""
    random = np.random.default_rng(0)
    rows = [random.choice(WORDS, random.integers(2, 6)).tolist() for _ in range(101)]
    path = tmp_path_factory.mktemp("processes") / "train.jsonl"
    points = [{"text": " ".join(row), "labels": [row[0], row[-1].upper()]} for row in rows]
    path.write_text("\n".join(map(json.dumps, points)))
    return path


@pytest.fixture(scope="module")
def of_two(train):
    """Folders of models that two processes have trained."""
    folder = train.parent / "two"
    folder.mkdir()
    script = folder / "worker.py"
    commands = [command(recipe, train, folder / recipe) for recipe in RECIPES]
    script.write_text(f"{PREPARE}\nfor one in {commands!r}:\n    assert main(one) == 0, one\n")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    done = subprocess.run(
        [*launcher, "--standalone", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # The second one says nothing.
    assert done.stdout.count("longtail evaluate") == len(RECIPES)
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize("recipe", RECIPES)
def test_train_the_model_of_one(recipe, train, of_two, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    assert main(command(recipe, train, tmp_path / "one")) == 0
    one, two = (ModelFolder.open(path) for path in (tmp_path / "one", of_two / recipe))
    assert one.arrays.keys() == two.arrays.keys()
    for name in one.arrays:
        # Adagrad's first step is as long for rounding noise as for a real gradient, so that a few
        # numbers, whose gradients cancel out, may differ.
        other, own = (np.asarray(part[name], np.float64) for part in (two.arrays, one.arrays))
        if name.startswith("linear/"):  # rounding may keep a weight that is next to nothing
            assert len(other) == pytest.approx(len(own), rel=0.01), name
            if len(other) != len(own):
                continue
        if np.array_equal(other, own):  # infinities too
            continue
        assert np.linalg.norm(other - own) <= 0.05 * np.linalg.norm(own), name
    texts = ["red wine", "blue sky", "old ship"]
    (ids, scores), (others, their_scores) = (
        longtail.load(path).predict_topk(texts) for path in (tmp_path / "one", of_two / recipe)
    )
    np.testing.assert_array_equal(ids[:, 0], others[:, 0])
    # Labels whose scores are nearly the same may change places; and of the default recipe's slopes
    # each process samples its own.
    np.testing.assert_allclose(scores, their_scores, rtol=0.1 if recipe == "longtail" else 0.05)


WORKER = """
import faulthandler, json, sys, numpy as np, torch
from scipy.sparse import csr_array
from torch import nn
from longtail.features.bag_of_tokens import BagOfTokens
from longtail.training.batches import Batch
from longtail.training.clipping import ConstantNorm
from longtail.training.module_adam import ModuleAdam
from longtail.training.processes import join_processes, of_first, share_of
from longtail.training.run import TrainingData, TrainingRun

place = join_processes()
if place.count > 1:
    faulthandler.dump_traceback_later(100, exit=True)  # rather than wait for ever

def clipped():
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    adam = ModuleAdam(layer, ConstantNorm(0.5))
    for rows in torch.randn(4, 6, 3).mul(9).unbind():
        layer(rows[place.rank :: place.count]).square().sum().backward()
        adam.step(0.1)
    return [of_first(0.25 + place.rank), *layer.weight.flatten().tolist()]

def of_empty_bags():
    bags = csr_array(np.array([[1, 2, 0], [0, 0, 0], [0, 1, 1]], np.float32))
    start = BagOfTokens(dimension=2, dropout=0.0, token_vectors=np.ones((3, 2), np.float32))
    run = TrainingRun(seed=0, n_threads=1)
    network = start.network(TrainingData(bags, bags), bags, run)
    none = np.arange(0)
    for points in ([0, 2], [0, 1], [1, 1]):
        features = network.forward(share_of(Batch(np.array(points), None, none, none)).points)
        features.square().sum().backward()
        network.step(0.1)
    return network.table.tolist()

for task in clipped, of_empty_bags:
    with open(f"{sys.argv[1]}/{task.__name__}-{place.count}-{place.rank}.json", "w") as file:
        json.dump(task(), file)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Run a worker in two processes and in this; return what two and one found of a task."""
    folder = tmp_path_factory.mktemp("workers")
    script = folder / "worker.py"
    script.write_text(WORKER)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    done = subprocess.run([*launcher, script, folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [str(script), str(folder)])
        runpy.run_path(str(script))

    def of_task(task):
        names = [f"{task}-{place}.json" for place in ("2-0", "2-1", "1-0")]
        return [json.loads((folder / name).read_text()) for name in names]

    return of_task


def test_clip_the_sum_of_their_gradients_and_agree(written):
    """Each of two has a half of the gradient, and another opinion of how good an epoch was."""
    first, second, alone = written("clipped")
    assert first == second
    assert first[0] == 0.25
    np.testing.assert_allclose(first, alone, rtol=1e-4)


def test_wait_for_no_share_of_empty_bags(written):
    """One batch gives each process a point, the other gives the second one an empty bag alone."""
    first, second, alone = written("of_empty_bags")
    assert first == second
    np.testing.assert_allclose(first, alone, rtol=1e-5)


@pytest.fixture
def second_of_three(monkeypatch):
    monkeypatch.setattr(processes, "processes", lambda: processes.Processes(1, 3))


@pytest.mark.usefixtures("second_of_three")
class TestShare:
    def test_is_every_third_point_and_what_is_true_of_it(self):
        in_loss = np.eye(5, 4) > 0
        batch = Batch(np.arange(5) + 10, np.arange(4), np.array([0, 1, 4]), np.arange(3), in_loss)
        share = processes.share_of(batch)
        assert share.points.tolist() == [11, 14]
        assert share.pool is batch.pool
        assert list(zip(share.positive_rows, share.positive_columns, strict=True)) == [
            (0, 1),
            (1, 2),
        ]
        np.testing.assert_array_equal(share.in_loss, in_loss[[1, 4]])

    def test_is_none_where_some_would_have_no_point(self):
        empty = np.arange(0)
        assert processes.share_of(Batch(np.arange(2), None, empty, empty)) is None

    def test_is_not_for_energies(self):
        with pytest.raises(TrainingError, match="one process, but 3 were started"):
            processes.refuse_several("A network with an energy")
