"""Which OS user runs the embedded Postgres. Postgres refuses root, so root lends it a system user."""

from __future__ import annotations

import errno
import logging
import os
import pwd
import stat
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from service.errors import Code, SemcacheError

SYSTEM_USER = "pgsemcache"

_log = logging.getLogger("semcache.store.os_user")

# A POSIX access ACL as the kernel keeps it (include/uapi/linux/posix_acl_xattr.h):
# a version, then entries (tag, permissions, id), ordered by tag.
_ACL = "system.posix_acl_access"
_VERSION = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")
_USER_OBJ, _USER, _GROUP_OBJ, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
_NO_ID = 0xFFFFFFFF
_SEARCH = 0o1


@dataclass(frozen=True, slots=True)
class OsUser:
    """The user and group that a child process is started as."""

    uid: int
    gid: int


def server_user(folder: Path) -> OsUser | None:
    """Who must run the server on `folder`: None is the present user, as always when that is not root.

    Root uses the owner of existing data, else the system user `pgsemcache`, which is made if need be.
    """
    if os.geteuid() != 0:
        return None
    if folder.exists() and (state := folder.stat()).st_uid != 0:
        return OsUser(state.st_uid, state.st_gid)
    entry = _system_user()
    return OsUser(entry.pw_uid, entry.pw_gid)


def let_read(tree: Path, user: OsUser) -> None:
    """Let `user` read and run the installed files below `tree`, also where a strict umask installed them."""
    let_pass(tree, user)
    if tree.stat().st_mode & 0o005 == 0o005:
        return
    for path in (tree, *tree.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | 0o444 | (0o111 if mode & stat.S_IXUSR else 0))


def let_pass(path: Path, user: OsUser) -> None:
    """Let `user` traverse the folders above `path`; nobody gets to list them.

    One ACL entry for this user where the file system has ACLs, else search permission for everybody.
    """
    for folder in reversed(path.parents):
        state = folder.stat()
        if state.st_uid == user.uid or state.st_mode & _SEARCH:
            continue
        try:
            _grant_search(folder, user.uid)
        except OSError as error:
            raise SemcacheError(
                Code.DATABASE_UNAVAILABLE,
                f"User id {user.uid}, which runs the embedded Postgres for root, cannot pass through "
                f"{folder} ({error.strerror}). Choose a data directory that it can reach, or "
                "start as an ordinary user.",
            ) from error


def _system_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        pass
    command = ["useradd", "--system", "--user-group", "--no-create-home"]
    command += ["--home-dir", "/nonexistent", "--shell", "/usr/sbin/nologin", SYSTEM_USER]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a constant
        reason = done.stderr.strip()
    except FileNotFoundError:
        reason = "there is no useradd"
    try:
        return pwd.getpwnam(SYSTEM_USER)  # another process may have made it just now
    except KeyError:
        raise SemcacheError(
            Code.DATABASE_UNAVAILABLE,
            f"Postgres does not run as root, and the system user {SYSTEM_USER} could not be made ({reason}). "
            f"Make it with `{' '.join(command)}`, start as an ordinary user, or give --database-url.",
        ) from None


def _grant_search(folder: Path, uid: int) -> None:
    try:
        old = _read_acl(folder)
        entries = _with_search(old, uid)
        if entries == old:
            return
        packed = b"".join(_ENTRY.pack(tag, mode, who) for (tag, who), mode in sorted(entries.items()))
        os.setxattr(folder, _ACL, _VERSION.pack(2) + packed)
        _log.info("an ACL entry lets user id %d pass through %s", uid, folder)
    except (AttributeError, OSError) as error:  # no ACLs on this system or file system
        if isinstance(error, OSError) and error.errno != errno.ENOTSUP:
            raise
        folder.chmod(stat.S_IMODE(folder.stat().st_mode) | _SEARCH)
        _log.warning("every user may now pass through %s, so that user id %d can", folder, uid)


def _with_search(entries: dict[tuple[int, int], int], uid: int) -> dict[tuple[int, int], int]:
    mask = entries.get((_MASK, _NO_ID), entries[_GROUP_OBJ, _NO_ID])
    return entries | {
        (_USER, uid): entries.get((_USER, uid), 0) | _SEARCH,
        (_MASK, _NO_ID): mask | _SEARCH,
    }


def _read_acl(folder: Path) -> dict[tuple[int, int], int]:
    try:
        raw = os.getxattr(folder, _ACL)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        mode = folder.stat().st_mode
        return {
            (_USER_OBJ, _NO_ID): mode >> 6 & 7,
            (_GROUP_OBJ, _NO_ID): mode >> 3 & 7,
            (_OTHER, _NO_ID): mode & 7,
        }
    return {(tag, who): mode for tag, mode, who in _ENTRY.iter_unpack(raw[_VERSION.size :])}


__all__ = ["SYSTEM_USER", "OsUser", "let_pass", "let_read", "server_user"]
