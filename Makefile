# `make demo` and `make test` do their own set-up; python3 and pip are all they need.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
PACKAGES := -e packages/bench -e packages/paper -e packages/public

# no window, no sound, and one thread per process: tests run side by side
export MPLBACKEND = Agg
export SDL_VIDEODRIVER = dummy
export SDL_AUDIODRIVER = dummy
export PYGAME_HIDE_SUPPORT_PROMPT = 1
export OMP_NUM_THREADS = 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint docs clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(STAMP) ## install apeval, its packages and its tools into .venv

$(STAMP): pyproject.toml $(wildcard packages/*/pyproject.toml) constraints.txt src/apeval/version.py
	@$(PYTHON) -c 'import sys; sys.exit("apeval needs Python 3.10 or newer" if sys.version_info < (3, 10) else 0)'
	@echo "installing into $(VENV) (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet -c constraints.txt -e ".[dev,compiled,pictures,scalable,train,mujoco,tensorboard,cluster,onnx,jax,envpool,jsbsim,sumo,docs]" $(PACKAGES)
	@touch $@

demo: $(STAMP) ## estimate a rare failure probability, from nothing to the result
	$(BIN)/apeval run int-v1 --steps 3000 --seed 1 --out runs/demo
	@$(BIN)/apeval report runs/demo --out runs/demo/report.html
	@echo "Open runs/demo/report.html in a browser; the same as data: runs/demo/result.json"

# tests that stand side by side share what their file prepares once, so a worker takes them in a row
test: lint ## run every check: ruff, mypy, import contract, tests and doctests
	$(BIN)/pytest -n 2 --dist worksteal

lint: $(STAMP) ## run the fast checks: ruff, mypy --strict, import contract
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP) ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean: ## remove what the checks and builds leave behind (not .venv, not runs)
	rm -rf site build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src packages tests -name __pycache__ -type d -exec rm -rf {} +
