// Forms: live previews, selected rows, copy buttons and display preferences.
async function choose(values) {
  const form = document.querySelector(`form[action='${PREFIX}/choices']`);
  if (!form) return;
  const body = new URLSearchParams({ csrf: form.querySelector("[name=csrf]").value, back: "/", ...values });
  await fetch(`${PREFIX}/choices`, { method: "POST", body, headers: { "x-everbell": "choice" }, keepalive: true });
}

// A form with data-preview names the address that renders its panel, whose id is data-panel.
let previewing = null;
async function preview(form) {
  const panel = document.getElementById(form.dataset.panel);
  if (!panel) return;
  previewing?.abort();
  previewing = new AbortController();
  try {
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.preview, { method: "POST", body, headers: { "x-everbell": "preview" }, signal: previewing.signal });
    if (answer.status === 401) return showSessionEnded();
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(panel.id);
    if (fresh) { panel.innerHTML = fresh.innerHTML; tick(); }
  } catch (error) {
    if (error.name !== "AbortError") panel.textContent = "The preview cannot be loaded.";
  }
}

function startForms() {
  let waiting = null;
  const changed = (event) => {
    const form = event.target.closest("form");
    if (!form) return;
    if (form.method === "post") form.dataset.dirty = "yes";
    // A file is read into the field that it names.
    const into = event.type === "change" && document.getElementById(event.target.dataset.into);
    if (into) event.target.files[0]?.text().then((text) => { into.value = text; });
    show(form);
    if (form.dataset.preview) { clearTimeout(waiting); waiting = setTimeout(() => preview(form), 200); }
    if (form.hasAttribute("data-filters") && event.type === "change" && event.target.matches("select")) form.requestSubmit();
  };
  document.addEventListener("input", changed);
  document.addEventListener("change", changed);
  // What belongs to another choice is hidden: data-when="type=one_time", data-when="every=daily|weekly".
  const show = (form) => {
    for (const part of form.querySelectorAll("[data-when]")) {
      const [name, value] = part.dataset.when.split("=");
      const field = form.elements.namedItem(name);
      part.hidden = field && !value.split("|").includes(field.value);
    }
  };
  const ready = (part) => {
    part.querySelectorAll("form").forEach(show);
    part.querySelectorAll("[data-needs-script]").forEach((node) => { node.hidden = false; });
  };
  ready(document);
  document.addEventListener("swapped", (event) => ready(event.target));

  // Selected rows: a range with shift, and a bar with their number.
  let lastPick = null;
  document.addEventListener("click", (event) => {
    const box = event.target.closest("input[data-pick]");
    if (box) {
      const boxes = [...document.querySelectorAll("input[data-pick]")];
      if (event.shiftKey && lastPick) {
        const [a, b] = [boxes.indexOf(lastPick), boxes.indexOf(box)].sort((x, y) => x - y);
        boxes.slice(a, b + 1).forEach((node) => { node.checked = box.checked; });
      }
      lastPick = box;
    }
    const all = event.target.closest("input[data-pick-all]");
    if (all) document.querySelectorAll("input[data-pick]").forEach((node) => { node.checked = all.checked; });
    if (box || all) {
      const count = document.querySelectorAll("input[data-pick]:checked").length;
      document.querySelectorAll("[data-picked]").forEach((node) => { node.textContent = count; });
      document.querySelectorAll("[data-picked-bar]").forEach((node) => { node.toggleAttribute("data-some", count > 0); });
    }
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      const text = document.getElementById(copy.dataset.copy)?.textContent ?? "";
      const said = copy.textContent;
      Promise.resolve(navigator.clipboard?.writeText(text)).then(() => { copy.textContent = "Copied"; }, () => { copy.textContent = "Press Ctrl C"; });
      setTimeout(() => { copy.textContent = said; }, 1500);
    }
    event.target.closest("[data-dismiss]")?.closest(".banner").remove();
    if (event.target.closest("[data-live-switch]")) switchLive();
    if (event.target.closest("[data-help]")) showHelp();
    // A menu ends when something else is chosen.
    document.querySelectorAll("details.drop[open]").forEach((node) => { if (!node.contains(event.target)) node.open = false; });
  });
  // The time zone of the browser is sent to the server once.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const html = document.documentElement;
  if (zone && html.dataset.mine === "unknown" && document.querySelector(`form[action='${PREFIX}/choices']`)) choose({ mine: zone });
}
