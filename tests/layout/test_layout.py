"""The dependency rule holds, and each check of it finds a planted violation."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

_spec = importlib.util.spec_from_file_location("layers", Path(__file__).with_name("layers.py"))
assert _spec is not None and _spec.loader is not None
layers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(layers)


def test_no_component_includes_one_that_it_may_not_know() -> None:
    assert layers.include_violations(ROOT) == []


def test_no_parts_of_the_heap_include_each_other_in_a_cycle() -> None:
    assert layers.cycle_violations(ROOT) == []


@pytest.mark.parametrize(
    ("planted", "cycle"),
    [
        (
            {"a.hpp": "b.hpp", "b.cpp": "c.hpp", "b.hpp": "", "c.hpp": "", "c.cpp": "a.hpp"},
            "heap/a includes heap/b includes heap/c includes heap/a: parts include each other in a cycle",
        ),
        (
            {
                "page_heap.hpp": "",
                "page_heap_check.cpp": "janitor.hpp",
                "janitor.hpp": "",
                "janitor.cpp": "page_heap.hpp",
            },
            "heap/janitor includes heap/page_heap includes heap/janitor: parts include each other in a cycle",
        ),
        ({"a.hpp": "b.hpp", "a.cpp": "a.hpp", "b.hpp": "", "c.cpp": "a.hpp", "c_more.cpp": "b.hpp"}, None),
        (
            {"one/a.hpp": "two/b.hpp", "two/b.hpp": "", "two/c.hpp": "one/d.hpp", "one/d.hpp": ""},
            "heap/one includes heap/two includes heap/one: folders include each other in a cycle",
        ),
        (
            {"one/a.hpp": "two/b.hpp", "two/b.hpp": "", "two/c.cpp": "one/d.hpp", "one/d.hpp": ""},
            "heap/one includes heap/two includes heap/one: folders include each other in a cycle",
        ),
        ({"one/a.hpp": "two/b.hpp", "two/b.hpp": "", "two/b.cpp": "three/d.hpp", "three/d.hpp": ""}, None),
    ],
)
def test_a_planted_cycle_is_found(tmp_path: Path, planted: dict[str, str], cycle: str | None) -> None:
    folder = tmp_path / "library" / "src" / "heap"
    folder.mkdir(parents=True)
    for name, target in planted.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f'#include "heap/{target}"\n' if target else "")
    assert layers.cycle_violations(tmp_path) == ([cycle] if cycle else [])


def test_only_folders_of_its_name_know_the_operating_system() -> None:
    assert layers.system_violations(ROOT) == []


def test_what_the_recorder_shares_between_systems_knows_none() -> None:
    assert layers.windows_violations(ROOT) == []


def test_planted_knowledge_of_a_system_is_found_in_what_the_recorder_shares(tmp_path: Path) -> None:
    lab = tmp_path / "lab" / "src"
    for folder in ("journal", "record/collect", "record/linux", "record/windows"):
        (lab / folder).mkdir(parents=True)
    (lab / "record/windows/CMakeLists.txt").write_text("add_library(x ${journal}/a.cpp)\n")
    (lab / "journal/a.cpp").write_text('#include "journal/b.hpp"\n')
    (lab / "journal/b.hpp").write_text("#include <unistd.h>\ninline int x() { return getpid(); }\n")
    (lab / "journal/c.cpp").write_text("#ifdef _WIN32\n#endif\n")
    (lab / "record/linux/ring.hpp").write_text("#include <sys/mman.h>\n")
    (lab / "record/windows/stacks.hpp").write_text('#include "record/linux/ring.hpp"\n')
    (lab / "record/collect/merge.cpp").write_text('#include "record/linux/ring.hpp"\n#include <poll.h>\n')
    found = "\n".join(layers.windows_violations(tmp_path))
    assert "c.cpp asks" in found and "b.hpp includes unistd.h" in found and "b.hpp uses getpid" in found
    assert "merge.cpp includes poll.h" in found and "mman" not in found
    for other in ("merge.cpp", "stacks.hpp"):
        assert f"{other} includes record/linux/ring.hpp, which is another system's" in found


def test_no_python_part_imports_one_above_it() -> None:
    assert layers.import_violations(ROOT) == []


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert layers.machine_violations(ROOT) == []


def test_no_line_of_code_is_longer_than_120_columns() -> None:
    assert layers.width_violations(ROOT) == []


def test_python_tests_of_several_folders_can_be_collected_in_one_call() -> None:
    """pytest knows a module by its name alone: names are unique, and there are several conftest.py."""
    modules = [path for path in (ROOT / "tests").rglob("*.py") if path.name != "conftest.py"]
    names = [path.stem for path in modules]
    assert {name for name in names if names.count(name) > 1} == set()
    assert [path for path in modules if re.search(r"^(from|import) conftest\b", path.read_text(), re.MULTILINE)] == []


def test_the_checks_see_the_tree() -> None:
    names = {str(path.relative_to(ROOT)) for path in layers.files(ROOT)}
    assert {
        "library/src/heap/api/malloc_api.cpp",
        "library/include/blockyard/heap.h",
        "lab/python/blockyard/cli.py",
    } <= names
    assert not any(name.startswith((".venv/", "build/")) for name in names)


@pytest.mark.parametrize(
    ("check", "file", "text", "sentence"),
    [
        (
            "include_violations",
            "library/src/block/pool.cpp",
            '#include "journal/event.hpp"',
            "block may include base, checks, pages, threads only",
        ),
        (
            "include_violations",
            "library/src/base/stack.cpp",
            '#include "heap/heap.hpp"',
            "base may include no other component only",
        ),
        (
            "include_violations",
            "library/src/heap/heap.cpp",
            "#  include <blockyard/journal.h>",
            "the library never includes the lab",
        ),
        (
            "include_violations",
            "library/src/heap/malloc/family.cpp",
            '#include "block/pool.hpp"',
            "heap may include base, checks, pages, threads only",
        ),
        (
            "include_violations",
            "lab/src/journal/reader.cpp",
            '#include "record/linux/ring.hpp"',
            "journal may include base only",
        ),
        (
            "include_violations",
            "library/src/novelty/x.cpp",
            '#include "clock/clock.hpp"',
            "a component that this test does not know",
        ),
        (
            "include_violations",
            "library/include/blockyard/list.hpp",
            '#include "block/pool.hpp"',
            "public headers only",
        ),
        ("include_violations", "lab/adapters/glibc.cpp", '#include "replay/run.hpp"', "use the public headers only"),
        ("include_violations", "docs/guide/x.md", "#include <blockyard/detail/link.hpp>", "detail/ is private"),
        ("include_violations", "examples/scene/x.cpp", '#include "blockyard/detail/link.hpp"', "detail/ is private"),
        ("system_violations", "library/src/heap/heap.cpp", "#ifdef __linux__", "uses __linux__"),
        ("system_violations", "library/src/base/pages.hpp", "#include <sys/mman.h>", "includes sys/mman.h"),
        ("system_violations", "library/include/blockyard/list.hpp", "# include <pthread.h>", "includes pthread.h"),
        ("system_violations", "library/src/block/leaks.cpp", "int f() { return getpid(); }", "uses getpid"),
        ("system_violations", "library/src/heap/x.hpp", "pthread_mutex_t mutex;  // ours", "uses pthread_mutex_t"),
        ("system_violations", "library/src/heap/x.cpp", "auto now = clock_gettime(0, &at);", "uses clock_gettime"),
        ("system_violations", "library/src/lifetime/x.cpp", "say(STDERR_FILENO);", "uses STDERR_FILENO"),
        ("system_violations", "library/src/heap/x.cpp", "auto* f = getauxval(0);", "uses getauxval"),
        (
            "import_violations",
            "lab/python/blockyard/analysis/tables.py",
            "from blockyard.report import style",
            "imports blockyard.report",
        ),
        (
            "import_violations",
            "lab/python/blockyard/analysis/tables.py",
            "def f():\n    import blockyard.commands.replay",
            "imports blockyard.commands",
        ),
        (
            "import_violations",
            "lab/python/blockyard/native.py",
            "from blockyard import campaign",
            "imports blockyard.campaign",
        ),
        (
            "import_violations",
            "lab/python/blockyard/campaign/drive.py",
            "from blockyard.analysis import samples",
            "imports blockyard.analysis",
        ),
        (
            "machine_violations",
            "docs/method.md",
            "see /home/somebody/results",
            "docs/method.md:1 names /home/somebody/",
        ),
        ("width_violations", "library/src/heap/heap.cpp", "// " + 118 * "x", "heap.cpp:1 has 121 columns"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, check: str, file: str, text: str, sentence: str) -> None:
    planted = tmp_path / file
    planted.parent.mkdir(parents=True)
    planted.write_text(text + "\n")
    [violation] = set(getattr(layers, check)(tmp_path))
    assert sentence in violation


@pytest.mark.parametrize(
    ("check", "file", "text"),
    [
        ("include_violations", "lab/src/replay/run.cpp", '#include "journal/event.hpp"\n#include "replay/run.hpp"'),
        (
            "include_violations",
            "library/src/lifetime/temp.cpp",
            '#include "heap/heap.hpp"\n#include <blockyard/block.h>',
        ),
        ("system_violations", "library/src/base/linux/pages.cpp", "#ifdef __linux__"),
        ("system_violations", "library/src/heap/malloc/family.cpp", "#include <malloc.h>"),
        ("system_violations", "library/src/heap/x.cpp", '#include <array>\nauto text = "fork()";  // not mmap()'),
        ("import_violations", "lab/python/blockyard/report/page.py", "from blockyard.analysis import samples"),
        ("width_violations", "library/src/heap/heap.cpp", "// " + 117 * "x"),
        ("machine_violations", "docs/method.md", "worked at /workshop/rooted and /homework/"),
    ],
)
def test_what_is_allowed_is_not_reported(tmp_path: Path, check: str, file: str, text: str) -> None:
    allowed = tmp_path / file
    allowed.parent.mkdir(parents=True)
    allowed.write_text(text + "\n")
    assert getattr(layers, check)(tmp_path) == []
