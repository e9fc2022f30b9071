"""What each space has cost, inside a transaction of the caller."""

from collections.abc import Sequence
from dataclasses import astuple

from psycopg import AsyncConnection

from memdock.types import ModelUsage
from memdock.usage import MAX_COUNT, merge


async def add(connection: AsyncConnection, space: str, usage: Sequence[ModelUsage]) -> None:
    """Adds to the space's total, unless a Reset of the space is open."""
    for one in merge(usage):
        await connection.execute(
            "INSERT INTO cost SELECT %s, %s, %s, %s, %s, %s, %s WHERE NOT EXISTS"
            " (SELECT FROM erasure WHERE space = %s AND kind = 'RESET' AND intent IS NOT NULL)"
            " ON CONFLICT (space, model, purpose) DO UPDATE SET calls = cost.calls + excluded.calls,"
            " input_tokens = cost.input_tokens + excluded.input_tokens,"
            " output_tokens = cost.output_tokens + excluded.output_tokens,"
            " estimated = cost.estimated OR excluded.estimated",
            [space, *astuple(one), space],
        )


async def total(connection: AsyncConnection, space: str) -> list[ModelUsage]:
    """The space's total by model and purpose."""
    cursor = await connection.execute(
        "SELECT model, purpose, least(calls, %(most)s), least(input_tokens, %(most)s), least(output_tokens, %(most)s),"
        " estimated FROM cost WHERE space = %(space)s ORDER BY model, purpose",
        {"space": space, "most": MAX_COUNT},
    )
    return [
        ModelUsage(
            model=model,
            purpose=purpose,
            calls=calls,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            estimated=estimated,
        )
        for model, purpose, calls, input_tokens, output_tokens, estimated in await cursor.fetchall()
    ]
