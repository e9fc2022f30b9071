"""What a run costs in money: a price table, the bill of a run, an estimate before it, and a budget."""
