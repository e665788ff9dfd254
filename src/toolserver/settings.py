"""What a server is started with: flags and environment become one frozen value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """The resolved settings of `toolserver serve`."""

    root: str
    token_file: str
    host: str = "127.0.0.1"
    port: int = 7788
    log_level: str = "info"
