# Two commands for users: `make demo` and `make test`. For developers: `make check`.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
PACKAGES = cli corpus engine rules store

OLD_PYTHON = import sys; sys.exit("gsum needs Python 3.11 or later: make PYTHON=python3.11 …" \
             if sys.version_info < (3, 11) else 0)

.PHONY: demo test check mypy wheel gpu-check clean
.NOTPARALLEL:

$(VENV)/.local: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(OLD_PYTHON)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[local]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(OLD_PYTHON)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[local,dev]'
	@touch $@ $(VENV)/.local

demo: $(VENV)/.local
	$(BIN)/gsum fetch
	$(BIN)/gsum build //dossier:S-037/root
	$(BIN)/gsum show //dossier:S-037/root

test: $(VENV)/.dev
	$(BIN)/gsum fetch
	$(BIN)/python -m pytest

check: $(VENV)/.dev mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# mypy wants the packages under one folder named gsum: links to the top-level folders, git-ignored.
mypy: $(VENV)/.dev
	@mkdir -p .links/gsum
	@for p in $(PACKAGES); do ln -sfn ../../$$p .links/gsum/$$p; done
	MYPYPATH=.links $(BIN)/mypy $(foreach p,$(PACKAGES),-p gsum.$(p))

wheel: $(VENV)/.dev
	tests/packaging/check_wheel.sh $(BIN)/python

# On a machine with a CUDA device and a CUDA build of torch in .venv: its tests, then the figures, ready to commit.
gpu-check: $(VENV)/.dev
	$(BIN)/python -m pytest tests/gpu -rs
	$(BIN)/python benchmarks/gpu_check.py --write

clean:
	rm -rf $(VENV) .links build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
