"""`blockyard fleet`: a technical lead's questions to many journals."""

from pathlib import Path
from typing import Any

import click

from blockyard import journal_tool, options
from blockyard.errors import UserError
from blockyard.options import OutputFolder

_QUESTIONS = ("grew", "late", "frame", "leaks", "fragmentation")
_EPILOG = """\b
Examples:
  blockyard fleet fleet
  blockyard fleet fleet leaks
  blockyard fleet fleet --sql 'SELECT sum(events) FROM journals'
"""


@click.command(short_help="Ask a fleet of journals what grew, leaks or makes frames late.", epilog=_EPILOG)
@click.argument("folder", metavar="DIR", type=OutputFolder())
@click.argument("questions", metavar="[QUESTION]...", nargs=-1, type=click.Choice(_QUESTIONS))
@click.option("--sql", metavar="SELECT", help="Put this to the data set instead of questions.")
@click.option("--show-sql", is_flag=True, help="Print the SQL of the questions, for another engine.")
@options.as_json
def command(folder: Path, questions: tuple[str, ...], sql: str | None, show_sql: bool, as_json: bool) -> None:
    """Answer questions about the journals that 'blockyard collect' read into DIR.

    QUESTIONs are grew (since the last build), late (frames, by machine), frame (what the p99.9 frame allocates), leaks
    (over hours) and fragmentation; without one, all. SQL finds the tables journals, sites, frames, sizes, lifetimes.
    """
    if sql is not None and (questions or show_sql):
        raise UserError("--sql is a question of its own; leave the others and --show-sql out")
    from blockyard.fleet import ask  # pyarrow and DuckDB take their time, which --help need not
    from blockyard.fleet.questions import QUESTIONS

    asked = {name: QUESTIONS[name] for name in questions or _QUESTIONS}
    if show_sql:
        for name, question in asked.items():
            click.echo(f"-- {name}: {question.title}\n{question.sql};\n")
        return
    connection = ask.connect(folder)
    if sql is not None:
        _show(ask.ask(connection, folder, sql), as_json)
        return
    found = {name: question.table(ask.ask(connection, folder, question.sql)) for name, question in asked.items()}
    if as_json:
        journal_tool.print_json({name: table.json() for name, table in found.items()})
        return
    from blockyard.report import blocks

    parts: list[blocks.Block] = []
    for table in found.values():
        parts += [table] if table.rows else [blocks.Paragraph(f"{table.name}: {table.said}")]
    click.echo(blocks.text(parts), nl=False)


def _show(records: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        journal_tool.print_json({"rows": records})
        return
    from blockyard.report import blocks
    from blockyard.report.table import Column, Row, Table, Unit

    if not records:
        click.echo("no rows")
        return
    first, *rest = records[0]
    numbers = {name for name in rest if all(isinstance(row[name], int | float | None) for row in records)}
    columns = [Column(name, Unit.RATE if name in numbers else Unit.TEXT) for name in rest]
    rows = [
        Row(str(row[first]), [row[name] if name in numbers else str(row[name]) for name in rest]) for row in records
    ]
    click.echo(blocks.text([Table("", columns, rows, first=first)]), nl=False)
