"""The glob dialect, one line a case."""

from __future__ import annotations

import pytest

from toolserver._fast.globs import MAX_ALTERNATIVES, MAX_PATTERN, Glob
from toolserver.errors import BadArgument
from toolserver.search.globs import compiled

CASES: list[tuple[str, str, str]] = [
    ("*.py", "a.py .py x/y.py", "a.pyc py x.py/a"),
    ("a", "a x/a", "ab x/ab a/b"),
    ("*", "a .a x/y", ""),
    ("**", "a .a x/y", ""),
    ("***", "a x/y", ""),
    ("/a", "a", "x/a"),
    ("./a", "a", "x/a"),
    ("a/", "a/x a/x/y", "a x/a/y"),
    ("./a/", "a/x", "a"),
    ("/", "a x/y", ""),
    ("./", "a x/y", ""),
    ("a//b", "", "a/b"),
    ("a/./b", "", "a/b"),
    ("a/../b", "", "b a/b"),
    ("src/*.py", "src/a.py", "src/x/a.py a.py x/src/a.py"),
    ("*/a", "x/a", "a x/y/a"),
    ("**/a", "a x/a x/y/a", "xa"),
    ("a/**", "a/b a/b/c", "a xa/b"),
    ("a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb"),
    ("**/a/**", "a/b x/a/b/c", "a x/a"),
    ("a/***/b", "a/x/b", "a/b a/x/y/b"),
    ("a**/b", "a/b ax/b", "ax/y/b b"),
    ("**a/b", "a/b xa/b", "x/a/b"),
    ("a/**b", "a/b a/xb", "a/x/b"),
    ("?", "a é x/😀", "ab"),
    ("?" * 2, "ab éa", "a é abc"),
    ("*é", "é aé", "e"),
    ("[é-ü]x", "éx ôx üx", "ýx ex"),
    ("[!é]x", "ex 😀x", "éx x"),
    ("[^a]", "b é", "a"),
    ("*[😀-😃].c", "a😁.c 😀.c", "a.c a😄.c"),
    ("*?*[ab]?", "xéaé xbx", "ax é"),
    ("[]a]", "] a", "b"),
    ("[!]a]", "b", "] a"),
    ("[[]x", "[x", "x"),
    (r"[\]x", "\\x", "]x x"),
    ("[a-]", "a -", "b"),
    ("[-a]", "a -", "b"),
    ("[--0]", "- . 0", "a"),
    ("x/[!a]", "x/b", "x/a"),
    ("a[/]b", "", "a/b ab"),
    (r"\*", "*", "a"),
    (r"\[a\]", "[a]", "a"),
    (r"\{a,b\}", "{a,b}", "a b"),
    (r"\!a", "!a", "a"),
    (r"\é\a", "éa", "a"),
    (r"a\/b", "a/b", "b"),
    ("a,b", "a,b", "a b"),
    ("{a,b}", "a b x/a", "ab"),
    ("{a}", "a", "{a}"),
    ("{}a", "a", "{}a"),
    ("f{,2}.py", "f.py f2.py", "f3.py"),
    ("{a,{b,{c,d}e}}f", "af bf cef def", "cf ef"),
    ("{a,b}/{c,d}", "a/c a/d b/c", "a c"),
    ("{[,],[}]}", ", }", "[ ]"),
    (r"{a\,b,c}", "a,b c", "a b"),
    ("{src/,}*.c", "src/a.c a.c", "x/a.c src/x/a.c"),
    ("{,src}/a", "a src/a", "x/a"),
    ("{a,b}/", "a/x b/x/y", "a c/x"),
    ("src/{,x}", "src/x src/a src/a/b", "src"),
    ("{**/a,b}.*", "a.c x/a.c b.c", "x/b.c"),
    ("{**,x}/a", "a x/a y/z/a", "xa"),
    ("src/{**,x}/a", "src/a src/x/a src/y/z/a", "a srca"),
    ("{**/,}a", "a x/a", "xa"),
    ("/{**}", "a x/y", ""),
    ("x{**/a,b}", "xa x/a xy/a xy/z/a xb", "a b x/b"),
    ("x/{a,**}b", "x/ab x/b x/y/b x/y/zb", "b x/bc"),
    ("{**,**/}{**/a,b}", "a x/a b x/b", "x/c"),
    ("a*" * 50 + "b", "a" * 50 + "b", "a" * 250),
    ("**/a/" * 40 + "b", "a/" * 40 + "b", "a/" * 120 + "c"),
    ("?" * 300, "", "a" * 255),
]


def fits(glob: Glob, path: str) -> bool:
    directory, _, name = path.encode().rpartition(b"/")
    found = glob.match(directory, name)
    while found and directory:
        assert glob.may_match_below(directory), directory
        directory = directory.rpartition(b"/")[0]
    return found


@pytest.mark.parametrize(("pattern", "yes", "no"), CASES, ids=[case[0][:40] for case in CASES])
def test_dialect(pattern: str, yes: str, no: str) -> None:
    glob = Glob(pattern.encode())
    assert [path for path in f"{yes} {no}".split() if fits(glob, path)] == yes.split()


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("", "empty"),
        ("[ab", "not closed"),
        ("[", "not closed"),
        ("[]", "not closed"),
        ("[!]", "not closed"),
        ("x/[", "not closed"),
        ("{a,b", "not closed"),
        ("{a,{b}", "not closed"),
        ("a}", "without a {"),
        ("[z-a]", "upside down"),
        ("[b-é-a]", "upside down"),
        ("a\\", "backslash"),
        ("!a", "negation"),
        ("!", "negation"),
    ],
)
def test_malformed(pattern: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Glob(pattern.encode())
    with pytest.raises(BadArgument, match="glob: .*" + said):
        compiled(pattern, "glob")


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(BadArgument, match=r"pattern: .*surrogates"):
        compiled("a\ud800", "pattern")


@pytest.mark.parametrize(
    "pattern",
    [
        "{a,b}" * 13,
        "{" + "a," * MAX_ALTERNATIVES + "}",
        "{a,b}" * 11 + "c" * 5000,
        "/" + "a{**}" * 11 + "b" * 60_000,
        "a{**}/" * 5000,
        "/{" + "a{**}a{**}," * 2000 + "}" + "x" * 100,
    ],
)
def test_too_large_once_expanded(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"alternatives|too large"):
        Glob(pattern.encode())


def test_too_long() -> None:
    assert not Glob(b"a" * MAX_PATTERN).match(b"", b"a")
    with pytest.raises(ValueError, match="more than"):
        Glob(b"a" * (MAX_PATTERN + 1))


def test_the_largest_patterns_still_work() -> None:
    nested = "{a," * 2000 + "b" + "}" * 2000
    assert Glob(nested.encode()).match(b"", b"b")
    product = Glob(("{a,b}" * 12).encode())
    assert product.match(b"x", b"ab" * 6)
    assert not product.match(b"x", b"ab" * 6 + b"a")
    assert fits(Glob(("x{**/a,b}" * 4).encode()), "xb" * 4)


def test_names_that_are_not_utf8() -> None:
    assert Glob(b"caf?.txt").match(b"", b"caf\xe9.txt")
    assert Glob(b"???").match(b"", b"\xc3\x28\xff")
    assert Glob(b"[!a]").match(b"", b"\xff")
    assert not Glob("[À-ÿ]".encode()).match(b"", b"\xff")
    assert not Glob(b"?").match(b"", b"\xf0\x9f\x98")


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.c", "a a/b", ""),
        ("a/*.c", "a", "b a/b aa"),
        ("a/b/*.c", "a a/b", "b a/c a/b/c"),
        ("a*/**/x", "a ab a/b/c", "b b/a"),
        ("**/x", "a a/b", ""),
        ("a/**", "a a/b", "b"),
        ("{a,b}/x", "a b", "c a/b"),
        ("/x", "", "a x"),
        ("a//b", "", "a"),
    ],
)
def test_what_a_walk_may_leave_out(pattern: str, yes: str, no: str) -> None:
    glob = Glob(pattern.encode())
    assert [path for path in f"{yes} {no}".split() if glob.may_match_below(path.encode())] == yes.split()


@pytest.mark.parametrize("count", [1, 50, 255])
def test_many_braces_of_one_alternative(count: int) -> None:
    """What stands before a brace of one alternative is extended in place; braces that share it keep their own."""
    assert Glob(b"{a}" * count + b"/x").match(b"a" * count, b"x")
    glob = Glob(b"a" + b"{}" * count + b"{b,c}{d}")
    assert [name for name in (b"abd", b"acd", b"abcd", b"abdd", b"ab") if glob.match(b"", name)] == [b"abd", b"acd"]
    assert not Glob(b"{a}" * 20000 + b"/x").match(b"a" * 255, b"x")
