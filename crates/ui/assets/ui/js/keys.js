// Keyboard shortcuts. They are ignored while the user types.
const PLACES = { o: "", j: "/jobs", r: "/runs", t: "/timeline", z: "/orgs", c: "/cluster", a: "/audit", s: "/settings" };
const KEYS = [
  ["Ctrl K", "Search everything"], ["/", "Search"], ["g o", "Go to overview"], ["g j", "Go to jobs"], ["g r", "Go to runs"], ["g t", "Go to timeline"], ["g z", "Go to orgs"], ["g c", "Go to cluster"], ["g a", "Go to audit"], ["g s", "Go to settings"],
  ["j  k", "Next or previous row"], ["Enter", "Open row"], ["x", "Select row"], ["p", "Pause or resume"], ["n", "Run now"],
  ["c", "New job"], ["l", "Turn live updates on or off"], ["t", "Switch between light and dark"], ["Esc", "Close"], ["?", "Show shortcuts"],
];

function showHelp() {
  const box = document.createElement("dialog");
  const list = KEYS.map(([key, does]) => `<dt><kbd>${key}</kbd></dt><dd>${does}</dd>`).join("");
  box.innerHTML = `<h2 id="keys-heading">Keyboard shortcuts</h2><dl class="facts keys">${list}</dl><p><button class="button" autofocus>Close</button></p>`;
  box.setAttribute("aria-labelledby", "keys-heading");
  box.addEventListener("click", (event) => { if (event.target === box || event.target.closest("button")) box.close(); });
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

function move(step) {
  const rows = [...document.querySelectorAll("[data-rows] [data-row]")];
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.hasAttribute("data-current"));
  const to = rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
  rows.forEach((row) => row.removeAttribute("data-current"));
  to.setAttribute("data-current", "");
  to.scrollIntoView({ block: "nearest" });
  to.querySelector("a")?.focus({ preventScroll: true });
}

async function turnTheme() {
  const html = document.documentElement;
  const dark = html.dataset.theme === "dark" || (html.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  html.dataset.theme = dark ? "light" : "dark";
  await choose({ theme: html.dataset.theme });
}

function startKeys() {
  let going = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const menu = event.key === "Escape" && !document.querySelector("dialog[open]") && document.querySelector("details:is(.drop, .menu)[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); return; }
    if (event.target.closest("input, select, textarea, dialog, [contenteditable]")) return;
    const current = document.querySelector("[data-current]");
    const act = (key) => (current ?? document).querySelector(`[data-key="${key}"]`)?.click();
    const place = Date.now() - going < 1200 && event.key in PLACES && (PREFIX + PLACES[event.key] || "/");
    // Only pages that the navigation links to.
    if (place && document.querySelector(`a[href="${place}"]`)) { location.href = place; return; }
    const does = {
      g: () => { going = Date.now(); },
      "/": () => {
        const field = document.querySelector("[data-filters] input[type=search]") ?? document.querySelector("#find");
        field?.closest("details.fold")?.setAttribute("open", "");
        field?.focus();
      },
      j: () => move(1), k: () => move(-1),
      Enter: () => { if (current && !event.target.closest("a, button, summary")) current.querySelector("a")?.click(); else return true; },
      x: () => current?.querySelector("input[data-pick]")?.click(),
      p: () => act("p"), n: () => act("n"), c: () => document.querySelector("[data-key=c]")?.click(),
      l: switchLive, t: turnTheme, "?": showHelp,
    }[event.key];
    if (does && does() !== true) event.preventDefault();
  });
}
