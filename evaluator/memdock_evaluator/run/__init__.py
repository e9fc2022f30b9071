"""The run: each dialogue into each system, each question out of it, answered and judged."""
