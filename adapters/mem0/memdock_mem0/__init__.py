"""mem0 2.2.1 on PostgreSQL with pgvector, as a memory system of the protocol."""
