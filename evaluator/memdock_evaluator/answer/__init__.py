"""From memories to an answer, and from an answer to a verdict."""
