"""What MkDocs alone can't do for us: pages from outside of docs/, and links to the sources.

The pages link to files of the repository as GitHub shows them (`../../library/include/blockyard/heap.h`). A site has
no such files, so each that is linked becomes a page under `source/`. Links to the pages at the root of the repository
(CONTRIBUTING, CHANGELOG, ...) lead to their copies in the site.
"""

import posixpath
import re
import subprocess
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = get_plugin_logger("site_hooks")

ROOT = Path(__file__).parents[2]
ROOT_PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "THIRD-PARTY.md")
SEARCH_SHIM = ROOT / "build" / "docs-npm" / "node_modules" / "iframe-worker" / "shim" / "index.js"

# [text](target) and ![text](target); code is cut out before.
_LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|(`+)(?!`).+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
_LANGUAGES = {
    ".h": "c",
    ".c": "c",
    ".hpp": "cpp",
    ".cpp": "cpp",
    ".py": "python",
    ".toml": "toml",
    ".js": "javascript",
    ".cs": "csharp",
    ".yml": "yaml",
    ".json": "json",
    ".txt": "text",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    docs = [(Path("docs") / file.src_uri, file.content_string) for file in files.documentation_pages()]
    for name in ROOT_PAGES:
        if (ROOT / name).is_file():
            text = _rewritten((ROOT / name).read_text(encoding="utf-8"), Path(name))
            files.append(_generated(config, name, text))
            docs.append((Path(name), text))
    linked = {target for path, text in docs for target in _outside(text, path)}
    for target in sorted(linked):
        files.append(_generated(config, _source_uri(target), _source_page(target)))
    style = Path(__file__).with_name("site.css")
    files.append(File.generated(config, "assets/site.css", abs_src_path=str(style)))
    if SEARCH_SHIM.is_file():
        files.append(File.generated(config, "assets/iframe-worker.js", abs_src_path=str(SEARCH_SHIM)))
    else:
        log.warning("search will not work from disk: scripts/setup-docs has not fetched iframe-worker")
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    uri = page.file.src_uri
    if uri.startswith("source/") or uri in ROOT_PAGES:
        return markdown
    return _rewritten(markdown, Path("docs") / uri)


def _generated(config: MkDocsConfig, uri: str, text: str) -> File:
    return File.generated(config, uri, content=text)


def _rewritten(markdown: str, path: Path) -> str:
    """The page's links as the site needs them. `path` is relative to the repository."""

    def link(found: re.Match[str]) -> str:
        before, target, anchor, after = found.groups()
        inside = _resolved(target, path)
        if inside is None:
            return found.group()
        own = _site_uri(path)
        other = _site_uri(inside)
        if other is None:
            other = _source_uri(inside)
            anchor = None  # a line number or a heading of a page that the site shows as text
        assert own is not None
        return f"{before}{posixpath.relpath(other, posixpath.dirname(own) or '.')}{anchor or ''}{after}"

    return _outside_code(markdown, lambda text: _LINK.sub(link, text))


def _outside(markdown: str, path: Path) -> set[Path]:
    """Files and folders of the repository that the page links to and that the site has no page for."""
    targets: set[Path] = set()

    def collect(text: str) -> str:
        for _, target, _, _ in _LINK.findall(text):
            inside = _resolved(target, path)
            if inside is not None and _site_uri(inside) is None:
                targets.add(inside)
        return text

    _outside_code(markdown, collect)
    return targets


def _resolved(target: str, path: Path) -> Path | None:
    """Where a relative link leads, relative to the repository; nothing for links that MkDocs is to judge."""
    if re.match(r"[a-z]+:|/|#", target):
        return None
    joined = Path(posixpath.normpath(posixpath.join(path.parent.as_posix(), target)))
    if joined.parts[:1] == ("..",) or joined.parts[:1] == ("source",) or not (ROOT / joined).exists():
        return None
    return joined


def _site_uri(path: Path) -> str | None:
    if path == Path("README.md"):  # the site's first page is docs/index.md
        return "index.md"
    if path.parts[0] == "docs":
        return path.relative_to("docs").as_posix()
    return path.as_posix() if path.as_posix() in ROOT_PAGES else None


def _source_uri(path: Path) -> str:
    return f"source/{path.as_posix()}.md"


def _source_page(path: Path) -> str:
    hidden = "search:\n  exclude: true\nhide:\n  - navigation\n  - toc\n"
    front = f"---\ntitle: {path.name}\n{hidden}---\n\n# `{path.as_posix()}`\n\n"
    source = ROOT / path
    if source.is_dir():
        names = subprocess.run(
            ["git", "-C", str(source), "ls-files", "-co", "--exclude-standard", "."],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.split("\n")
        entries = sorted({name.split("/")[0] + ("/" if "/" in name else "") for name in names if name})
        return front + "A folder of the repository:\n\n" + "".join(f"- `{entry}`\n" for entry in entries)
    content = source.read_bytes()
    if b"\0" in content[:8192]:
        return front + f"A binary file of {len(content)} bytes.\n"
    language = "cmake" if source.name == "CMakeLists.txt" else _LANGUAGES.get(source.suffix, "text")
    return front + f"````{language}\n{content.decode(errors='replace').rstrip()}\n````\n"


def _outside_code(markdown: str, change) -> str:
    """Applies `change` to everything but fenced blocks and code spans."""
    result, end = [], 0
    for code in _CODE.finditer(markdown):
        result += [change(markdown[end : code.start()]), code.group()]
        end = code.end()
    result.append(change(markdown[end:]))
    return "".join(result)
