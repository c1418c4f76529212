# Everything here sets itself up: Python 3.11 with venv and pip, gcc and make are all that is needed.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

ifndef PYTHON
PYTHON := $(shell for python in python3.11 python3; do $$python -c "" >/dev/null 2>&1 && echo $$python && break; done)
endif
export PYTHONDONTWRITEBYTECODE := # many containers set it; what is compiled once should stay compiled
BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

.PHONY: help demo test check docs notebooks map web interop wheel figures bench evidence clean

help: ## print this list
	@awk -F ': .*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

demo: $(READY) ## the main job: simulate a CPU upgrade on 6,000 machines, then count how often estimators get it right
	$(BIN)/wsc run cpu_upgrade
	$(BIN)/wsc validate cpu_upgrade --estimators baseline,wsmeter,wsmeter-widened,adjusted --draws 200

# What one lens stands on: `make test LENS=occupancy` tests it, and these rooms of models and sim.
BELOW_wsmeter := fleet
BELOW_effects := fleet
BELOW_occupancy := queues
BELOW_crossplatform := services
BELOW_profiling := fleet profiling
ifdef LENS
ifndef BELOW_$(LENS)
$(error LENS should be wsmeter, effects, occupancy, crossplatform or profiling, got $(LENS))
endif
ROOMS := analysis/$(LENS) scenarios/$(LENS) $(foreach world,$(BELOW_$(LENS)),models/$(world) sim/$(world))
ROOMS += $(if $(filter effects,$(LENS)),analysis/audit)
SELECTED := $(wildcard $(ROOMS) $(addprefix tests/,$(ROOMS)))
endif

test: $(READY) ## run all tests, docstring examples included; LENS=occupancy: those of one lens and below it
	@# A process for each processor: threads of linear algebra would only wait for each other.
	@# Rewriting every assert takes long; only where tests fail are they run again, with the values that the asserts compare.
	export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1; \
	$(BIN)/python -m pytest -q --assert=plain -n auto --maxprocesses 4 --dist loadfile $(SELECTED) || \
	{ echo "tests failed; the first twenty once more, with the values that their asserts compare:"; \
	$(BIN)/python -m pytest -q --last-failed --last-failed-no-failures=none --maxfail=20 $(SELECTED); exit 1; }

check: $(READY) ## style, formatting, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyrefly check
	$(BIN)/lint-imports

docs: .venv/.docs ## renew figures and outputs in the documents, then make a site of them and the docstrings: site/docs/index.html
	PYTHONPATH=. $(BIN)/python docs/reference.py
	PYTHONPATH=. $(BIN)/python docs/figures.py
	PYTHONPATH=. $(BIN)/python docs/shown.py
	PYTHONPATH=. $(BIN)/python docs/notebooks/run.py --write
	@# Functions that are not compiled keep their signatures and docstrings.
	PYTHONPATH=. NUMBA_DISABLE_JIT=1 $(BIN)/sphinx-build -b html -W --keep-going -q -j 2 -c docs . site

notebooks: .venv/.docs ## run the notebooks of docs/notebooks and compare what they print with what is stored
	PYTHONPATH=. $(BIN)/python docs/notebooks/run.py

map: $(READY) ## rooms of the code, what they know of each other, its lines, and the way of a command: COMMAND="run small"
	$(BIN)/python docs/map.py
	$(if $(COMMAND),$(BIN)/python docs/map.py -- $(COMMAND))

web: $(READY) ## look at reports and every page of wsc serve in a headless browser; needs Node.js and Chromium
	PYTHONPATH=. $(BIN)/python tests/web/check.py

interop: $(READY) ## have other tools read the profiles that are exported; needs Node.js
	PYTHONPATH=. $(BIN)/python tests/interchange/check.py

wheel: $(READY) ## install the wheel outside of the checkout and run, report, reproduce and serve from there
	$(BIN)/python tests/wheel/check.py

figures: $(READY) ## draw every figure and table of the papers into figures/, judged on the worlds that are kept
	$(BIN)/wsc reproduce wsmeter --out figures
	$(BIN)/wsc reproduce occupancy --out figures
	$(BIN)/wsc reproduce crossplatform --out figures
	$(BIN)/wsc reproduce gwp --out figures
	$(BIN)/wsc report figures --runs runs --out figures/index.html

bench: $(READY) ## measure speed and memory
	$(BIN)/python benchmarks/fleet.py
	$(BIN)/python benchmarks/events.py
	$(BIN)/python benchmarks/siblings.py
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/queues.py
	$(BIN)/python benchmarks/crossplatform.py
	$(BIN)/python benchmarks/profiles.py
	$(BIN)/python benchmarks/imports.py
	$(BIN)/python benchmarks/affinity.py
	$(BIN)/python benchmarks/cuped.py
	$(BIN)/python benchmarks/scorecard.py
	$(BIN)/python benchmarks/cells.py
	$(BIN)/python benchmarks/long_logs.py
	$(BIN)/python benchmarks/newcomer.py
	$(BIN)/python benchmarks/real_splits.py docs/examples/machines_before.csv.gz --machines 10,30

evidence: $(READY) ## the long evidence: every row on ten worlds, many draws, many fleets; it goes on where it stopped
	$(BIN)/wsc reproduce wsmeter --worlds 10 --explain --out figures
	$(BIN)/wsc reproduce occupancy --worlds 10 --out figures
	$(BIN)/wsc reproduce crossplatform --worlds 10 --explain --out figures
	$(BIN)/wsc reproduce gwp --worlds 10 --explain --out figures
	$(BIN)/wsc validate cpu_upgrade --draws 5000
	$(BIN)/wsc validate dvfs_policy --draws 5000
	$(BIN)/wsc validate docs/examples/many_fleets.yaml --draws 500
	for name in rubis stockonline tpcw; do $(BIN)/wsc validate cross_$$name; done
	$(BIN)/wsc reproduce world --out figures
	$(BIN)/python -m tests.helpers.capacity_worlds 100000
	$(BIN)/python benchmarks/identification.py --repeats 12
	for direction in "" --cheaper; do $(BIN)/python benchmarks/detectable.py $$direction; done
	for what in "judge --worlds 200 --held-out" "quiet --series 800000" "draw .benchmarks/tuning --worlds 25" \
		"draw .benchmarks/held_out --worlds 100 --first 3000000"; do $(BIN)/python benchmarks/watch.py $$what; done
	$(BIN)/python -m tests.helpers.fuzzed_profiles --minutes 10
	$(BIN)/python benchmarks/otava.py .benchmarks/tuning .benchmarks/held_out
	$(BIN)/python benchmarks/calibration_causes.py
	$(BIN)/python benchmarks/paper_causes.py crossplatform
	$(BIN)/python -m tests.helpers.change_sizes
	$(BIN)/python benchmarks/held_out.py
	$(BIN)/python -m tests.helpers.outside_coverage --draws 4000
	$(BIN)/python -m tests.helpers.outside_guards
	$(BIN)/python -m tests.helpers.outside_slots --fleets 500
	$(BIN)/python -m tests.helpers.outside_spill
	$(BIN)/python -m tests.helpers.outside_crossover --fleets 2000
	$(BIN)/python benchmarks/spill_over.py
	$(BIN)/python benchmarks/autoscalers.py --out docs/autoscalers.csv
	$(BIN)/python benchmarks/percentile_bands.py --csv docs/percentile_bands.csv
	$(BIN)/python benchmarks/live_predictions.py .benchmarks/live --csv docs/live_predictions.csv
	$(BIN)/python benchmarks/least_change.py --machines 10000,100000,1000000 --controls 1,9 --csv docs/least_change.csv
	$(BIN)/python benchmarks/outside/evidence.py
	$(BIN)/python benchmarks/outside/evidence.py --methods mixed-model

clean: ## remove runs/, figures/ and caches; .venv stays
	rm -rf runs figures site jupyter_execute docs/modules dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find models sim analysis scenarios tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

# uv takes a third of pip's time. Where it cannot be had, or does not reach the registry that pip is
# set up for, pip does it.
define install
@{ $(PIP) -q uv && $(BIN)/uv pip install --python $(BIN)/python --compile-bytecode --system-certs -q -c constraints.txt -e '.[$(1)]'; } 2>/dev/null || \
{ echo "  with pip, a minute or two:"; $(PIP) -e '.[$(1)]' 2> >(grep -v '^WARNING' >&2) | \
while read -r verb what _; do \
	case "$$verb $$what" in "Installing collected") echo "  installing" ;; Collecting*) echo "  collecting $$what" ;; esac; \
done; }
endef

# The stamp is the last thing written. A set-up that was interrupted leaves .incomplete and is started afresh.
$(READY): pyproject.toml constraints.txt
	@if [ -e .venv/.incomplete ]; then rm -rf .venv; fi
	@mkdir -p .venv && touch .venv/.incomplete && rm -f $@
	@echo "Setting up .venv:"
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed: make PYTHON=…")'
	@$(PYTHON) -m venv .venv
	$(call install,dev)
	@rm .venv/.incomplete
	@touch $@

.venv/.docs: $(READY)
	$(call install,docs)
	@touch $@
