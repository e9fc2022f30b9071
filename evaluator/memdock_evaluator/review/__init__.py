"""Runs that are done, looked at: checked, a question shown, two compared. Nothing is asked and nothing is written."""
