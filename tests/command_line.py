"""What the tests of the command line share: two kinds of texts, small models, and runs."""

from __future__ import annotations

import io

from longtail.cli import main

# A half is held out: of less than 40 points, none would be, and nothing would be learnt again.
SMALL = ["--set", "dimension=16", "epochs=3", "batch_size=64", "held_out=0.5"]
SMALL_ASTEC = [
    "--recipe",
    "astec",
    "--set",
    "dimension=16",
    "surrogate_epochs=3",
    "extreme_epochs=3",
    "reranker_epochs=2",
    "n_meta_labels=4",
    "batch_size=64",
]
DRINKS, CARS = ["red", "white", "dry", "sweet"], ["fast", "old", "new", "small"]


def rows():
    for adjective in DRINKS:
        yield {"text": f"{adjective} wine in a glass", "labels": ["drink", adjective]}
    for adjective in CARS:
        yield {"text": f"{adjective} car on a road", "labels": ["vehicle", adjective]}


def write_lines(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(path)


def run(capsys, *arguments):
    """Return exit code, standard output and standard error."""
    capsys.readouterr()
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def refused(capsys, *arguments):
    """Run what must fail with one clear sentence, and return that."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("longtail")
    return err.splitlines()[-1]


def stdin_of(content):
    """Return a standard input that bytes come from."""
    return io.TextIOWrapper(io.BufferedReader(io.BytesIO(content)))


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}
