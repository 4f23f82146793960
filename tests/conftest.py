"""What several test files need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command
from servers import Server, solution


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """The real command, in a folder of the test's own."""
    return Command(tmp_path)


@pytest.fixture
def server() -> Iterator[Server]:
    """A loopback server that solves every maze."""
    with Server() as running:
        running.answer = solution
        yield running
