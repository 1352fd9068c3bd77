"""The little of the ELF format that the recorder needs: can a file be preloaded into, and renaming one symbol.

Why not a library: loading LIEF adds 0.34 to 0.51 s to each record, for 40 lines here. patchelf 0.19 renames symbols,
but Debian 12 has 0.14, which does not.
"""

import os
import struct
from dataclasses import dataclass
from pathlib import Path

from blockyard.errors import UserError

PLACEHOLDER = b"by_frame_symbol_placeholder"
MOST_NAME_BYTES = 200
_PT_INTERP = 3
_SHT_SYMTAB, _SHT_HASH, _SHT_DYNSYM = 2, 5, 11
_STB_WEAK = 2
_ANY = "a sanitizer"
_SANITIZERS = {
    b"__asan_init": "AddressSanitizer",
    b"__hwasan_init": "HWAddressSanitizer",
    b"__msan_init": "MemorySanitizer",
    b"__tsan_init": "ThreadSanitizer",
    b"__sanitizer_symbolize_code": _ANY,  # weak in the run-time part, and left where that was stripped
}


@dataclass
class Header:
    """What an executable says about itself."""

    bits: int
    interpreter: str | None = None  # the dynamic linker; None: linked statically
    sanitizer: str | None = None


def script_interpreter(path: Path) -> Path | None:
    """What a script's first line names; None for anything else."""
    with path.open("rb") as file:
        first = file.readline(256)
    words = first[2:].split() if first.startswith(b"#!") else []
    return Path(os.fsdecode(words[0])) if words else None


def read_header(path: Path) -> Header | None:
    """None when `path` is no ELF file or can't be read."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if len(data) < 64 or data[:4] != b"\x7fELF":
        return None
    if data[4] != 2:
        return Header(32, "")
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    # A static position-independent program has a dynamic section but nobody to interpret it.
    interpreter = None
    for at in range(offset, min(offset + count * size, len(data) - 55), size or 56):
        kind, _, begin, _, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == _PT_INTERP:
            interpreter = data[begin : begin + length].rstrip(b"\0").decode(errors="replace")
    return Header(64, interpreter, _sanitizer(data))


def _sanitizer(data: bytes) -> str | None:
    """The sanitizer whose run-time part a program has or needs, by its symbols. A program that only asks whether there
    is one, by a weak symbol, is none of it."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [
        struct.unpack_from("<IIQQQQI", data, at)
        for at in range(table, min(table + count * size, len(data) - 63), size or 64)
    ]
    tables = []
    for _, kind, _, _, at, length, strings in sections:
        if kind in (_SHT_SYMTAB, _SHT_DYNSYM) and strings < len(sections):
            names_at, names_bytes = sections[strings][4:6]
            tables.append((data[names_at : names_at + names_bytes], data[at : at + length // 24 * 24]))
    for symbol, name in _SANITIZERS.items():
        for names, symbols in tables:
            at = names.find(b"\0" + symbol + b"\0") + 1
            if at != 0 and any(
                wanted == at and (name == _ANY or info >> 4 != _STB_WEAK or section != 0)
                for wanted, info, _, section, _, _ in struct.iter_unpack("<IBBHQQ", symbols)
            ):
                return name
    return None


def write_frame_stub(template: Path, output: Path, name: str) -> None:
    """Copies the stub library with its placeholder renamed to `name` and its symbol hash table rebuilt."""
    data = bytearray(template.read_bytes())
    (table,) = struct.unpack_from("<Q", data, 40)
    entry_bytes, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + index * entry_bytes) for index in range(count)]
    _, _, _, _, symbols_at, symbols_bytes, strings_section, *_ = next(s for s in sections if s[1] == _SHT_DYNSYM)
    _, _, _, _, hash_at, *_ = next(s for s in sections if s[1] == _SHT_HASH)
    strings_at, strings_bytes = sections[strings_section][4:6]
    place = data.find(PLACEHOLDER, strings_at, strings_at + strings_bytes)
    end = data.find(b"\0", place)
    encoded = name.encode()
    if place < 0 or len(encoded) > end - place:
        raise UserError(f"{template} is not the recorder's stub library; build it again")
    data[place:end] = encoded.ljust(end - place, b"\0")
    names = []
    for at in range(symbols_at, symbols_at + symbols_bytes, 24):
        start = strings_at + struct.unpack_from("<I", data, at)[0]
        names.append(bytes(data[start : data.find(b"\0", start)]))
    buckets, chains = struct.unpack_from("<II", data, hash_at)
    heads, links = [0] * buckets, [0] * chains
    for index in range(1, len(names)):
        bucket = _sysv_hash(names[index]) % buckets
        links[index], heads[bucket] = heads[bucket], index
    struct.pack_into(f"<{buckets + chains}I", data, hash_at + 8, *heads, *links)
    output.write_bytes(data)


def _sysv_hash(name: bytes) -> int:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value
