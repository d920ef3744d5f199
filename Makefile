# Two commands: `make first-run` measures this machine, `make test` passes every test. Both set up what they need.
VENV ?= .venv
export VENV

.PHONY: first-run test test-one lint check explore

first-run:
	@scripts/prepare run
	@$(VENV)/bin/fleetmark run
	@echo "fleetmark is in $(VENV)/bin; to type it without its path: . $(VENV)/bin/activate"

# Fleets wait more than they work, and jobs of this machine run one at a time: more processes than cores fill their time.
# tests/longest.py says what runs side by side. The last tests look at what this machine does meanwhile.
# Compiled tests are stored also where the environment would have each process compile them all (PYTHONDONTWRITEBYTECODE).
pytest = PYTHONDONTWRITEBYTECODE= $(VENV)/bin/python -m pytest
processes = $(shell cores=$$(nproc); echo $$((cores < 5 ? cores + 3 : 8)))
beside = --dist loadfile --no-loadscope-reorder

test:
	@scripts/prepare test
	@ls tests/__pycache__/*-pytest-*.pyc >/dev/null 2>&1 || find tests -name 'test_*.py' | \
		PYTHONDONTWRITEBYTECODE= xargs -P 2 -n 200 $(VENV)/bin/python -m pytest -q --collect-only >/dev/null || true
	@$(pytest) -n $(processes) $(beside) -m "not alone"
	@$(pytest) -m alone $$(grep -rl --include='test_*.py' 'mark\.alone' tests)

# Other examples than the tests draw each time, and three times as many of some, from anywhere; what they find is kept in .hypothesis.
explore:
	@scripts/prepare test
	@$(pytest) -n $(processes) $(beside) --hypothesis-profile=explore -m "not fleet and not alone and not job"

# One file, folder or FILE::TEST, without setting up anything: make test-one T=tests/parsers/test_fio.py
test-one:
	@test -n "$(T)" || { echo "test-one: name a test: make test-one T=tests/parsers/test_fio.py" >&2; exit 2; }
	@$(pytest) -q $(T)

lint:
	@test -x $(VENV)/bin/ruff || { echo "lint: $(VENV) has no ruff; install it: $(VENV)/bin/pip install -e '.[dev]'" >&2; exit 2; }
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

check:
	@scripts/prepare test
	@$(MAKE) --no-print-directory lint
