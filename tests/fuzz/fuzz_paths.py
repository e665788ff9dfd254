"""`_fast.paths.collapse` against the same rule in Python."""

from toolserver._fast.paths import collapse


def model(path: bytes) -> bytes | None:
    out: list[bytes] = []
    for name in path.split(b"/"):
        if name == b"..":
            if not out:
                return None
            out.pop()
        elif name not in (b"", b"."):
            out.append(name)
    return b"/".join(out)


def target(data: bytes) -> None:
    assert collapse(data) == model(data)
