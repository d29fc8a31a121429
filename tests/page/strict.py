"""A strict reader of pages: every tag closed in order, ids unique, every link inside lands, nothing from outside."""

import re
from html.parser import HTMLParser

VOID = {"meta", "wbr", "input", "br", "link", "img", "hr", "base"}
SECTIONS = ["session", "summary", "hypotheses", "experiments", "validation", "findings", "next"]
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
BLOCKS = {
    "p",
    "div",
    "ul",
    "ol",
    "dl",
    "table",
    "pre",
    "section",
    "article",
    "figure",
    "details",
    "h1",
    "h2",
    "h3",
    "fieldset",
}


class Page(HTMLParser):
    """A parsed page; `faults` says what is wrong with it."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.html = html
        self.faults, self.ids, self.links, self.tags, self.words = [], [], [], [], []
        self.attributes = []
        self._open = []
        self.feed(html)
        self.close()
        if self._open:
            self.faults.append(f"never closed: {self._open}")

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(names) != len(set(names)):
            self.faults.append(f"{tag} has an attribute twice: {names}")
        if tag in BLOCKS and "p" in self._open:
            self.faults.append(f"{tag} inside p at {self.getpos()}")
        values = dict(attrs)
        self.tags.append(tag)
        self.attributes.append((tag, values))
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        for name in names:
            if name.startswith("on") or name in {"style", "src", "srcset", "action", "formaction", "xlink:href"}:
                self.faults.append(f"{tag} has the attribute {name}")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.faults.append(f"{tag} is closed by a slash at {self.getpos()}")

    def handle_endtag(self, tag):
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1:]} at {self.getpos()}")
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        if self._open and self._open[-1] not in {"style", "script"}:
            self.words.append(data)

    @property
    def text(self):
        """All words of the page."""
        return " ".join("".join(self.words).split())


def check(html):
    """The page, read strictly.

    Raises:
        AssertionError: it is not what a page has to be.
    """
    assert html.startswith('<!doctype html>\n<html lang="en"'), html[:80]
    assert html.rstrip().endswith("</html>")
    page = Page(html)
    assert page.faults == []
    twice = {i for i in page.ids if page.ids.count(i) > 1}
    assert not twice, f"ids used twice: {sorted(twice)[:5]}"
    known = set(page.ids)
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in known, f"{link} leads nowhere"
        else:
            assert re.fullmatch(r"[A-Za-z0-9._~%/-]+(#[a-z0-9]+)?", link), f"an address of a strange form: {link!r}"
            assert not link.startswith(("/", "//")) and ".." not in link.split("/"), link
    for tag, values in page.attributes:
        for name in ("aria-labelledby", "aria-describedby", "for"):
            for target in (values.get(name) or "").split():
                assert target in known, f"{tag} {name}={target} leads nowhere"
    assert page.tags.count("script") == 1 and page.tags.count("style") == 1
    assert not {"img", "iframe", "object", "embed", "link", "base", "form", "video", "audio"} & set(page.tags)
    for tag, values in page.attributes:
        assert not [v for v in values.values() if v and "://" in v and "title" not in values], (tag, values)
    own = "".join(re.findall(r"<style>.*?</style>|<script>.*?</script>", html, flags=re.S))
    assert own and "http:" not in own and "https:" not in own and "url(" not in own and "@import" not in own
    assert CONTROL.search(html) is None, repr(CONTROL.search(html))
    assert "default-src 'none'" in html
    return page


def sections(page):
    """The ids of the page's sections in order."""
    return [values["id"] for tag, values in page.attributes if tag == "section" and "id" in values]
