"""Recognising images by their first bytes, their width and height, and mime types by content and name."""

from __future__ import annotations

import mimetypes

import filetype

PNG = "image/png"
JPEG = "image/jpeg"
GIF = "image/gif"
WEBP = "image/webp"
UNKNOWN = "application/octet-stream"
HEAD = 8192
"""Bytes at the start of a file by which its kind is recognised."""

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Start-of-frame markers: C0 to CF but for C4 (Huffman tables), C8 (reserved) and CC (arithmetic coding conditions).
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Markers without a length: TEM and the restart markers.
_BARE = frozenset({0x01, *range(0xD0, 0xD8)})
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
# Mime types for file name endings that mimetypes reports as encodings.
_ENCODINGS = {
    "gzip": "application/gzip",
    "bzip2": "application/x-bzip2",
    "xz": "application/x-xz",
    "br": "application/x-brotli",
    "compress": "application/x-compress",
}

mimetypes.init()  # reads the system's tables now rather than during a call


def image_mime(head: bytes) -> str | None:
    """Return the mime type of an image that `read` shows, by its first bytes alone; None for anything else."""
    if head.startswith(_PNG_SIGNATURE):
        return PNG
    if head.startswith(b"\xff\xd8\xff"):
        return JPEG
    if head.startswith((b"GIF87a", b"GIF89a")):
        return GIF
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    return None


def mime_by_name(name: str) -> str | None:
    """Return what Python's `mimetypes` says of a file's name."""
    # a leading directory keeps mimetypes from parsing the name as a URL
    found, encoding = mimetypes.guess_type("./" + name.rsplit("/", 1)[-1])
    return found if encoding is None else _ENCODINGS.get(encoding)


def mime_of(head: bytes, name: str) -> str:
    """Return the mime type of a binary file: by its first bytes, then by its name, else application/octet-stream."""
    by_content: str | None = image_mime(head) or filetype.guess_mime(head[:HEAD])
    return by_content or mime_by_name(name) or UNKNOWN


def frame(data: bytes, mime: str) -> tuple[int, int] | None:
    """Return width and height from the header of a PNG or JPEG; None for other kinds and for a damaged header."""
    if mime == PNG:
        return _png_frame(data)
    if mime == JPEG:
        return _jpeg_frame(data)
    return None


def _png_frame(data: bytes) -> tuple[int, int] | None:
    if len(data) < 24 or data[8:16] != b"\0\0\0\rIHDR":
        return None
    return _sides(int.from_bytes(data[16:20]), int.from_bytes(data[20:24]))


def _jpeg_frame(data: bytes) -> tuple[int, int] | None:
    """Walk the segments, so that a thumbnail inside one is never taken for the image."""
    at = 2
    while (found := jpeg_segment(data, at)) is not None:
        marker, start, end = found
        if marker in _FRAMES:
            if end - start < 7:
                return None
            return _sides(int.from_bytes(data[start + 5 : start + 7]), int.from_bytes(data[start + 3 : start + 5]))
        if marker in (_START_OF_SCAN, _END_OF_IMAGE):
            return None
        at = end
    return None


def jpeg_segment(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Return the marker at `at`, and start and end of its data including the two length bytes; None: damaged."""
    while data[at : at + 2] == b"\xff\xff":  # fill bytes
        at += 1
    if at + 2 > len(data) or data[at] != 0xFF:
        return None
    marker = data[at + 1]
    if marker in _BARE or marker == _END_OF_IMAGE:
        return marker, at + 2, at + 2
    length = int.from_bytes(data[at + 2 : at + 4])
    if length < 2 or at + 2 + length > len(data):
        return None
    return marker, at + 2, at + 2 + length


def _sides(width: int, height: int) -> tuple[int, int] | None:
    return (width, height) if width > 0 and height > 0 else None


_TEXTS = frozenset(
    {"application/json", "application/javascript", "application/xml", "application/x-sh", "application/sql"}
)


def mime_of_file(head: bytes, name: str) -> str:
    """Return the mime type of any file: by its first bytes, then by its name, as far as text is text."""
    by_content: str | None = image_mime(head) or filetype.guess_mime(head[:HEAD])
    if by_content:
        return by_content
    by_name = mime_by_name(name)
    if b"\0" in head[:HEAD]:
        return by_name if by_name is not None and not _is_text(by_name) else UNKNOWN
    return by_name if by_name is not None and _is_text(by_name) else "text/plain"


def _is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime in _TEXTS or mime.endswith(("+xml", "+json"))
