"""The page in a real browser: no request leaves it, no script error, refresh, links, contrast, roles, no JS, print."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from debug_spyre.page.io import page
from debug_spyre.session import events as ev

pytestmark = pytest.mark.browser

CONTRAST = """
(() => {
  const rgb = (text) => { const c = document.createElement("canvas").getContext("2d"); c.fillStyle = text; c.fillRect(0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((a, v, i) => a + v * [.2126, .7152, .0722][i], 0);
  const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return rgb(getComputedStyle(document.documentElement).colorScheme === "dark" ? "#000" : "#fff"); };
  const bad = [];
  let looked = 0, least = 99;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const e = node.parentElement, style = getComputedStyle(e);
    if (!node.data.trim() || ["SCRIPT", "STYLE", "TITLE", "DESC"].includes(e.tagName.toUpperCase()) || !e.getClientRects().length || style.visibility === "hidden" || e.closest(".vh, .skip")) continue;
    const ink = rgb(e instanceof SVGElement ? style.fill : style.color), under = ground(e), found = ratio(ink, under);
    looked += 1;
    least = Math.min(least, found);
    if (found < 4.5) bad.push([node.data.trim().slice(0, 40), found.toFixed(2), e.tagName, e.getAttribute("class")]);
  }
  for (const e of document.querySelectorAll("svg path.fg, svg path.fr, svg path.fa, svg path.fx, svg path.sr, svg path.sa")) {
    const style = getComputedStyle(e), ink = rgb(/^s/.test(e.getAttribute("class")) ? style.stroke : style.fill), found = ratio(ink, ground(e.closest("svg").parentElement));
    looked += 1;
    if (found < 3) bad.push(["picture", found.toFixed(2), e.getAttribute("class")]);
  }
  return {bad: bad.slice(0, 12), looked, least};
})()
"""


def address(folder, query=""):
    return folder.html.absolute().as_uri() + query


@pytest.fixture
def tab(browser):
    """Opens tabs and closes them."""
    made = []

    def open_tab(where, **more):
        made.append(browser.open(where, **more))
        return made[-1]

    yield open_tab
    for one in made:
        one.close()


@pytest.mark.parametrize("ending", ["investigating", "resolved", "blocked", "hostile"])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
def test_no_request_leaves_the_page_and_no_script_complains(pages, tab, browser, ending, scripts):
    where = address(pages[ending])
    opened = tab(where, scripts=scripts)
    browser.pump(0.3)
    assert set(opened.requests) == {where}
    assert opened.errors == []
    assert opened.dialogs == []


def test_hostile_content_is_inert(pages, tab):
    opened = tab(address(pages["hostile"]))
    opened.ask("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    assert (
        opened.ask(
            "document.querySelectorAll('img, iframe, object, embed, form, base, link, [onerror], [onclick], [style]').length"
        )
        == 0
    )
    assert opened.ask("document.scripts.length") == 1
    assert opened.ask("[...document.links].every((a) => a.protocol === 'file:')")
    assert opened.ask(
        "document.body.innerText.includes('</script><script>alert(1)</script><img src=x onerror=alert(2)>')"
    )
    assert opened.ask("document.documentElement.scrollWidth <= innerWidth")
    assert opened.dialogs == [] and opened.errors == []


def test_an_injected_script_or_style_would_be_refused_by_the_policy(pages, tab, browser):
    opened = tab(address(pages["shut"]))
    opened.ask(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.hit = 1'; document.body.append(s); })()"
    )
    opened.ask(
        "(() => { const i = document.createElement('img'); i.src = 'https://example.test/x.png'; document.body.append(i); })()"
    )
    opened.ask("(() => { document.body.setAttribute('style', 'color: red'); })()")
    browser.pump(0.3)
    assert opened.ask("window.hit") is None
    assert not [r for r in opened.requests if "example.test" in r and not _blocked(opened, r)]
    assert opened.ask("getComputedStyle(document.body).color") != "rgb(255, 0, 0)"
    assert len(opened.errors) >= 3


def _blocked(opened, url):
    failed = [e["params"] for e in opened.browser.events if e["method"] == "Network.loadingFailed"]
    wanted = [
        e["params"]["requestId"]
        for e in opened.browser.events
        if e["method"] == "Network.requestWillBeSent" and e["params"]["request"]["url"] == url
    ]
    return any(f["requestId"] in wanted and f.get("blockedReason") == "csp" for f in failed)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize("width", [1400, 420])
def test_every_link_inside_the_page_lands_in_sight(pages, tab, scripts, width):
    opened = tab(address(pages["shut"]), scripts=scripts, width=width)
    targets = opened.ask(
        "[...new Set([...document.querySelectorAll('a[href^=\"#\"]')].map((a) => a.getAttribute('href')))]"
    )
    assert len(targets) > 25
    for target in targets:
        opened.ask(f"void (location.hash = {json.dumps(target)})")
        found = opened.ask(
            "(() => { const r = document.querySelector(':target').getBoundingClientRect(), bar = document.querySelector('.bar').getBoundingClientRect();"
            " return [r.top, r.bottom, r.height, bar.bottom, innerHeight, document.documentElement.scrollHeight - scrollY - innerHeight]; })()"
        )
        top, bottom, height, bar, window, below = found
        assert height > 0, target
        assert top < window and bottom > bar, (target, found)
        assert top >= bar - 1 or below < 2 or top < 1, (target, found)


def test_a_link_into_a_filtered_row_shows_it(pages, tab):
    opened = tab(address(pages["shut"], "?status=confirmed#h1"))
    assert opened.ask("document.querySelector('#h1').getClientRects().length > 0")
    assert opened.ask("document.querySelector('#h1').getBoundingClientRect().top < innerHeight")


def test_the_filter_works_and_lives_in_the_address(pages, tab):
    opened = tab(address(pages["shut"]))
    opened.ask("document.querySelector('[value=confirmed]').click()")
    shown = "[...document.querySelectorAll('.queue tbody tr')].filter((r) => r.getClientRects().length).map((r) => r.dataset.status)"
    assert set(opened.ask(shown)) == {"confirmed"}
    assert opened.ask("location.search") == "?status=confirmed"
    opened.go(opened.ask("location.href"))
    assert set(opened.ask(shown)) == {"confirmed"}
    opened.ask("document.querySelector('[value=all]').click()")
    assert opened.ask("location.search") == "" and len(opened.ask(shown)) == 6


def test_the_log_can_be_searched(pages, tab):
    opened = tab(address(pages["shut"]))
    opened.ask(
        "(() => { const b = document.querySelector('.find-box input'); b.value = 'partial-sums H4'; b.dispatchEvent(new Event('input')); })()"
    )
    assert opened.ask(
        "[...document.querySelectorAll('#experiments .exp')].filter((e) => e.getClientRects().length).map((e) => e.id)"
    ) == ["r7"]
    assert opened.ask("location.search") == "?find=partial-sums+H4"
    assert opened.ask("document.querySelector('.find-box span').textContent") == "1 of 10"


def test_copy_buttons_give_whole_commands_and_node_ids(pages, tab, browser, story):
    opened = tab(address(pages["shut"]))
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    opened.ask("document.querySelector('#probe .copy').click()")
    opened.wait(lambda: opened.ask("document.getElementById('said').textContent") == "Copied")
    assert opened.ask("navigator.clipboard.readText()") == story.PROBE
    opened.ask("document.querySelector('#r7 .copy').click()")
    opened.wait(lambda: opened.ask("navigator.clipboard.readText()") == "python partial_sums.py")
    assert opened.ask("document.querySelector('#probe .copy').getAttribute('aria-label')") == "Copy node id"


def test_without_scripts_the_page_is_complete(pages, tab):
    opened = tab(address(pages["shut"]), scripts=False)
    tree = opened.call("Accessibility.getFullAXTree")["nodes"]
    names = {n.get("name", {}).get("value", "") for n in tree}
    assert any("Session summary" in n for n in names) and any("Next actions" in n for n in names)
    assert opened.ask("document.querySelectorAll('.copy').length") == 0
    assert opened.ask("getComputedStyle(document.querySelector('.refresh')).display") == "none"
    assert opened.ask("document.querySelector('[data-ago]').textContent") == ""
    box = opened.ask(
        "(() => { const r = document.querySelector('label:has([value=ruled-out])').getBoundingClientRect(); scrollTo(0, r.top - 300); const q = document.querySelector('label:has([value=ruled-out])').getBoundingClientRect(); return [q.x + 5, q.y + 5]; })()"
    )
    _click(opened, *box)
    shown = opened.ask(
        "[...document.querySelectorAll('.queue tbody tr')].filter((r) => r.getClientRects().length).map((r) => r.dataset.status)"
    )
    assert set(shown) == {"ruled-out"}
    box = opened.ask(
        "(() => { const s = document.querySelector('#d-r7 summary'); s.scrollIntoView({block: 'center'}); const r = s.getBoundingClientRect(); return [r.x + 5, r.y + 5]; })()"
    )
    _click(opened, *box)
    assert opened.ask("document.querySelector('#d-r7').open")


def _click(opened, x, y):
    for kind in ("mousePressed", "mouseReleased"):
        opened.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("ending", ["investigating", "shut", "resolved", "blocked"])
def test_contrast_is_aa_for_text_and_pictures(pages, tab, ending, dark):
    opened = tab(address(pages[ending]), dark=dark)
    opened.ask("document.querySelectorAll('details').forEach((e) => { e.open = true; })")
    found = opened.ask(CONTRAST)
    assert found["looked"] > 300
    assert found["bad"] == []


def test_roles_names_and_headings_are_in_order(pages, tab):
    opened = tab(address(pages["shut"]))
    nodes = [n for n in opened.call("Accessibility.getFullAXTree")["nodes"] if not n.get("ignored")]

    def named(role):
        return [n.get("name", {}).get("value", "") for n in nodes if n.get("role", {}).get("value") == role]

    for role in ("link", "button", "radio", "searchbox", "image", "navigation", "table"):
        assert named(role), role
        assert all(name.strip() for name in named(role)), role
    assert len(named("main")) == 1 and len(named("banner")) == 1
    levels = opened.ask("[...document.querySelectorAll('h1, h2, h3')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 or before == 1 for before, after in zip(levels, levels[1:], strict=False))
    assert opened.ask("document.documentElement.lang") == "en"
    assert opened.ask("[...document.querySelectorAll('thead th')].every((h) => h.scope)")
    assert opened.ask("[...document.querySelectorAll('.st')].every((e) => e.textContent.trim() !== '')")


def test_the_keyboard_reaches_the_content_first(pages, tab):
    opened = tab(address(pages["shut"]))
    _key(opened, "Tab", 9)
    assert opened.ask("document.activeElement.className") == "skip"
    assert opened.ask("document.activeElement.getBoundingClientRect().top >= 0")
    assert opened.ask("getComputedStyle(document.activeElement).outlineStyle") != "none"
    _key(opened, "Enter", 13)
    assert opened.ask("location.hash") == "#session"
    reached = set()
    for _ in range(60):
        _key(opened, "Tab", 9)
        reached.add(
            opened.ask(
                "document.activeElement.tagName + '.' + document.activeElement.className.toString().split(' ')[0]"
            )
        )
    assert "BUTTON.copy" in reached and any(r.startswith("SUMMARY") for r in reached)


def _key(opened, key, code):
    text = "\r" if key == "Enter" else None
    for kind in ("keyDown", "keyUp"):
        more = {"text": text} if text and kind == "keyDown" else {}
        opened.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **more)


@pytest.mark.parametrize("width", [1400, 1000, 720, 420, 320])
@pytest.mark.parametrize("ending", ["investigating", "shut", "hostile"])
def test_no_window_is_too_narrow(pages, tab, ending, width):
    opened = tab(address(pages[ending]), width=width)
    over = opened.ask(
        "[...document.querySelectorAll('body *')].filter((e) => !e.closest('.pan, pre, .vh, svg, .skip, .bar') && e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1)"
        ".map((e) => e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 40)).slice(0, 5)"
    )
    assert over == []
    assert opened.ask("document.documentElement.scrollWidth <= innerWidth")


def test_print_opens_everything_and_leaves_out_what_is_pressed(pages, tab):
    opened = tab(address(pages["shut"]), scripts=False, media="print", width=800)
    hidden = opened.ask(
        "['.toc', '.refresh', '.filter'].map((s) => getComputedStyle(document.querySelector(s)).display)"
    )
    assert hidden == ["none", "none", "none"]
    assert opened.ask(
        "[...document.querySelectorAll('details:not(.again) pre')].every((e) => e.getClientRects().length && e.getBoundingClientRect().height > 10)"
    )
    data = opened.call("Page.printToPDF", printBackground=True)["data"]
    assert len(data) > 50_000


def test_print_is_light_even_in_the_dark(pages, tab):
    opened = tab(address(pages["shut"]), dark=True, media="print")
    assert opened.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_forced_colours_keep_words_and_glyphs(pages, tab):
    opened = tab(address(pages["shut"]))
    opened.look(forced=True)
    assert opened.ask("matchMedia('(forced-colors: active)').matches")
    assert opened.ask("getComputedStyle(document.querySelector('.st.failed'), '::before').width") == "14px"


# --- refresh -------------------------------------------------------------------------------------------------------


def _now(**back):
    return (datetime.now(UTC) - timedelta(**back)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _live(story, root, **back):
    told = story.Story(root, start=_now(**(back or {"seconds": 30})))
    story.opened(told)
    told.run(
        "baseline",
        ["pytest", story.PROBE],
        evidence=story.evidence([(story.PROBE, story.Outcome.FAILED)], [story.failing(story.PROBE)]),
        seconds=1,
        output="line\n" * 40,
    )
    for number in range(1, 13):
        told.add(ev.HypothesisAdded(number=number, text=f"idea {number}", test="debug-spyre run x"), 0.1)
        told.run(None, ["pytest", f"-k{number}"], hypothesis=number, seconds=0.1, output="output\n" * 40, after=0.1)
    told.add(ev.HypothesisConcluded(number=12, verdict="ruled-out", sentence="no", runs=("r13",)), 0.1)
    page.render(told.folder)
    return told


def test_refresh_keeps_place_open_parts_filter_and_search(story, tab, tmp_path):
    told = _live(story, tmp_path)
    opened = tab(address(told.folder, "?refresh=1&status=queued"))
    opened.ask(
        "(() => { document.querySelector('#d-r4').open = true; document.querySelector('#d-r13').open = false; document.querySelector('#r4').scrollIntoView(); scrollBy(0, 37); })()"
    )
    place = opened.ask("document.querySelector('#r4').getBoundingClientRect().top")
    told.run(None, ["pytest", "-knew"], hypothesis=1, seconds=0.1, output="new\n" * 40)
    page.render(told.folder)
    state = (
        "(() => { const q = (css) => document.querySelector(css); if (document.readyState !== 'complete' || !q('#r14')) return null; return {"
        "four: q('#d-r4').open, last: q('#d-r13').open, top: q('#r4').getBoundingClientRect().top, status: q('[name=status]:checked').value,"
        "search: location.search, fresh: q('#r14').classList.contains('fresh'), new: q('#d-r14').open}; })()"
    )
    seen = []
    opened.wait(lambda: seen.append(opened.ask(state)) or seen[-1])
    opened.browser.pump(0.3)
    found = seen[-1]
    assert abs(found.pop("top") - place) <= 2
    assert found == {
        "four": True,
        "last": False,
        "status": "queued",
        "search": "?refresh=1&status=queued",
        "fresh": True,
        "new": True,
    }
    assert opened.errors == []


def test_refresh_waits_while_text_is_selected(story, tab, tmp_path):
    told = _live(story, tmp_path)
    opened = tab(address(told.folder, "?refresh=1"))
    opened.ask("getSelection().selectAllChildren(document.querySelector('h1'))")
    before = opened.loads
    opened.browser.pump(3)
    assert opened.loads == before
    assert opened.ask("document.querySelector('.refresh').innerText").strip() == "waits: text is selected"
    opened.ask("getSelection().removeAllRanges()")
    opened.wait(lambda: opened.loads > before)


def test_refresh_can_be_paused_and_stays_paused(story, tab, tmp_path):
    told = _live(story, tmp_path)
    opened = tab(address(told.folder, "?refresh=1"))
    opened.ask("document.querySelector('.refresh').click()")
    assert opened.ask("document.querySelector('.refresh').getAttribute('aria-pressed')") == "true"
    before = opened.loads
    opened.browser.pump(2.5)
    assert opened.loads == before
    opened.call("Page.reload")
    opened.wait(lambda: opened.loads > before)
    before = opened.loads
    opened.browser.pump(2.5)
    assert opened.loads == before
    assert opened.ask("document.querySelector('.refresh').innerText").strip() == "refresh paused"
    opened.ask("document.querySelector('.refresh').click()")
    opened.wait(lambda: opened.loads > before)


def test_refresh_off_in_the_address_is_off(story, tab, tmp_path):
    told = _live(story, tmp_path)
    opened = tab(address(told.folder, "?refresh=off"))
    before = opened.loads
    opened.browser.pump(2)
    assert opened.loads == before
    assert opened.ask("document.documentElement.dataset.refresh") == "paused"


def test_refresh_ends_with_the_session(story, tab, tmp_path):
    told = _live(story, tmp_path)
    opened = tab(address(told.folder, "?refresh=1"))
    told.add(ev.SessionClosed(status="blocked", next_action="decide"))
    page.render(told.folder)
    opened.wait(
        lambda: opened.ask("document.readyState + document.documentElement?.dataset.status") == "completeblocked"
    )
    opened.browser.pump(0.5)
    before = opened.loads
    opened.browser.pump(2.5)
    assert opened.loads == before
    assert opened.ask("document.querySelector('.bar').innerText.includes('refresh ended')")


def test_refresh_stops_after_long_silence_and_says_so(story, tab, tmp_path):
    told = _live(story, tmp_path, hours=3)
    opened = tab(address(told.folder, "?refresh=1"))
    before = opened.loads
    opened.browser.pump(2)
    assert opened.loads == before
    words = opened.ask("document.querySelector('.refresh').innerText").strip()
    assert re.fullmatch(r"refresh stopped: silent [23] h", words)
    assert opened.ask("document.querySelector('[data-ago]').classList.contains('old')")


def test_a_page_under_the_readers_eyes_says_its_age(story, tab, tmp_path):
    told = _live(story, tmp_path)
    opened = tab(address(told.folder))
    assert re.search(r", \d+ s ago", opened.ask("document.querySelector('[data-ago]').textContent"))


def test_the_list_of_sessions_works_like_a_page(pages, story, strict, tab, tmp_path):
    for ending, stem in (
        ("investigating", "debug-20260730-141205-a"),
        ("resolved", "debug-20260729-101010-b"),
        ("blocked", "debug-20260728-101010-c"),
    ):
        story.fresh_copy(pages[ending].path, tmp_path, stem)
    where = page.render_index(tmp_path).as_uri()
    opened = tab(where)
    assert set(opened.requests) == {where} and opened.errors == []
    assert re.fullmatch(r"silent \d+ days", opened.ask("document.querySelector('[data-silent]').textContent"))
    opened.ask("document.querySelector('[value=blocked]').click()")
    shown = opened.ask(
        "[...document.querySelectorAll('.index tbody tr')].filter((r) => r.getClientRects().length).map((r) => r.dataset.status)"
    )
    assert shown == ["blocked"]
    for dark in (False, True):
        opened.look(dark=dark)
        assert opened.ask(CONTRAST)["bad"] == []
    opened.size(360, 800)
    assert opened.ask("document.documentElement.scrollWidth <= innerWidth")
