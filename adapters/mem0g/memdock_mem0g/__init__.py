"""The graph memory of mem0 1.0.11, on Kuzu or Neo4j, as a memory system of the protocol."""
