"""One lifelike campaign, its page, and one headless Chromium for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import advice_files
import browser
import numpy as np
import pytest
import stack_files
import synthetic
from page_lab import ALLOCATORS, EVENTS, REPEATS, SECONDS, page_of, samples
from stack_files import CLEAR, LABEL, SPAWN, TEXT_OF_LABEL, TEXT_OF_SPAWN
from synthetic import FREE

from blockyard.analysis.samples import NO_EVENT
from blockyard.analysis.sites import NONE

WITHOUT_STACK = 13
"""Each event whose number this divides has no stack."""


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> synthetic.Campaign:
    made = synthetic.lifelike_campaign(
        tmp_path_factory.mktemp("page") / "results", ALLOCATORS, EVENTS, REPEATS, SECONDS
    )
    for repeat, rows in enumerate(samples(made, "jemalloc"), start=1):
        # Slow and fast ones: some that the machine strikes every time, some that it strikes in one repeat alone.
        struck = (rows["event"] % 50 == 7) | (rows["event"] % 50 == 10 + repeat)
        rows["cause"][struck] |= 1 | 8
        np.save(made.folder("jemalloc", repeat) / "samples.npy", rows)
    return made


@pytest.fixture(scope="session")
def page(campaign: synthetic.Campaign) -> Path:
    return page_of(campaign)


@pytest.fixture(scope="session")
def stacked(tmp_path_factory: pytest.TempPathFactory) -> synthetic.Campaign:
    """`spawn` asks for memory in the first half, `label` in the second, both through `text` every third time."""
    made = synthetic.lifelike_campaign(
        tmp_path_factory.mktemp("stacked") / "results", ALLOCATORS, EVENTS, REPEATS, SECONDS
    )
    rows, pair = samples(made, "null")[0], np.load(made.directory / "runs" / "game" / "pairs.npy")
    first = rows["start"] < SECONDS / 2 * 1e9
    leaf = np.where(first, SPAWN, LABEL)
    leaf = np.where(rows["event"] % 3 == 0, np.where(first, TEXT_OF_SPAWN, TEXT_OF_LABEL), leaf)
    leaf = np.where(rows["kind"] == FREE, CLEAR, leaf)
    leaf = np.where(rows["event"] % WITHOUT_STACK == 0, NONE, leaf)
    stays = (rows["kind"] != FREE) & (pair[rows["event"]] == NO_EVENT) & (leaf != NONE)
    alive = np.bincount(leaf[stays], rows["size"][stays], len(stack_files.FUNCTIONS))
    stack_files.write(made.directory / "runs" / "game", leaf, alive)
    advice_files.name_journals(made)
    return made


@pytest.fixture(scope="session")
def stacked_leaves(stacked: synthetic.Campaign) -> np.ndarray:
    """By event the node of stack_files that its stack ends in."""
    data = (stacked.directory / "runs" / "game" / "sites.bys").read_bytes()
    return np.frombuffer(data, np.uint32, EVENTS, 64 + 32 * len(stack_files.FUNCTIONS)).astype(np.int64)


@pytest.fixture(scope="session")
def chromium() -> Iterator[browser.Page]:
    program = browser.executable()
    if program is None:
        pytest.skip("Chromium is not installed (scripts/install-packages test): the report's page was NOT opened")
    with browser.chromium(program) as tab:
        yield tab


@pytest.fixture
def tab(chromium: browser.Page) -> browser.Page:
    """At a desk, in the light; whatever a test did before is undone."""
    chromium.size(1440, 1000)
    chromium.theme("light")
    chromium.sight("none")
    chromium.problems.clear()
    chromium.requests.clear()
    return chromium


@pytest.fixture
def opened(tab: browser.Page, page: Path) -> browser.Page:
    tab.open(page)
    return tab
