# The one task file. `make demo` and `make test` are all that the README asks for.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CODE := $(VENV)/.compiled

# Whatever the environment says: tests start processes by the hundred, and without bytecode each of
# them reads all that it imports as source.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test lint types other-code unit thorough format clean

install: $(CODE)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[train,report,serve,transformers,onnx,parquet,dev]'
	touch $(STAMP)

$(CODE): $(STAMP)
	$(BIN)/longtail compile
	touch $(CODE)

demo: install
	$(BIN)/longtail demo

# Each of two cores has something to do: while code is compiled, types are checked, and then the code
# of other recipes than the default one is compiled.
test: lint
	$(MAKE) --no-print-directory --jobs 2 types install other-code
	$(MAKE) --no-print-directory unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

other-code: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --quiet tests/test_estimators.py \
		-k "form_of_y and names and not (DEXA or Siamese or Longtail)"

# Two processes on two cores: more threads in each would only wait for one another.
unit: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 2 --durations 10

# What takes long, and is tested by `make test` in nearly all that it is for.
thorough: install
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m thorough

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
