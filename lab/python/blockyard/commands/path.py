"""blockyard path: where the native parts lie."""

import click

from blockyard import native, preload

_PARTS = {"malloc": "libblockyard-malloc.so", "record": "libblockyard-record.so", "replay": "blockyard-replay"}


@click.command(epilog="Example: LD_PRELOAD=$(blockyard path malloc) ./game")
@click.argument("part", type=click.Choice(sorted(_PARTS)))
def command(part: str) -> None:
    """Print where a native part of Blockyard lies."""
    found = native.path(_PARTS[part])
    click.echo(found)
    if found.suffix == ".so" and preload.is_split(found):
        click.echo(
            "blockyard: LD_PRELOAD does not take this path, as it splits at spaces and colons; 'blockyard run' "
            "and 'blockyard record' find a way round",
            err=True,
        )
