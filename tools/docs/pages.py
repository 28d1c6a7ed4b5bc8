"""Hooks of mkdocs: pages from outside docs/, and links between all of them.

The documents link to each other by paths in the repository, so that they read well in a clone too. A site has other
paths: this file adds README.md, ARCHITECTURE.md, CHANGELOG.md, CONTRIBUTING.md and the READMEs of folders as pages,
turns each link between documents into the site's, and each link to source into the source's path. A link to a file
that does not exist fails the build. Words after a code block's language are for the tests that run the block: they go.
"""

import os
import pathlib
import re

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
CODE = ("build", ".git")

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|`[^`]*`)*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"\s*```\S*")
SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*:")


def folder_readmes():
    """READMEs below the root, as paths in the repository."""
    for path, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if name not in CODE and not name.startswith("."))
        if "README.md" in names and pathlib.Path(path) != ROOT:
            yield (pathlib.Path(path) / "README.md").relative_to(ROOT)


def page_of(source, site_path, config):
    page = File(site_path, str(ROOT), config["site_dir"], config["use_directory_urls"])
    page.abs_src_path = str(ROOT / source)
    return page


def on_files(files, config):
    for name in TOP:
        files.append(page_of(name, name, config))
    for readme in folder_readmes():
        files.append(page_of(readme, f"source/{readme}", config))
    return files


def resolve(target, page, pages):
    """The site's form of a link's target, or None for a file that is no page."""
    path, hash_sign, anchor = target.partition("#")
    if SCHEME.match(target) or not path:
        return target
    source = (pathlib.Path(page.file.abs_src_path).parent / path).resolve()
    if not source.exists():
        raise PluginError(f"{page.file.abs_src_path}: the link {target} leads to no file")
    found = pages.get(source) or pages.get(source / "README.md")
    if not found:
        return None
    return os.path.relpath(found.src_path, os.path.dirname(page.file.src_path)) + hash_sign + anchor


def on_page_markdown(markdown, page, config, files):
    pages = {pathlib.Path(file.abs_src_path): file for file in files if file.src_path.endswith(".md")}

    def replace(match):
        text, target = match.groups()
        link = resolve(target, page, pages)
        if link:
            return f"[{text}]({link})"
        source = (pathlib.Path(page.file.abs_src_path).parent / target.partition("#")[0]).resolve().relative_to(ROOT)
        return text if str(source).endswith(text.strip("`/")) else f"{text} (`{source}`)"

    lines, fenced = [], False
    for line in markdown.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = FENCE.match(line)[0]
        lines.append(line if fenced else LINK.sub(replace, line))
    return "\n".join(lines)


def on_nav(nav, config, files):
    listed = {page.file.src_path for page in nav.pages}
    missing = [file.src_path for file in files.documentation_pages()
               if file.src_path not in listed and not file.src_path.startswith("source/")]
    if missing:
        raise PluginError(f"the nav of mkdocs.yml lacks {', '.join(missing)}")
    return nav
