"use strict";
// Headings of tables become buttons that sort; links open what is folded, and paper unfolds everything.
const number = cell => {
  const text = (cell.firstChild?.nodeValue ?? cell.textContent).trim();
  const found = text.replace(/[−–]/g, "-").replace(/,/g, "").match(/^[+-]?\d+(\.\d+)?/);
  return found ? Number(found[0]) : null;
};
const compare = (a, b, sign) => {
  const [x, y] = [number(a), number(b)];
  if (x === null) return y === null ? sign * a.textContent.localeCompare(b.textContent, "en") : 1;
  return y === null ? -1 : sign * (x - y);  // what is undefined stands last, either way
};
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], given = [...body.rows];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    if (head.tagName !== "TH") return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = {none: "descending", descending: "ascending", ascending: "none"}[head.ariaSort ?? "none"];
      heads.forEach(each => each.removeAttribute("aria-sort"));
      if (next !== "none") head.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      body.append(...(next === "none" ? given : [...given].sort((a, b) => compare(a.cells[place], b.cells[place], sign))));
    });
  });
}
const contents = document.querySelector("nav details");
if (contents) contents.open = matchMedia("(min-width: 76rem)").matches;  // beside the page, and folded above it
const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
const folded = [];
addEventListener("beforeprint", () => {
  folded.push(...document.querySelectorAll("details:not([open])"));
  folded.forEach(each => { each.open = true; });
});
addEventListener("afterprint", () => folded.splice(0).forEach(each => { each.open = false; }));
