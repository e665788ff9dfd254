"""What `make wheel` makes: installed alone into an empty environment it serves, without compiler and Cython."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from kit import serving

ROOT = pathlib.Path(__file__).parents[2]
KERNELS = {path.stem for path in (ROOT / "src/_fast").glob("*.pyx")}
LIBRARIES = {path.stem for path in (ROOT / "src/_fast").glob("*.c")}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Both distributions, made from a copy, so that nothing built in the work tree can help."""
    where = tmp_path_factory.mktemp("wheel")
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    copy = where / "copy"
    for name in names.splitlines():
        source = ROOT / name
        if source.is_symlink() or source.is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy / name, follow_symlinks=False)
    command = ["make", "-s", "-o", "build", "wheel", f"BIN={pathlib.Path(sys.executable).parent}"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return copy / "dist"


def test_contents(dist: pathlib.Path) -> None:
    """The wheel has the kernels built and their stubs, no source of theirs; the source distribution the reverse."""
    [wheel] = dist.glob("*.whl")
    inside = zipfile.ZipFile(wheel).namelist()
    built = {name.split("/")[-1].split(".")[0] for name in inside if name.endswith(".so")}
    assert built == KERNELS | LIBRARIES
    assert {pathlib.PurePath(name).stem for name in inside if name.endswith(".pyi")} == KERNELS
    assert "toolserver/py.typed" in inside
    assert not [name for name in inside if name.endswith((".pyx", ".cpp", ".c", ".h"))]
    assert not [name for name in inside if not name.startswith(("toolserver/", "toolserver-"))]
    [source] = dist.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = archive.getnames()
    assert {pathlib.PurePath(name).stem for name in names if name.endswith(".pyx")} == KERNELS
    assert {pathlib.PurePath(name).stem for name in names if name.endswith(".c")} == LIBRARIES
    assert not [name for name in names if name.endswith((".so", ".cpp"))]


def test_serves_from_an_empty_environment(
    dist: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installed without gcc on PATH, from wheels alone, it answers a read."""
    [wheel] = dist.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    scripts = tmp_path / "env" / "bin"
    bare = {**os.environ, "PATH": str(scripts)}
    bare.pop("PYTHONPATH", None)
    command = [scripts / "python", "-m", "pip", "install", "-q", "--only-binary", ":all:", wheel]
    done = subprocess.run(command, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [scripts / "python", "-m", "pip", "list"], env=bare, check=True, capture_output=True, text=True
    ).stdout
    assert "toolserver" in listed
    assert "cython" not in listed.lower()
    monkeypatch.setenv("TOOLSERVER_BIN", str(scripts / "toolserver"))
    monkeypatch.setenv("PATH", str(scripts))
    with serving() as server:
        server.put("f.txt", "hello\n")
        assert server.ok("read", path="f.txt")["content"] == "1\thello"
