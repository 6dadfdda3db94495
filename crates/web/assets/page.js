// What the pages do beside links and forms: live updates, keys for the grid, copy buttons. Every page works without it.

const base = document.body.dataset.base ?? "";

/** Gets a page and puts the parts that `wanted` picks in place of those with the same id. */
async function swap(url, wanted) {
  const answer = await fetch(url, { headers: { "netstead-part": "1" } });
  if (answer.status === 401) {
    location.reload();
    return false;
  }
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(part.id);
    if (!fresh || !wanted(part) || part.innerHTML === fresh.innerHTML) continue;
    replace(part, fresh);
  }
  return true;
}

/** Replaces a part. The focus stays where it was, and what is open stays open. */
function replace(part, fresh) {
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...part.querySelectorAll("details")].map((one) => one.open);
  part.replaceChildren(...fresh.childNodes);
  [...part.querySelectorAll("details")].forEach((one, place) => {
    if (open[place]) one.open = true;
  });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  dress(part);
}

/** Whether something is being typed or chosen in a part: then it is left alone. */
function isBusy(part) {
  const fields = part.querySelectorAll("input:not([type=hidden]), textarea, select");
  const touched = (field) => field.value !== field.defaultValue && field.tagName !== "SELECT";
  return [...fields].some((field) => field === document.activeElement || touched(field));
}

// Live updates: an event says that something changed, and the page is asked what it looks like now.
function follow() {
  if (!document.querySelector("[data-live]") || !window.EventSource) return;
  let due = 0;
  let last = 0;
  const look = () => {
    if (due) return;
    due = setTimeout(async () => {
      due = 0;
      last = Date.now();
      try {
        await swap(location.href, (part) => !isBusy(part));
      } catch {
        // The server is away; the stream comes again by itself.
      }
    }, Math.max(250, last + 1000 - Date.now()));
  };
  const known = [
    "pool-created", "pool-updated", "pool-deleted", "claimed", "updated", "adopted", "released", "expired", "moved",
    "reserved", "unreserved", "waiting", "abandoned", "restored", "resumed", "given-back",
  ];
  const engine = [
    "applied", "changed", "rejected", "unknown", "approved", "paused", "resumed", "late", "doubtful", "parked",
    "unparked", "suspect", "believed", "failing", "working", "set", "deleted", "adopted", "recovered", "cleaned",
    "rolled-back", "drift",
  ];
  let wasOpen = false;
  const stream = new EventSource(`${base}/live`);
  stream.addEventListener("open", () => {
    if (wasOpen) look();
    wasOpen = true;
  });
  stream.addEventListener("message", look);
  for (const name of known) stream.addEventListener(name, look);
  for (const name of engine) stream.addEventListener(`engine-${name}`, look);
  // A stream that ended for good, because the session did: the page says so.
  stream.addEventListener("error", () => {
    if (stream.readyState === EventSource.CLOSED) look();
    else setTimeout(look, 500);
  });
  setInterval(() => document.hidden || look(), 30_000);
  addEventListener("pagehide", () => stream.close());
}

// The grid: arrows go from cell to cell, and a cell is shown in the panel without leaving the page.
function keys(event) {
  const cell = event.target.closest?.("[data-keys] a");
  if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
  const cells = [...cell.closest("[data-keys]").querySelectorAll("a")];
  const at = cells.indexOf(cell);
  const top = cells[0].offsetTop;
  const columns = cells.findIndex((one) => one.offsetTop > top);
  const row = columns < 1 ? cells.length : columns;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: row, ArrowUp: -row, Home: -at, End: cells.length - 1 - at };
  const next = event.key in steps ? cells[at + steps[event.key]] : undefined;
  if (!next) return;
  event.preventDefault();
  cell.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

async function pick(event) {
  const link = event.target.closest?.("[data-swap] a");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const target = link.closest("[data-swap]").dataset.swap;
  const shown = await swap(link.href, (part) => part.id === target || part.id === "cells");
  if (!shown) {
    location.href = link.href;
    return;
  }
  history.pushState(null, "", link.href);
  const panel = document.getElementById(target);
  if (matchMedia("(max-width: 52rem)").matches) panel.scrollIntoView({ block: "nearest" });
  panel.querySelector("input:not([type=hidden])")?.focus({ preventScroll: true });
}

async function copy(event) {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

function search(event) {
  const typing = event.target.matches?.("input, textarea, select");
  const wanted = (event.key === "/" && !typing) || (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey));
  const field = document.getElementById("q");
  if (!wanted || !field) return;
  event.preventDefault();
  field.focus();
  field.select();
}

/** Shows what only the script can do. */
function dress(part) {
  for (const button of part.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  for (const cell of part.querySelectorAll(".grid a[aria-label], [data-keys] a[aria-label]")) cell.title = cell.ariaLabel;
}

dress(document);
if (matchMedia("(max-width: 52rem)").matches) document.querySelector(".fold")?.removeAttribute("open");
document.addEventListener("click", pick);
document.addEventListener("click", copy);
document.addEventListener("keydown", keys);
document.addEventListener("keydown", search);
addEventListener("popstate", () => swap(location.href, () => true));
follow();
