"""`blockyard` in the process of the tests: loading what a report needs takes three times as long as most reports."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

from blockyard import cli


def blockyard(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What the command's entry point prints and ends with, on 80 columns that are no terminal."""
    words = ["blockyard", *map(str, arguments)]
    output, error = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: object = 0
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch.dict(os.environ, {"COLUMNS": "80"}),
        contextlib.chdir(cwd or Path.cwd()),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(error),
    ):
        try:
            cli.run()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(words, code, *(_text(stream) for stream in (output, error)))


def _text(stream: io.TextIOWrapper) -> str:
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
