"""A look into every table of a PostgreSQL."""

from collections.abc import Sequence

import psycopg


def rows_that_hold(url: str, words: Sequence[str], *, at_least: int = 1) -> list[str]:
    """Every `schema.table: word` of which a row holds the word, as text or as the bytes of it.

    Fewer than `at_least` tables are an AssertionError: the search would be blind.
    """
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT quote_ident(schemaname), quote_ident(tablename) FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        assert len(tables) >= at_least
        found = []
        for schema, table in tables:
            query = f"SELECT string_agg(t::text, chr(10)) FROM {schema}.{table} t"
            row = connection.execute(query.encode()).fetchone()
            text = (row[0] if row else "") or ""
            found += [f"{schema}.{table}: {word}" for word in words if word in text or word.encode().hex() in text]
        return found
