# The one task file. `make demo` and `make test` are all that the README asks for.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: install demo test lint types unit format clean

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,report,serve,transformers,onnx,dev]'
	$(BIN)/longtail compile
	touch $(STAMP)

demo: install
	$(BIN)/longtail demo

# Types are checked beside the tests: on two cores, either leaves one idle now and then.
test: install lint
	$(MAKE) --no-print-directory --jobs 2 types unit

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

# Two processes on two cores: more threads in each would only wait for one another.
unit: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 2 --durations 10

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
