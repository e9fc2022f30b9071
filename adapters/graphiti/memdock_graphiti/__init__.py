"""graphiti 0.31.2 as a memory system of the protocol."""
