# Two commands: `make first-run` measures this machine, `make test` passes every test. Both set up what they need.
VENV ?= .venv
export VENV

.PHONY: first-run test check explore

first-run:
	@scripts/prepare run
	@$(VENV)/bin/fleetmark run

test:
	@scripts/prepare test
	@$(VENV)/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not fleet and not alone"
	@$(VENV)/bin/python -m pytest -n 2 --dist loadfile -m "fleet and not alone"
	@$(VENV)/bin/python -m pytest -m alone

# Other examples than the tests draw each time, from anywhere, and what they find is kept in .hypothesis.
explore:
	@scripts/prepare test
	@$(VENV)/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile --hypothesis-profile=explore -m "not fleet and not alone"

check:
	@scripts/prepare test
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
