// Live updates. A visible tab has one event stream. After an event the parts of the page that differ are fetched, and each
// replaces its region, unless the user is working in it.
let stream = null;
let asked = null;
let pause = 500;
let last = 0;

const isBusy = (region) => {
  const active = document.activeElement;
  const typing = active && region.contains(active) && active.matches("input, select, textarea, [contenteditable]");
  const chosen = window.getSelection();
  const selected = chosen && !chosen.isCollapsed && region.contains(chosen.anchorNode);
  const dirty = region.querySelector("form[data-dirty], details[open].drop, input[type=checkbox][data-pick]:checked");
  return Boolean(typing || selected || dirty);
};

// Growing output stays scrolled to its end, until the user scrolls back.
const atEnd = (node) => node.hasAttribute("data-tail") && node.scrollHeight - node.scrollTop - node.clientHeight < 8;
const tails = (root) => root.querySelectorAll("[data-tail]").forEach((node) => { node.scrollTop = node.scrollHeight; });

// Nothing moves under the hand: while the pointer or the focus is in a table, its rows change in place. Only a table that can
// say so, with a button that brings the new order, is held.
const isHeld = (table) => table.querySelector("[data-reorder]") && (table.matches(":hover") || (table.contains(document.activeElement) && document.activeElement !== table));

function swapRows(table, fresh) {
  const rows = [...table.querySelectorAll("tr[data-row]")];
  const now = new Map([...fresh.querySelectorAll("tr[data-row]")].map((row, at) => [row.dataset.row, [row, at]]));
  let moved = 0;
  rows.forEach((row, at) => {
    const [next, place] = now.get(row.dataset.row) ?? [];
    row.classList.toggle("gone", !next);
    if (!next || place !== at) moved += 1;
    now.delete(row.dataset.row);
    if (!next || next.hasAttribute("data-same") || isBusy(row) || row.contains(document.activeElement)) return;
    if (row.hasAttribute("data-current")) next.setAttribute("data-current", "");
    row.replaceWith(next);
    next.dispatchEvent(new CustomEvent("swapped", { bubbles: true }));
  });
  moved += now.size;
  const button = table.querySelector("[data-reorder]");
  button.hidden = !moved;
  button.textContent = `${moved} moved · reorder`;
}

// Replaces what differs. Focus stays on what has the same address or id.
function swap(page, all = false) {
  for (const region of document.querySelectorAll("[data-region]")) {
    const fresh = page.getElementById(region.id);
    if (!fresh || isBusy(region)) continue;
    const [table, later] = [region, fresh].map((node) => node.querySelector("table[data-rows]"));
    if (!all && table && later && isHeld(table)) { swapRows(table, later); continue; }
    for (const row of fresh.querySelectorAll("[data-row][data-same]")) {
      // Rows of two tables, or two versions of a job, may share a name. What is the same has the same hash.
      const own = region.querySelector(`[data-row][data-hash="${CSS.escape(row.dataset.hash)}"]`);
      if (own) { own.classList.remove("gone"); row.replaceWith(own.cloneNode(true)); } else { delete row.dataset.hash; delete fresh.dataset.hash; }
    }
    const held = region.contains(document.activeElement) ? document.activeElement : null;
    const name = held && (held.id ? `#${CSS.escape(held.id)}` : held.getAttribute("href") ? `[href="${CSS.escape(held.getAttribute("href"))}"]` : null);
    const current = region.querySelector("[data-current]")?.dataset.row;
    const open = [...region.querySelectorAll("details[open][id]")].map((node) => node.id);
    const places = [...region.querySelectorAll("pre[id]")].map((node) => [node.id, node.scrollTop, atEnd(node)]);
    region.innerHTML = fresh.innerHTML;
    for (const key of ["every", "hash"]) if (fresh.dataset[key]) region.dataset[key] = fresh.dataset[key]; else delete region.dataset[key];
    tails(region);
    for (const [id, top, end] of places) {
      const node = document.getElementById(id);
      if (node && !end) node.scrollTop = top;
    }
    open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    if (current) region.querySelector(`[data-row="${CSS.escape(current)}"]`)?.setAttribute("data-current", "");
    if (name) region.querySelector(name)?.focus({ preventScroll: true });
    region.dispatchEvent(new CustomEvent("swapped", { bubbles: true }));
  }
  tick();
}

// Typed text survives the end of the session.
const isTyped = () => document.querySelector("form[data-dirty], dialog[open]") || document.activeElement?.matches("main input, main select, main textarea");

function showSessionEnded() {
  if (document.getElementById("ended")) return;
  const note = document.createElement("p");
  note.id = "ended";
  note.className = "banner warn";
  note.setAttribute("role", "alert");
  note.innerHTML = `Your session has ended. <a href="${PREFIX}/sign-in" target="_blank" rel="noopener">Sign in again</a> in another tab, then continue here.`;
  document.getElementById("main").before(note);
}

// Signed in again: forms that are open belong to the new session.
function continueSession(page) {
  document.getElementById("ended")?.remove();
  const csrf = page.querySelector("[name=csrf]")?.value;
  if (csrf) document.querySelectorAll("[name=csrf]").forEach((node) => { node.value = csrf; });
  if (stream?.readyState === 2) { disconnect(); listen(); }
}

// Parts that are here already are not sent again.
const have = () => [...document.querySelectorAll("[data-hash]")].map((node) => node.dataset.hash).join(" ");

async function refresh(all) {
  asked = null;
  if (document.hidden || document.querySelector("dialog[open]")) return;
  const begun = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { "x-everbell": "live", "x-everbell-have": have() }, cache: "no-store" });
    if (answer.status === 401 && !isTyped()) return location.reload();
    if (answer.status === 401) showSessionEnded();
    if (answer.ok) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      continueSession(page);
      swap(page, all === true);
    }
  } catch { showLiveState("lost"); }
  // A slow server is asked less often.
  pause = Math.min(15000, Math.max(500, 5 * (performance.now() - begun)));
  last = performance.now();
}

function ask() {
  if (asked) return;
  asked = setTimeout(refresh, Math.max(150, pause - (performance.now() - last)));
}

function showLiveState(state) {
  for (const node of document.querySelectorAll("[data-live-switch]")) {
    node.hidden = false;
    node.dataset.state = state;
    node.textContent = { on: "Live", lost: "Reconnecting", off: "Live updates off" }[state];
    node.setAttribute("aria-pressed", state !== "off");
  }
}

function listen() {
  if (stream || document.hidden || document.documentElement.dataset.live === "off") return;
  if (!document.querySelector("[data-region]")) return;
  stream = new EventSource(`${PREFIX}/ui/events`);
  // The stream reports nothing from before it opened, so the page is reloaded.
  stream.onopen = () => { showLiveState("on"); if (last || document.documentElement.dataset.stale) ask(); };
  stream.onerror = () => showLiveState("lost");
  stream.onmessage = ask;
  stream.addEventListener("reset", ask);
}

function disconnect() {
  stream?.close();
  stream = null;
}

function startLive() {
  if (!document.querySelector("[data-live-switch]")) return;
  const html = document.documentElement;
  showLiveState(html.dataset.live === "off" ? "off" : "lost");
  listen();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return disconnect();
    html.dataset.stale = "yes";
    listen();
  });
  window.addEventListener("pagehide", disconnect);
  document.addEventListener("click", (event) => { if (event.target.closest("[data-reorder]")) refresh(true); });
  tails(document);
  // Next runs, countdowns and output change without an event. Without a stream this is the only update.
  setInterval(() => {
    if (html.dataset.live === "off" || document.hidden) return;
    const every = Number(document.querySelector("[data-every]")?.dataset.every) || 15000;
    if (performance.now() - last > (stream?.readyState === 1 ? every : Math.min(every, 5000))) ask();
  }, 1000);
}

async function switchLive() {
  const html = document.documentElement;
  html.dataset.live = html.dataset.live === "off" ? "on" : "off";
  await choose({ live: html.dataset.live });
  if (html.dataset.live === "off") { disconnect(); showLiveState("off"); } else { showLiveState("lost"); listen(); ask(); }
}
