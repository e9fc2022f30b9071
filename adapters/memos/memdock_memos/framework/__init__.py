"""MemOS itself, asked so that a failure is one; nothing else here knows it."""
