# `make serve` and `make test` are all that a bare machine with Python and make needs.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
VLLM := .venv-vllm/.installed

# The editable install and the tools that build it come in the versions of constraints.txt too.
PIP := PIP_BUILD_CONSTRAINT=constraints.txt PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	PIP_ROOT_USER_ACTION=ignore $(BIN)/python -m pip install --quiet

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-chart serve demo test test-vllm test-image lint types format constraints schema docs clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

setup: $(INSTALLED) ## Make .venv with everything in it, in the versions of constraints.txt

setup-chart: $(INSTALLED) ## Add what the tests of the Helm chart need, 100 MB; without it they are skipped
	$(PIP) --constraint constraints.txt --editable '.[chart]'

serve: $(INSTALLED) ## Serve on 127.0.0.1:8080 with the embedded Postgres; ARGS are flags of `pgsemcache serve`
	@exec $(BIN)/pgsemcache serve $(ARGS)

demo: $(INSTALLED) ## Store a small FAQ and look questions up in it
	@exec $(BIN)/python docs/demo.py $(ARGS)

test: lint types ## Check and test everything; ARGS go to pytest
	$(BIN)/python -m pytest $(ARGS)

test-vllm: $(INSTALLED) $(VLLM) ## Test against a real vLLM on the CPU, which needs 3 GB more; ARGS go to pytest
	$(BIN)/python -m pytest tests/vllm $(ARGS)

test-image: $(INSTALLED) ## Build the container image without Docker, all packages anew, and run it; needs root
	SEMCACHE_TEST_IMAGE=whole $(BIN)/python -m pytest tests/containers $(ARGS)

lint: $(INSTALLED) ## Check style and the arrows between the packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(INSTALLED) ## Check types
	$(BIN)/mypy
	$(BIN)/pyright

format: $(INSTALLED) ## Put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

constraints: ## Write constraints.txt anew: the latest versions that fit, but the same torch
	mkdir -p build && grep '^torch==' constraints.txt > build/held.txt
	$(PYTHON) -m venv --clear build/venv
	build/venv/bin/python -m pip install --quiet --constraint build/held.txt '.[local,embedded,dev,chart]'
	sed -n '/^#/p' constraints.txt > build/constraints.txt
	build/venv/bin/python -m pip freeze --exclude pgsemcache | sed 's/+[a-z0-9]*$$//' >> build/constraints.txt
	mv build/constraints.txt constraints.txt

schema: $(INSTALLED) ## Write the texts of the schema and of its rights anew, after a revision or a change of sql/
	$(BIN)/python tests/schema_text.py
	$(BIN)/python tests/access_matrix.py

docs: $(INSTALLED) ## Write the OpenAPI document and the pages of tables anew, after `make schema`
	$(BIN)/python tests/openapi_document.py
	for table in docs/*_table.py; do $(BIN)/python $$table; done

clean: ## Remove what the targets made; the data directory stays
	rm -rf .venv .venv-vllm dist build .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "pgsemcache needs Python 3.11 or later, and $(PYTHON) is `$(PYTHON) --version 2>&1`." \
			"Name a later one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments." \
			"On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing into .venv; the first time takes a few minutes" >&2
	@$(PYTHON) -m venv .venv
	@$(PIP) --constraint constraints.txt --editable '.[local,embedded,dev]'
	@touch $(INSTALLED)

$(VLLM): tests/vllm/requirements.txt
	@echo "Installing vLLM into .venv-vllm; this takes some minutes" >&2
	@$(PYTHON) -m venv --clear .venv-vllm
	@.venv-vllm/bin/python -m pip install --quiet --no-deps --requirement tests/vllm/requirements.txt
	@touch $(VLLM)
