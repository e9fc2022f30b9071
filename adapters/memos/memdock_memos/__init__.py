"""MemOS (MemoryOS 2.0.33) as memory systems of the protocol: its product on PostgreSQL, and its light text memory."""
