// Actions are pages; here they open above the page that led to them.
let dialog = null;

const content = (text) => new DOMParser().parseFromString(text, "text/html").getElementById("main");

function fill(text) {
  const main = content(text);
  if (!main) return false;
  dialog.replaceChildren(...main.childNodes);
  const heading = dialog.querySelector("h1, h2");
  if (heading) { heading.id = "dialog-heading"; dialog.setAttribute("aria-labelledby", heading.id); }
  dialog.dispatchEvent(new CustomEvent("swapped", { bubbles: true }));
  return true;
}

async function openDialog(address) {
  try {
    const answer = await fetch(address, { headers: { "x-everbell": "dialog" }, cache: "no-store" });
    const text = await answer.text();
    if (!dialog) {
      dialog = document.createElement("dialog");
      dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
      dialog.addEventListener("close", () => { dialog.replaceChildren(); ask(); });
      document.body.append(dialog);
    }
    if (!answer.ok || !fill(text)) { location.href = address; return; }
    if (!dialog.open) dialog.showModal();
    (dialog.querySelector("[autofocus]") || dialog.querySelector("input:not([type=hidden]), select, textarea, button:not([aria-hidden])"))?.focus();
  } catch { location.href = address; }
}

async function sendDialog(form, button) {
  const body = new URLSearchParams(new FormData(form, button));
  const buttons = [...form.querySelectorAll("button")];
  buttons.forEach((node) => { node.disabled = true; });
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { "x-everbell": "dialog" } });
    const place = answer.headers.get("x-go");
    if (place) {
      // The same address with a place in it would only scroll. A reload keeps what is seen where it is, so that who is at
      // the top would not see what the page says first.
      const here = location.pathname + location.search;
      if (place.split("#")[0] !== here) location.href = place; else if (scrollY) location.reload(); else location.replace(here);
      return;
    }
    if (fill(await answer.text())) {
      dialog.querySelector("[aria-invalid=true], .fault, .banner")?.focus?.();
      return;
    }
    form.submit();
  } catch {
    buttons.forEach((node) => { node.disabled = false; });
    form.submit();
  }
}

function startDialogs() {
  document.addEventListener("click", (event) => {
    if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest("a[data-dialog]");
    if (link) { event.preventDefault(); openDialog(link.href); return; }
    const back = event.target.closest("[data-close]");
    if (back && dialog?.open && dialog.contains(back)) { event.preventDefault(); dialog.close(); }
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (dialog?.open && dialog.contains(form) && form.method === "post") {
      event.preventDefault();
      sendDialog(form, event.submitter);
      return;
    }
    // One click is one request.
    if (form.method === "post") setTimeout(() => form.querySelectorAll("button").forEach((node) => { node.disabled = true; }));
  });
}
