// What the pages do beside links and forms: live updates, keys for the grid, copy buttons. Every page works without it.

const base = document.body.dataset.base ?? "";

/** The address of the page that is shown: what live updates ask for. */
let place = base + (document.body.dataset.place ?? "/");

// The answer to a refused form has the form's own address, which cannot be asked for again.
if (document.body.dataset.posted) history.replaceState(null, "", place);

/** When the page was last known to be up to date. */
let current = new Date();

/** Gets a page and puts the parts that `wanted` picks in place of those with the same id. */
async function swap(url, wanted) {
  let answer;
  let text;
  try {
    answer = await fetch(url, { headers: { "netstead-part": "1" }, signal: AbortSignal.timeout(20_000) });
    text = await answer.text();
  } catch {
    late("the server does not answer");
    return false;
  }
  if (answer.status === 401) {
    location.reload();
    return false;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  if (!answer.ok) {
    late(page.querySelector("main [role=alert]")?.textContent ?? `the server answered ${answer.status}`);
    return false;
  }
  // A page that could not be shown can be shown now.
  if (document.querySelector("[data-retry]")) {
    location.reload();
    return true;
  }
  current = new Date();
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(part.id);
    if (!fresh || !wanted(part) || part.innerHTML === fresh.innerHTML) continue;
    replace(part, fresh);
  }
  return true;
}

/** Says that what is shown may be out of date, since when, and why. The next answer takes the notice away. */
function late(reason) {
  const part = document.getElementById("fresh");
  if (!part) return;
  const text = `Not up to date since ${current.toLocaleTimeString()}: ${reason.trim()}`;
  let note = part.querySelector(".late");
  if (!note) {
    note = document.createElement("p");
    note.className = "notice bad late";
    note.setAttribute("role", "alert");
    part.replaceChildren(note);
  }
  if (note.textContent !== text) note.textContent = text;
}

/** Replaces a part. The focus stays where it was, and what is open stays open. */
function replace(part, fresh) {
  const focused = part.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...part.querySelectorAll("details")].map((one) => one.open);
  part.replaceChildren(...fresh.childNodes);
  [...part.querySelectorAll("details")].forEach((one, at) => {
    if (open[at]) one.open = true;
  });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  dress(part);
}

/** Whether something is being typed or chosen in a part: then it is left alone. */
function isBusy(part) {
  const fields = part.querySelectorAll("input:not([type=hidden]), textarea, select");
  const touched = (field) =>
    field.type === "checkbox"
      ? field.checked !== field.defaultChecked
      : field.value !== field.defaultValue && field.tagName !== "SELECT";
  return [...fields].some((field) => field === document.activeElement || touched(field));
}

// Live updates: an event says that something changed, and the page is asked what it looks like now.
function follow() {
  if (!document.querySelector("[data-live]:not(#fresh), [data-retry]") || !window.EventSource) return;
  let due = 0;
  let last = 0;
  const look = () => {
    if (due || document.hidden) return;
    due = setTimeout(async () => {
      await swap(place, (part) => !isBusy(part));
      last = Date.now();
      due = 0;
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
  let stream = null;
  let wasOpen = false;
  const open = () => {
    if (stream || document.hidden) return;
    stream = new EventSource(`${base}/live`);
    stream.addEventListener("open", () => {
      if (wasOpen) look();
      wasOpen = true;
    });
    stream.addEventListener("message", look);
    for (const name of known) stream.addEventListener(name, look);
    for (const name of engine) stream.addEventListener(`engine-${name}`, look);
    // A stream that ended for good, because the session did: the page says so.
    stream.addEventListener("error", () => {
      if (stream?.readyState === EventSource.CLOSED) {
        look();
        setTimeout(() => {
          close();
          open();
        }, 5000);
      } else setTimeout(look, 500);
    });
  };
  const close = () => {
    stream?.close();
    stream = null;
  };
  // A browser has six connections to a server. A tab that is not seen holds none of them.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return close();
    open();
    look();
  });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  setInterval(look, document.querySelector("[data-retry]") ? 3000 : 30_000);
  open();
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

/** Notes another address of this page. The switch of colours comes back to it. */
function go(url) {
  place = url.pathname + url.search;
  const own = place.startsWith(`${base}/`) ? place.slice(base.length) : place;
  for (const field of document.querySelectorAll(".themes input[name=place]")) field.value = own;
}

async function pick(event) {
  const link = event.target.closest?.("[data-swap] a");
  if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const target = link.closest("[data-swap]").dataset.swap;
  const shown = await swap(link.href, (part) => [target, "cells", "fresh"].includes(part.id));
  if (!shown) {
    location.href = link.href;
    return;
  }
  history.pushState(null, "", link.href);
  go(new URL(link.href));
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

/** Counts the lines that are ticked, in the buttons that act on all of them. */
function tally(event) {
  const box = event.target;
  if (box.matches?.("input[data-all]")) {
    for (const one of box.closest("table").querySelectorAll("input[data-one]")) one.checked = box.checked;
  } else if (!box.matches?.("input[data-one]")) return;
  const form = box.form;
  const count = [...form.elements].filter((field) => field.matches("[data-one]") && field.checked).length;
  for (const button of form.querySelectorAll("button[data-many]")) {
    button.textContent = count ? `${button.dataset.many} ${count}` : button.dataset.none;
    button.disabled = count === 0;
  }
}

/** Shows what only the script can do. */
function dress(part) {
  for (const button of part.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  for (const box of part.querySelectorAll("[data-all]")) box.hidden = false;
  for (const button of part.querySelectorAll("button[data-many]")) button.disabled = true;
  for (const cell of part.querySelectorAll(".grid a[aria-label], .tiles a[aria-label]")) cell.title = cell.ariaLabel;
}

dress(document);
if (matchMedia("(max-width: 52rem)").matches) document.querySelector(".fold")?.removeAttribute("open");
document.addEventListener("click", pick);
document.addEventListener("click", copy);
document.addEventListener("change", tally);
document.addEventListener("keydown", keys);
document.addEventListener("keydown", search);
addEventListener("popstate", () => {
  go(new URL(location.href));
  swap(place, () => true);
});
follow();
