"""Puts SQL to a fleet's data set, by DuckDB inside this process."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blockyard.errors import UserError
from blockyard.fleet import dataset
from blockyard.fleet.read_journal import SCHEMAS

if TYPE_CHECKING:
    import duckdb


def connect(root: Path) -> "duckdb.DuckDBPyConnection":
    """A connection in which each table of the data set is a view."""
    try:
        import duckdb
    except ImportError:
        raise UserError("questions need DuckDB; 'pip install duckdb' brings it") from None
    dataset.check(root)
    if not dataset.parts(root):
        raise UserError(f"{root} holds no journal yet; 'blockyard collect FOLDER -o {root}' adds some")
    connection = duckdb.connect()
    try:
        for statement in views(root):
            connection.execute(statement)
    except duckdb.Error as error:
        raise _damaged(root, error) from None
    return connection


def views(root: Path) -> list[str]:
    """The statements that make them. Folders are text, also where they look like numbers."""
    found = []
    for table in SCHEMAS:
        files = str(root / table / "build=*" / "machine=*" / "*.parquet").replace("'", "''")
        found.append(
            f"CREATE VIEW {table} AS SELECT * FROM "
            f"read_parquet('{files}', hive_partitioning = true, hive_types_autocast = false)"
        )
    return found


def ask(connection: "duckdb.DuckDBPyConnection", root: Path, sql: str) -> list[dict[str, Any]]:
    """The rows. Raises UserError for SQL that is wrong, and for a damaged file."""
    import duckdb

    try:
        found = connection.execute(sql)
        if found.description is None:
            return []
        names = [column[0] for column in found.description]
        return [dict(zip(names, map(_plain, row), strict=True)) for row in found.fetchall()]
    except (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException) as error:
        raise _damaged(root, error) from None
    except duckdb.Error as error:
        raise UserError(f"DuckDB refuses the SQL: {str(error).splitlines()[0]}") from None


def _plain(value: object) -> object:
    """As JSON and tables take it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return float(value) if isinstance(value, Decimal) else str(value)


def _damaged(root: Path, error: Exception) -> UserError:
    return UserError(
        f"{root} can't be read: {str(error).splitlines()[0]}; 'blockyard collect' of its journals puts a damaged part "
        "right"
    )
