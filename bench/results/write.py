"""bench/results/make: campaign folders and the outputs of `make bench` as the pages of docs/results.

Writes every page from docs/results/data. With --collect, brings that data up to date first: standard.json from the
campaign's folder, and a file for each part of `make bench` that has left one.
"""

import argparse
import json
import textwrap
import tomllib
from pathlib import Path

import common
import data as files
import page_choosing
import page_containers
import page_engines
import page_fidelity
import page_heap
import page_index
import page_lab
import page_lifetimes
import page_standard
import pictures
from common import Data

import campaign as campaigns
from blockyard.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
_COLUMNS = 120


def collect(folder: Path, parts: Path, to: Path) -> list[str]:
    """The names of the files that were brought up to date."""
    found = []
    if (folder / "campaign.json").is_file():
        files.write(to / "standard.json", campaigns.collect(folder))
        found.append("standard.json")
        _drop_older_campaigns(to)
    for path in sorted(parts.glob("*.json")):
        files.write(to / path.name, json.loads(path.read_text(encoding="utf-8")))
        found.append(path.name)
    if not found:
        raise UserError(
            f"there is nothing to collect: neither a campaign in {folder} nor results of 'make bench' in {parts}"
        )
    return found


def _drop_older_campaigns(folder: Path) -> None:
    """Pages show the standard campaign, and a newer one where there is one: no page shows an older one."""
    told = {path: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    newest = told[folder / "standard.json"]["measured_at"]
    for path, document in told.items():
        if path.name != "standard.json" and document["kind"] == "campaign" and document["measured_at"] <= newest:
            path.unlink()


def pages(data: Data, images: Path) -> dict[str, list[str]]:
    targets = tomllib.loads((Path(__file__).parent / "targets.toml").read_text(encoding="utf-8"))
    made = {
        "index.md": page_index.write(data),
        "standard.md": page_standard.write(data, pictures.draw(data.standard, images)),
        "heap.md": page_heap.write(data, targets["heap"]),
        "lab.md": page_lab.write(data, targets["lab"]),
        "choosing.md": page_choosing.write(data),
    }
    if "container" in data.documents:
        made["containers.md"] = page_containers.write(data)
    if "engines" in data.documents:
        made["engines.md"] = page_engines.write(data)
    if "fidelity" in data.documents:
        made["fidelity.md"] = page_fidelity.write(data, targets["fidelity"])
    if "lifetime" in data.documents:
        made["lifetimes.md"] = page_lifetimes.write(data, targets["lifetime"])
    return made


def text(lines: list[str]) -> str:
    """Paragraphs wrapped; tables, headings, pictures and code are as they are."""
    found, code = [], False
    for line in lines:
        code ^= line.startswith("```")
        plain = not code and line[:1] not in ("", "|", "#", "!") and line[:3] != "```"
        found += textwrap.wrap(line, _COLUMNS, break_long_words=False, break_on_hyphens=False) if plain else [line]
    return "\n".join(found).rstrip("\n") + "\n"


def main() -> None:
    options = argparse.ArgumentParser(prog="bench/results/make", description=__doc__.split("\n\n")[1])
    options.add_argument("--collect", action="store_true", help="bring docs/results/data up to date first")
    options.add_argument("--campaign", type=Path, default=ROOT / "build/results/standard", metavar="DIR")
    options.add_argument("--bench", type=Path, default=ROOT / "build/bench/results", metavar="DIR")
    options.add_argument("-o", "--output", type=Path, default=RESULTS, metavar="DIR", help="where pages and data go")
    chosen = options.parse_args()
    try:
        if chosen.collect:
            print(f"collected {common.words(collect(chosen.campaign, chosen.bench, chosen.output / 'data'))}")
        found = pages(Data(chosen.output / "data"), chosen.output / "images")
    except UserError as error:
        raise SystemExit(f"results: {error}") from None
    for name, lines in found.items():
        (chosen.output / name).write_text(text(lines), encoding="utf-8")
    words = sum(len(text(lines).split()) for lines in found.values())
    print(f"{len(found)} pages of {words:,} words in {chosen.output}")


if __name__ == "__main__":
    main()
