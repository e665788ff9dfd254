"""Patterns: what is refused and in which words, what is known of the lines that match, and the limits."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
import re2

from toolserver.errors import BadArgument
from toolserver.search import classes
from toolserver.search.pattern import MAX_PATTERN, Plan, analyse


def found(plan: Plan, text: str) -> list[int]:
    """The numbers of the lines, from 1, that a plan finds in a text with LF line ends."""
    return [
        number
        for number, line in enumerate(text.removesuffix("\n").encode().split(b"\n"), 1)
        if plan.matches_line(line, 0, len(line))
    ]


@pytest.mark.parametrize(
    ("pattern", "named"),
    [
        ("(?=x)", "look-ahead"),
        ("(?!x)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?<!a)b", "look-behind"),
        ("(*pla:x)", "nothing to repeat"),
        (r"(a)\1", "back-reference"),
        (r"(a)\8", "back-reference"),
        (r"(?P<n>a)(?P=n)", "back-reference"),
        (r"(?<n>a)\k<n>", "back-reference"),
        (r"(a)\g{1}", "back-reference"),
        ("a++", "possessive"),
        ("(?>a)", "atomic"),
        ("(a)?(?(1)b|c)", "conditional"),
        ("(?R)", "recursion"),
        ("(?1)", "recursion"),
        ("(?&n)", "recursion"),
        ("(?P>n)", "recursion"),
        ("(?|a|b)", "branch reset"),
        ("(?#note)", "comment"),
        ("(?x) a b", "flag x"),
        ("(?'n'a)", "in quotes"),
        (r"a\Z", "last line end"),
        (r"\Ka", r"\K"),
        (r"\h", "horizontal white space"),
        (r"a**", "repetition of a repetition"),
        ("a{2}{3}", "repetition of a repetition"),
    ],
)
def test_what_is_not_supported_is_named(pattern: str, named: str) -> None:
    with pytest.raises(BadArgument, match=r"^pattern: ") as caught:
        analyse(pattern)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "missing )"),
        (")", "unexpected )"),
        ("a)", "unexpected )"),
        ("[", "missing ]"),
        ("[]", "missing ]"),
        ("[^]", "missing ]"),
        ("[a-", "missing ]"),
        ("[b-a]", "upside-down range"),
        (r"[a-\d]", "unknown escape"),
        ("[[:nope:]]", "[:nope:]"),
        ("*a", "nothing to repeat"),
        ("(*a)", "nothing to repeat"),
        ("a|*", "nothing to repeat"),
        ("(?i)*", "nothing to repeat"),
        ("a{2,1}", "upside-down repetition"),
        ("a{1001}", "repetition"),
        ("(a{100}){100}", "repetition"),
        ("(?P<x", "group name"),
        ("(?P<>a)", "group name"),
        ("(?P<a-b>a)", "group name"),
        ("(?P<n>a)(?P<n>b)", "two groups"),
        ("(?", "unknown kind of group"),
        ("(?-)", "unknown kind of group"),
        ("(?z)", "unknown kind of group"),
        ("\\", "backslash at the end"),
        (r"\q", "unknown escape"),
        ("\\é", "unknown escape"),
        (r"\p{Nope}", "unknown Unicode class"),
        (r"\p{Greek", "unknown Unicode class"),
        (r"\p", "unknown Unicode class"),
        (r"\x{110000}", "malformed code"),
        (r"\xg", "malformed code"),
        ("\ud800", "surrogate"),
        (r"\pL{1000}" * 50, "too large"),
        # RE2 makes one repetition of each of these, and would end the process
        (".{1000}" * 66, "too large"),
        ("(?i)x{0,1000}" + "x{1000}" * 70, "too large"),
        ("a*" + "a" * 64_999, "too large"),
        (r"(?:\.{999})" * 60 + r"\." * 20_000, "too large"),
        (r"é?" + r"[é]" * 16_250, "too large"),
        # its automaton would have no room, and RE2 matches at a crawl then
        (r"(\w{1,500}){2}", "too large"),
        (r"\w{200}", "too large"),
        ("a" * (MAX_PATTERN + 1), "too large"),
        (r"[^\W_]" * 20_000, "too large"),
    ],
)
def test_what_is_malformed_says_why(pattern: str, reason: str) -> None:
    with pytest.raises(BadArgument, match=r"^pattern: ") as caught:
        analyse(pattern)
    assert reason in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "pattern",
    [
        "|".join(f"alternative{number}" for number in range(1000)),
        r"\w{50}",
        "(" * 5000 + "a" + ")" * 5000,
        "(?:" * 5000 + "a" + ")*" * 5000,
        "a" * MAX_PATTERN,
        "a{1000}",
        "a{,2}b{c{01}{1234567890}",
        "]}a",
        "[]a][^]b][a-b-c][--a][a-]",
        "a(?i)*",
        "a*(?i)*",
        r"a*\Q\E*",
        "(|a)()|",
        r"(?P<été>a)(?<other>b)",
        r"\pN\PN\p{^Lu}\P{^Lu}[\pN\P{Greek}]",
        r"\x{1F600}\0\012\12",
        r"\x{d800}",
        "^*$*\\b+",
    ],
    ids=lambda pattern: pattern[:20],
)
def test_what_re2_takes_is_taken(pattern: str) -> None:
    analyse(pattern).compiled.contains(b"abc")


@pytest.mark.parametrize(
    ("pattern", "literals", "exact"),
    [
        ("foo", [b"foo"], True),
        (r"class \w+Error", [b"class "], False),
        ("TODO|FIXME|XXX", [b"FIXME", b"TODO", b"XXX"], True),
        ("[A-Z]+_RESUME", [b"_RESUME"], False),
        ("[Tt]odo", [b"Todo", b"todo"], True),
        (r"v[12]\.x", [b"v1.x", b"v2.x"], True),
        ("colou?r", [b"color", b"colour"], True),
        ("al(pha|ert) one", [b"alert one", b"alpha one"], True),
        ("^foo", [b"foo"], False),
        (r"\bfoo\b", [b"foo"], False),
        (r"\Qa.b\E", [b"a.b"], True),
        (r"\x{e9}t\x{E9}", ["été".encode()], True),
        ("(foo)+bar", [b"foobar"], False),
        ("(foo){2}", [b"foofoo"], True),
        ("x(foo){2,}y", [b"xfoofoo"], False),
        ("foo|foobar", [b"foo"], True),
        ("foo.*|bar.*", [b"bar", b"foo"], False),
        ("foo|.", None, False),
        ("foox(?s)*", [b"foo"], False),
        (r"foox\Q\E*", [b"foo"], False),
        ("v[xy]*", [b"v"], False),
        ("e[xy]*", None, False),
        ("e", [b"e"], True),
        ("[0-9]+", None, False),
        ("foo\\r", [b"foo\r"], False),
        ("foo\\n|bar", [b"bar"], True),
    ],
)
def test_literals(pattern: str, literals: list[bytes] | None, exact: bool) -> None:
    plan = analyse(pattern)
    assert (None if plan.literals is None else list(plan.literals), plan.exact) == (literals, exact)


def test_a_thousand_alternatives_share_their_beginnings() -> None:
    plan = analyse("|".join(f"word{number:04}x" for number in range(1000)))
    assert plan.literals is not None
    assert len(plan.literals) <= 64
    assert all(one.startswith(b"word") for one in plan.literals)


def test_every_further_condition_is_kept() -> None:
    assert analyse(r"struct \w+_ops .*= \{").also == ((b"_ops ",), (b"= {",))


def test_ignored_case_lists_what_ascii_folding_misses() -> None:
    plan = analyse("kernel", ignore_case=True)
    assert (plan.literals, plan.fold, plan.exact) == ((b"kernel", "\u212aernel".encode()), True, True)
    plan = analyse("ÉT", ignore_case=True)
    assert (plan.literals, plan.fold, plan.exact) == (("Ét".encode(), "ét".encode()), True, True)
    assert analyse("д", ignore_case=True).literals == ("Д".encode(), "д".encode())
    assert analyse("TODO|FIXME", ignore_case=True).literals == (b"fixme", b"todo")


def test_ignored_case_with_many_variants_asks_for_pieces() -> None:
    plan = analyse("mississippi", ignore_case=True)
    assert plan.literals is not None
    assert len(plan.literals) < 8
    assert not plan.exact
    assert b"mississippi" in plan.literals


@pytest.mark.parametrize("pattern", ["(?i:foo)Bar", "(?i)foo(?-i)Bar", "(?i:foo)[B]ar", "(?i:foo)B(?:ar)"])
def test_case_that_counts_in_part_is_left_to_re2(pattern: str) -> None:
    plan = analyse(pattern)
    assert (plan.literals, plan.fold, plan.exact) == ((b"foobar",), True, False)
    assert found(plan, "FOOBar\nfoobar\n") == [1]


@pytest.mark.parametrize(
    ("pattern", "every", "never"),
    [
        ("", True, False),
        ("^", True, False),
        ("$", True, False),
        ("x*", True, False),
        ("a|", True, False),
        ("\n", False, True),
        ("a\\nb", False, True),
        ("[\\n]", False, True),
        ("(a\n)+|\\x0a", False, True),
        ("\\b", False, False),
        ("^$", False, False),
        ("a\n*b", False, False),
        ("a?b", False, False),
    ],
)
def test_all_lines_or_none(pattern: str, every: bool, never: bool) -> None:
    plan = analyse(pattern)
    assert (plan.every, plan.never) == (every, never)


def test_literal_turns_off_syntax() -> None:
    assert analyse("a.b(", literal=True).literals == (b"a.b(",)
    assert found(analyse("a.b", literal=True), "A.B\na.b\naxb\n") == [2]
    assert found(analyse("a.b", literal=True, ignore_case=True), "A.B\na.b\naxb\n") == [1, 2]
    assert analyse("a\nb", literal=True).never
    assert analyse("", literal=True).every


def test_a_source_never_crosses_a_line_end() -> None:
    for pattern in [r"a\sb", r"a[^x]b", r"a\Wb", r"a[\s\S]b", "(?s)a.b", r"a[\W\d]b", r"a\p{Cc}b", "a[[:^alpha:]]b"]:
        assert not analyse(pattern).compiled.contains(b"a\nb\n"), pattern


@pytest.mark.parametrize("pattern", ["alpha$", r"alpha\z", "(?-m)alpha$", r"\Aalpha", "(?-m)^alpha"])
def test_edges_are_line_ends(pattern: str) -> None:
    assert analyse(pattern).compiled.contains(b"x\nalpha\ny")


def test_a_byte_is_judged_line_by_line() -> None:
    plan = analyse(r"^\C{3}$")
    assert plan.alone
    assert plan.matches_line("≤".encode(), 0, 3)


def test_a_line_inside_a_buffer_is_judged_alone() -> None:
    buffer = bytearray(b"ab\r\n\r\nb")
    assert analyse("b$").matches_line(buffer, 0, 2)
    assert not analyse(r"\s").matches_line(memoryview(buffer), 0, 2)
    assert analyse("^$").matches_line(buffer, 4, 4)
    assert not analyse("^a").matches_line(buffer, 1, 2)


def test_word_digit_and_space_are_unicode() -> None:
    """Every word character and digit of Python's database is one; white space is what Python calls so but FS to US."""
    word, digit, space = (analyse(f"^{one}$").compiled for one in (r"\w", r"\d", r"\s"))
    for code in range(0x110000):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cs", "Cn") or character in "\n\r":
            continue
        data = character.encode()
        expected = category[0] in "LM" or category in ("Nd", "Nl", "Pc")
        if expected:
            assert word.contains(data), hex(code)
        assert digit.contains(data) == (category == "Nd"), hex(code)
        assert space.contains(data) == (character.isspace() and character not in "\x1c\x1d\x1e\x1f"), hex(code)


def test_the_cases_of_a_character_are_re2s() -> None:
    """Wherever RE2 folds, `variants` looks: no character without another case in Python's eyes has one in RE2's."""
    uncased = [
        character
        for character in map(chr, range(0x80, 0x110000))
        if unicodedata.category(character) != "Cs" and character.lower() == character == character.upper()
    ]
    text = "".join(uncased).encode()
    cased = re2.compile(b"(?i)[%s]" % classes._cased(), re2.UNICODE, 1 << 26)
    assert cased.search(text) is None
    for letter in "abcdefghijklmnopqrstuvwxyz":
        matched = {match.group().decode() for match in re2.finditer(f"(?i){letter}".encode(), classes._cased(), re2.U)}
        assert matched == set(classes.variants(letter))


def test_a_pattern_that_would_backtrack_takes_its_time_once() -> None:
    assert not analyse("(x+x+)+y").compiled.contains(b"x" * 100_000)


def test_nothing_is_printed() -> None:
    """RE2 writes of its troubles to stderr unless told not to: malformed, too large, out of memory while matching."""
    program = (
        "from toolserver.search.pattern import analyse, BadArgument\n"
        "for pattern in ['(', '\\\\pL{1000}' * 50, '(?P<n', 'a{1001}']:\n"
        "    try:\n"
        "        analyse(pattern)\n"
        "    except BadArgument:\n"
        "        pass\n"
        "analyse('(?:\\\\pL{3}.{1,40}){9}x').compiled.contains('äb c'.encode() * 5000)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")
