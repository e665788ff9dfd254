"""The regexes that judge many lines at once: each matching line is marked once, whatever bytes it holds."""

from __future__ import annotations

import pytest

from toolserver.search.judge import judge
from toolserver.search.pattern import analyse

TEXT = b"foo \xff foo\xffoo\nx\n\n\xff\nfoo\xe2\x89\nfoo foo"


@pytest.mark.parametrize(
    ("pattern", "marked"),
    [
        (r"\wo+", b"#\nx\n\n\xff\n#\n#"),
        (r"fo+\b", b"#\nx\n\n\xff\n#\n#"),
        (".", b"#\n#\n\n\xff\n#\n#"),
        ("(?U)o+|x", b"f#\n#\n\n\xff\nf#\nf#"),
        (r"o|\xff", b"f#\nx\n\n\xff\nf#\nf#"),
        (r"\Co", b"#\nx\n\n\xff\n#\n#"),
        ("$", b"foo \xff foo\xffoo#\nx#\n#\n\xff#\nfoo\xe2\x89#\nfoo foo#"),
        ("^$", b"foo \xff foo\xffoo\nx\n#\n\xff\nfoo\xe2\x89\nfoo foo"),
        ("^|$", b"#\n#\n#\n#\n#\n#"),
    ],
)
def test_a_line_is_marked_once(pattern: str, marked: bytes) -> None:
    asked = judge(analyse(pattern))
    assert asked.mark.subn(b"#", memoryview(TEXT))[0] == marked
    assert asked.probe.contains(memoryview(TEXT))
