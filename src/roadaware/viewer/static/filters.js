// Conditions on boxes by any column of the tables: a line each, worked out by the server, kept in the address.

import { ask } from "./api.js";
import { choice, make } from "./panels.js";

const COMPARE = { number: [[">=", "≥"], ["<=", "≤"], [">", ">"], ["<", "<"], ["=", "="], ["!=", "≠"]], text: [["=", "is"], ["!=", "is not"], ["has", "has"]], truth: [["=", "is"], ["!=", "is not"]] };
export const MOST = 8;

// A fold with the conditions that hold and a line for one more. `change(conditions)` is called with the new list.
export async function buildFilters(panels, conditions, counted, change) {
  const { index } = panels;
  const fold = make("details", { of: "filters" });
  fold.open = conditions.length > 0 || panels.filtering;
  fold.addEventListener("toggle", () => {
    panels.filtering = fold.open;
    if (fold.open && !fold.querySelector("form")) fill();
  });
  fold.append(make("summary", { text: conditions.length ? `Filters (${conditions.length})` : "Filters by any column" }));
  conditions.forEach(([column, compare, value], place) => {
    const words = `${column} ${signOf(compare)} ${value}`;
    fold.append(make("p", { of: "condition" }, make("span", { text: words }), make("button", { type: "button", text: "remove", "aria-label": `remove ${words}`, click: () => change(conditions.filter((_, k) => k !== place)) })));
  });
  if (counted) {
    const words = Object.entries(counted).map(([side, each]) => `${side === "truth" ? "truth" : side.toUpperCase()} ${each.boxes.toLocaleString("en")} of ${each.of.toLocaleString("en")} boxes${each.without ? " (has no such column)" : ""}`);
    fold.append(make("p", { of: "quiet number", id: "filtered", text: words.join(", ") }));
  }
  if (fold.open) await fill();
  return fold;

  async function fill() {
    const columns = await known(panels, index);
    if (fold.querySelector("form")) return;
    fold.append(form(columns, (condition) => change([...conditions, condition])));
  }
}

const signOf = (compare) => Object.values(COMPARE).flat().find(([key]) => key === compare)?.[1] || compare;

// Columns of all sides by name.
async function known(panels, index) {
  return panels.once("columns", async () => {
    const found = new Map();
    for (const side of Object.keys(index.sides)) {
      for (const each of await ask("/api/columns", { side })) {
        const before = found.get(each.name);
        found.set(each.name, before && before.values && each.values ? { ...before, values: [...new Set([...before.values, ...each.values])].sort() } : before || each);
      }
    }
    return found;
  });
}

function form(columns, add) {
  const found = make("form", { of: "bar" });
  let column = columns.has("boxes.height") ? "boxes.height" : [...columns.keys()][0];
  let compare;
  let value;
  const build = () => {
    const { type, values } = columns.get(column);
    compare = COMPARE[type][0][0];
    value = type === "truth" ? "true" : values ? values[0] : "";
    const field = type === "truth" || values ? choice("Value", (type === "truth" ? ["true", "false"] : values).map((each) => [each, each]), value, (chosen) => (value = chosen)) : make("input", { type: "text", "aria-label": "Value", placeholder: type === "number" ? "number" : "text", maxlength: 200, inputmode: type === "number" ? "decimal" : "text" });
    if (field.matches("input")) field.addEventListener("input", () => (value = field.value));
    found.replaceChildren(
      choice("Column", [...columns.keys()].map((name) => [name, name]), column, (name) => {
        column = name;
        build();
      }),
      choice("Comparison", COMPARE[type], compare, (chosen) => (compare = chosen)),
      field,
      make("button", { type: "submit", text: "add" }),
    );
  };
  build();
  found.addEventListener("submit", (event) => {
    event.preventDefault();
    const { type } = columns.get(column);
    const given = type === "number" ? Number(value) : type === "truth" ? value === "true" : value;
    if (value === "" || (type === "number" && !Number.isFinite(given))) return found.querySelector("input")?.focus();
    add([column, compare, given]);
  });
  return found;
}

// Conditions as the address holds them; what is no list is none.
export function readConditions(text) {
  try {
    const found = JSON.parse(text || "[]");
    return Array.isArray(found) ? found.filter((each) => Array.isArray(each) && each.length === 3).slice(0, MOST) : [];
  } catch {
    return [];
  }
}
