// Cards of charts: what a mark means, at once and in lines, for who points at it or moves to it by keyboard.
function startHover() {
  const card = document.createElement("div");
  card.className = "hover-card";
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  let mark = null;
  const marks = ":is(.c-strip, .c-main, .c-timeline, .c-cal) :is(a, g):has(> title)";
  const hide = () => {
    card.hidden = true;
    // The title comes back for screen readers; while the card is there the browser would show it a second time.
    mark?.node.prepend(mark.title);
    mark = null;
  };
  const show = (event) => {
    const node = event.target.closest?.(marks);
    if (node === mark?.node) return;
    hide();
    const title = node?.querySelector(":scope > title");
    if (!title) return;
    card.replaceChildren(...title.textContent.split(" · ").map((text) => Object.assign(document.createElement("div"), { textContent: text })));
    if (event.type === "pointerover") title.remove();
    mark = { node, title };
    (node.closest("dialog") ?? document.body).append(card);
    card.hidden = false;
    const at = node.getBoundingClientRect();
    const left = Math.min(innerWidth - card.offsetWidth - 8, Math.max(8, at.left + at.width / 2 - card.offsetWidth / 2));
    const above = at.top - card.offsetHeight - 8;
    card.style.left = `${left}px`;
    card.style.top = `${above > 56 ? above : at.bottom + 8}px`;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}
