"""Every Python block of docs/python.md and README.md runs, and so does the notebook in examples/."""

import pathlib
import re

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(path):
    return re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S)


@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = blocks(ROOT / page)
    assert shown
    names = {}
    for block in shown:
        exec(compile(block, page, "exec"), names)


def test_notebook_runs(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.read(ROOT / "examples" / "attention.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)
