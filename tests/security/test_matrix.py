from __future__ import annotations

from access_matrix import COMMITTED, matrix


def test_every_role_reaches_in_every_table_what_it_should(database_url: str) -> None:
    assert matrix(database_url) == COMMITTED.read_text(), "`make schema` writes the file anew"
