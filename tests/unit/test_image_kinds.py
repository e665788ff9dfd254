"""What a file is: image kinds, frames, mime types; and images made smaller."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import zlib

import pytest
from PIL import Image

from toolserver.images.kinds import GIF, JPEG, PNG, WEBP, frame, image_mime, mime_by_name, mime_of
from toolserver.images.scaling import MAX_PIXELS, CannotFitError, fit


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int, height: int, depth: int = 8, colour: int = 2, *, extra: bytes = b"", interlaced: bool = False
) -> bytes:
    """Return a PNG of noise, of any colour type and depth."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    rng = random.Random(f"{width} {height} {depth} {colour}")
    # first column and row, steps: the passes of Adam7
    adam7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows = b""
    for left, top, across, down in adam7 if interlaced else [(0, 0, 1, 1)]:
        wide, high = -((left - width) // across), -((top - height) // down)
        if wide > 0 and high > 0:
            rows += b"".join(b"\0" + rng.randbytes((wide * channels * depth + 7) // 8) for _ in range(high))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    palette = chunk(b"PLTE", rng.randbytes(3 * 2 ** min(depth, 8))) if colour == 3 else b""
    body = chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + extra + body


def jpeg(mode: str, size: tuple[int, int], **options: object) -> bytes:
    """Return a JPEG of noise."""
    channels = len(Image.new(mode, (1, 1)).getbands())
    pixels = random.Random(7).randbytes(size[0] * size[1] * channels)
    out = io.BytesIO()
    Image.frombytes(mode, size, pixels).save(out, "JPEG", quality=95, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("head", "mime"),
    [
        (b"\x89PNG\r\n\x1a\n", PNG),
        (b"\x89PNG\r\n\x1a", None),
        (b"\xff\xd8\xff\xe0", JPEG),
        (b"\xff\xd8", None),
        (b"GIF87a", GIF),
        (b"GIF89a", GIF),
        (b"GIF88a", None),
        (b"RIFF\0\0\0\0WEBPVP8 ", WEBP),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"", None),
    ],
)
def test_image_mime(head: bytes, mime: str | None) -> None:
    assert image_mime(head) == mime


@pytest.mark.parametrize(
    ("name", "mime"),
    [
        ("a/b.mp3", "audio/mpeg"),
        ("x.tar.gz", "application/gzip"),
        ("data:x.mp3", "audio/mpeg"),
        ("http://h/x.mp3", "audio/mpeg"),
        ("none", None),
        ("d.mp3/none", None),
        ("odd\udcff.mp3", "audio/mpeg"),
        ("x.gz.unknown", None),
    ],
)
def test_mime_by_name(name: str, mime: str | None) -> None:
    assert mime_by_name(name) == mime


def test_mime_of() -> None:
    assert mime_of(b"%PDF-1.7\n\0", "x.mp3") == "application/pdf"
    assert mime_of(b"PK\x03\x04\x14\0", "x") == "application/zip"
    assert mime_of(b"\x1f\x8b\x08\0", "x") == "application/gzip"
    assert mime_of(b"\x07\0", "x.mp3") == "audio/mpeg"
    assert mime_of(b"\x07\0", "x") == "application/octet-stream"


def test_mime_of_any_head() -> None:
    """The signature library copes with heads of every length."""
    rng = random.Random(3)
    starts = [b"", b"PK\x03\x04", b"\0\0\0\x18ftyp", b"RIFF", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"\x1f\x8b", b"ID3"]
    for start in starts:
        for size in range(0, 600, 7):
            assert "/" in mime_of(start + rng.randbytes(size), "x")


def test_frame_of_png() -> None:
    assert frame(png(7, 5), PNG) == (7, 5)
    assert frame(png(7, 5)[:24], PNG) == (7, 5)
    assert frame(png(7, 5)[:23], PNG) is None
    assert frame(png(7, 5).replace(b"IHDR", b"IDAT"), PNG) is None
    assert frame(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 0, 5, 8, 2, 0, 0, 0)), PNG) is None


def test_frame_of_jpeg_is_not_the_thumbnails() -> None:
    thumbnail = jpeg("RGB", (16, 8))
    data = jpeg("RGB", (320, 200), exif=b"Exif\0\0MM\0*\0\0\0\x08\0\0" + thumbnail)
    assert thumbnail in data
    assert frame(data, JPEG) == (320, 200)
    assert frame(jpeg("L", (9, 4), progressive=True), JPEG) == (9, 4)


@pytest.mark.parametrize("cut", [2, 3, 5, 20, 60, 100])
def test_frame_of_a_damaged_jpeg(cut: int) -> None:
    assert frame(jpeg("L", (9, 4))[:cut], JPEG) is None


def test_frame_with_fill_bytes() -> None:
    data = jpeg("L", (9, 4))
    assert frame(data[:2] + b"\xff" * 9 + data[2:], JPEG) == (9, 4)


# --------------------------------------------------------------------------------------------------- made smaller

KINDS = [
    (1, 0),
    (2, 0),
    (4, 0),
    (8, 0),
    (16, 0),
    (8, 2),
    (16, 2),
    (1, 3),
    (2, 3),
    (4, 3),
    (8, 3),
    (8, 4),
    (16, 4),
    (8, 6),
    (16, 6),
]


def fits(data: bytes, mime: str, most: int) -> Image.Image:
    """Make it smaller, check all that holds for every image, answer it decoded."""
    before = frame(data, mime)
    assert before is not None
    fitted = fit(data, mime, most)
    assert len(fitted.data) <= most
    assert image_mime(fitted.data) == mime
    assert frame(fitted.data, mime) == (fitted.width, fitted.height)
    for side, was in zip((fitted.width, fitted.height), before, strict=True):
        assert 1 <= side < was or side == was == 1
    image = Image.open(io.BytesIO(fitted.data))
    image.load()
    assert image.size == (fitted.width, fitted.height)
    return image


@pytest.mark.parametrize(("depth", "colour"), KINDS)
@pytest.mark.parametrize("interlaced", [False, True])
def test_every_kind_of_png(depth: int, colour: int, interlaced: bool) -> None:
    data = png(90, 60, depth, colour, interlaced=interlaced)
    image = fits(data, PNG, len(data) * 2 // 3)
    assert abs(image.width / image.height - 1.5) < 0.1
    assert ("A" in image.mode) == (colour in (4, 6))


@pytest.mark.parametrize(
    ("depth", "colour", "key"), [(8, 0, 2), (16, 0, 2), (8, 2, 6), (16, 2, 6), (8, 3, 4), (1, 0, 2)]
)
def test_transparency_becomes_alpha(depth: int, colour: int, key: int) -> None:
    data = png(90, 60, depth, colour, extra=chunk(b"tRNS", b"\0" * key))
    assert "A" in fits(data, PNG, len(data) * 9 // 10).mode


def test_transparent_sixteen_bit_grey() -> None:
    """Only the exact value of the key is transparent, and the upper byte is what is shown."""
    rows = b"".join(b"\0" + b"\x80\x01" * 10 + b"\x80\x02" * 10 for _ in range(20))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 20, 20, 16, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")
    data = b"\x89PNG\r\n\x1a\n" + header + chunk(b"tRNS", b"\x80\x01") + body
    image = fits(data, PNG, len(data) - 1)
    assert image.mode == "LA"
    assert image.getpixel((1, 5))[1] == 0
    assert image.getpixel((image.width - 2, 5)) == (0x80, 255)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_every_kind_of_jpeg(mode: str, progressive: bool) -> None:
    data = jpeg(mode, (400, 300), progressive=progressive)
    image = fits(data, JPEG, len(data) // 3)
    assert image.mode == mode
    assert abs(image.width / image.height - 4 / 3) < 0.05


@pytest.mark.parametrize("size", [(1, 5000), (5000, 1), (2, 3000), (1, 1), (3, 3), (1, 2)])
def test_every_shape(size: tuple[int, int]) -> None:
    data = png(*size)
    assert fits(png(*size, extra=chunk(b"tEXt", b"k\0" + b"x" * 5000)), PNG, max(len(data) * 2 // 3, 80))


def test_what_is_left_may_be_little() -> None:
    data = png(60, 60)
    assert fits(data, PNG, 90).size < (8, 8)
    with pytest.raises(CannotFitError, match="one pixel"):
        fit(data, PNG, 40)
    with pytest.raises(CannotFitError, match="one pixel"):
        fit(data, PNG, 0)


def test_large_metadata_does_not_cost_pixels() -> None:
    data = png(60, 40, extra=chunk(b"tEXt", b"k\0" + b"x" * 100_000))
    assert fits(data, PNG, 50_000).size >= (50, 34)


def test_orientation_is_kept() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "a description"
    data = jpeg("RGB", (300, 200), exif=exif)
    assert dict(fits(data, JPEG, len(data) // 2).getexif()) == {0x0112: 6}
    broken = data.replace(b"Exif\0\0", b"Exif\0\1")
    assert dict(fits(broken, JPEG, len(data) // 2).getexif()) == {}


def test_profile_is_kept_where_it_fits() -> None:
    data = jpeg("RGB", (300, 200), icc_profile=b"p" * 500)
    assert fits(data, JPEG, len(data) // 2).info["icc_profile"] == b"p" * 500
    assert "icc_profile" not in fits(data, JPEG, 900).info


def test_too_many_pixels_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolserver.images.scaling._decoded", lambda *_: pytest.fail("decoded"))
    header = struct.pack(">IIBBBBB", MAX_PIXELS // 1000 + 1, 1000, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"x") + chunk(b"IEND", b"")
    with pytest.raises(CannotFitError, match="not decoded"):
        fit(data, PNG, 10)


def test_a_second_header_does_not_smuggle_pixels_in() -> None:
    """The header that was checked is the one that counts."""
    more = chunk(b"IHDR", struct.pack(">IIBBBBB", 20_000, 20_000, 8, 2, 0, 0, 0))
    with pytest.raises(CannotFitError, match="damaged"):
        fit(png(10, 10, extra=more), PNG, 100)


@pytest.mark.parametrize("seed", range(60))
def test_damage(seed: int) -> None:
    """Whatever is broken: smaller, or our own error, and no warning (warnings are errors here)."""
    rng = random.Random(seed)
    exif = Image.Exif()
    exif[0x0112] = 3
    whole, mime = (png(40, 30, *rng.choice(KINDS)), PNG) if seed % 2 else (jpeg("RGB", (60, 40), exif=exif), JPEG)
    data = bytearray(whole)
    for _ in range(rng.randrange(1, 12)):
        at = rng.randrange(2 if mime == JPEG else 8, len(data))
        match rng.randrange(3):
            case 0:
                data[at] = rng.randrange(256)
            case 1:
                del data[at : at + rng.randrange(1, 60)]
            case _:
                data[at:at] = rng.randbytes(rng.randrange(1, 30))
    with contextlib.suppress(CannotFitError):
        assert len(fit(bytes(data), mime, 1000).data) <= 1000
