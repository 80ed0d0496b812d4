# `make demo` and `make test` need Python 3.11 or later and a package registry, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

help: ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.plain: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.plain

demo: $(VENV)/.plain ## the way from a table to scores and a report, and a comparison: three minutes
	$(BIN)/gpclf demo

check: $(VENV)/.dev ## lint, format, types, floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-cache

test: check ## everything CI asks: check, then all tests but the slow ones
	$(BIN)/pytest -q -n 2 --dist loadfile -m "not slow"

BROWSER = tests/report/browser
build/browser/.done: $(BROWSER)/package.json
	mkdir -p build/browser
	cp $(BROWSER)/package.json build/browser
	cd build/browser && npm install --no-audit --no-fund --silent
	@touch $@

test-browser: $(VENV)/.dev build/browser/.done ## a report in Chromium: requests, width, contrast; needs node, npm, chromium
	$(BIN)/python $(BROWSER)/table.py build/browser/report.html
	cp $(BROWSER)/check.mjs build/browser
	node build/browser/check.mjs build/browser/report.html build/browser

test-slow: $(VENV)/.dev ## the slow tests
	XLA_FLAGS= JAX_DISABLE_MOST_OPTIMIZATIONS=false $(BIN)/pytest -q -m slow

# the lowest versions that pyproject.toml allows, of what the library and its tests import
LOWEST = import re, tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
  extras = project["optional-dependencies"]; \
  tools = r"gpclf|import-linter|pyright|pytest-xdist|ruff"; \
  needed = project["dependencies"] + extras["excel"] + extras["dask"] + extras["dev"]; \
  print(*(each.replace(">=", "==") for each in needed if not re.match(tools, each)), sep="\n")

$(VENV)-lowest/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-lowest
	$(PYTHON) -c '$(LOWEST)' > $(VENV)-lowest/requirements.txt
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check -r $(VENV)-lowest/requirements.txt
	$(VENV)-lowest/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

test-lowest: $(VENV)-lowest/.done ## a part of the tests on the lowest versions that pyproject.toml allows
	$(VENV)-lowest/bin/pytest -q -m "not slow" -W ignore::DeprecationWarning tests/command \
	  $(addprefix tests/estimator/test_,active.py callbacks.py columns.py data.py ecosystem.py storage.py)

$(VENV)-gpflow/.done:
	$(PYTHON) -m venv $(VENV)-gpflow
	$(VENV)-gpflow/bin/pip install --quiet --disable-pip-version-check gpflow tensorflow-cpu tf-keras scikit-learn
	@touch $@

$(VENV)-gpytorch/.done:
	$(PYTHON) -m venv $(VENV)-gpytorch
	$(VENV)-gpytorch/bin/pip install --quiet --disable-pip-version-check torch gpytorch scikit-learn
	@touch $@

bench-setup: $(VENV)/.dev $(VENV)-gpflow/.done $(VENV)-gpytorch/.done ## environments of the rivals: GPflow, GPyTorch

bench-accuracy: $(VENV)/.dev ## test NLL on five sets beside the targets; GPCLF_DATA names the folder
	$(BIN)/python benchmarks/accuracy.py

bench-likelihoods: $(VENV)/.dev ## every likelihood on eleven sets: NLL and accuracy
	$(BIN)/python benchmarks/accuracy.py --likelihoods all --n-inducing 100

bench-categorical: $(VENV)/.dev ## adult with its columns of levels declared
	$(BIN)/python benchmarks/categorical.py

bench-missing: $(VENV)/.dev ## a tenth of the numbers missing: NLL beside complete tables and boosting
	$(BIN)/python benchmarks/missing.py

bench-noise: $(VENV)/.dev ## errors of inputs on made-up problems beside Bayes' classifier, told and learned
	$(BIN)/python benchmarks/noise_toy.py --dimensions 1 --variances 0.1
	$(BIN)/python benchmarks/noise_toy.py --dimensions 2 --draws 20 --learn --likelihoods robust-max \
	  --variants latent amortised first-order --results benchmarks/results/noise_learned.jsonl

bench-fermi: $(VENV)/.dev ## 454 sources with error bars on 100 splits, beside scikit-learn's classifiers
	$(BIN)/python benchmarks/fermi.py --rivals

bench-noise-uci: $(VENV)/.dev ## eight small sets with errors added: hours; --resume goes on
	$(BIN)/python benchmarks/noise_uci.py --resume

bench-noise-mnist: $(VENV)/.dev ## seconds an epoch on MNIST with and without errors, NLL and error
	$(BIN)/python benchmarks/noise_mnist.py
	$(BIN)/python benchmarks/noise_mnist.py --fit

bench-active: $(VENV)/.dev ## 100 labels by entropy and at random on waveform, 20 times
	$(BIN)/python benchmarks/active_waveform.py

bench-classes: $(VENV)/.dev ## a step on 6 of 26 classes beside a step on all
	$(BIN)/python benchmarks/class_subsampling.py

RACE = $(BIN)/python benchmarks/race.py \
	--gpflow-python $(VENV)-gpflow/bin/python --gpytorch-python $(VENV)-gpytorch/bin/python

bench-race: bench-setup ## seconds to the best rival's NLL on six sets, the two best rivals
	$(RACE)

bench-race-all: bench-setup ## the same against all five rivals
	$(RACE) --rivals all

bench-large: bench-setup ## seconds to the rivals' NLL after 180 s, on 581,012 and 1,712,467 rows
	$(BIN)/python benchmarks/large.py \
	  --gpflow-python $(VENV)-gpflow/bin/python --gpytorch-python $(VENV)-gpytorch/bin/python

bench-dask: $(VENV)/.dev ## two worker processes of Dask's beside the plain fit, 1.7 million rows
	$(BIN)/python benchmarks/dask_workers.py

$(VENV)/.rivals: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check catboost lightgbm xgboost
	@touch $@

# TORCH=torch==2.13.0 or the like names a build without CUDA, which is a tenth of the size
TORCH ?= torch
$(VENV)-pytabkit/.done:
	$(PYTHON) -m venv $(VENV)-pytabkit
	$(VENV)-pytabkit/bin/pip install --quiet --disable-pip-version-check $(TORCH)
	$(VENV)-pytabkit/bin/pip install --quiet --disable-pip-version-check 'pytabkit[models]'
	@touch $@

bench-compare-setup: $(VENV)/.rivals $(VENV)-gpflow/.done $(VENV)-pytabkit/.done ## all rivals of the comparison

COMPARE = $(BIN)/python benchmarks/compare.py --resume \
	--gpflow-python $(VENV)-gpflow/bin/python --pytabkit-python $(VENV)-pytabkit/bin/python

bench-compare: $(VENV)/.rivals ## NLL and calibration on 42 sets beside CatBoost, LightGBM, XGBoost, forest, SVM and others: a day
	$(COMPARE) --time-limit 3600 --picture benchmarks/results/ranks.png

bench-few-rows: $(VENV)/.rivals ## the same on 50 to 5,000 rows of each set
	$(COMPARE) --time-limit 3600 --rows 50 100 200 500 1000 5000 --picture benchmarks/results/few-ranks.png

bench-compare-others: bench-compare-setup ## the same with GPflow, RealMLP, xRFM and scikit-learn's GP, on sets below 10,000 rows
	$(COMPARE) --time-limit 3600 --methods sklearn-gp gpflow realmlp realmlp-nll xrfm --most-rows 10000

bench-seconds: $(VENV)/.rivals ## seconds of gpclf and CatBoost, for an idle machine; seed 0
	$(BIN)/python benchmarks/compare.py --methods gpclf catboost --seeds 0 --time-limit 3600 \
	  --results benchmarks/results/seconds.jsonl

bench-engines: $(VENV)/.dev ## NLL, error and seconds of every inference on 25 sets: hours
	$(BIN)/python benchmarks/engines.py --resume

PAPERS = cd benchmarks && $(abspath $(BIN))/python -m papers.

bench-papers: $(VENV)/.dev ## the papers' tables and figures, made anew: hours
	-$(PAPERS)hensman_table --resume
	-$(PAPERS)hensman_banana
	-$(PAPERS)hensman_image
	-$(PAPERS)galy_fajou_table --resume
	-$(PAPERS)liu_tables --resume

bench-step: $(VENV)/.dev ## a natural step against the matrix-product speed of this machine
	$(BIN)/python benchmarks/step.py

bench-prediction: bench-setup ## rows predicted a second, beside GPflow
	$(BIN)/python benchmarks/prediction.py --gpflow-python $(VENV)-gpflow/bin/python

bench-cold: bench-setup ## import and first fit in a new process, beside the rivals
	$(BIN)/python benchmarks/cold_start.py --gpflow-python $(VENV)-gpflow/bin/python \
	  --gpytorch-python $(VENV)-gpytorch/bin/python

bench-scaling: $(VENV)/.dev ## time of an epoch and memory from 20,000 to 1,280,000 rows
	$(BIN)/python benchmarks/scaling.py

bench-disk: $(VENV)/.dev ## time and memory of fits from Parquet, 1,000,000 and 10,000,000 rows
	$(BIN)/python benchmarks/disk.py

bench-quick: $(VENV)/.dev ## under three minutes, no rivals: before and after a change to a hot path
	-$(BIN)/python benchmarks/step.py --quick
	-$(BIN)/python benchmarks/accuracy.py --sets magic statlog-landsat waveform-noise --seeds 0

$(VENV)-docs/.done: pyproject.toml
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

docs: $(VENV)-docs/.done ## build the documentation, strictly, into build/site; its code runs in `make test`
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --strict --quiet

format: $(VENV)/.dev ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove the environments and build products
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-gpflow $(VENV)-gpytorch $(VENV)-pytabkit $(VENV)-docs build dist .pytest_cache .ruff_cache

.PHONY: help demo check test test-browser test-slow test-lowest docs format clean bench-setup bench-accuracy bench-likelihoods \
	bench-categorical bench-missing bench-classes bench-race bench-race-all bench-large bench-dask bench-compare bench-compare-setup bench-compare-others bench-few-rows bench-seconds bench-engines bench-papers bench-step \
	bench-prediction bench-cold bench-scaling bench-quick bench-noise bench-fermi bench-noise-uci \
	bench-noise-mnist bench-active bench-disk
