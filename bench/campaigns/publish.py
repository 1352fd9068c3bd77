"""Fills the marked tables of docs/results from a campaign. A page says which table goes where:

<!-- table latency godot inherent defaults -->
(written anew each time)
<!-- end -->

machine                          the machine, the clock, what was run, and every warning of the report
peaks VARIANT                    peak resident memory, an allocator a column
latency JOURNAL VIEW VARIANT     percentiles of malloc and free; VARIANT is defaults, prefaulted, or populated: the
                                 defaults with TLSF in populated memory in the place of its own
claims                           Blockyard beside populated TLSF and the best general-purpose allocator
rates                            events above 1, 10 and 100 us a second, attributed: Blockyard, populated TLSF, null
frames RATE                      share of a frame (say 144 Hz): p99, worst, frames above 5 %, attributed, in play
causes                           page faults and own work in the slowest 0.1 % of mallocs
memory                           memory over time: the least, Blockyard's and the most
deferred                         what is paid later or elsewhere: Blockyard's and the others' range
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from published import Published, Refused
from tables import TABLES

from blockyard.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "docs" / "results" / name for name in ("standard.md", "standard-frames.md", "heap.md")]
_MARKED = re.compile(r"(<!-- table ([^>]+?) -->\n).*?(<!-- end -->)", re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+\.png)\)")


def filled(text: str, found: Published, page: Path) -> str:
    def table(match: re.Match[str]) -> str:
        name, *words = match[2].split()
        if name not in TABLES:
            raise Refused(f"{page} asks for a table '{name}', and there are {', '.join(TABLES)}")
        if name == "latency" and words[0] not in found.journals:
            raise Refused(f"{page} shows {words[0]}, which is not in the campaign ({', '.join(found.journals)})")
        lines = TABLES[name](found, *words)
        return match[1] + "\n" + "\n".join(lines) + "\n\n" + match[3]

    if text.count("<!-- table ") != text.count("<!-- end -->"):
        raise Refused(f"{page}: each '<!-- table' must have an '<!-- end -->'")
    return _MARKED.sub(table, text)


def pictures(text: str, found: Published, page: Path) -> dict[Path, Path]:
    """Where each picture comes from that the page shows: `standard/godot-causes.png` is godot's `causes.png`."""
    sources = {}
    for name in _PICTURE.findall(text):
        journal, _, picture = Path(name).name.partition("-")
        section = next((one for one in found.sections if one.journal == journal), None)
        source = found.report / journal / section.slug / picture if section else found.report / name
        if not source.is_file():
            raise Refused(f"{page} shows {name}, and there is no {source}")
        sources[page.parent / name] = source
    return sources


def make_report(folder: Path) -> None:
    report = folder / "report" / "report.md"
    runs = folder.glob("runs/*/*/*/*/run.json")
    if not report.is_file() or report.stat().st_mtime < max((run.stat().st_mtime for run in runs), default=0):
        subprocess.run(
            [sys.executable, "-m", "blockyard", "report", folder, "--html", "--no-samples-parquet"],
            check=True,
            stdout=subprocess.DEVNULL,
        )


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        raise SystemExit("usage: bench/campaigns/publish RESULTS [PAGE...]")
    folder, pages = Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]] or PAGES
    try:
        if not (folder / "campaign.json").is_file():
            raise Refused(f"{folder} has no campaign.json: give the folder that 'blockyard replay -o' wrote")
        make_report(folder)
        found = Published(folder)
        texts = {page: page.read_text(encoding="utf-8") for page in pages}
        written = {page: filled(text, found, page) for page, text in texts.items()}
        copies = {to: source for page, text in texts.items() for to, source in pictures(text, found, page).items()}
    except (Refused, UserError) as error:
        raise SystemExit(f"publish: {error}") from None
    except subprocess.CalledProcessError:
        raise SystemExit("publish: the report could not be made; the reason stands above") from None
    for page, text in written.items():  # all is known to be there: nothing is left half done
        page.write_text(text, encoding="utf-8")
    for to, source in copies.items():
        to.parent.mkdir(exist_ok=True)
        shutil.copyfile(source, to)
    print(f"{len(written)} pages and {len(copies)} pictures; what their findings rest on:\n")
    for name in ("machine", "claims", "rates", "deferred"):
        print("\n".join(TABLES[name](found)), end="\n\n")


if __name__ == "__main__":
    main()
