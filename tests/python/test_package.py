"""The package itself: types, what is public, and what a missing system library says."""

import importlib.resources
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import fovea

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_types_are_shipped():
    files = importlib.resources.files("fovea")
    assert (files / "py.typed").is_file() and "def attention(" in (files / "_core.pyi").read_text()


def test_types_are_those_of_the_module():
    stub = (importlib.resources.files("fovea") / "_core.pyi").read_text()
    for name in ("attention", "Call", "Folder", "Mask", "train"):
        found = getattr(fovea._core, name)
        assert re.search(rf"^(def|class) {name}\b", stub, re.M)
        for member in dir(found) if isinstance(found, type) else ():
            assert member.startswith("_") or re.search(rf"^    def {member}\(", stub, re.M), f"{name}.{member}"


def test_types_of_trainings_name_every_task():
    import fovea.train

    stub = (importlib.resources.files("fovea") / "train.pyi").read_text()
    assert [line.split(":")[0] for line in stub.splitlines() if line.endswith(": Training")] == fovea.train.__all__[2:]


def test_public_names_exist():
    for name in fovea.__all__:
        assert getattr(fovea, name) is not None
    with pytest.raises(AttributeError):
        fovea.nothing


def test_python_without_the_gil_is_refused():
    script = "import sys; sys._is_gil_enabled = lambda: False; import fovea"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.returncode != 0
    assert "ImportError: fovea: this Python runs without the GIL" in found.stderr


def test_a_missing_library_is_one_line_with_the_command(tmp_path):
    if not shutil.which("cmake") or not shutil.which("pkg-config") or not shutil.which("ninja"):
        pytest.skip("cmake, ninja or pkg-config is not installed")
    fake = tmp_path / "bin" / "pkg-config"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\ncase "$*" in *sentencepiece*|*pangocairo*) exit 1;; esac\nexec {shutil.which("pkg-config")} "$@"\n')
    fake.chmod(0o755)
    command = ["cmake", "-S", str(ROOT), "-B", str(tmp_path / "build"), "-G", "Ninja", "-DFOVEA_BUILD_PYTHON=ON",
               f"-DPython_EXECUTABLE={sys.executable}"]
    found = subprocess.run(command, env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}, capture_output=True,
                           text=True)
    assert found.returncode != 0
    assert "run: sudo apt-get install libsentencepiece-dev libpango1.0-dev\n" in found.stderr
