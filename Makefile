# Every target creates what it needs in .venv and reuses it: the second run starts at once.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Modules are compiled when they are first loaded, once for all processes, and nothing is written beside the sources.
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/bytecode
export PYTHONDONTWRITEBYTECODE :=

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*  ## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf '%-12s %s\n' "$$name" "$$text"; done

.PHONY: help demo test static lint types testtypes unit slow slowunit nightly docs audit mutants bench rivals proofs clean screenshots

demo: .venv/core.stamp  ## the main job on embedded data
	@$(BIN)/snugdp demo

# In another order, the same for the same seed: SNUGDP_SHUFFLE=1 make test
test: .venv/dev.stamp  ## everything that decides whether a change lands: types are checked beside the tests
	@$(MAKE) --no-print-directory --jobs=2 static unit

static: lint types  ## ruff and mypy

lint: .venv/dev.stamp  ## ruff
	$(BIN)/ruff check src studies tests tools
	$(BIN)/ruff format --check src studies tests tools

types: .venv/dev.stamp  ## mypy --strict of what is shipped; make slow has the tests as well
	$(BIN)/mypy src studies/snugdp_studies tools

testtypes: .venv/dev.stamp
	$(BIN)/mypy

# Without pytest's own reading of assertions, which takes longer than many tests; what fails is run again with it.
unit: .venv/test.stamp  ## the tests alone
	$(BIN)/pytest -q -n 2 --dist worksteal --assert=plain --durations=25 || { $(BIN)/pytest -q -n 2 --last-failed --last-failed-no-failures none; false; }

slow: .venv/test.stamp  ## mutants, self-audit, site, wheel, browser, repeated kills: the second half of .ci/run
	@$(MAKE) --no-print-directory --jobs=2 testtypes slowunit

slowunit: .venv/test.stamp
	export SNUGDP_EFFORT=slow; $(BIN)/pytest -q -n 2 --dist worksteal --assert=plain --durations=40 -m '(slow or repeated) and not nightly' || { $(BIN)/pytest -q -n 2 -m '' --last-failed --last-failed-no-failures none; false; }

nightly: .venv/test.stamp  ## every test with every repetition, and the paper's figures: hours
	SNUGDP_EFFORT=nightly $(BIN)/pytest -q -n 2 --dist worksteal -m 'slow or repeated or nightly'

docs: .venv/docs.stamp  ## the documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

bench: .venv/test.stamp  ## side by side with peers, one thread, into docs/benchmarks.md; DATA=FOLDER, SLOW=1, ONLY=noise
	$(BIN)/python tools/bench_page.py $(if $(DATA),--data "$(DATA)") $(if $(SLOW),--slow) $(if $(ONLY),--only "$(ONLY)")

rivals: .venv/test.stamp  ## other libraries on the same tables, in environments of their own, into docs/rivals.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/rivals/run.py

audit: .venv/test.stamp  ## the full study of every claim: about an hour
	$(BIN)/snugdp audit --full --report audit.html

mutants: .venv/test.stamp  ## every mistake on purpose, and who notices; ONLY="12 'ties as less'", MARKDOWN=docs/audit.md
	$(BIN)/python -m tests.mutants $(ONLY) $(if $(MARKDOWN),--markdown "$(MARKDOWN)")

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core.stamp: pyproject.toml | .venv/bin/python
	$(PIP) -e .
	@touch $@

.venv/dev.stamp: pyproject.toml studies/pyproject.toml | .venv/bin/python
	$(PIP) -e ".[dev]" -e studies
	@touch $@ .venv/core.stamp

# Spark is large, and neither ruff nor mypy needs it: `make test` installs it beside them.
.venv/test.stamp: .venv/dev.stamp
	@if command -v java >/dev/null; then echo '$(PIP) -e ".[spark]"'; $(PIP) -e ".[spark]"; else echo "no Java: the Spark tests will be skipped"; fi
	@touch $@

.venv/docs.stamp: pyproject.toml | .venv/bin/python
	$(PIP) -e ".[docs]"
	@touch $@ .venv/core.stamp

screenshots: .venv/test.stamp  ## of the terminal and of the report, in docs/images/
	$(BIN)/python tools/docs_terminal.py
	SNUGDP_SCREENSHOTS=docs/images $(BIN)/pytest -q tests/report/test_browser.py

proofs: .venv/core.stamp  ## after reading the proofs again against changed code
	$(BIN)/python tools/proofs.py

clean:  ## remove what the other targets made
	rm -rf .venv .venv-rivals site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
