"""What Postgres tells of itself: NOTIFY, read on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable

from psycopg import AsyncConnection, sql

INVALIDATION = "semcache_invalidation"
CONFIRMED = "semcache_confirmed"


async def listen(url: str, heard: Callable[[str], None]) -> None:
    """Call `heard` with the channel, for each once when listening begins and then at every notification.

    Ends with DriverError when the connection is lost.
    """
    connection = await AsyncConnection.connect(
        url, connect_timeout=2, autocommit=True, application_name="semcache listen"
    )
    async with connection:
        for channel in (INVALIDATION, CONFIRMED):
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            heard(channel)
        async for notification in connection.notifies():
            heard(notification.channel)


__all__ = ["CONFIRMED", "INVALIDATION", "listen"]
