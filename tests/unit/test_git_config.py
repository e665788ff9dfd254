"""Git's configuration files, read as git reads them."""

from __future__ import annotations

import os
import pathlib
import subprocess

import pytest

from toolserver.git import config

TEXTS = [
    "",
    "[core]\n\texcludesFile = ~/mine\n",
    "[core]excludesFile=a\n[CORE] b = c",
    "\ufeff[core]\nexcludesfile = x\n",
    "[core]\r\n\texcludesFile = a b \r\n\tx = 1\r\n",
    '[core]\n\ta = "  quoted "  # comment\n\tb = in"si"de ; c\n\tc = "a;#b"\n',
    '[core]\n\ta = one \\\n two\n\tb = "one \\\n two"\n\tc = a\\tb\\\\c\\"d\\n\n',
    "[core]\n\tbare\n\tempty =\n\tspaced   =   v   w  \t\n",
    '[remote "a.B c\\"d\\\\e"]\n\turl = x\n[remote.Old.Way]\n\turl = y\n',
    "# c\n; d\n[a] # e\n\tb = c\n[d] e = f\n",
    "[a]\n\tk-1 = v\n\tk = 1\n\tk = 2\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_as_git_lists_it(text: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(text.encode())
    run = subprocess.run(
        ["git", "config", "--file", file, "--list", "--null", "--no-includes"], capture_output=True, check=True
    )
    want = [tuple(item.split(b"\n", 1)) for item in run.stdout.split(b"\0") if item]
    entries = config.parse(text.encode())
    got: list[tuple[bytes, ...]] = []
    for entry in entries:
        name = b".".join(
            [entry.section, entry.subsection, entry.key] if entry.subsection else (entry.section, entry.key)
        )
        got.append((name,) if entry.value is None else (name, entry.value))
    assert got == want


@pytest.mark.parametrize("text", ["[core\n", "[a b]\n", '[a "b]\n', "[a]\n1k = v\n", '[a]\nk = "v\n', "[a]\nk = \\x\n"])
def test_a_fault_ends_the_file(text: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "config"
    file.write_text("[first]\nk = v\n" + text)
    assert subprocess.run(["git", "config", "--file", file, "--list"], capture_output=True, check=False).returncode
    assert config.parse(file.read_bytes())[:1] == (config.Entry(b"first", b"", b"k", b"v"),)


def collected(tmp_path: pathlib.Path, facts: config.Facts, **files: str) -> bytes | None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def read(path: bytes, inside: bool) -> tuple[config.Entry, ...]:
        file = pathlib.Path(path.decode())
        return config.parse(file.read_bytes()) if file.is_file() else ()

    found = config.collect([config.File(str(tmp_path / "main").encode())], read, lambda: facts, str(tmp_path).encode())
    entry = config.last(found, b"core", b"excludesfile")
    return entry and entry.value


@pytest.mark.parametrize("path", ["other", "~/other", "./other", "{tmp}/other"])
def test_include(path: str, tmp_path: pathlib.Path) -> None:
    include = f"[core]excludesFile = before\n[include]path = {path.format(tmp=tmp_path)}\n"
    facts = config.Facts(b"/")
    assert collected(tmp_path, facts, main=include, other="[core]excludesFile = o\n") == b"o"
    assert collected(tmp_path, facts, main=include + "[core]excludesFile = after\n") == b"after"


def test_an_include_of_itself_ends(tmp_path: pathlib.Path) -> None:
    assert collected(tmp_path, config.Facts(b"/"), main="[core]excludesFile = a\n[include]path = main\n") == b"a"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("gitdir:/w/repo/", True),
        ("gitdir:/w/", True),
        ("gitdir:repo/", True),
        ("gitdir:repo", False),
        ("gitdir:/w/*/.git", True),
        ("gitdir:/W/", False),
        ("gitdir/i:/W/", True),
        ("gitdir:/link/", True),
        ("gitdir:/other/", False),
        ("onbranch:topic/**", True),
        ("onbranch:topic/", True),
        ("onbranch:main", False),
        ("hasconfig:remote.*.url:https://host.example/**", True),
        ("hasconfig:remote.*.url:https://other.example/**", False),
        ("unknown:x", False),
    ],
)
def test_include_if(condition: str, holds: bool, tmp_path: pathlib.Path) -> None:
    facts = config.Facts(b"/w/repo", (b"/w/repo/.git", b"/link/repo/.git"), b"topic/one")
    main = f'[includeIf "{condition}"]path = other\n[remote "o"]url = https://host.example/team/x.git\n'
    found = collected(tmp_path, facts, main=main, other="[core]excludesFile = o\n")
    assert found == (b"o" if holds else None)


def test_paths() -> None:
    assert config.expand(b"a/~b", None) == b"a/~b"
    assert config.expand(b"~/x", b"/h") == b"/h/x"
    assert config.expand(b"~/x", None) is None
    assert config.expand(b"~root/x", b"/h") == pathlib.Path("~root/x").expanduser().as_posix().encode()
    assert config.expand(b"~no-such-user-here/x", b"/h") is None


@pytest.mark.parametrize("times", [3, 1000])
def test_files_that_include_themselves_many_times_end(tmp_path: pathlib.Path, times: int) -> None:
    """Ten levels of so many includes each: what is followed is bounded in all, not for each file."""
    (tmp_path / "main").write_text("[include]path = main\n" * times)
    reads = 0

    def read(path: bytes, inside: bool) -> tuple[config.Entry, ...]:
        nonlocal reads
        reads += 1
        return config.parse(pathlib.Path(path.decode()).read_bytes())

    found = config.collect([config.File(bytes(tmp_path / "main"))], read, lambda: config.Facts(b"/"), None)
    assert reads == config.MAX_INCLUDES + 1 or (reads <= config.MAX_INCLUDES and len(found) == config.MAX_ENTRIES)
    assert len(found) <= config.MAX_ENTRIES


def test_what_a_file_of_the_repository_includes_is_confined(tmp_path: pathlib.Path) -> None:
    (tmp_path / "main").write_text("[include]path = more\n")
    (tmp_path / "more").write_text("[core]excludesFile = x\n")
    asked: list[tuple[bytes, bool]] = []

    def read(path: bytes, inside: bool) -> tuple[config.Entry, ...]:
        asked.append((os.path.basename(path), inside))
        return config.parse(pathlib.Path(path.decode()).read_bytes())

    for own in (False, True):
        asked.clear()
        file = config.File(bytes(tmp_path / "main"), of_repository=own)
        found = config.collect([file], read, lambda: config.Facts(b"/"), None)
        assert asked == [(b"main", False), (b"more", own)]
        assert [entry.confined for entry in found] == [own, own]


def test_a_long_condition_never_holds(tmp_path: pathlib.Path) -> None:
    branch = b"b" * (config.MAX_TEXT + 1)
    facts = config.Facts(b"/", (), branch)
    main = f'[includeIf "onbranch:{branch.decode()}"]path = other\n'
    assert collected(tmp_path, facts, main=main, other="[core]excludesFile = o\n") is None
