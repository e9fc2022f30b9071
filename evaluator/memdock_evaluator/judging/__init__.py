"""Judges: several side by side, compared with each other, with known verdicts and with people."""
