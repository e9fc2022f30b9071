"""How sure the figures are, and what differs from what: pure functions over whole numbers of points.

`matrix.matrix_of` makes a matrix of a run's rows, `plan.paper_plan` says what to compare, `analysis.analyse` works it
out. README.md beside this file says where each formula is and where it comes from. Nothing is imported here, so that a
command that needs no arrays starts without them.
"""
