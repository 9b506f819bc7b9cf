#!/usr/bin/env python3
"""Makes the folder that the site is built from, of the documents as they are in the repository.

Links between documents become links between pages. A link to a source file, of which the site has no copy, becomes the file's path.
The menu groups the pages by what a reader wants to do; a page that no group has stands in the last one."""

import argparse
import json
import pathlib
import re
import shutil

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Pages from outside docs, by their names in the site.
OTHERS = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md",
          "SECURITY.md": "security.md", "python/README.md": "python.md", "crates/wasm/npm/README.md": "javascript.md", "go/README.md": "go.md"}
MENU = {
    "Start": ["index", "install"],
    "Files": ["protect", "backups", "filesystems"],
    "Volumes": ["volumes", "gateway", "network", "promotion"],
    "Programs": ["embedding", "python", "javascript", "go"],
    "Codes": ["codes", "optimiser", "dpg", "lt"],
    "Measured": ["speed", "papers", "reproduced", "errata", "tried"],
    "Project": ["architecture", "decisions", "contributing", "security", "changelog"],
}
TITLES = {"index": "Paritas", "javascript": "JavaScript", "python": "Python", "go": "Go", "dpg": "Delayed parity", "lt": "LT codes", "promotion": "Promotion",
          "embedding": "C, Python, drop-ins", "protect": "Parity beside files", "filesystems": "File systems", "errata": "Errata of the papers",
          "tried": "What did not pay", "reproduced": "The papers' tables", "papers": "The papers today", "backups": "Backups"}
# Inside the site, the explorer is there.
BUILT = "`scripts/site`\nbuilds these documents as a site, with an explorer in which you remove nodes by a click and see how a code recovers them."
EXPLORER = 'in the\n<a href="explorer/index.html">explorer</a>, you remove nodes by a click and see how a code recovers them.'
# What is inside an item of a list is indented by four spaces there, and by two or three on GitHub.
INNER = re.compile(r"^ {2,3}(?=\S)", re.M)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def documents() -> dict[pathlib.Path, str]:
    """Returns the files that become part of the site, and their names there."""
    found = {ROOT / path: name for path, name in OTHERS.items() if (ROOT / path).exists()}
    found.update({path: path.name for path in sorted((ROOT / "docs").iterdir()) if path.suffix in (".md", ".svg", ".json", ".png")})
    return found


def page(path: pathlib.Path, pages: dict[pathlib.Path, str]) -> str:
    """Returns a document with the links of the site."""

    def link(match: re.Match) -> str:
        picture, text, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match.group(0)
        file, _, part = target.partition("#")
        wanted = (path.parent / file).resolve()
        if wanted in pages:
            return f"{picture}[{text}]({pages[wanted]}{'#' + part if part else ''})"
        if not wanted.exists():
            raise SystemExit(f"{path.relative_to(ROOT)}: there is no {target}")
        place = wanted.relative_to(ROOT)
        return f"{text} (`{place}`)" if text.strip("`") != str(place) else f"`{place}`"

    text = path.read_text()
    if path == ROOT / "README.md":
        if BUILT not in text:
            raise SystemExit("README.md does not say how the explorer is built; see pages.py")
        text = text.replace(BUILT, EXPLORER)
    # What stands in a block of code is no link.
    parts = re.split(r"(^```.*?^```|^    .*?$)", text, flags=re.M | re.S)
    # What is typed and what is printed stand there together, so they are not to be copied.
    parts = [part.replace("```console", "``` {.console .no-copy}", 1) if at % 2 else part for at, part in enumerate(parts)]
    parts = [part if at % 2 else INNER.sub("    ", LINK.sub(link, part)) for at, part in enumerate(parts)]
    return "".join(parts)


def title(name: str, text: str) -> str:
    return TITLES.get(name) or re.search(r"^# (.+)$", text, re.M)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=pathlib.Path, help="folder to make")
    target = parser.parse_args().target
    shutil.rmtree(target, ignore_errors=True)
    (target / "docs").mkdir(parents=True)
    pages = documents()
    titles = {}
    for path, name in pages.items():
        if path.suffix != ".md":
            shutil.copy(path, target / "docs" / name)
            continue
        text = page(path, pages)
        (target / "docs" / name).write_text(text)
        titles[name.removesuffix(".md")] = title(name.removesuffix(".md"), text)
    shutil.copy(ROOT / "site" / "site.css", target / "docs" / "site.css")
    menu = {group: [name for name in names if name in titles] for group, names in MENU.items()}
    menu["Project"] += sorted(set(titles) - {name for names in menu.values() for name in names})
    nav = [{group: [{titles[name]: f"{name}.md"} for name in names]} for group, names in menu.items() if names]
    nav.insert(1, {"Explorer": "explorer/index.html"})
    config = (ROOT / "site" / "mkdocs.yml").read_text()
    # JSON is YAML.
    (target / "mkdocs.yml").write_text(f"{config}nav: {json.dumps(nav)}\n")


if __name__ == "__main__":
    main()
