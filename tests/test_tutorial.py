"""The README's tutorial: every command and the Python block are run as written, in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def tutorial_blocks() -> list[tuple[str, str]]:
    text = (ROOT / "README.md").read_text("utf-8")
    section = text.split("## Ten minutes")[1].split("\n## ")[0]
    return re.findall(r"```(console|python)\n(.*?)```", section, flags=re.DOTALL)


def test_every_command_of_the_tutorial_runs(tmp_path):
    blocks = tutorial_blocks()
    assert len([kind for kind, _ in blocks if kind == "console"]) >= 5
    binaries = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}"}
    printed = ""
    for kind, body in blocks:
        command = ["bash", "-euo", "pipefail", "-c", body]
        if kind == "python":
            command = [sys.executable, "-c", body]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=600, env=environment
        )
        assert done.returncode == 0, f"{body}\n{done.stderr}"
        printed += done.stdout
    assert "TIE" in printed and "SMOOTHING" in printed
    assert (tmp_path / "tutorial" / "figures" / "lambda_plane.png").exists()
    assert (tmp_path / "tutorial" / "simulate.csv").exists()


def test_every_command_that_the_readme_names_exists():
    from oversmoothing.commands import SUMMARIES

    text = (ROOT / "README.md").read_text("utf-8")
    assert set(re.findall(r"oversmoothing ([a-z]+)", text)) <= set(SUMMARIES)
