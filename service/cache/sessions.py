"""Which session a request belongs to: the caller's word, else the conversation whose next turn it is."""

from __future__ import annotations

from uuid import uuid4

from service.identity.request import Identity
from service.memory.lru import Lru

REMEMBERED = 50_000
SIZE = 128


class Sessions:
    """Remembers which turn of which conversation was asked in which session."""

    def __init__(self) -> None:
        self._by_turn: Lru[bytes, str] = Lru(REMEMBERED, REMEMBERED * SIZE)

    def name(self, identity: Identity, given: str | None) -> str | None:
        """The session's name; None where only the request log can tell, or nothing can.

        The log can tell where the turn before was asked from another replica or before a restart.
        """
        earlier = self._by_turn.get(identity.conversation) if identity.conversation else None
        is_first = identity.turn is not None and identity.conversation is None
        session = given or earlier or (uuid4().hex if is_first else None)
        if session is not None and identity.turn is not None:
            self._by_turn.put(identity.turn, session, SIZE)
        return session


__all__ = ["Sessions"]
