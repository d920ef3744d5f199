# Two commands: `make first-run` measures this machine, `make test` passes every test. Both set up what they need.
VENV ?= .venv
export VENV

.PHONY: first-run test check

first-run:
	@scripts/prepare run
	@$(VENV)/bin/fleetmark run

test:
	@scripts/prepare test
	@$(VENV)/bin/python -m pytest -n auto --maxprocesses 4 --dist loadfile -m "not fleet and not alone"
	@$(VENV)/bin/python -m pytest -n 2 --dist loadfile -m "fleet and not alone"
	@$(VENV)/bin/python -m pytest -m alone

check:
	@scripts/prepare test
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
