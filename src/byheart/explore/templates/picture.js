"use strict";
// A picture of one step of the network: letters, hash, six words of the table, their sum, the answer. It moves in this
// order, unless the reader prefers stillness (explore.css).

const picture = (() => {
  const LETTERS = 8, GAP = 30, STACKED = 700;
  const BEGINS = { letters: 0, mix: 0.5, hash: 1, find: 1.4, fetch: 1.9, sum: 2.6, answer: 3.1 }, LASTS = 3.7;

  /** Return attributes of something that comes at a time from an offset; see the style sheet. */
  const comes = (at, { dx = 0, dy = 0, from = 1, style = "" } = {}) => ({
    class: `moves ${style}`, style: `--at: ${at}; --dx: ${dx}px; --dy: ${dy}px; --from: ${from}`,
  });
  const text = (x, y, says, attributes = {}) => svg("text", { x, y, ...attributes }, says);
  const title = (x, y, says) => text(x, y, says, { class: "title" });

  /** Draw the step. `letters` are those before, `read` is what `reading` returns, `answer` the letter that is said, and
   * `says` how the code stands for it. Return how many seconds the picture moves. */
  function draw(box, { letters, read, table, flips, answer, says, pace }) {
    const width = Math.max(300, box.clientWidth), stacked = width < STACKED;
    const wide = stacked ? Math.min(width, 420) : (width - 2 * GAP) / 3;
    const place = (k, y) => ({ x: stacked ? 0 : k * (wide + GAP), y: stacked ? y : 0, wide });
    const hash = drawHash(place(0, 0), letters, read);
    const words = drawTable(place(1, hash.height + GAP), read, table, hash.out);
    const sum = drawSum(place(2, hash.height + words.height + 2 * GAP), read, table, flips, words.cells, answer, says);
    const parts = [hash, words, sum], heights = parts.map((part) => part.height);
    const height = stacked ? heights.reduce((total, own) => total + own + GAP, 0) : Math.max(...heights);
    const label = `The letters ${letters.join("")} are hashed, the hash picks six words, and their sum gives ${answer}.`;
    const arrows = stacked ? [] : words.cells.flatMap((cell, lane) => [
      line(hash.out, cell, BEGINS.find), line(cell, sum.strips[lane], BEGINS.fetch),
    ]);
    box.replaceChildren(svg("svg", {
      viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, style: `--pace: ${pace}`,
    }, ...arrows, ...parts.flatMap((part) => part.shapes)));
    return LASTS * pace;
  }

  function line([x, y], [a, b], at) {
    const middle = (x + a) / 2;
    return svg("path", { d: `M${x} ${y}C${middle} ${y} ${middle} ${b} ${a} ${b}`, ...comes(at, { style: "line" }) });
  }

  function drawHash({ x, y, wide }, letters, read) {
    const last = letters.slice(-LETTERS), side = Math.min(36, wide / LETTERS), top = y + 26, knot = y + 118;
    const middle = x + (side * LETTERS) / 2;
    const shapes = [title(x, y + 13, "1. Attention mixes the last letters")];
    last.forEach((letter, k) => {
      const left = x + k * side, centre = left + side / 2, at = BEGINS.letters + 0.05 * k;
      const path = `M${centre} ${top + side}C${centre} ${knot - 10} ${middle} ${top + side} ${middle} ${knot}`;
      shapes.push(
        svg("path", { class: "line", d: path }),
        svg("rect", { class: "box", x: left + 1, y: top, width: side - 2, height: side, rx: 4 }),
        text(centre, top + side / 2 + 5, letter, { "text-anchor": "middle", ...comes(at) }),
        svg("circle", { cx: middle, cy: knot, r: 3, ...comes(BEGINS.mix + 0.04 * k, {
          dx: centre - middle, dy: top + side - knot, style: "dot" }) }),
      );
    });
    const rows = `rows ${read.rows[0]} and ${read.rows[1]}`;
    const columns = `columns ${read.lanes.map(({ entry, column }) => (entry === null ? "–" : column)).join(" ")}`;
    const width = Math.min(wide, side * LETTERS);
    shapes.push(svg("g", comes(BEGINS.hash, { from: 0.6 }),
      svg("rect", { class: "box", x, y: knot, width, height: 62, rx: 6 }),
      text(x + 10, knot + 17, "hash", { class: "note" }),
      text(x + 10, knot + 35, rows), text(x + 10, knot + 53, `${columns}, bits from ${read.code[0].bit} down`),
    ));
    return { shapes, height: knot + 66 - y, out: [x + width, knot + 31] };
  }

  /** Draw both halves of the table, to scale, and the words that are read. */
  function drawTable({ x, y, wide }, read, table, from) {
    const across = 3 * table.columns, cell = Math.min(24, wide / across);
    const tall = Math.min(84, Math.max(24, table.rows * cell)), step = tall / table.rows, width = cell * across;
    const shapes = [title(x, y + 13, "2. Six words of a weight matrix")], cells = [];
    [0, 1].forEach((half) => {
      const top = y + 42 + half * (tall + 34);
      const grid = [];
      for (let k = 1; k < across; k++) grid.push(`M${x + k * cell} ${top}v${tall}`);
      if (step > 3) for (let k = 1; k < table.rows; k++) grid.push(`M${x} ${top + k * step}h${width}`);
      shapes.push(
        text(x, top - 6, `half ${"AB"[half]}: ${table.rows} rows of ${across} words`, { class: "note" }),
        svg("g", { class: "cells" },
          svg("rect", { x, y: top, width, height: tall }), svg("path", { d: grid.join("") })),
      );
      for (const { lane, row, column, entry } of read.lanes.slice(3 * half, 3 * half + 3)) {
        if (entry === null) continue;
        const wideEnough = Math.max(cell, 5), high = Math.max(step, 5);
        const left = x + ((lane % 3) * table.columns + column) * cell;
        const above = Math.min(top + row * step, top + tall - high);
        const centre = [left + wideEnough / 2, above + high / 2];
        cells[lane] = centre;
        const moves = { dx: from[0] - centre[0], dy: from[1] - centre[1], style: "lit" };
        const size = { x: left, y: above, width: wideEnough, height: high };
        shapes.push(svg("rect", { ...size, ...comes(BEGINS.find + 0.05 * lane, moves) }));
      }
    });
    return { shapes, cells, height: 2 * tall + 34 + 46 };
  }

  function drawSum({ x, y, wide }, read, table, flips, cells, answer, says) {
    const bit = wide / table.bits, high = 15, row = 20, top = y + 26;
    const shapes = [title(x, y + 13, "3. Their sum holds the answer")];
    const left = (place) => x + (table.bits - 1 - place) * bit;
    const places = Array.from({ length: table.bits }, (_, k) => table.bits - 1 - k);
    const code = new Set(read.code.slice(0, Math.max(1, read.length)).map((each) => each.bit));
    const bits = (word, at, entry) => places.map((place) => svg("rect", {
      class: flips.has(`${entry},${place}`) ? "flip" : bitOf(word, place) ? "on" : "off",
      x: left(place) + 0.5, y: at, width: bit - 1, height: high, rx: 2,
    }));
    const bottom = top + 6 * row + 6;
    const bands = [...code].map((place) => svg("rect", {
      x: left(place) - 0.5, y: top - 4, width: bit + 1, height: bottom - top + high + 8,
      ...comes(BEGINS.answer, { style: "mark" }),
    }));
    read.lanes.forEach(({ lane, entry, word }) => {
      const at = top + lane * row, [cx, cy] = cells[lane] ?? [x, at];
      shapes.push(entry === null ? text(x, at + 12, "no word here: 0", { class: "note" })
        : svg("g", comes(BEGINS.fetch + 0.06 * lane, { dx: cx - x - wide / 2, dy: cy - at, from: 0.1 }),
          ...bits(word, at, entry)));
    });
    const word = read.code.slice(0, code.size).map(({ value }) => value).join("");
    const square = 44, foot = bottom + high + 14;
    const strips = read.lanes.map(({ lane }) => [x, top + lane * row + high / 2]);
    shapes.push(svg("path", { d: `M${x} ${bottom - 5}h${wide}`, style: "stroke: var(--quiet)" }),
      svg("g", comes(BEGINS.sum, { dy: -40 }), ...bits(read.sum, bottom)),
      svg("g", comes(BEGINS.answer, { dy: -30, from: 0.5 }),
        text(x + wide - square - 10, foot + 28, `${word} ${says}`, { "text-anchor": "end" }),
        svg("rect", { class: "mark", x: x + wide - square, y: foot, width: square, height: square, rx: 6 }),
        text(x + wide - square / 2, foot + 31, answer, { class: "answer onmark", "text-anchor": "middle" })),
    );
    return { shapes: [...bands, ...shapes], strips, height: foot + square + 4 - y };
  }

  return { draw };
})();
