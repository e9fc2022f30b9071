"""mem0's hosted service behind the Memdock protocol."""
