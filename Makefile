# `make run` and `make test` set up all they need; `make help` lists the rest.
PYTHON ?= python3.11
PROFILE ?= demo
STORE ?= work
ARGS ?=
IMAGES ?= build/images.env
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell cat requirements.txt requirements-no-deps.txt pyproject.toml | sha256sum | cut -c1-16)

.DEFAULT_GOAL := help
.PHONY: help install run test test-long test-fast lint pipeline compiled images image-locks smoke-docker ui minikube
.PHONY: bench bench-sandbox bench-data bench-rollout bench-update chaos clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

install: $(STAMP) ## make .venv with every pinned dependency

$(STAMP):
	@$(PYTHON) -c 'import sys; assert sys.version_info[:2] == (3, 11), sys.version' || \
	  { echo "Python 3.11 is needed; name it with PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.txt
	$(BIN)/pip install --quiet --no-deps --requirement requirements-no-deps.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: install ## train the demo policy through the compiled pipeline (ARGS="key=value ...")
	$(BIN)/deepcoder run --profile $(PROFILE) store=$(STORE) $(ARGS)

test: install lint ## lint, types and every test that does not take minutes by itself
	$(BIN)/pytest -m "not long"

test-long: install ## the tests that `make test` leaves out
	$(BIN)/pytest -m long

test-fast: install ## without the slow tests
	$(BIN)/pytest -m "not slow and not long and not docker"

lint: install ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

pipeline: install ## compile PROFILE to pipeline.yaml (ARGS="key=value ...", images as `make images` wrote them)
	$(BIN)/deepcoder compile --profile $(PROFILE) --output pipeline.yaml \
	  $(if $(wildcard $(IMAGES)),--images $(IMAGES)) $(ARGS)

compiled: install ## renew the committed pipelines/compiled/*.yaml, which the tests compare with the code
	$(BIN)/deepcoder compile --profile demo --output pipelines/compiled/demo.yaml
	$(BIN)/deepcoder compile --profile smoke --output pipelines/compiled/smoke.yaml

images: ## build the images (VARIANT=gpu|cpu REGISTRY= TAG= BASE= PUSH=1); names and digests go to build/images.env
	OUTPUT=$(IMAGES) images/build.sh

image-locks: ## renew images/*/requirements-*.txt from the .in files; needs uv
	images/lock.sh

smoke-docker: install ## build the CPU images, then the smoke profile with each step in its container and without
	VARIANT=cpu OUTPUT=build/smoke.env images/build.sh
	set -a && . ./build/smoke.env && CONTAINER_TESTS=required $(BIN)/pytest -rs tests/pipelines/test_containers.py

minikube: install ## start minikube with Kubeflow Pipelines, and run PROFILE (smoke) on it to its end
	$(if $(filter command line environment,$(origin PROFILE)),PROFILE=$(PROFILE)) IMAGES=$(IMAGES) manifests/minikube/up.sh

ui: install ## open MLflow on the runs in STORE, at http://127.0.0.1:5000
	$(BIN)/mlflow ui --backend-store-uri sqlite:///$(abspath $(STORE))/mlflow.db --host 127.0.0.1 --port 5000

bench: bench-sandbox bench-data bench-rollout bench-update ## every benchmark that a CPU can run

bench-sandbox: install ## CPU time a test, against a cold interpreter and (OFFICIAL=checkout) LiveCodeBench's harness
	$(BIN)/python benchmarks/bench_sandbox.py $(if $(OFFICIAL),--official $(OFFICIAL))

bench-rollout: install ## tokens/s of the rollout step against the bare engine, vLLM too where it is installed (5 min)
	$(BIN)/python -m benchmarks.bench_rollout

bench-data: install ## data preparation against plain json, and its memory at 1, 4 and 16 times the rows
	$(BIN)/python benchmarks/bench_data.py

bench-update: install ## training tokens/s and peak memory of the policy update, against TRL's GRPO step (5 min)
	$(BIN)/pip install --quiet --no-deps --requirement benchmarks/requirements.txt
	$(BIN)/python benchmarks/bench_update.py

chaos: install ## kill and resume the micro run, on a directory and on S3 behind a bad network (ARGS="--kills 10")
	$(BIN)/python -m tests.chaos.run $(ARGS)

clean: ## remove what was built; runs in STORE stay
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache pipeline.yaml
