"""Assertions in the tests' helper modules show their values, as those of the tests do."""

from __future__ import annotations

import pkgutil
from pathlib import Path

import pytest

helpers = pkgutil.iter_modules([str(Path(__file__).parent)], "tests.")
pytest.register_assert_rewrite(*(module.name for module in helpers))
