"""The documentation as a site: each link leads to a page and a heading, and no page loads anything from elsewhere."""

import html.parser
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Page(html.parser.HTMLParser):
    """Links, loaded resources and anchors of one page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if attrs.get("id"):
            self.anchors.add(attrs["id"])
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        if tag in ("script", "img", "iframe") and attrs.get("src"):
            self.loads.append(attrs["src"])
        if tag == "link" and attrs.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loads.append(attrs["href"])


def problems_of(site):
    """What is wrong with the pages below a folder, one sentence each."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    for path, page in pages.items():
        name = path.relative_to(site)
        for load in page.loads:
            if urllib.parse.urlsplit(load).netloc:
                yield f"{name} loads {load} from elsewhere"
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            anchor = urllib.parse.unquote(parts.fragment)
            if not target.exists():
                yield f"{name} links to {link}, which does not exist"
            elif anchor and target in pages and anchor not in pages[target].anchors:
                yield f"{name} links to {link}: the page has no such heading"


def check_the_check(folder):
    """A page with one fault of each kind yields one sentence for each."""
    (folder / "a.html").write_text('<p id="x"><a href="#y">1</a><a href="b.html">2</a><a href="#x">3</a>'
                                   '<script src="https://example.com/s.js"></script>')
    found = list(problems_of(folder))
    assert len(found) == 3, found


def main():
    with tempfile.TemporaryDirectory() as made:
        check_the_check(pathlib.Path(made))
    with tempfile.TemporaryDirectory() as made:
        site = pathlib.Path(made).resolve()
        built = subprocess.run(["mkdocs", "build", "-q", "--strict", "-f", ROOT / "mkdocs.yml", "-d", site], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if built.returncode:
            sys.exit(f"mkdocs fails:\n{built.stdout}")
        found = list(problems_of(site))
        assert (site / "network-policy.html").exists() and (site / "ARCHITECTURE.html").exists()
    for problem in found:
        print(problem)
    sys.exit(1 if found else 0)


main()
