"use strict";
// Small helpers for the page: elements, tables, formatted numbers, and the state in the address.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

/** Return an element with attributes ("on…": a listener; true: present) and children, which may be texts. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** Return an element of a picture; attributes that are null are left out. */
function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) if (value != null) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Return a row of a table. The first cell is its header; numbers are aligned to the right. */
function tableRow(header, cells, attributes = {}) {
  const parts = cells.map((cell) => (cell instanceof Element && cell.tagName === "TD" ? cell : td(cell)));
  return element("tr", attributes, element("th", { scope: "row" }, header), ...parts);
}

function td(cell) {
  return element("td", typeof cell === "number" ? { class: "n" } : {}, typeof cell === "number" ? number(cell) : cell);
}

/** Return a table's head with the names of columns. ">" before a name aligns it to the right, as for numbers. */
function tableHead(...names) {
  const cells = names.map((name) => {
    const right = name.startsWith(">");
    return name ? element("th", { scope: "col", class: right && "n" }, right ? name.slice(1) : name) : element("td");
  });
  return element("thead", {}, element("tr", {}, ...cells));
}

function number(value) {
  const short = Math.abs(value) < 1000 && !Number.isInteger(value);
  return value.toLocaleString("en", short ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });
}

/** The state in the address after "#": names and values. */
const state = {
  read() {
    const text = location.hash.slice(1);
    return text.includes("=") ? Object.fromEntries(new URLSearchParams(text)) : {};
  },
  write(values) {
    const kept = new URLSearchParams({ ...state.read(), ...values });
    history.replaceState(null, "", `#${kept}`);
  },
};

/** Move among the children of a focused box with the arrow keys; call `pick` with the new index. */
function arrows(event, children, now, pick) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  if (!(event.key in steps) || !children.length) return;
  event.preventDefault();
  pick(Math.min(children.length - 1, Math.max(0, now + steps[event.key])));
}
