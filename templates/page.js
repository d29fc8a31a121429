// Comforts only: the page says everything without this.
(() => {
  "use strict";
  const doc = document, root = doc.documentElement, bar = doc.querySelector(".bar");
  const all = (css, from = doc) => [...from.querySelectorAll(css)];
  const make = (name, css) => Object.assign(doc.createElement(name), {className: css});
  const say = (words) => { doc.getElementById("said").textContent = words; };
  root.classList.add("js");

  // What a reload must not lose lives in this tab's storage, under the page's path.
  const key = `debug-spyre ${location.pathname}`;
  const recall = () => { try { return JSON.parse(sessionStorage.getItem(key)) || {}; } catch { return {}; } };
  const keep = (state) => { try { sessionStorage.setItem(key, JSON.stringify(state)); } catch { /* private window */ } };
  const before = recall();
  const setAddress = (name, value) => {
    const address = new URL(location);
    value ? address.searchParams.set(name, value) : address.searchParams.delete(name);
    try { history.replaceState(history.state, "", address); } catch { /* refused: the state of this tab has it too */ }
  };
  const ask = (name) => new URLSearchParams(location.search).get(name) ?? (before.ask || {})[name] ?? "";

  // Copy buttons exist only where they can work.
  const copies = (element, what) => {
    const button = make("button", "copy"), glyph = make("i", "g twin");
    button.type = "button";
    button.setAttribute("aria-label", `Copy ${what}`);
    button.append(glyph);
    element.append(button);
  };
  all(".cmd:not(.short)").forEach((element) => copies(element, "command"));
  all(".id").forEach((element) => copies(element, "node id"));
  const write = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* an older way follows */ }
    const area = make("textarea", "vh");
    area.value = text;
    doc.body.append(area);
    area.select();
    const done = doc.execCommand("copy");
    area.remove();
    return done;
  };
  doc.addEventListener("click", async (event) => {
    const button = event.target.closest(".copy");
    if (!button) return;
    const holder = button.parentElement, id = holder.classList.contains("id");
    const own = holder.querySelector("code").textContent;
    const text = id ? holder.dataset.id ?? holder.closest("tbody").dataset.prefix + own : own;
    const done = await write(text);
    button.classList.toggle("done", done);
    say(done ? "Copied" : "Copying was refused");
    setTimeout(() => button.classList.remove("done"), 1500);
  });

  // Filters: radios work by style alone; here they get into the address and back.
  const radios = all(".filter input");
  const wanted = radios.find((radio) => radio.value === ask("status"));
  if (wanted) wanted.checked = true;
  radios.forEach((radio) => radio.addEventListener("change", () => setAddress("status", radio.value === "all" ? "" : radio.value)));
  const log = doc.getElementById("experiments"), entries = log ? all(".exp, #experiments > .older tbody tr", log) : [];
  const has = (entry, name, value) => !value || (entry.dataset[name] || "").split(" ").includes(value);
  const choices = {};
  let box = null, apply = () => {};
  if (entries.length > 4) {
    const line = make("div", "find-box"), label = make("label", ""), count = make("span", "");
    count.setAttribute("role", "status");
    box = make("input", "");
    box.type = "search";
    box.value = ask("find");
    [["rows", "row", "all rows"], ["kind", "kind", "all kinds"]].forEach(([name, asked, all]) => {
      const known = [...new Set(entries.flatMap((entry) => (entry.dataset[name] || "").split(" ")))].filter(Boolean);
      if (known.length < 2) return;
      const select = make("select", ""), order = new Intl.Collator("en", {numeric: true}).compare;
      select.setAttribute("aria-label", `Show the entries of one ${asked}`);
      select.append(new Option(all, ""), ...known.sort(order).map((value) => new Option(value, value)));
      if (known.includes(ask(asked))) select.value = ask(asked);
      select.addEventListener("change", () => { apply(); setAddress(asked, select.value); });
      choices[asked] = select;
      line.append(select);
    });
    apply = () => {
      const words = box.value.toLowerCase().split(/\s+/).filter(Boolean), row = (choices.row || {}).value, kind = (choices.kind || {}).value;
      let shown = 0;
      entries.forEach((entry) => {
        const text = words.length ? entry.textContent.toLowerCase() : "";
        const hit = words.every((word) => text.includes(word)) && has(entry, "rows", row) && has(entry, "kind", kind);
        entry.classList.toggle("miss", !hit);
        shown += hit;
      });
      count.textContent = words.length || row || kind ? `${shown} of ${entries.length}` : "";
    };
    box.addEventListener("input", () => { apply(); setAddress("find", box.value); });
    label.append("find in the log ", box);
    line.append(label, count);
    entries[0].before(line);
    apply();
  }

  // A link into a closed or filtered part opens it.
  const reveal = () => {
    let target = null;
    try { target = location.hash.length > 1 && doc.getElementById(decodeURIComponent(location.hash.slice(1))); } catch { /* not an id */ }
    if (!target) return;
    for (let parent = target; parent; parent = parent.parentElement) if (parent.tagName === "DETAILS") parent.open = true;
    if (!target.getClientRects().length) {
      const everything = radios.find((radio) => radio.value === "all");
      if (everything) { everything.checked = true; setAddress("status", ""); }
      target.closest(".miss")?.classList.remove("miss");
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  let printing = false;
  addEventListener("beforeprint", () => { printing = true; all("details").forEach((element) => { element.dataset.was = element.open; element.open = true; }); });
  addEventListener("afterprint", () => { printing = false; all("details").forEach((element) => { element.open = element.dataset.was === "true"; }); });

  // Where the reader is: an element with an id near the top of what is in sight, and how far it is from the top.
  const place = () => {
    const top = bar ? bar.getBoundingClientRect().bottom : 0, middle = doc.querySelector("main").getBoundingClientRect();
    for (let y = top + 4; scrollY > 8 && y < innerHeight * 0.8; y += 20) {
      const hit = doc.elementFromPoint(middle.left + middle.width * 0.3, y), element = hit && hit.closest("main [id]");
      if (element && element.id !== "probe" && element.getBoundingClientRect().height < innerHeight * 2) return {y: scrollY, id: element.id, at: element.getBoundingClientRect().top};
    }
    return {y: scrollY, id: "", at: 0};
  };
  const remember = () => keep({
    reload: true, place: place(), paused, seq: root.dataset.seq,
    known: all("details[id]").map((e) => e.id), open: all("details[id][open]").map((e) => e.id),
    pans: all(".pan, pre").map((e, i) => [i, e.scrollLeft]).filter(([, x]) => x),
    focus: doc.activeElement && doc.activeElement.id, typing: box === doc.activeElement && box ? [box.selectionStart, box.selectionEnd] : null,
    ask: {status: (radios.find((r) => r.checked) || {}).value, find: box ? box.value : "", row: (choices.row || {}).value, kind: (choices.kind || {}).value},
  });
  let paused = before.paused === true;
  const kind = (performance.getEntriesByType("navigation")[0] || {}).type;
  if (before.reload && kind !== "navigate") {
    const known = new Set(before.known), open = new Set(before.open);
    all("details[id]").forEach((element) => { if (known.has(element.id)) element.open = open.has(element.id); });
    const pans = all(".pan, pre");
    (before.pans || []).forEach(([i, x]) => { if (pans[i]) pans[i].scrollLeft = x; });
    history.scrollRestoration = "manual";
    const back = () => {
      const {y = 0, id = "", at = 0} = before.place || {}, element = id && doc.getElementById(id);
      scrollTo({left: 0, top: element ? scrollY + element.getBoundingClientRect().top - at : y, behavior: "instant"});
    };
    back();
    addEventListener("load", () => requestAnimationFrame(back));
    const focus = before.typing ? box : before.focus && doc.getElementById(before.focus);
    if (focus) { focus.focus({preventScroll: true}); if (before.typing && focus === box) box.setSelectionRange(...before.typing); }
    all("[data-seq]", doc.body).forEach((element) => element.classList.toggle("fresh", Number(element.dataset.seq) > Number(before.seq)));
  } else if (location.hash) reveal();

  // The section in view, in the rail.
  const rail = all(".toc a");
  if (rail.length && "IntersectionObserver" in window) {
    const seen = new Set();
    const observer = new IntersectionObserver((changes) => {
      changes.forEach((c) => (c.isIntersecting ? seen.add(c.target.id) : seen.delete(c.target.id)));
      const first = rail.find((a) => seen.has(a.hash.slice(1)));
      rail.forEach((a) => (a === first ? a.setAttribute("aria-current", "true") : a.removeAttribute("aria-current")));
    }, {rootMargin: "-64px 0px -60% 0px"});
    rail.forEach((a) => { const part = doc.getElementById(a.hash.slice(1)); if (part) observer.observe(part); });
  }

  // Age and refresh. A page that is under work loads itself again, less often the longer it is silent.
  const SILENT = 2 * 3600, updated = Date.parse(root.dataset.updated), loaded = Date.now();
  const live = root.dataset.status === "investigating", asked = new URLSearchParams(location.search).get("refresh");
  const period = asked === "off" ? 0 : Math.max(Number(asked) || 5, 1);
  if (asked === "off" && before.paused === undefined) paused = true;
  const button = doc.querySelector(".refresh");
  const words = (s) => (s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} days`);
  let touched = 0, held = false;
  addEventListener("pointerdown", () => { held = true; });
  addEventListener("pointerup", () => { held = false; touched = Date.now(); });
  addEventListener("pointercancel", () => { held = false; });
  addEventListener("keydown", (event) => { touched = Date.now() + ((event.ctrlKey || event.metaKey) && event.key === "f" ? 30000 : 0); }); // the browser's own search would be lost
  addEventListener("scroll", () => { touched = Math.max(touched, Date.now() - 800); }, {passive: true});
  const selecting = () => { const s = getSelection(); return s && !s.isCollapsed && s.toString() !== ""; };
  const tick = () => {
    const now = Date.now(), since = (moment) => Math.max(0, Math.round((now - moment) / 1000)), age = since(updated);
    all("[data-silent]").forEach((element) => { const s = since(Date.parse(element.dataset.silent)); element.textContent = s > 900 ? `silent ${words(s)}` : ""; });
    if (!Number.isFinite(age)) return;
    all("[data-ago]").forEach((element) => { element.textContent = `, ${words(age)} ago`; element.classList.toggle("old", live && age > 90); });
    if (!button) return;
    const silent = age > SILENT, every = Math.max(period || 5, Math.min(60, age / 10));
    const waits = selecting() ? "waits: text is selected" : held || printing ? "waits" : now - touched < 1500 ? "waits" : "";
    button.setAttribute("aria-pressed", String(paused));
    button.querySelector(".g").className = `g ${paused || silent ? "play" : "pause"}`;
    button.querySelector("span").textContent = silent ? `refresh stopped: silent ${words(age)}` : paused ? "refresh paused" : waits || `refresh ${Math.round(every)} s`;
    root.dataset.refresh = silent ? "stopped" : paused ? "paused" : waits ? "waiting" : "on";
    if (!live || paused || silent || waits || (doc.hidden && now - loaded < 30000)) return;
    if (now - loaded >= every * 1000) { remember(); location.reload(); }
  };
  if (button) button.addEventListener("click", () => {
    if (root.dataset.refresh === "stopped") { remember(); location.reload(); return; }
    paused = !paused;
    touched = 0;
    remember();
    say(paused ? "Refresh paused" : "Refresh on");
    tick();
  });
  addEventListener("pagehide", remember);
  tick();
  setInterval(tick, 1000);
})();
