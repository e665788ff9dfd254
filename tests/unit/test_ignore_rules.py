"""Ignore rules, one line a case: what one ignore file at the top hides."""

from __future__ import annotations

import os
import pathlib

import pytest
from patternmodels import ignored

from toolserver._fast.ignore import BaseRules, Rules, decide

# the ignore file; paths it hides; paths it leaves. ␣ is a blank inside a path, a slash at the end marks a directory
CASES: list[tuple[str, bytes, str, str]] = [
    ("name", b"out", "out out/ x/out", "out.txt about Out"),
    ("suffix", b"*.log", "a.log .log x/y.log", "a.logs log a.lo"),
    ("suffix-of-letters", b"*b", "b ab b.b", "ba b. B"),
    ("prefix", b"tmp*", "tmp tmp.1 x/tmpx", "tm atmp"),
    ("prefix-and-suffix", b"a*z", "az abz a.z", "a z ab zz"),
    ("prefix-and-suffix-do-not-overlap", b"ab*ba", "abba abxba", "aba ab ba"),
    ("two-stars-in-a-name", b"a*b*c", "abc a.b.c axbxc abbc", "ac acb abcd"),
    ("star-alone", b"*", "a .a x/y", ""),
    ("everything-in-folders", b"*/", "a/ x/b/", "a x/b"),
    ("anchored", b"/a", "a a/", "x/a"),
    ("anchored-star", b"/*.c", "a.c", "x/a.c"),
    ("inner-slash", b"x/a", "x/a x/a/", "a y/x/a"),
    ("directory-only", b"d/", "d/ x/d/", "d x/d"),
    ("directory-only-anchored", b"/d/", "d/", "d x/d/"),
    ("wild-folder", b"x*/a", "x/a xy/a", "a y/a x/y/a"),
    ("question-mark", b"a?c", "abc a.c", "ac abbc"),
    ("question-mark-is-a-byte", b"?\n", "a", "é ab"),
    ("two-question-marks-are-one-character", b"??", "é ab", "a abc"),
    ("class", b"[ab]x[0-9]", "ax1 bx9", "cx1 ax ax12"),
    ("negated-class", b"[!a]b", "bb cb", "ab b"),
    ("caret-class", b"[^a]b", "bb", "ab"),
    ("class-with-bracket", b"[]]x", "]x", "x"),
    ("class-with-dash", b"[a-]x", "ax -x", "bx"),
    ("class-with-escape", b"[\\]a]x", "]x ax", "\\x"),
    ("class-escaped-range", b"[\\a-\\c]x", "ax bx cx", "-x dx"),
    ("class-upside-down", b"[z-a]", "z", "a y -"),
    ("class-unclosed", b"[ab", "", "a [ab"),
    ("class-unclosed-behind-a-star", b"*[ab", "", "a x[ab"),
    ("class-posix", b"[[:upper:]][[:digit:]]", "A1", "a1 AA"),
    ("class-posix-white-space", b"[[:space:]]x", "␣x", "\x0bx \x0cx"),
    ("class-posix-unknown", b"[[:word:]]", "", "a w :"),
    ("class-that-looks-posix", b"[[:ab]", "[ : a b", "c"),
    ("class-never-a-slash", b"x[!a]y\nv[.-0]w", "x.y v0w", "x/y v/w"),
    ("escape", b"\\a\\*", "a*", "ab a"),
    ("escaped-hash", b"\\#note", "#note", "note"),
    ("escaped-exclamation-mark", b"\\!wow", "!wow", "wow"),
    ("escaped-backslash", b"\\\\x", "\\x", "x"),
    ("escaped-end", b"*.py\\", "", "a.py a.py\\"),
    ("escaped-final-slash", b"foo\\/", "", "foo foo/"),
    ("escaped-inner-slash", b"a\\/b", "a/b", "a\\/b b"),
    ("comment", b"# a\n#b", "", "a #b #"),
    ("hash-inside", b"a#b", "a#b", "a"),
    ("only-an-exclamation-mark", b"!", "", "! a"),
    ("exclamation-mark-and-slash", b"a\n!/", "a", "b/"),
    ("only-a-slash", b"/\n//", "", "a a/"),
    ("doubled-slash", b"a//b\n//c\nd//", "", "a/b c d/"),
    ("blanks-dropped", b"a  \nb\t ", "a b\t", "b a␣␣"),
    ("blank-kept", b"a\\ \nb\\  ", "a␣ b␣", "a b"),
    ("blank-behind-two-backslashes", b"a\\\\ ", "a\\", "a\\␣"),
    ("cr-lf", b"a\r\n/b\r\n", "a b", "x/b"),
    ("cr-at-the-very-end", b"a\r", "a", "a\r"),
    ("one-cr-only", b"a\r\r\n", "a\r", "a"),
    ("lone-cr-inside", b"a\rb\n", "a\rb", "a b"),
    ("byte-order-mark", b"\xef\xbb\xbfa", "a", ""),
    ("byte-order-mark-before-a-comment", b"\xef\xbb\xbf#a\nb", "b", "a #a"),
    ("second-byte-order-mark", b"\xef\xbb\xbf\xef\xbb\xbfa", "\ufeffa", "a"),
    ("nul-ends-the-rule", b"a\0b\n\0c", "a", "c b"),
    ("deep-front", b"**/a", "a x/a x/y/a", "xa"),
    ("deep-front-path", b"**/a/b", "a/b x/a/b", "b a/x/b"),
    ("deep-end", b"a/**", "a/x a/x/y", "a a/ x/a/y"),
    ("deep-middle", b"a/**/b", "a/b a/x/b a/x/y/b", "b ab a/xb"),
    ("deep-alone", b"**", "a x/y", ""),
    ("deep-anchored", b"/**", "a x/y", ""),
    ("deep-directories", b"**/", "a/ x/y/", "a x/y"),
    ("deep-twice", b"a/**/**/b", "a/b a/x/b", "b"),
    ("deep-and-backtracking", b"a/**/b/**/c", "a/b/c a/x/b/y/c a/b/b/c a/b/x/b/c", "a/c a/b a/x/c"),
    ("three-stars", b"***/a", "a x/a", "xa"),
    ("deep-before-a-name", b"doc/**.t", "doc/a.t doc/.t", "doc/x/a.t"),
    ("deep-behind-a-name", b"a**/b", "a/b ax/b", "ax/y/b b"),
    ("deep-behind-a-wildcard", b"?**/b", "a/b ax/b", "ax/y/b"),
    ("deep-and-escaped-slash", b"**\\/b", "x/b x/y/b", "b"),
    ("deep-and-nothing", b"**//\na/**//", "", "a/ a/b/"),
    ("later-wins", b"*.a\n!k.a", "b.a", "k.a x/k.a"),
    ("later-wins-twice", b"k\n!k\nk", "k", ""),
    ("exact-after-wild", b"!*.a\nk.a", "k.a", "b.a"),
    ("wild-after-exact", b"k.a\n!*.a", "", "k.a"),
    ("directory-rule-after", b"k\n!k/", "k", "k/"),
    ("anchored-exception", b"k\n!/k", "x/k", "k"),
    ("exception-of-one-path", b"k\n!x/k\n!y*/k", "k z/k", "x/k yy/k"),
    ("utf-8", "größe*".encode(), "größe größen", "grosse"),
    ("not-utf-8", b"\xff*", "", "a"),
    ("many-rules", b"".join(b"*.x%d\n" % i for i in range(200)) + b"!*.x7\n", "a.x0 b.x99 c.x199", "a.x7 a.x200 a"),
    ("many-names", b"".join(b"n%d\n/d%d/f\n" % (i, i) for i in range(500)), "n0 x/n499 d3/f", "n500 x/d3/f d3"),
    ("many-stars", b"a*" * 60 + b"b", "a" * 60 + "b", "a" * 250),
]


def hides(rules: Rules, path: str) -> bool:
    raw = path.replace("␣", " ").encode()
    directory, _, name = raw.removesuffix(b"/").rpartition(b"/")
    return rules.ignored(directory, name, raw.endswith(b"/"))


@pytest.mark.parametrize(("name", "text", "hidden", "shown"), CASES, ids=[case[0] for case in CASES])
def test_one_file(name: str, text: bytes, hidden: str, shown: str) -> None:
    rules = BaseRules().push(b"", text)
    paths = [path for path in f"{hidden} {shown}".split(" ") if path]
    assert [path for path in paths if hides(rules, path)] == [path for path in hidden.split(" ") if path]
    for path in paths:
        raw = path.replace("␣", " ").encode().decode("latin-1")
        if name != "many-stars":  # where the model takes for ever
            assert ignored(text, raw.removesuffix("/"), raw.endswith("/")) == (path in hidden.split(" ")), path


def test_a_name_that_is_not_utf8() -> None:
    rules = BaseRules().push(b"", b"\xff*\n?\xfe")
    assert rules.ignored(b"", b"\xffa", False)
    assert rules.ignored(b"\xfd", b"a\xfe", False)
    assert not rules.ignored(b"", b"\xfe", False)


def test_rank() -> None:
    """Weakest first: the excludes file, info/exclude, each .gitignore downwards, each .ignore downwards."""
    order = [BaseRules(b"!f", b"f")]
    assert order[0].ignored(b"", b"f", False)
    for at, files in enumerate([(b"!f", None), (b"f", None), (None, b"!f"), (None, b"f"), (None, b"!f")]):
        order.append(order[-1].push(b"/".join([b"d"] * at), *files))
    deepest = b"/".join([b"d"] * 5)
    assert [rules.ignored(deepest, b"f", False) for rules in order] == [True, False, True, False, True, False]


def test_any_dotignore_rule_beats_any_gitignore_rule() -> None:
    rules = BaseRules().push(b"", b"*.a", b"!k.a").push(b"d", b"k.a", b"!x").push(b"d/e", b"*", None)
    assert not rules.ignored(b"d/e", b"k.a", False)
    assert rules.ignored(b"d/e", b"y.a", False)


def test_rules_are_relative_to_their_directory() -> None:
    top = BaseRules(b"/top", b"a/b")
    sub = top.push(b"sub", b"/top\nx/y\nz/**/w")
    deep = sub.push(b"sub/deep", None, b"!/top")
    for rules, directory, name, want in [
        (top, b"", b"top", True),
        (top, b"a", b"b", True),
        (sub, b"sub/a", b"b", False),
        (sub, b"sub", b"top", True),
        (sub, b"sub/x", b"y", True),
        (sub, b"sub/z", b"w", True),
        (sub, b"sub/z/q", b"w", True),
        (sub, b"sub/q", b"top", False),
        (deep, b"sub/deep", b"top", False),
        (deep, b"sub/deep/more", b"top", False),
        (deep, b"sub/deep/x", b"y", False),
        (deep, b"sub/deep/z", b"w", False),
    ]:
        assert rules.ignored(directory, name, False) is want, (directory, name)


def test_files_without_rules_add_nothing() -> None:
    base = BaseRules(None, b"f")
    below = base.push(b"d", b"# nothing\n\n!\n[", b"")
    assert below.ignored(b"d", b"f", False)
    assert not BaseRules().ignored(b"", b"f", False)


def test_patterns_longer_than_any_name_hide_nothing_and_cost_nothing() -> None:
    rules = BaseRules().push(
        b"", b"x" * 300 + b"\n" + b"?" * 100_000 + b"\n" + b"*a" * 100_000 + b"\n" + b"/a" * 50_000
    )
    assert not rules.ignored(b"", b"x" * 255, False)
    assert not rules.ignored(b"", b"a" * 255, False)


def test_decide() -> None:
    assert decide(b"*.a\nd/", b"!k.a", b"x.a\nk.a\nd/\nd\nq/x.a") == b"10101"


def entered(directory: pathlib.Path) -> Rules:
    fd = os.open(directory, os.O_RDONLY)
    try:
        return BaseRules().enter(b"", fd)
    finally:
        os.close(fd)


def test_ignore_files_are_read_from_their_directory(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"f\ng\n")
    (tmp_path / ".ignore").write_bytes(b"!f\n")
    rules = entered(tmp_path)
    assert [rules.ignored(b"", name, False) for name in (b"f", b"g", b"h")] == [False, True, False]


@pytest.mark.parametrize(("size", "counts"), [(2 << 20, True), (100 << 20, True), ((100 << 20) + 1, False)])
def test_an_ignore_file_has_at_most_100_mib(tmp_path: pathlib.Path, size: int, counts: bool) -> None:
    """A hole of NUL bytes after a comment sign: as large as asked for, and quick to read."""
    with open(tmp_path / ".gitignore", "wb") as file:
        file.write(b"f\n#")
        file.truncate(size)
    assert entered(tmp_path).ignored(b"", b"f", False) is counts


def test_only_a_regular_file_holds_rules(tmp_path: pathlib.Path) -> None:
    (tmp_path / "rules").write_bytes(b"f\n")
    ignore = tmp_path / ".ignore"
    for make in (lambda: ignore.symlink_to("rules"), lambda: os.mkfifo(ignore), lambda: ignore.mkdir()):
        make()
        assert not entered(tmp_path).ignored(b"", b"f", False)
        ignore.rmdir() if ignore.is_dir() and not ignore.is_symlink() else ignore.unlink()


def test_a_directory_has_no_more_ignore_files_than_there_are_kinds() -> None:
    with pytest.raises(ValueError, match="at most 2 ignore files"):
        BaseRules().push(b"", b"a", b"b", b"c")
