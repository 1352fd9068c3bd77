"""The `blockyard` command: finds its verbs in blockyard.commands, one file each."""

import importlib
import os
import signal
import sys

import click

from blockyard.errors import UserError

TASKS = {
    "Record": ("record", "live", "run"),
    "Journals": ("info", "check", "cut", "repeat", "convert", "names"),
    "Your program": ("trial", "budget"),
    "Measure": ("replay", "status", "merge", "locality", "allocators", "demo"),
    "Read": ("report", "compare", "sites", "advise", "diff", "export"),
    "Fleet": ("collect", "fleet"),
    "Install": ("path",),
}
"""The verbs by what one wants to do, in the order of the help."""


class Verbs(click.Group):
    """Loads a verb's module only when it is used, so that `--help` and small verbs start fast."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [verb for verbs in TASKS.values() for verb in verbs]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        return importlib.import_module(f"blockyard.commands.{name}").command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """By task, each verb with what it does and, below that, its first example."""
        indent = max(map(len, self.list_commands(context))) + 4
        for task, verbs in TASKS.items():
            with formatter.section(task):
                for name in verbs:
                    verb = self.get_command(context, name)
                    formatter.write_text(f"{name:<{indent - 2}}{verb.get_short_help_str(limit=100)}")
                    formatter.write(f"{'':{indent}}{_first_example(name, verb)}\n")


def _first_example(name: str, verb: click.Command) -> str:
    lines = f"{verb.epilog or ''}\n{verb.help or ''}".splitlines()
    line = next(line for line in lines if f"blockyard {name} " in line)
    return line.removeprefix("Example:").strip()


def _show_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from blockyard import carried  # only here: it would slow --help

    click.echo("\n".join(carried.lines()))
    context.exit()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show what is installed."
)
def main() -> None:
    """Measures what memory allocation costs a real program.

    \b
    Record a program, replay it on every allocator, read the result:
      blockyard record -o game.byj -- ./game
      blockyard replay game.byj -a all -o results
      blockyard report results
    """


def run() -> None:
    """Entry point: one sentence for a user's mistake, 130 for Ctrl-C, silence for a closed pipe; never a
    trace for what the system refuses."""
    try:
        # Out of standalone mode click returns the code of an Exit (--help, --version) and whatever a verb returns:
        # nothing.
        code = main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except UserError as error:
        click.echo(f"blockyard: {error}", err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "blockyard":
            raise
        click.echo(
            f"blockyard: this needs the Python package {error.name}, which is not installed: pip install {error.name}",
            err=True,
        )
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("blockyard: interrupted", err=True)
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        _drop_standard_output()
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        # A full disk or a folder that forbids writing, where no verb had better words; without a file's name it was
        # standard output, or a file that is open already.
        where = error.filename or "the output"
        click.echo(f"blockyard: {where} can't be read or written: {error.strerror or error}", err=True)
        _drop_standard_output()
        sys.exit(1)


def _drop_standard_output() -> None:
    """What is still buffered goes nowhere: Python would complain of it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    run()
