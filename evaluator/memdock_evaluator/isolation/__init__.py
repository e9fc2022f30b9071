"""Evidence of how the systems of a run were isolated, from the engine that runs their containers."""
