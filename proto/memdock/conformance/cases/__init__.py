"""The checks, a file a letter; `memdock.conformance.catalogue` gathers them."""
