"""What several test files need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Command
from servers import Server, solution

# Whose commands are measured for coverage, too: together they go through all of the program, and
# measuring every command of every test would take half as long again.
MEASURED = (
    "test_command",
    "test_games",
    "test_graphs",
    "test_history",
    "test_terminal",
    "test_wiki",
)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: half of the tests' time is spent waiting."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(autouse=True)
def measured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the commands that other tests start unmeasured."""
    if request.module.__name__ not in MEASURED:
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


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
