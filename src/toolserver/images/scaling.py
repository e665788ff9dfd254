"""Scales PNG and JPEG images down until they fit, decoded by Pillow from a copy without metadata."""

from __future__ import annotations

import io
import math
import struct
import zlib
from dataclasses import dataclass

from PIL import Image, ImageChops, JpegImagePlugin, PngImagePlugin

from toolserver.images.kinds import JPEG, PNG, frame, jpeg_segment

MAX_PIXELS = 50_000_000
"""An image whose header states more pixels is never decoded."""
QUALITY = 85
"""JPEG quality; it is kept, and the image made smaller instead."""
MAX_PARTS = 100_000
"""Chunks or segments that are read; no real image has so many."""

# What Pillow raises for damaged data; its own UnidentifiedImageError is an OSError.
_DAMAGE = (OSError, ValueError, SyntaxError, EOFError, IndexError, KeyError, TypeError, struct.error, zlib.error)
_ORIENTATION = 0x0112
_APP1, _APP2, _APP14, _START_OF_SCAN = 0xE1, 0xE2, 0xEE, 0xDA


class CannotFitError(Exception):
    """The image cannot be made to fit; the message says why."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A scaled image of the same format."""

    data: bytes
    width: int
    height: int


def fit(data: bytes, mime: str, most: int) -> Fitted:
    """Return a PNG or JPEG scaled down to at most `most` bytes; aspect kept, no side below 1. Slow.

    Raises CannotFitError for an image over MAX_PIXELS (which is not decoded), for damaged data, and where not even one
    pixel fits.
    """
    size = frame(data, mime)
    if size is None:
        raise CannotFitError("its header is damaged")
    if size[0] * size[1] > MAX_PIXELS:
        raise CannotFitError(f"its {size[0]} x {size[1]} pixels are over {MAX_PIXELS}, so it is not decoded")
    bare = _bare_png(data) if mime == PNG else _bare_jpeg(data)
    if bare is None:
        raise CannotFitError("its data is damaged")
    try:
        return _fit(bare, data, mime, size, most)
    except _DAMAGE as error:
        raise CannotFitError("its data is damaged") from error


def _fit(bare: bytes, data: bytes, mime: str, size: tuple[int, int], most: int) -> Fitted:
    wanted = _smaller(size, min(0.9, 0.9 * most / len(bare)))
    with _decoded(bare, mime, size, wanted) as image:
        tags = _orientation(data) if mime == JPEG else None
        while True:
            with image.resize(wanted, Image.Resampling.LANCZOS, reducing_gap=2.0) as scaled:
                written = _written(scaled, mime, image.info.get("icc_profile"), tags)
            if len(written) > most and "icc_profile" in image.info and len(image.info["icc_profile"]) > most // 4:
                del image.info["icc_profile"]
                continue
            if len(written) <= most:
                return Fitted(written, *wanted)
            if wanted == (1, 1):
                raise CannotFitError(f"not even one pixel of it fits into {most} bytes")
            wanted = _smaller(wanted, min(0.9, 0.9 * most / len(written)))


def _smaller(size: tuple[int, int], share: float) -> tuple[int, int]:
    """Return sides for about that share of the pixels: aspect kept, both smaller, none below 1."""
    width, height = size
    scale = math.sqrt(share)
    if min(width, height) * scale < 1:  # the short side stays 1, so only the long one shrinks
        pixels = max(1, int(width * height * share))
        return (max(1, min(width - 1, pixels)), 1) if width >= height else (1, max(1, min(height - 1, pixels)))
    return tuple(max(1, min(side - 1, round(side * scale))) for side in size)  # type: ignore[return-value]  # two of two


def _decoded(bare: bytes, mime: str, size: tuple[int, int], wanted: tuple[int, int]) -> Image.Image:
    """Decode to a mode that can be averaged; a JPEG at a half, quarter or eighth if that is enough."""
    opened: Image.Image
    if mime == PNG:
        opened = PngImagePlugin.PngImageFile(io.BytesIO(bare))
    else:
        opened = JpegImagePlugin.JpegImageFile(io.BytesIO(bare))
    if opened.size != size:
        opened.close()
        raise ValueError("two headers that contradict each other")
    try:
        if mime == JPEG:
            opened.draft(None, wanted)  # None keeps the mode
        opened.load()
        made = _averageable(opened)
    except BaseException:
        opened.close()
        raise
    if made is not opened:
        opened.close()
    return made


def _averageable(image: Image.Image) -> Image.Image:
    """Return an image whose pixels can be averaged: no palette, and alpha in place of a transparent colour."""
    key = image.info.get("transparency")
    if image.mode == "I;16":
        return _eight_bits(image, key)
    if image.mode == "P":
        return image.convert("RGBA" if key is not None else "RGB")
    if key is not None and image.mode in ("1", "L", "RGB"):
        return image.convert("RGBA" if image.mode == "RGB" else "LA")
    return image.convert("L") if image.mode == "1" else image


def _eight_bits(image: Image.Image, key: int | None) -> Image.Image:
    """Return the upper bytes of 16-bit grey, as Pillow decodes other 16-bit kinds; `key` is transparent."""
    raw = image.tobytes()
    upper = Image.frombytes("L", image.size, raw[1::2])
    if key is None:
        return upper
    lower = Image.frombytes("L", image.size, raw[0::2])
    differs = [
        plane.point([0 if value == wanted else 255 for value in range(256)])
        for plane, wanted in ((upper, key >> 8), (lower, key & 0xFF))
    ]
    return Image.merge("LA", (upper, ImageChops.lighter(*differs)))


def _written(image: Image.Image, mime: str, profile: bytes | None, tags: Image.Exif | None) -> bytes:
    out = io.BytesIO()
    if mime == PNG:
        image.save(out, "PNG")
    else:
        image.save(out, "JPEG", quality=QUALITY, icc_profile=profile, exif=tags or b"")
    return out.getvalue()


# ------------------------------------------------------------------------------------------ without metadata


def _bare_png(data: bytes) -> bytes | None:
    """Return a PNG without texts, profiles and animation, which can be decompression bombs; None: damaged."""
    kept = [data[:8]]
    at = 8
    for _ in range(MAX_PARTS):
        end = at + 12 + int.from_bytes(data[at : at + 4])
        kind = data[at + 4 : at + 8]
        if len(kind) < 4 or end > len(data):
            return None
        if kind in (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"):
            kept.append(data[at:end])
        if kind == b"IEND":
            return b"".join(kept)
        at = end
    return None


def _bare_jpeg(data: bytes) -> bytes | None:
    """Return a JPEG without comments and application data other than JFIF, ICC and Adobe; None: damaged."""
    kept = [data[:2]]
    at = 2
    for _ in range(MAX_PARTS):
        found = jpeg_segment(data, at)
        if found is None:
            return None
        marker, start, end = found
        if marker == _START_OF_SCAN:
            return b"".join((*kept, data[at:]))
        profile = marker == _APP2 and data[start + 2 : end].startswith(b"ICC_PROFILE\0")
        if not (_APP1 <= marker <= 0xEF or marker == 0xFE) or marker == _APP14 or profile:
            kept.append(data[at:end])
        at = end
    return None


def _orientation(data: bytes) -> Image.Exif | None:
    """Return Exif data with the orientation alone, which a scaled image needs; None: there is none."""
    at = 2
    for _ in range(MAX_PARTS):
        found = jpeg_segment(data, at)
        if found is None or found[0] == _START_OF_SCAN:
            return None
        marker, start, at = found
        if marker == _APP1 and data[start + 2 : start + 8] == b"Exif\0\0":
            value = _turn(data[start + 8 : at])
            if value is None:
                return None
            tags = Image.Exif()
            tags[_ORIENTATION] = value
            return tags
    return None


def _turn(exif: bytes) -> int | None:
    """Read the orientation (2 to 8) from the first directory of Exif data."""
    order: dict[bytes, str] = {b"II*\0": "<", b"MM\0*": ">"}
    sign = order.get(exif[:4])
    if sign is None or len(exif) < 8:
        return None
    at: int = struct.unpack_from(sign + "I", exif, 4)[0]
    if at + 2 > len(exif):
        return None
    for entry in range(struct.unpack_from(sign + "H", exif, at)[0]):
        begin = at + 2 + 12 * entry
        if begin + 12 > len(exif):
            return None
        tag, kind, _, value = struct.unpack_from(sign + "HHIH", exif, begin)
        if tag == _ORIENTATION:
            return int(value) if kind == 3 and 2 <= value <= 8 else None
    return None
