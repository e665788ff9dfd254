"""Trees with rule files and indexes, made at random from pieces that are known to be read in odd ways."""

from __future__ import annotations

import os
import pathlib
import random
import re

from gittrees import git

_NAMES = "a|b|ab|aa|abc|a.c|b.c|.a|x y|a |#a|!a|a*|[a]|a\\|é|b-|-|a]|^|ba|c|\v|\xa0a"
NAMES = _NAMES.split("|")
_PIECES = (
    "a|b|c|ab|*|*|?|**|**|/|/|/|[ab]|[!a]|[^b]|[a-c]|[]-]|[|\\|\\*|\\?|\\[|.|.c|*.c|a/|!|#| |\\ |[[:alpha:]]|"
    "[[:space:]]|[[:punct:]]|[[:x:]]|[[:alpha]|[\\a-b]|[c-a]|[a-]|[--a]|é|[é]|\\/|\\a|-|]|[/]|[a/]|[!/]|^|\t|\v"
)
PIECES = _PIECES.split("|")
_WHOLE = r"!|/|//||#|  |\|!/|*|!*|!*/|*/|**|/**|**/|**//|/*|a/**|**/a|a/**/b|!**/|.*"
WHOLE = _WHOLE.split("|")


def read_otherwise_before_git_2_52(rule: str) -> bool:
    """Whether literal text stands in front of a `**` that ends a component: older ones take it for a folder's name."""
    return re.match(r"/?[^*?\[\\]*[^*?\[\\/]\*\*+(/|\\/|$)", rule.lstrip("!")) is not None


def a_rule(r: random.Random) -> str:
    if r.random() < 0.1:
        return r.choice(WHOLE)
    rule = "".join(r.choices(PIECES, k=r.randint(1, 6)))
    front = r.choice(["", "", "", "!", "!", "/", "!/"])
    return front + rule + r.choice(["", "", "", "/"])


def a_rule_file(r: random.Random) -> bytes:
    rules = [rule for rule in (a_rule(r) for _ in range(r.randint(1, 5))) if not read_otherwise_before_git_2_52(rule)]
    end = r.choice(["\n"] * 5 + ["\r\n"])
    text = end.join(rules) + r.choice([end, "", "\r"])
    return r.choice([b""] * 11 + [b"\xef\xbb\xbf"]) + text.encode(r.choice(["utf-8"] * 4 + ["latin-1"]))


def a_tree(r: random.Random, folder: pathlib.Path, depth: int = 0) -> None:
    folder.mkdir()
    for name in set(r.choices(NAMES, k=r.randint(1, 7))):
        if r.random() < 0.45 and depth < 3:
            a_tree(r, folder / name, depth + 1)
        elif r.random() < 0.06:
            (folder / name).symlink_to("a")
        else:
            (folder / name).write_bytes(b"")
    if r.random() < 0.4:
        (folder / ".gitignore").write_bytes(a_rule_file(r))


def an_index(r: random.Random, root: pathlib.Path, env: dict[bytes, bytes]) -> None:
    files = [os.fsencode(p.relative_to(root)) for p in sorted(root.rglob("*")) if p.is_symlink() or p.is_file()]
    files = [path for path in files if not path.startswith(b".git/")]
    picked = r.sample(files, min(len(files), r.randint(0, 4)))
    add = ["update-index", "--add", "-z", "--stdin"]
    git(root, *add, env=env, input=b"\0".join(picked))
    form = r.choice(["--index-version=4", "--split-index", "--index-version=2"])
    git(root, "update-index", form, env=env)
    if picked and files:
        git(root, "update-index", "--force-remove", "-z", "--stdin", env=env, input=picked[0])
        git(root, *add, env=env, input=r.choice(files))
