// The command palette: what the page /find answers, above any page, moved through by keys.
function openPalette() {
  if (document.querySelector("dialog[open]")) return;
  const box = document.createElement("dialog");
  box.className = "palette";
  box.setAttribute("aria-label", "Command palette");
  box.innerHTML = `<input type="search" role="combobox" aria-label="Search everything" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list" placeholder="Job, run id, org, page or action" maxlength="200" autocomplete="off" spellcheck="false"><div id="palette-list" role="listbox" aria-label="Results"></div>`;
  const [field, list] = box.children;
  const links = new Map();
  // Actions on the job whose page is open come first.
  const open = location.pathname.slice(PREFIX.length).match(/^\/jobs\/([^/]+)/)?.[1];
  const about = open ? `&job=${encodeURIComponent(decodeURIComponent(open))}` : "";
  let at = 0, asked = null, waiting = null, shown = null;
  const options = () => [...list.querySelectorAll("[role=option]")];
  const mark = (to) => {
    const all = options();
    at = all.length ? (to + all.length) % all.length : 0;
    all.forEach((node, index) => node.setAttribute("aria-selected", index === at));
    if (all[at]) { field.setAttribute("aria-activedescendant", all[at].id); all[at].scrollIntoView({ block: "nearest" }); } else field.removeAttribute("aria-activedescendant");
  };
  const find = async () => {
    asked?.abort();
    asked = new AbortController();
    const text = field.value;
    try {
      const answer = await fetch(`${PREFIX}/find?q=${encodeURIComponent(text)}${about}`, { headers: { "x-everbell": "palette" }, signal: asked.signal });
      if (answer.status === 401) { box.close(); return showSessionEnded(); }
      const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("found");
      if (!found) return;
      list.replaceChildren();
      for (const part of found.querySelectorAll("h2, li, p")) {
        const link = part.querySelector("a[data-found]");
        const node = document.createElement("div");
        if (link) {
          node.id = `palette-${list.children.length}`;
          node.setAttribute("role", "option");
          const name = document.createElement("b");
          name.append(...link.childNodes);
          node.append(name, ...part.querySelectorAll(".note"));
          links.set(node, link);
        } else { node.className = "kind"; node.setAttribute("role", "presentation"); node.textContent = part.textContent; }
        list.append(node);
      }
      mark(0);
      shown = text;
    } catch (error) { if (error.name !== "AbortError") list.textContent = "The server does not answer."; }
  };
  const go = (option) => { const link = links.get(option); if (link) { document.body.append(link); box.close(); link.click(); link.remove(); } };
  // What is listed may belong to an earlier text: then Enter opens the first that is found for this one.
  const enter = async () => {
    const text = field.value;
    if (shown !== text) { clearTimeout(waiting); await find(); }
    if (box.open && shown === text && field.value === text) go(options()[at]);
  };
  field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(find, 120); });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); mark(at + step); }
    if (event.key === "Enter") { event.preventDefault(); enter(); }
  });
  box.addEventListener("click", (event) => {
    if (event.target === box) return box.close();
    const option = event.target.closest("[role=option]");
    if (option) go(option);
  });
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  field.focus();
  find();
}

function startPalette() {
  if (!document.querySelector("[data-palette]")) return;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") { event.preventDefault(); openPalette(); }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette]") && !event.ctrlKey && !event.metaKey) { event.preventDefault(); openPalette(); }
  });
}
