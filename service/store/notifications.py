"""What Postgres tells of itself: NOTIFY, read on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable

from psycopg import AsyncConnection, sql

INVALIDATION = "semcache_invalidation"
CONFIRMED = "semcache_confirmed"
FLIGHT = "semcache_flight"
FOLLOW = "semcache_follow"
CHUNK = "semcache_chunk"


async def listen(url: str, heard: Callable[[str, str], None]) -> None:
    """Call `heard` with channel and payload at every notification, and when listening begins with each channel and "".

    Ends with DriverError when the connection is lost.
    """
    connection = await AsyncConnection.connect(
        url, connect_timeout=2, autocommit=True, application_name="semcache listen"
    )
    async with connection:
        for channel in (INVALIDATION, CONFIRMED, FLIGHT, FOLLOW, CHUNK):
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            heard(channel, "")
        async for notification in connection.notifies():
            heard(notification.channel, notification.payload)


__all__ = ["CHUNK", "CONFIRMED", "FLIGHT", "FOLLOW", "INVALIDATION", "listen"]
