#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stage.py [FOLDER] - write the pages of the manual, and MkDocs' configuration for them, to FOLDER (build/site).

The pages are docs/, the documents of the project (README.md ...), and references made from the headers, the Python package and the sources. A link
that leaves docs/ leads to the page made of its target: a header's reference, or the text of a file. The navigation is the list `nav` in mkdocs.yml:
every page of docs/ has an entry there, except in folders that `not_in_nav` names. An entry with the comment `# to come` may lack its page.
"""
import os
import pathlib
import re
import shutil
import sys

import headers
import messages
import pyreference

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
REFERENCES = {  # page: (title, first sentence)
    "nccl.h": ("Reference of nccl.h", "NCCL's functions, made from `include/nccl.h`."),
    "nccl_device.h": ("Reference of nccl_device.h", "The host part of NCCL's device API, made from `include/nccl_device.h`."),
    "kolo.h": ("Reference of kolo.h", "Kolo's additions to NCCL: devices, streams, events, graphs, memory and jobs; made from `include/kolo.h`."),
    "koloplan.h": ("Reference of koloplan.h", "Plans for clusters and answers about them; made from `include/koloplan.h`."),
}
MADE_BY = {"tools/site/messages.py": "reference/messages.md", "tools/site/pyreference.py": "reference/kolocc.md",
           **{f"include/{h}": f"reference/{h.removesuffix('.h')}.md" for h in REFERENCES}}
LINK = re.compile(r"(\]\()(?!\w+:)([^)#\s]*)(#[^)\s]+)?(\))")
LANGUAGES = {".c": "c", ".h": "c", ".cu": "cuda", ".py": "python", ".sh": "sh", ".yml": "yaml", ".yaml": "yaml"}


class Fault(Exception):
    """Something in the sources of the manual that a person has to correct; the text says where."""


# ---- navigation ----

def navigation(text):
    """(line number, page, is to come) of each entry of `nav`."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\S", line) and not line.startswith("#"):
            inside = line.startswith("nav:")
        m = re.match(r"\s+- (?:.*: )?([\w./-]+\.md)\s*(# to come)?", line) if inside else None
        if m:
            yield number, m.group(1), bool(m.group(2))


def left_out(text):
    """The folders of `not_in_nav`."""
    block = re.search(r"^not_in_nav: \|\n((?:  .*\n?)+)", text, re.M)
    return [line.strip().lstrip("/") for line in block.group(1).splitlines()] if block else []


def check_navigation(text, pages, docs):
    """Every page of docs/ has an entry, and every entry a page."""
    entries = list(navigation(text))
    listed = {page for _, page, _ in entries}
    free = left_out(text)
    missing = sorted(p for p in docs if p not in listed and not any(p.startswith(f) for f in free))
    faults = [f"docs/{p} is not in the navigation: add it to the list `nav` in mkdocs.yml" for p in missing]
    faults += [f"mkdocs.yml:{n}: there is no page {p}; write it, take the entry out, or mark it `# to come`"
               for n, p, to_come in entries if p not in pages and not to_come]
    twice = [p for p in listed if sum(p == q for _, q, _ in entries) > 1]
    faults += [f"mkdocs.yml: {p} is in the navigation twice" for p in twice]
    if faults:
        raise Fault("\n".join(faults))


def without_absent(text, pages):
    """The configuration without entries to come whose pages are not there."""
    absent = {n for n, page, _ in navigation(text) if page not in pages}
    return "".join(line for n, line in enumerate(text.splitlines(True), 1) if n not in absent)


# ---- pages ----

class Site:
    """Pages by their path in the site, made on demand: a link to a file of the project makes a page of it."""

    def __init__(self, root=ROOT):
        self.root = pathlib.Path(root)
        self.pages = {}   # path: text
        self.files = {}   # path: file to copy

    def page_of(self, path):
        """The page for a file or folder of the project, given relative to its root."""
        if path in MADE_BY:
            return MADE_BY[path]
        if path.startswith("docs/"):
            return path.removeprefix("docs/")
        if path.endswith(".md"):
            page = "project/" + path.replace("/", "-").lower()
            if page not in self.pages:
                self.pages[page] = ""  # a link back to it ends here
                self.pages[page] = self.converted(path, page)
            return page
        page = f"source/{path}.md"
        if page not in self.pages:
            self.pages[page] = ""
            self.pages[page] = self.folder(path, page) if (self.root / path).is_dir() else self.source(path)
        return page

    def source(self, path):
        kind = LANGUAGES.get(pathlib.Path(path).suffix, "text")
        return f"# {path}\n\n````{kind}\n{(self.root / path).read_text(encoding='utf-8')}````\n"

    def folder(self, path, page):
        files = sorted(p.relative_to(self.root).as_posix() for p in (self.root / path).rglob("*") if p.is_file())
        links = [f"- [{f}]({os.path.relpath(self.page_of(f), os.path.dirname(page))})" for f in files if is_text(self.root / f)]
        return f"# {path}\n\n" + "\n".join(links) + "\n"

    def target(self, path, page, link):
        """The link on `page` for a link in the file `path`."""
        there = os.path.normpath(os.path.join(os.path.dirname(path), link))
        if not (self.root / there).exists():
            raise Fault(f"{path}: a link to {link}, which does not exist")
        if there.startswith("docs/") and (self.root / there).is_dir():
            there += "/README.md"
        return os.path.relpath(self.page_of(there), os.path.dirname(page) or ".")

    def converted(self, path, page):
        """A document as a page: its links lead to pages, and lists are told from paragraphs as MkDocs wants it."""
        text = (self.root / path).read_text(encoding="utf-8")
        out, fenced, last = [], False, ""
        for line in text.split("\n"):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced:
                parts = re.split(r"(`[^`]*`)", line)
                joined = "".join(p if p.startswith("`") else "\0" * len(p) for p in parts)
                line = LINK.sub(lambda m: m.group(0) if joined[m.start()] != "\0" or not m.group(2) else
                                m.group(1) + self.target(path, page, m.group(2)) + (m.group(3) or "") + m.group(4), line)
                if re.match(r"([-*]|\d+\.) ", line) and last.strip() and not re.match(r"([-*]|\d+\.) |\s", last):
                    out.append("")
            out.append(line)
            last = line
        return "\n".join(out)

    def make(self):
        table = headers.since()
        for name, (title, lead) in REFERENCES.items():
            self.pages[MADE_BY[f"include/{name}"]] = headers.page(headers.parse(self.root / "include" / name), table, title, lead)
        self.pages["reference/kolocc.md"] = pyreference.page(self.root / "python/kolocc", self.root / "python/src")
        self.pages["reference/messages.md"] = messages.page(self.root)
        documents = {p.relative_to(self.root).as_posix(): p for p in sorted((self.root / "docs").rglob("*")) if p.is_file()}
        for path, file in documents.items():
            if file.suffix == ".md":
                self.pages[self.page_of(path)] = self.converted(path, self.page_of(path))
            else:
                self.files[self.page_of(path)] = file
        for path in PROJECT:
            self.page_of(path)
        return {self.page_of(p) for p in documents if p.endswith(".md")}


def is_text(path):
    try:
        path.read_text(encoding="utf-8")
        return True
    except UnicodeDecodeError:
        return False


def write(to, text):
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text, encoding="utf-8")


def main(folder="build/site"):
    site, to = Site(), pathlib.Path(folder)
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    try:
        check_navigation(config, site.pages, site.make())
    except Fault as fault:
        sys.exit(str(fault))
    shutil.rmtree(to, ignore_errors=True)
    for page, text in site.pages.items():
        write(to / "pages" / page, text)
    for page, file in site.files.items():
        (to / "pages" / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, to / "pages" / page)
    write(to / "mkdocs.yml", without_absent(config, site.pages))
    shutil.copyfile(pathlib.Path(__file__).with_name("hooks.py"), to / "hooks.py")
    shutil.copyfile(pathlib.Path(__file__).with_name("site.css"), to / "pages/site.css")
    print(f"{len(site.pages)} pages in {to}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
