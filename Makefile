# Two commands: `make first-run` measures this machine, `make test` passes every test. Both set up what they need.
VENV ?= .venv
export VENV

.PHONY: first-run test test-one lint check explore

first-run:
	@scripts/prepare run
	@$(VENV)/bin/fleetmark run
	@echo "fleetmark is in $(VENV)/bin; to type it without its path: . $(VENV)/bin/activate"

# A file a process, those that take longest first. One process more than there are cores, since some tests wait; fleets wait
# more than they work. Only the files that have such tests are read where few have.
pytest = $(VENV)/bin/python -m pytest
processes = $(shell cores=$$(nproc); echo $$((cores < 4 ? cores + 1 : 5)))
beside = --dist loadfile --no-loadscope-reorder

test:
	@scripts/prepare test
	@$(pytest) -n $(processes) $(beside) -m "not fleet and not alone"
	@$(pytest) -n 3 $(beside) -m "fleet and not alone" $$(grep -rl --include='test_*.py' 'mark\.fleet' tests)
	@$(pytest) -m alone $$(grep -rl --include='test_*.py' 'mark\.alone' tests)

# Other examples than the tests draw each time, and three times as many of some, from anywhere; what they find is kept in .hypothesis.
explore:
	@scripts/prepare test
	@$(pytest) -n $(processes) $(beside) --hypothesis-profile=explore -m "not fleet and not alone"

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
