"""Lay the book of a release beside those of earlier ones, for the release workflow:

python .github/publish_docs.py HTML SITE VERSION ADDRESS

HTML is a built book, SITE the folder that ADDRESS shows. The book goes to SITE/VERSION; the theme's
switcher in every book reads SITE/switcher.json, and SITE/index.html leads to the newest.
"""

import json
import re
import shutil
import sys
from pathlib import Path

FINAL = re.compile(r"\d+(\.\d+)*")


def order(version: str) -> tuple[bool, list[int]]:
    """What sorts versions: those before a release (1.2rc1) below all releases."""
    return bool(FINAL.fullmatch(version)), [int(part) for part in re.findall(r"\d+", version)]


def publish(html: Path, site: Path, version: str, address: str) -> list[str]:
    """Copy the book, write the two files; the versions that the site now has, newest first."""
    if not (html / "index.html").exists():
        raise SystemExit(f"{html} holds no book: make docs")
    target = site / version
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(html, target)
    versions = sorted((page.parent.name for page in site.glob("*/index.html")), key=order)[::-1]
    entries = [
        {
            "name": each,
            "version": each,
            "url": f"{address}/{each}/",
            "preferred": each == versions[0],
        }
        for each in versions
    ]
    (site / "switcher.json").write_text(json.dumps(entries, indent=1) + "\n", "utf-8")
    to = f"{versions[0]}/index.html"
    (site / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>oversmoothing</title>'
        f'<meta http-equiv="refresh" content="0; url={to}"><a href="{to}">The book</a>\n',
        "utf-8",
    )
    # Folders that begin with _ hold the style of the pages.
    (site / ".nojekyll").touch()
    return versions


if __name__ == "__main__":
    print(*publish(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
