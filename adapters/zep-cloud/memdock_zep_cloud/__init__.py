"""Zep Cloud behind the Memdock protocol."""
