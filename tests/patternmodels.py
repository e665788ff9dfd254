"""Slow models of both pattern languages for tests: each pattern becomes a regular expression of Python's."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

POSIX = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": "".join(map(chr, range(33, 127))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(32, 127))),
    "punct": string.punctuation,
    "space": " \t\n\r",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
NEVER = "(?!)"


def ignored(text: bytes, path: str, is_dir: bool) -> bool:
    """Judge a path (Latin-1 text) by an ignore file of the top, without asking about the directories above it."""
    answer = False
    for line in text.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n"):
        rule = _trimmed(line.removesuffix("\r").partition("\0")[0])
        if rule.startswith("#"):
            continue
        shows = rule.startswith("!")
        rule = rule[shows:]
        only_dirs = rule.endswith("/")
        rule = rule[: len(rule) - only_dirs]
        if rule and (is_dir or not only_dirs) and _fits(rule, path):
            answer = not shows
    return answer


def _trimmed(line: str) -> str:
    end = len(line)
    while line[:end].endswith(" "):
        before = line[: end - 1]
        if (len(before) - len(before.rstrip("\\"))) % 2:
            break
        end -= 1
    return line[:end]


def _fits(rule: str, path: str) -> bool:
    if "/" not in rule:
        return re.fullmatch(_git_regex(rule, paths=False), path.rpartition("/")[2], re.DOTALL) is not None
    return re.fullmatch(_git_regex(rule.removeprefix("/"), paths=True), path, re.DOTALL) is not None


def _git_regex(rule: str, *, paths: bool) -> str:
    out = ""
    at = 0
    while at < len(rule):
        if rule[at] == "*":
            end = at
            while rule[end : end + 1] == "*":
                end += 1
            whole = paths and end - at > 1 and (at == 0 or rule[at - 1] == "/")
            if whole and rule[end : end + 1] == "/":
                out += "(?:.*/)?"
                end += 1
            elif whole and (end == len(rule) or rule[end : end + 2] == "\\/"):
                out += ".*"
            else:
                out += "[^/]*"
            at = end
        elif rule[at] == "?":
            out += "[^/]"
            at += 1
        elif rule[at] == "[":
            members, at = _git_class(rule, at + 1)
            out += members
        else:
            at += rule[at] == "\\"
            out += re.escape(rule[at]) if at < len(rule) else NEVER
            at += 1
    return out


def _git_class(rule: str, at: int) -> tuple[str, int]:
    negated = rule[at : at + 1] in ("!", "^")
    at += negated
    members: set[str] = set()
    before = None
    start = at
    while at == start or rule[at : at + 1] != "]":
        c = rule[at : at + 1]
        if c == "[" and rule[at + 1 : at + 2] == ":":
            end = rule.find("]", at + 2)
            if end < 0:
                return NEVER, len(rule)
            if rule[at + 2 : end].endswith(":"):
                name = rule[at + 2 : end - 1]
                if name not in POSIX:
                    return NEVER, len(rule)
                members |= set(POSIX[name])
                before, at = None, end + 1
                continue
        if c == "-" and before is not None and rule[at + 1 : at + 2] not in ("", "]"):
            at += 1
            at += rule[at] == "\\"
            if at == len(rule):
                return NEVER, at
            members |= set(map(chr, range(ord(before), ord(rule[at]) + 1)))
            before = None
        else:
            at += c == "\\"
            c = rule[at : at + 1]
            if not c:
                return NEVER, at
            members.add(c)
            before = c
        at += 1
    members = set(map(chr, range(256))) - members if negated else members
    members.discard("/")
    return "[" + "".join(map(re.escape, sorted(members))) + "]" if members else NEVER, at + 1


# ---------------------------------------------------------------------------------------------------- the glob dialect


def glob(pattern: str, path: str) -> bool:
    """Judge a path relative to cwd by a well-formed glob whose `**` touch nothing but slashes once braces are gone."""
    return any(_glob_one(one, path, "/" in pattern) for one in expand(pattern))


def expand(pattern: str, seam: str = "") -> Iterator[str]:
    """Multiply out the first brace of a pattern, then the others; `seam` is put where a brace began and ended."""
    depth = at = 0
    opened, commas = -1, []
    while at < len(pattern):
        c = pattern[at]
        if c == "\\":
            at += 1
        elif c == "[":
            at = pattern.index("]", at + 2 + (pattern[at + 1 : at + 2] in ("!", "^")))
        elif c == "{":
            depth += 1
            if depth == 1:
                opened, commas = at, [at]
        elif c == "," and depth == 1:
            commas.append(at)
        elif c == "}":
            depth -= 1
            if depth == 0:
                for start, end in zip(commas, [*commas[1:], at], strict=True):
                    inner = pattern[start + 1 : end]
                    yield from expand(pattern[:opened] + seam + inner + seam + pattern[at + 1 :], seam)
                return
        at += 1
    yield pattern


def _glob_one(pattern: str, path: str, slashed: bool) -> bool:
    if not slashed:
        return re.fullmatch(_glob_regex(pattern), path.rpartition("/")[2], re.DOTALL) is not None
    if pattern.endswith("/"):
        pattern += "**"
    pattern = pattern.removeprefix("./") if pattern.startswith("./") else pattern.removeprefix("/")
    return re.fullmatch(_glob_regex(pattern), path, re.DOTALL) is not None


def _glob_regex(pattern: str) -> str:
    out = ""
    at = 0
    while at < len(pattern):
        c = pattern[at]
        if c == "*":
            end = at
            while pattern[end : end + 1] == "*":
                end += 1
            whole = end - at == 2 and (at == 0 or pattern[at - 1] == "/")
            if whole and pattern[end : end + 1] == "/":
                out += "(?:.*/)?"
                end += 1
            else:
                out += ".*" if whole and end == len(pattern) else "[^/]*"
            at = end
            continue
        if c == "[":
            end = pattern.index("]", at + 2 + (pattern[at + 1] in "!^"))
            out += _glob_class(pattern[at + 1 : end])
            at = end
        elif c == "?":
            out += "[^/]"
        else:
            at += c == "\\"
            out += re.escape(pattern[at])
        at += 1
    return out


def _glob_class(inner: str) -> str:
    """Turn what stands between the brackets, a plain list of members and simple ranges, into a class of Python's."""
    negated = inner[:1] in ("!", "^")
    members = re.sub(r"([\[\]\\^&~|])", r"\\\1", inner[negated:])
    return f"(?!/)[{'^' if negated else ''}{members}]"
