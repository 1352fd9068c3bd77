"""blockyard path: where the native parts lie."""

import click

from blockyard import native

_PARTS = {"malloc": "libblockyard-malloc.so", "record": "libblockyard-record.so", "replay": "blockyard-replay"}


@click.command(epilog="Example: LD_PRELOAD=$(blockyard path malloc) ./game")
@click.argument("part", type=click.Choice(sorted(_PARTS)))
def command(part: str) -> None:
    """Print where a native part of Blockyard lies."""
    click.echo(native.path(_PARTS[part]))
