"""Tables on a terminal."""

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


def print_table(table: Table, console: Console) -> None:
    """Prints a table with no cell broken, for "rag@1" above a "0" would be read as another system.

    Where it needs more room than there is, its lines are longer than the terminal's.
    """
    needed = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    if needed > console.width:
        table.width = needed
    console.print(table, crop=False)
