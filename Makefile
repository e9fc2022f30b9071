# `make` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
# Tests run in so many processes; those of a file stay together, for they share what takes a while to start.
JOBS ?= 2
PYTEST = $(BIN)/pytest -n $(JOBS) --dist loadfile
DISTS := proto services/embedder services/meter gateway adapters/pgvector evaluator
PIP := $(BIN)/pip --disable-pip-version-check --quiet install

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

demo: .venv/.run ## set up, evaluate the reference memory on the bundled dialogues, print the summary (runs/demo)
	$(BIN)/memdock-eval demo

test: .venv/.dev ## set up, run the tests (minutes)
	$(PYTEST) -m "not slow and not adapters and not containers"

test-slow: .venv/.dev ## the tests that take longer: kills, large files, wheels
	$(PYTEST) -m "slow and not adapters and not containers"

test-adapters: .venv/.dev ## the adapters with their real frameworks; builds their environments where they are missing
	$(PYTEST) --dist loadgroup tests/adapters

test-containers: .venv/.dev ## images, the compose file, who reaches whom, faults; says so where no container engine can be had
	$(PIP) --require-hashes -r requirements/containers.txt
	tests/containers/run.sh

FRAMEWORKS ?= mem0 mem0g graphiti cortex memos zep-cloud mem0-hosted
test-containers-adapters: .venv/.dev ## the images of the other adapters, each run by its profile on scripted models (quarter of an hour)
	$(PIP) --require-hashes -r requirements/containers.txt
	ADAPTERS="$(FRAMEWORKS)" tests/containers/run.sh

conformance-adapters: .venv/.dev ## of test-adapters: the protocol's suite, the life of a turn, and one evaluation of all (quarter of an hour)
	$(PYTEST) --dist loadgroup tests/adapters/test_adapters_{conformance,life,evaluation}.py

PGVECTOR = $(BIN)/memdock-pgvector serve --data {data} --embedder {model_url}\#words --grpc 127.0.0.1:{port} --http 127.0.0.1:{http_port}
CONFORMANCE = $(BIN)/memdock-conformance --known-failures adapters/pgvector/conformance.toml

conformance: .venv/.dev ## hold the reference memory and the gateway to the protocol (three minutes)
	$(CONFORMANCE) --launch "$(PGVECTOR) --system rag-dense --fusion dense"
	$(CONFORMANCE) --launch "$(PGVECTOR) --system rag-hybrid" --gateway $(BIN)/memdock-gateway

test-sentence: .venv-sentence/.ready ## the embedder's loading code for FRIDA and Qwen3, in an environment of its own (1.5 GB)
	HF_HUB_OFFLINE=1 PYTHONPATH=services/embedder .venv-sentence/bin/python -m pytest -o filterwarnings= \
	  tests/integration/embedder/test_embedder_sentence.py

check: .venv/.dev ## format, lint, types, the contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests
	$(BIN)/buf lint proto
	$(BIN)/buf format proto --diff --exit-code
	$(BIN)/buf breaking proto --against proto/contract/memdock.v1.binpb

proto: .venv/.dev ## write the stubs of proto/ anew
	cd proto && ../$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. memdock/v1/memory.proto

bench: .venv/.dev ## measure, as ratios within one run
	PYTHONPATH=tests $(BIN)/python -m bench.bench_gateway
	PYTHONPATH=tests $(BIN)/python -m bench.bench_pgvector
	PYTHONPATH=tests $(BIN)/python -m bench.bench_adapters
	PYTHONPATH=tests $(BIN)/python -m bench.bench_statistics
	PYTHONPATH=tests $(BIN)/python -m bench.bench_report
	PYTHONPATH=tests $(BIN)/python -m bench.bench_run

wheels: .venv/.dev ## build every distribution into dist/
	for dist in $(DISTS); do $(BIN)/python -m build --no-isolation --wheel --outdir dist $$dist || exit 1; done

clean: ## remove what was made, the environment too; runs of your own stay
	rm -rf .venv .venv-sentence .adapters .memdock dist runs/demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "Python 3.11 is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.run: requirements/run.txt requirements/build.txt $(DISTS:%=%/pyproject.toml) | .venv/bin/python
	$(PIP) --require-hashes -r requirements/run.txt -r requirements/build.txt
	$(PIP) --no-deps --no-build-isolation $(DISTS:%=-e %)
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.run
	$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

.venv-sentence/.ready: requirements/sentence-transformers.txt
	$(PYTHON) -m venv .venv-sentence
	.venv-sentence/bin/pip --disable-pip-version-check --quiet install -r $<
	@touch $@

.PHONY: help demo test test-slow test-adapters test-containers test-containers-adapters conformance conformance-adapters test-sentence check proto bench wheels clean
