"""What is sure not to fit into memory is refused before training starts."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys

import numpy as np
import pytest

from command_line import SMALL, refused, run
from longtail import Dataset, DeepXML
from longtail.costs import available_memory as system
from longtail.costs.available_memory import available_memory, resident_memory
from longtail.costs.estimate import workload_of
from longtail.costs.memory_check import (
    SURE,
    Fit,
    MemoryNeed,
    check_memory,
    memory_need,
    savings,
)
from longtail.errors import InputError, TooLargeError
from longtail.recipes.names import RECIPES, recipe
from longtail.training import peak_memory as peak
from longtail.training.peak_memory import peak_memory

AVAILABLE = "longtail.costs.memory_check.available_memory"


@pytest.fixture
def dataset(place):
    return Dataset.read(place / "train.jsonl")


def leave(monkeypatch, n_bytes):
    """Let the process hold nothing, and leave it so much."""
    monkeypatch.setattr(AVAILABLE, lambda: n_bytes)
    monkeypatch.setattr("longtail.costs.memory_check.resident_memory", lambda: 0)


def test_training_fits_may_not_fit_or_cannot():
    def fit(available):
        return MemoryNeed(estimate=3_000, resident=500, available=available).fit

    assert fit(2_500) is Fit.FITS
    assert fit(2_499) is Fit.MAY_NOT
    assert fit(3_000 / SURE - 500) is Fit.MAY_NOT
    assert fit(3_000 / SURE - 501) is Fit.CANNOT


@pytest.mark.parametrize("name", RECIPES)
def test_what_cannot_fit_is_refused_with_settings_that_the_recipe_has(name, dataset, monkeypatch):
    settings = recipe(name)()
    found = savings(dataset, settings)
    assert all(hasattr(settings, saving.setting) for saving in found)
    assert all(saving.n_bytes > 0 for saving in found)
    assert check_memory(dataset, settings).fit is Fit.FITS
    leave(monkeypatch, 10**8)
    with pytest.raises(TooLargeError, match=r"needs about .* GB.* at least .* can have 0\.1 GB"):
        check_memory(dataset, settings)


def test_the_advice_says_what_saves_most_first(dataset):
    settings = recipe("mach")(dimension=40_000, n_hashes=50)
    first, second, *_ = savings(dataset, settings)
    assert {(first.setting, first.value), (second.setting, second.value)} == {
        ("dimension", 20_000),
        ("n_hashes", 25),
    }
    need = memory_need(dataset, settings)
    assert need.estimate / 3 < second.n_bytes <= first.n_bytes < need.estimate


def test_fewer_features_are_no_advice_where_they_are_ready_made(place):
    of_numbers = Dataset.read(place / "sparse.txt")
    found = savings(of_numbers, recipe("one-vs-all")(dimension=4_000_000))
    assert [saving.setting for saving in found] == ["dimension"]


def test_fewer_features_are_advice_where_texts_have_many():
    texts = [" ".join(f"word{i}x{j}" for j in range(30)) for i in range(200)]
    dataset = Dataset.of(texts, [["drink"], ["vehicle"]] * 100)
    settings = recipe("one-vs-all")(dimension=2_000, min_df=1)
    half = workload_of(dataset, settings).n_features // 2
    found = {saving.setting: saving.value for saving in savings(dataset, settings)}
    assert found == {"dimension": 1_000, "max_features": half, "word_ngrams": 1}


def test_the_advice_about_a_transformer_holds_fewer_texts(tmp_path):
    config = {"num_hidden_layers": 6, "hidden_size": 384}
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    texts = [" ".join(f"word{i}x{j}" for j in range(30)) for i in range(400)]
    dataset = Dataset.of(texts, [["drink"], ["vehicle"]] * 200)
    much = {"texts_at_once": 100_000, "n_pieces": 200, "batch_size": 400}
    settings = recipe("xtransformer")(encoder=str(tmp_path), fine_tune=True, **much)
    found = {saving.setting: saving.value for saving in savings(dataset, settings)}
    assert found == {"texts_at_once": 32, "batch_size": 200, "n_pieces": 100}


def test_nothing_is_said_of_parts_of_ones_own(dataset):
    assert check_memory(dataset, DeepXML()) is None


def test_the_command_refuses_warns_or_goes_on(place, capsys, tmp_path, monkeypatch):
    model = tmp_path / "model"
    command = ("train", place / "train.jsonl", "--model", model, *SMALL)
    leave(monkeypatch, 10**8)
    message = refused(capsys, *command)
    assert "can have 0.1 GB" in message
    assert "--ignore-memory" in message
    assert list(tmp_path.iterdir()) == []
    code, _, err = run(capsys, *command, "--ignore-memory")
    assert code == 0
    assert "longtail: warning: memory will not suffice" in err
    assert model.exists()


def test_the_command_warns_of_what_may_not_fit(place, capsys, tmp_path, monkeypatch):
    need = memory_need(Dataset.read(place / "train.jsonl"), recipe("parabel")())
    leave(monkeypatch, need.estimate - 10**6)
    options = ("--model", tmp_path / "model", "--recipe", "parabel")
    code, _, err = run(capsys, "train", place / "train.jsonl", *options)
    assert code == 0
    assert "longtail: warning: memory may not suffice" in err


@pytest.mark.parametrize(
    ("file", "has_pieces"), [("train.jsonl", True), ("train.jsonl", False), ("sparse.txt", False)]
)
def test_the_command_warns_of_more_entries_than_bags_count(
    place, capsys, tmp_path, monkeypatch, file, has_pieces
):
    """Ten million texts of forty words have them; it came to light once all of them were read."""
    monkeypatch.setattr("longtail.cli.training_costs.MAX_IDS", 3)
    pieces = ("--set", f"char_ngrams={'3,5' if has_pieces else 'none'}")
    options = ("--model", tmp_path / "model", "--recipe", "parabel", *pieces)
    code, _, err = run(capsys, "train", place / file, *options)
    assert code == 0
    assert re.search(r"warning: these points have about [\d,]+ entries .* from 3 at most", err)
    assert ("char_ngrams=none" in err) == has_pieces
    assert ("word_ngrams=1" in err) == (file == "train.jsonl")


def test_a_refusal_is_an_input_error():
    assert issubclass(TooLargeError, InputError)


def test_some_memory_is_available_but_not_more_than_there_is():
    assert 1e7 < available_memory() < 1e14
    assert 1e7 < resident_memory() < 1e12


@pytest.mark.skipif(not peak.STATUS.exists(), reason="told by Linux")
def test_the_peak_is_of_this_process_and_not_of_what_has_started_it():
    much = np.ones(40_000_000)  # 320 MB, which getrusage would pass on
    code = "from longtail.training.peak_memory import peak_memory; print(peak_memory())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert peak_memory() > much.nbytes
    assert 10**7 < int(told.stdout) < much.nbytes


def test_where_linux_tells_no_peak_there_is_one(tmp_path, monkeypatch):
    for status in ("absent", "empty"):
        monkeypatch.setattr(peak, "STATUS", tmp_path / status)
        (tmp_path / "empty").touch()
        assert 10**7 < peak_memory() < 10**12


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 8 GB free, 1 GB to swap into, and a process in nested control groups."""
    monkeypatch.setattr(system, "PROC", tmp_path / "proc")
    monkeypatch.setattr(system, "CGROUPS", tmp_path / "groups")
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "groups" / "outer" / "inner").mkdir(parents=True)
    write(tmp_path / "proc", {"meminfo": "MemAvailable: 8000000 kB\nSwapFree: 1000000 kB\n"})
    write(tmp_path / "proc" / "self", {"cgroup": "0::/outer/inner\n", "statm": "9 3 1\n"})
    return tmp_path


def write(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text, encoding="ascii")


def test_the_machine_bounds_what_is_available(machine):
    assert available_memory() == 9_000_000 * 1024
    (machine / "proc" / "meminfo").unlink()
    assert 1e7 < available_memory() < 1e14


def test_each_control_group_bounds_what_is_available(machine):
    inner, outer = machine / "groups" / "outer" / "inner", machine / "groups" / "outer"
    write(inner, {"memory.max": "max\n", "memory.current": "5\n"})
    assert available_memory() == 9_000_000 * 1024
    write(outer, {"memory.max": "3000000\n", "memory.current": "1000000\n"})
    write(outer, {"memory.swap.max": "0\n", "memory.swap.current": "0\n"})
    assert available_memory() == 2_000_000
    write(outer, {"memory.stat": "anon 7\ninactive_file 300000\nactive_file 20000\n"})
    assert available_memory() == 2_320_000
    write(outer, {"memory.current": "9000000\n"})
    assert available_memory() == 0


def test_a_limit_of_the_address_space_bounds_what_is_available(machine, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10**6, resource.RLIM_INFINITY))
    page = resource.getpagesize()
    assert available_memory() == 10**6 - 9 * page
    assert resident_memory() == 3 * page
    (machine / "proc" / "self" / "statm").unlink()
    assert resident_memory() > 10**7
