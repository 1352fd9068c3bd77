"""One lifelike campaign, its page, and one headless Chromium for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import browser
import numpy as np
import pytest
import synthetic
from page_lab import ALLOCATORS, EVENTS, REPEATS, SECONDS, page_of, samples


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
