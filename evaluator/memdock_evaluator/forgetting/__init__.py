"""Forgetting, verified: what a Forget of a question's evidence leaves behind, and what it takes that is not its own."""
