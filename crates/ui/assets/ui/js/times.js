// The path in front of every address, if the pages are part of another program.
const PREFIX = document.documentElement.dataset.prefix ?? "";

// Times that move on: how far away, how long already, the clock of the footer.
// The server's clock counts, not the browser's: pages say what time it was there when they were made.
const skew = (() => {
  const clock = document.querySelector("[data-clock]");
  return clock ? Date.parse(clock.dateTime) - Date.now() : 0;
})();
const now = () => Date.now() + skew;

function span(seconds) {
  const two = (large, a, small, b) => {
    const rest = Math.floor((seconds % large) / small);
    return Math.floor(seconds / large) + a + (rest ? ` ${rest}${b}` : "");
  };
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return two(60, "m", 1, "s");
  if (seconds < 86400) return two(3600, "h", 60, "m");
  if (seconds < 604800) return two(86400, "d", 3600, "h");
  return `${Math.round(seconds / 86400)}d`;
}

function tick() {
  const at = now();
  const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };
  for (const node of document.querySelectorAll("[data-at]")) {
    const seconds = Math.trunc((Number(node.dataset.at) - at) / 1000);
    put(node, seconds === 0 ? "now" : seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`);
  }
  for (const node of document.querySelectorAll("[data-since]")) {
    put(node, span(Math.max(0, Math.trunc((at - Number(node.dataset.since)) / 1000))));
  }
  for (const node of document.querySelectorAll("[data-clock]")) {
    put(node, new Date(at).toISOString().slice(11, 19));
  }
}

function startTimes() {
  tick();
  setInterval(() => { if (!document.hidden) tick(); }, 1000);
}
