"""blockyard names: what it says of a journal, and that sites are then called by their names."""

import resource
import shutil
import subprocess
from pathlib import Path

import pytest
from stacked import Journal
from the_command import blockyard, sentence, told

from blockyard import native


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program of one function, with debug information."""
    compiler = shutil.which("cc") or pytest.skip("no compiler")
    (tmp_path / "game.c").write_text("int spawn(int x) {\n  return x * 3;\n}\nint main(void) { return spawn(0); }\n")
    subprocess.run([compiler, "-g", "-no-pie", "-Wl,--build-id", "game.c", "-o", "game"], cwd=tmp_path, check=True)
    return tmp_path / "game"


def record(program: Path) -> Path:
    """A journal of an allocation in spawn(), and of one in a library that is not there."""
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = next(line.split()[0] for line in symbols.splitlines() if line.endswith(" spawn"))
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    build_id = notes.split("Build ID: ")[1].split()[0]
    text = program.with_suffix(".txt")
    text.write_text(
        "# blockyard journal text 1\n"
        f"# module 400000 500000 0 0 {build_id} {program}\n"
        "# module 600000 700000 0 0 abcd /nowhere/libgone.so\n"
        f"# address 0 {int(address, 16) + 1:x}\n# address 1 10\n# node - 0\n# node - 1\n"
        "# site 0\na 8 10 1 1\n# site 1\na 8 20 1 2\n"
    )
    assert blockyard("convert", text, "-o", program.with_suffix(".byj")).returncode == 0
    return program.with_suffix(".byj")


def test_sites_have_names_afterwards_and_missing_modules_are_listed(program):
    journal = record(program)
    said = blockyard("names", journal).stdout
    assert "1 of 2 addresses in call stacks have names" in said
    assert "/nowhere/libgone.so: no names; the file is not on this machine" in said
    assert "build-id abcd" in said and "--debug-dir" in said and "-dbgsym" in said
    program.unlink()
    assert f"{program}:" not in blockyard("names", journal).stdout  # names that were found before stay
    result = told("sites", journal, "--by", "line")
    assert {(site["function"], site["line"]) for site in result["sites"]} == {("spawn", 1), ("libgone.so+0x10", 0)}


def test_a_folder_of_debug_files_serves_a_stripped_program(program):
    journal = record(program)
    symbols = program.parent / "symbols"
    symbols.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", program, symbols / "any.debug"], check=True)
    program.unlink()
    assert told("names", journal)["named"] == 0
    result = told("names", journal, "--debug-dir", symbols)
    assert result["named"] == 1
    assert [module["symbols"] for module in result["modules"] if module["path"] == str(program)] == ["lines"]


@pytest.mark.parametrize("name, part", [("game.txt", "blockyard convert"), ("bare.byj", "no call stacks")])
def test_what_can_take_no_names_is_refused_in_one_sentence(tmp_path, name, part):
    journal = Journal()
    if name == "game.txt":
        journal.allocate(8, 0x10, 1, journal.stack("main"))
        path = journal.write(tmp_path / name)
    else:
        (tmp_path / "bare.txt").write_text("a 8 10 1 1\n")
        path = tmp_path / name
        assert blockyard("convert", tmp_path / "bare.txt", "-o", path).returncode == 0
    before = path.read_bytes()
    assert part in sentence(blockyard("names", path))
    assert path.read_bytes() == before


def test_a_journal_that_may_not_grow_is_named_as_it_was_given_and_stays(program):
    journal = record(program)
    before = journal.read_bytes()
    done = subprocess.run(
        [native.path("blockyard-names"), journal],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and done.stderr.startswith(f"blockyard: {journal}: writing failed")
    assert journal.read_bytes() == before and not list(journal.parent.glob("*.part*"))


@pytest.mark.parametrize("form", ["coff", "pdb"])
def test_a_program_of_windows_is_named_from_its_own_symbols_in_a_folder(tmp_path, form):
    needed = ["llvm-symbolizer", *(["x86_64-w64-mingw32-gcc"] if form == "coff" else ["clang", "lld-link"])]
    for tool in needed:
        shutil.which(tool) or pytest.skip(f"no {tool} (scripts/install-packages windows)")
    (tmp_path / "game.c").write_text("int spawn(int x) {\n  return x * 3;\n}\nint main(void) { return spawn(0); }\n")
    if form == "coff":
        commands = [["x86_64-w64-mingw32-gcc", "-g", "-Wl,--build-id", "game.c", "-o", "game.exe"]]
    else:
        commands = [
            ["clang", "--target=x86_64-pc-windows-msvc", "-g", "-gcodeview", "-c", "game.c", "-o", "game.obj"],
            ["lld-link", "/entry:spawn", "/nodefaultlib", "/subsystem:console", "/debug", "/out:game.exe", "game.obj"],
        ]
    for command in commands:
        subprocess.run(command, cwd=tmp_path, check=True)
    code = (tmp_path / "game.exe").read_bytes()
    headers = int.from_bytes(code[0x3C:0x40], "little")
    guid = code[code.index(b"RSDS") + 4 :]
    build_id = guid[3::-1].hex() + guid[5:3:-1].hex() + guid[7:5:-1].hex() + guid[8:16].hex() + guid[19:15:-1].hex()
    entry = int.from_bytes(code[headers + 40 : headers + 44], "little")
    if form == "coff":  # where the program begins is the C library's code
        said = subprocess.run(["x86_64-w64-mingw32-nm", "game.exe"], cwd=tmp_path, capture_output=True, text=True)
        entry = next(int(line.split()[0], 16) for line in said.stdout.splitlines() if line.endswith(" spawn"))
        entry -= int.from_bytes(code[headers + 48 : headers + 56], "little")
    text = tmp_path / "game.txt"
    text.write_text(
        "# blockyard journal text 1\n"
        f"# module 400000 500000 400000 0 {build_id} C:/games/game.exe\n"
        f"# address 0 {entry + 1:x}\n# node - 0\n# site 0\na 8 10 1 1\n"
    )
    journal = tmp_path / "game.byj"
    assert blockyard("convert", text, "-o", journal).returncode == 0
    result = told("names", journal, "--debug-dir", tmp_path)
    assert result["named"] == 1, result
    assert [module["symbols"] for module in result["modules"]] == ["lines"]
    sites = told("sites", journal, "--by", "line")["sites"]
    assert [site["function"] for site in sites] == ["spawn"]
