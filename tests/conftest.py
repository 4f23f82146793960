"""What several test files need."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The real command, in a folder of the test's own."""
    return Command(tmp_path)
