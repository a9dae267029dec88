"use strict";
// Small helpers for the page: elements, tables, numbers for people, and the state that a link keeps.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

/** An element with attributes ("on…": listeners; true: present) and children, texts among them. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== false && value != null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

/** A row of a table: the first cell is its header; numbers are aligned to the right. */
function tableRow(header, cells, attributes = {}) {
  const parts = cells.map((cell) => (cell instanceof Element && cell.tagName === "TD" ? cell : td(cell)));
  return element("tr", attributes, element("th", { scope: "row" }, header), ...parts);
}

function td(cell) {
  return element("td", typeof cell === "number" ? { class: "n" } : {}, typeof cell === "number" ? number(cell) : cell);
}

/** Names of columns; ">" in front of one aligns it to the right, over numbers. */
function tableHead(...names) {
  const cells = names.map((name) => {
    const right = name.startsWith(">");
    return element("th", { scope: "col", class: right && "n" }, right ? name.slice(1) : name);
  });
  return element("thead", {}, element("tr", {}, ...cells));
}

function number(value) {
  const short = Math.abs(value) < 1000 && !Number.isInteger(value);
  return value.toLocaleString("en", short ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 });
}

/** What the address keeps behind #: names and values. */
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

/** Arrow keys move among the children of a box that can be focused; `pick` hears of the new one. */
function arrows(event, children, now, pick) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  if (!(event.key in steps) || !children.length) return;
  event.preventDefault();
  pick(Math.min(children.length - 1, Math.max(0, now + steps[event.key])));
}
