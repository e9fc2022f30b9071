"""Leaks: users who are alike but for a few canary values, asked for each other's."""
