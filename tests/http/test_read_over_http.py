"""`read` over HTTP, where the conformance suite does not look."""

from __future__ import annotations

import base64
import os
import pathlib
import random
import socket
import struct
import zlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kit import Server

LIMIT = 10_485_760


def png(width: int, height: int, *, size: int = 0) -> bytes:
    """Return a PNG of noise; `size` pads it to that many bytes."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rng = random.Random(width)
    rows = b"".join(b"\0" + rng.randbytes(3 * width) for _ in range(height))
    start = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    end = chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")
    return start + (chunk(b"paDd", b"\x01" * (size - len(start) - len(end) - 12)) if size else b"") + end


def content(server: Server, data: bytes, **args: object) -> list[str]:
    server.put("f", data)
    text = server.ok("read", path="f", **args)["content"]
    return text.split("\n") if text else []


@pytest.mark.parametrize("size", [262_143, 262_144, 262_145, 1_000_000])
def test_inline_and_in_a_thread(server: Server, size: int) -> None:
    """Small files are answered on the event loop, larger ones in a thread: the answers are alike."""
    line = '\tx = "é\\n";\r\n'
    data = (line.encode() * (size // len(line.encode()) + 1))[: size - 1] + b"\n"
    lines = data.decode(errors="replace").split("\n")[:-1]
    got = content(server, data, limit=10**9)
    assert got == [f"{number}\t{text.removesuffix(chr(13))}" for number, text in enumerate(lines, 1)]
    assert content(server, data, offset=100, limit=3) == got[99:102]


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("count", [3, 100_000])
def test_utf16(server: Server, order: str, count: int) -> None:
    """UTF-16 is decoded before lines are told apart: U+0A0A and U+0D0A end none, what is lone becomes U+FFFD."""
    text = "\ufeff" + "\u0a0a \u0d0a é😀\r\n" * count
    data = text.encode(order)
    unit = {"utf-16-le": "<H", "utf-16-be": ">H"}[order]
    lone = struct.pack(unit, 0xD800) + struct.pack(unit, 0x41) + struct.pack(unit, 0xDC00) + struct.pack(unit, 0xD801)
    got = content(server, data + lone + b"x", offset=count - 1)
    line = "\u0a0a \u0d0a é😀"
    assert got == [f"{count - 1}\t{line}", f"{count}\t{line}", f"{count + 1}\t\ufffdA\ufffd\ufffd\ufffd"]


def test_byte_order_mark_alone(server: Server) -> None:
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"):
        assert content(server, mark) == []
        assert server.ok("read", path="f")["total_lines"] == 0
    assert content(server, b"\xef\xbb\xbf\xef\xbb\xbfx") == ["1\t\ufeffx"]
    assert content(server, b"\xef\xbbx") == ["1\t\ufffdx"]


def test_order_of_the_kinds(server: Server) -> None:
    """Image, then UTF-16, then NUL: each is tried before the next."""
    server.put("f", b"GIF89a\0\0")
    assert "image" in server.ok("read", path="f")
    assert content(server, b"\xff\xfe\0\0\n\0") == ["1\t\0"]
    server.put("f", b"x\0")
    assert server.ok("read", path="f")["binary"] is True


@pytest.mark.parametrize("character", ["\0", "\x01", "\x1f", "\x7f", "\u2028", "\ufffe", "\U0010ffff", '"', "\\"])
def test_characters_survive_json(server: Server, character: str) -> None:
    text = "x" * 9000 + character
    assert content(server, text.encode()) == [f"1\t{text}"]


def test_one_long_line(server: Server) -> None:
    """A line has no maximum length."""
    assert content(server, b"y" * LIMIT) == ["1\t" + "y" * LIMIT]


def test_only_line_ends(server: Server) -> None:
    """The most lines that a file can have whose text fits into one call, and §13 as many as fit of one with more."""
    most = 64 * 1024 * 1024
    for size in (7_000_000, LIMIT):
        server.put("f", b"\n" * size)
        answer = server.ok("read", path="f", limit=10**9)
        got = answer["content"].split("\n")
        assert got[-1] == f"{len(got)}\t"
        assert answer["total_lines"] == size
        assert answer["truncated"] is (size == LIMIT)
        assert (len(got) == size) is (size != LIMIT)
        assert len(answer["content"]) <= most
    assert len(answer["content"]) + len(f"\n{len(got) + 1}\t") > most
    rest = server.ok("read", path="f", offset=len(got) + 1, limit=1)
    assert rest["content"] == f"{len(got) + 1}\t"


def test_text_of_several_files(server: Server) -> None:
    """§13 64 MiB of text: the file that does not fit and those after it hold an error, what came before is whole."""
    line = "é\t\\" + "x" * 93 + "\n"
    text = (line * (10_000_000 // len(line.encode()))).encode()
    server.put("big", text)
    server.put("small", "s\n")
    server.put("photo", png(4, 4))
    files = server.ok("read", paths=["small", *["big"] * 7, "small", "photo", "none"], limit=10**9)["files"]
    shown = [file for file in files if "content" in file]
    assert [len(file.get("content", "")) > 0 for file in files] == [True] * 7 + [False] * 4
    assert [file["total_lines"] for file in shown] == [1, *[text.count(b"\n")] * 6]
    assert not any(file["truncated"] for file in shown)
    size = sum(len(file["content"].encode()) for file in shown)
    assert size <= 64 * 1024 * 1024 < size + len(shown[-1]["content"].encode())
    for file, path in zip(files[7:], ["big", "small", "photo", "none"], strict=True):
        assert set(file) == {"path", "error"}
        assert path in file["error"]
        assert "further call" in file["error"]
    assert "content" in server.ok("read", paths=["big"], limit=10**9)["files"][0]


def test_text_that_fits_exactly(server: Server) -> None:
    """The limit itself fits, one byte more does not; numbers, tabs and line feeds count."""
    most = 64 * 1024 * 1024
    server.put("big", b"x" * 10_485_000)  # its text is two longer
    server.put("rest", b"x" * (most - 6 * 10_485_002 - 2))
    paths = [*["big"] * 6, "rest"]
    files = server.ok("read", paths=paths)["files"]
    assert sum(len(file["content"]) for file in files) == most
    server.put("rest", b"x" * (most - 6 * 10_485_002 - 1))
    assert "error" in server.ok("read", paths=paths)["files"][6]


def test_text_that_is_longer_as_json(server: Server) -> None:
    """Controls take six bytes: an answer is bounded as sent, too."""
    server.put("f", b"x" * 8192 + b"\1" * (LIMIT - 8192))
    files = server.ok("read", paths=["f"] * 6)["files"]
    assert ["content" in file for file in files] == [True] + [False] * 5


def test_only_controls(server: Server) -> None:
    """The longest an answer can be: six bytes of JSON for each of the file."""
    assert content(server, b"x" * 8192 + b"\1" * (LIMIT - 8192)) == ["1\t" + "x" * 8192 + "\1" * (LIMIT - 8192)]


@pytest.mark.parametrize("name", [b"f", b"\xff.txt"])
def test_answer_of_paths_base64(server: Server, name: bytes) -> None:
    (pathlib.Path(os.fsdecode(os.fsencode(server.root) + b"/" + name))).write_bytes(b"x\n")
    given = base64.b64encode(name).decode()
    shown = {"path": name.decode(errors="replace")} | ({"path_b64": given} if name != b"f" else {})
    assert server.ok("read", path_b64=given) == {**shown, "content": "1\tx", "total_lines": 1, "truncated": False}
    missing = base64.b64encode(name + b"-none").decode()
    first, second, third = server.ok("read", paths=[{"path_b64": given}, {"path_b64": missing}, {"path_b64": "?"}])[
        "files"
    ]
    assert first["content"] == "1\tx"
    assert set(second) == {"path", "path_b64", "error"}
    assert (second["path"], second["path_b64"]) == ((name + b"-none").decode(errors="replace"), missing)
    assert "path_b64" in third["error"]


@pytest.mark.parametrize("path", ["", "a\0b", "/etc/passwd", "../x", "x" * 256, "x/" * 3000])
def test_refused_path_fails_its_entry_alone(server: Server, path: str) -> None:
    server.put("f", "x\n")
    first, second = server.ok("read", paths=[path, "f"])["files"]
    assert (first["path"], set(first)) == (path, {"path", "error"})
    assert second["content"] == "1\tx"


def test_misshapen_entry_comes_before_any_read(server: Server) -> None:
    assert "paths[1].path" in server.fails(400, "read", paths=["missing", {"offset": 3}])


def test_special_files(server: Server) -> None:
    os.mkfifo(server.root / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        before = os.getcwd()
        os.chdir(server.root)  # a socket's path is short
        try:
            listening.bind("socket")
        finally:
            os.chdir(before)
        (server.root / "loop").symlink_to("loop")
        for name in ("fifo", "socket", "loop"):
            assert name in server.fails(500, "read", path=name)
        assert all(set(entry) == {"path", "error"} for entry in server.ok("read", paths=["fifo", "socket"])["files"])


# ------------------------------------------------------------------------------------------------------- images


def test_images_in_their_turn(server: Server) -> None:
    """Whole, made smaller to what is left, or the hint; later ones go on, and text costs nothing."""
    server.put("whole", png(60, 50, size=3_000_000))
    server.put("more", png(900, 700))
    server.put("gif", b"GIF89a" + b"\0" * 1_200_000)
    server.put("small", png(9, 9))
    server.put("text", "x\n")
    whole, more, gif, text, small = server.ok("read", paths=["whole", "more", "gif", "text", "small"])["files"]
    assert base64.b64decode(whole["image"]["data_b64"]) == png(60, 50, size=3_000_000)
    assert more["downscaled_from"] == {"width": 900, "height": 700}
    used = len(whole["image"]["data_b64"]) + len(more["image"]["data_b64"])
    assert 4_500_000 < used <= 5_000_000
    assert (gif["binary"], gif["mime"]) == (True, "image/gif")
    assert "5000000" in gif["hint"]
    assert text["content"] == "1\tx"
    assert "image" in small


def test_nothing_left(server: Server) -> None:
    server.put("full", png(60, 50, size=3_750_000))
    server.put("small", png(9, 9))
    full, small = server.ok("read", paths=["full", "small"])["files"]
    assert len(full["image"]["data_b64"]) == 5_000_000
    assert set(small) == {"path", "binary", "size", "mime", "hint"}


def test_image_with_a_damaged_header(server: Server) -> None:
    for data in (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n" + b"\0" * 4_000_000):
        server.put("f", data)
        got = server.ok("read", path="f")
        if len(data) < 100:
            assert base64.b64decode(got["image"]["data_b64"]) == data
            assert set(got["image"]) == {"mime", "data_b64"}
        else:
            assert set(got) == {"path", "binary", "size", "mime", "hint"}


def test_other_calls_go_on_while_an_image_is_made_smaller(server: Server) -> None:
    """Decoding is off the event loop: a call that comes later is answered first."""
    server.put("big", png(1800, 1500))
    server.put("f", "x\n")
    body = b'{"path": "big"}'
    head = f"POST /tools/read HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
        slow.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        for _ in range(3):
            assert server.ok("read", path="f")["content"] == "1\tx"
        slow.setblocking(False)
        with pytest.raises(BlockingIOError):
            slow.recv(1)
        slow.settimeout(60)
        assert slow.recv(65536).startswith(b"HTTP/1.1 200")


def test_mime_of_binary_files(server: Server) -> None:
    for name, data, mime in [
        ("a.tar.gz", b"\x07\0", "application/gzip"),
        ("page.html", b"\0", "text/html"),
        ("x.gz", b"\x1f\x8b\x08\0\0", "application/gzip"),
        ("x", b"\x7fELF\2\1\1" + b"\0" * 60, "application/x-executable"),
    ]:
        server.put(name, data)
        assert server.ok("read", path=name) == {"path": name, "binary": True, "size": len(data), "mime": mime}
