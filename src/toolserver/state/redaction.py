"""Takes secrets out of text that is written down: what is recognised becomes `***` (specification, section 11).

The work is linear in the text: an expression that repeats begins only where a run of its characters begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

STARS = "***"
SHORTEST = 4
"""Characters that the value of a secret-named variable has at least to be looked for elsewhere in the text."""
LOOKED_AT = 16 * 1024
"""Characters of a text that are kept and looked at."""

_SUFFIX = "key|token|secret|password|passwd|pass|credentials"
_SECRET_NAME = re.compile(rf"(?s:.*)(?:{_SUFFIX})", re.IGNORECASE)
_HEADERS = ("authorization", "proxy-authorization", "cookie", "set-cookie")
_NAMES = re.compile(
    rf"(?<![\w-])[\w-]*(?:{_SUFFIX}|authorization|cookie|bearer|-passin|-passout)(?![\w-])", re.IGNORECASE
)
_SHAPES = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
        (?:AKIA|ASIA)[A-Z0-9]{12,}+
      | gh[a-z]_[A-Za-z0-9]{16,}+
      | github_pat_[A-Za-z0-9_]{16,}+
      | glpat-[A-Za-z0-9_-]{16,}+
      | xox[a-z]-[A-Za-z0-9-]{8,}+
      | sk_live_[A-Za-z0-9]{8,}+
      | sk-[A-Za-z0-9_-]{16,}+
      | AIza[A-Za-z0-9_-]{30,}+
      | npm_[A-Za-z0-9]{16,}+
      | pypi-[A-Za-z0-9_-]{16,}+
      | eyJ[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]++)?
    )""",
    re.VERBOSE,
)
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)", re.S)
_USERINFO = re.compile(r"""(?<=://)[^\s/?#"'`<>]*@""")

Quote = Literal["", "'", '"']
_PLAIN = r"""[^\s\\;&|<>()"'`]"""
_VALUE: dict[Quote, re.Pattern[str]] = {
    "": re.compile(rf"""(?:\$?"(?:[^"\\]|\\.)*+(?:"|\Z)|\$?'[^']*+(?:'|\Z)|\\.|{_PLAIN})++""", re.DOTALL),
    "'": re.compile(rf"""(?:"(?:[^"'\\]|\\[^'])*+(?:"|(?=')|\Z)|\\[^']|{_PLAIN})++"""),
    '"': re.compile(rf"""(?:\\"(?:[^"\\]|\\[^"])*+(?:\\"|(?=")|\Z)|'[^'"]*+(?:'|(?=")|\Z)|\\[^"]|{_PLAIN})++"""),
}
"""A word as a shell takes it, by the quotes that are open where it begins."""
_TO_QUOTE: dict[Quote, re.Pattern[str]] = {
    "": re.compile(r"""(?:(?:bearer|basic|token|digest|negotiate)[ \t]+)?[^\s"']++""", re.IGNORECASE),
    "'": re.compile(r"[^'\n]++"),
    '"': re.compile(r'(?:[^"\\\n]|\\[^\n])++'),
}
"""The value of a header, by the quotes that are open where it begins."""
_QUOTES = re.compile(r"""\\.|['"]""", re.DOTALL)

_ASSIGNS = re.compile(r"=(?!=)")
_ASSIGNS_QUOTED = re.compile(r"""[ \t]{1,4}=[ \t]{0,4}(?=["'])|=[ \t]{1,4}(?=["'])""")
_COLON = re.compile(r"[ \t]{0,4}:[ \t]{0,4}")
_COLON_AFTER_QUOTE = re.compile(r"""\\?["'][ \t]{0,4}[:=][ \t]{0,4}""")
_COLON_OR_SIGN = re.compile(r"""\\?["']?[ \t]{0,4}[:=][ \t]{0,4}""")
_FLAG_SIGN = re.compile(r"=|[ \t]+(?![-\s])")
_AFTER_BEARER = re.compile(r"[ \t]+(?=[A-Za-z._~+/=-]*[0-9]|[\w.~+/=-]{16})[\w.~+/=-]{6,}+")

_PROGRAMS = re.compile(
    r"\b(?:mysql\w*|mariadb[\w-]*|sshpass|redis-cli|curl|wget|https?(?=\s)|(?:docker|podman|buildah|registry)\s+login)\b"
)
_OPTIONS_OF = {
    "-p": ("mysql", "mariadb", "sshpass", "login"),
    "-a": ("redis-cli",),
    "-u": ("curl", "wget", "http"),
    "--user": ("curl", "wget", "http"),
}
_OPTION = re.compile(rf"(?<=\s)(-[pua]|--user)([ =]?)({_VALUE[''].pattern})", re.DOTALL)
_COMMAND_END = re.compile(r"([;|&\n])")


def is_secret_name(name: str) -> bool:
    """Whether a variable's name says that its value is a secret."""
    return _SECRET_NAME.fullmatch(name) is not None


def redacted(text: str, secrets: Iterable[str] = (), env: Mapping[str, str] | None = None) -> str:
    """Return the text, of which the first `LOOKED_AT` characters count, with `***` in place of what is secret.

    `secrets` are texts that are secret wherever they stand; so are the values of secret-named variables of `env`.
    """
    text = text[:LOOKED_AT]
    known = {secret for secret in secrets if secret}
    known |= {value for name, value in (env or {}).items() if len(value) >= SHORTEST and is_secret_name(name)}
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, STARS)
    text = _PEM.sub(STARS, text)
    text = _USERINFO.sub(f"{STARS}@", text)
    text = _named(text)
    text = _options(text)
    return _SHAPES.sub(STARS, text)


def _named(text: str) -> str:
    """Replace the values that follow a secret's name: of assignments, flags, headers and JSON."""
    parts: list[str] = []
    done = 0
    quotes = _OpenQuotes(text)
    for found in _NAMES.finditer(text):
        if found.start() < done:
            continue
        span = _value(text, found.group(), found.start(), found.end(), quotes.at(found.start()))
        if span is not None:
            parts += [text[done : span[0]], STARS]
            done = span[1]
    return "".join(parts) + text[done:] if parts else text


def _value(text: str, name: str, start: int, end: int, quote: Quote) -> tuple[int, int] | None:
    """Return where the secret that a name announces begins and ends, None where there is none."""
    lower = name.lower()
    if lower == "bearer":
        found = _AFTER_BEARER.match(text, end)
        return None if found is None else (end + len(found.group()) - len(found.group().lstrip()), found.end())
    if lower.startswith("-"):
        if lower.startswith("--no-") or lower in ("--key", "-key"):  # the latter name files
            return None
        sign, values = _FLAG_SIGN.match(text, end), _VALUE
    elif lower in _HEADERS:
        sign, values = _COLON_OR_SIGN.match(text, end), _TO_QUOTE
    else:
        sign, values = _ASSIGNS.match(text, end) or _ASSIGNS_QUOTED.match(text, end), _VALUE
        if sign is None:
            sign = _COLON_AFTER_QUOTE.match(text, end)
        if sign is None and ("-" in name or "_" in name):
            sign, values = _COLON.match(text, end), _TO_QUOTE
    if sign is None:
        return None
    if sign.group().startswith(("'", '"')):  # it closed what was open before the name
        quote = ""
    value = values[quote].match(text, sign.end()) or (
        _VALUE[quote].match(text, sign.end()) if values is _TO_QUOTE else None
    )
    return None if value is None else value.span()


class _OpenQuotes:
    """Tells which quotes of a shell are open at places of a text that are asked for in order."""

    def __init__(self, text: str) -> None:
        self._marks = _QUOTES.finditer(text)
        self._next = next(self._marks, None)
        self._open: Quote = ""

    def at(self, place: int) -> Quote:
        while self._next is not None and self._next.start() < place:
            mark = self._next.group()
            if mark == self._open:
                self._open = ""
            elif not self._open and not mark.startswith("\\"):
                self._open = "'" if mark == "'" else '"'
            self._next = next(self._marks, None)
        return self._open


def _options(text: str) -> str:
    """Replace the values of options of one letter that are passwords to some programs."""
    if _PROGRAMS.search(text) is None:
        return text
    return "".join(part if index % 2 else _options_of(part) for index, part in enumerate(_COMMAND_END.split(text)))


def _options_of(command: str) -> str:
    """Replace such values in one command of a line."""
    programs = {found.group().split()[-1] for found in _PROGRAMS.finditer(command)}
    attached_only = any(name.startswith(("mysql", "mariadb")) for name in programs)

    def replacement(found: re.Match[str]) -> str:
        option, blank, value = found.groups()
        if not any(name.startswith(_OPTIONS_OF[option]) for name in programs):
            return found.group()
        if option == "-p" and blank and attached_only:
            return found.group()  # it asks for the password; the next word is a database
        if option in ("-u", "--user") and ":" not in value:
            return found.group()
        return f"{option}{blank}{STARS}"

    return _OPTION.sub(replacement, command) if programs else command
