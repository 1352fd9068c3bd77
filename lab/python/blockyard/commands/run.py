"""blockyard run: a program on Blockyard's heap."""

import os
import shutil
import sys
from pathlib import Path

import click

from blockyard import child, native, preload
from blockyard.errors import UserError


@click.command(context_settings={"allow_interspersed_args": False}, epilog="Example: blockyard run -- ./game --level 3")
@click.argument("command_line", nargs=-1, required=True, metavar="-- PROGRAM [ARGS]...")
def command(command_line: tuple[str, ...]) -> None:
    """Run PROGRAM with Blockyard's heap in place of its malloc.

    The heap is preloaded, nothing needs rebuilding. BLOCKYARD_HEAP_SHOW=1 prints its settings, each of which is an
    environment variable.
    """
    program = shutil.which(command_line[0])
    if program is None:
        raise UserError(f"{command_line[0]} is not a program that can be run; check the name and its permissions")
    preload.refuse_unfit(Path(program), "the heap", "or link it with the heap")
    library = native.path("libblockyard-malloc.so").absolute()
    try:
        if not preload.is_split(library):
            os.execve(program, list(command_line), os.environ | {"LD_PRELOAD": preload.in_front(library)})
        # A link to the library is there for as long as the program runs, so we stay, too.
        with preload.private_folder() as folder:
            variables = {"LD_PRELOAD": preload.in_front(preload.linked(library, folder))}
            code = child.run(Path(program), command_line, {**os.environ, **variables})
    except OSError as error:
        raise UserError(f"{command_line[0]} can't be started: {error.strerror}") from None
    sys.exit(code)
