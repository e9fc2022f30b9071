"""What adapters around a framework share: the command, model calls seen on the wire, native ids, PostgreSQL.

An adapter that needs none of it imports none of it: `memdock.server` alone serves a system.
"""
