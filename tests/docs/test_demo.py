"""README shows what the demo prints."""

from pathlib import Path

from blockyard.campaign import demo

ROOT = Path(__file__).parents[2]


def test_readme_shows_what_the_demo_printed() -> None:
    printed = (ROOT / "docs/results/data/demo.txt").read_text()
    assert f"```text\n{printed}```\n" in (ROOT / "README.md").read_text(), "run scripts/show-demo"
    table, verdict = printed.split("\nVerdict\n")
    assert {line.split()[0] for line in table.splitlines()[4:-1]} == set(demo.DEFAULTS.allocators) - {"null"}
    assert "on glibc: allocation" in verdict
