"""What a command that runs as root must not reach of the kernel: its settings and what it shows of itself.

User 0 needs no capability to write below /proc/sys. The lists are those of container runtimes.
"""

from __future__ import annotations

import os
import stat

from toolserver.processes.capsule.mounts import Kind, Mount, bind

READ_ONLY = (
    "sys",
    "sysrq-trigger",
    "irq",
    "bus",
    "fs",
    "acpi",
    "asound",
    "driver",
    "dynamic_debug",
    "pressure",
    "scsi",
)
BLANK = ("kcore", "keys", "timer_list", "sched_debug")
"""At most as many as `bubblewrap.BLANK_FDS`."""
FIRMWARE = b"/sys/firmware"


def kernel_mounts(user: int) -> list[Mount]:
    """Return what lies over /proc for commands of a user; what this kernel does not have is left out."""
    if user != 0:
        return []
    names = [*READ_ONLY, *(name for name in _writable_files() if name not in READ_ONLY)]
    mounts = [bind(Kind.READ_ONLY, b"/proc/" + os.fsencode(name)) for name in names if _there(name)]
    return mounts + [Mount(Kind.BLANK, b"/proc/" + os.fsencode(name)) for name in BLANK if _there(name)]


def firmware_cover(bind_ro: tuple[bytes, ...]) -> list[Mount]:
    """Return the cover of /sys/firmware where a place shows it."""
    shown = any(FIRMWARE.startswith(place.rstrip(b"/") + b"/") or place == FIRMWARE for place in bind_ro)
    return [Mount(Kind.COVER, FIRMWARE)] if shown and os.path.isdir(FIRMWARE) else []


def _there(name: str) -> bool:
    return os.path.lexists(f"/proc/{name}")


def _writable_files() -> list[str]:
    """Return the files directly in /proc that some user may write."""
    found = []
    with os.scandir("/proc") as entries:
        for entry in entries:
            if not entry.name.isdigit() and not entry.is_symlink():
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISREG(mode) and mode & 0o222:
                    found.append(entry.name)
    return sorted(found)
