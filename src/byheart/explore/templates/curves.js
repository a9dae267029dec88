"use strict";
// The second part of the page: sliders for the sizes, and every bound and every true count as curves and tables.

(() => {
  const { grid, bits, bounds, counts, colours, expected, limited } = data.bounds;
  const SLIDERS = [
    { key: "N", name: "examples", says: "N, sequences", values: grid.examples, first: 12 },
    { key: "n", name: "length", says: "n, tokens per sequence", values: grid.length, first: 1 },
    { key: "vocab", name: "vocab", says: "ω, different tokens", values: grid.vocab, first: 1 },
    { key: "C", name: "labels", says: "C, labels", values: grid.labels, first: 1 },
    { key: "b", name: "bits", says: "precision in bits", values: bits, first: 1 },
  ];
  const STYLES = { proved: "", order: "7 4", measured: "2 4", fitted: "2 4" };
  const WORDS = { upper: "suffice", lower: "are needed" };
  const at = {}; // index of every slider's value

  const sizes = () => Object.fromEntries(SLIDERS.map(({ key, values }) => [key, values[at[key]]]));

  /** Return the indices in the table of counts of the grid's points along N, with the other sizes as chosen. */
  function line() {
    const [, n, vocab, C] = SLIDERS;
    const start = (at.n * vocab.values.length + at.vocab) * C.values.length + at.C;
    return grid.examples.map((_, k) => start * grid.examples.length + k);
  }

  /** Return constructions with their true counts along N as {name, colour, values}; a missing count is null. */
  function constructions(setting) {
    const kept = (name) => !name.startsWith(`${limited}, `) || name === `${limited}, ${sizes().b} bits`;
    return Object.entries(counts[setting]).filter(([name]) => kept(name)).map(([name, all]) => ({
      name, values: line().map((index) => all[index]), colour: colours[name.split(",")[0]], hollow: name.includes(","),
    }));
  }

  function answersTo(setting) {
    return bounds[setting].map((bound) => ({
      ...bound,
      values: bound.missing.length ? null : grid.examples.map((N) => FORMULAS[bound.name]({ ...sizes(), N })),
    }));
  }

  function draw() {
    const setting = byId("setting").value, now = sizes();
    const built = constructions(setting), known = answersTo(setting);
    for (const { key, values } of SLIDERS) {
      byId(`slider-${key}`).setAttribute("aria-valuetext", number(values[at[key]]));
      byId(`value-${key}`).textContent = number(values[at[key]]);
    }
    byId("at").textContent = number(now.N);
    byId("sizes-note").textContent = mayDiffer(now) ? ""
      : `There are fewer than ${number(now.N)} different sequences of ${now.n} tokens out of ${now.vocab}: ` +
        "no task is this large.";
    drawCounts(built);
    drawAnswers(known);
    drawCurves(built, known);
    state.write({ setting, ...now });
    byId("link").href = location.href;
    const flags = SLIDERS.map(({ key, name }) => `--${name} ${now[key]}`).join(" ");
    byId("command").textContent = `byheart bounds --setting ${setting} ${flags} --hypotheses`;
  }

  function drawCounts(built) {
    const there = built.map((made) => ({ ...made, value: made.values[at.N] }));
    const rows = there.filter(({ value, hollow }) => value !== null || hollow);
    rows.sort((a, b) => (a.value ?? Infinity) - (b.value ?? Infinity));
    byId("counts").replaceChildren(
      tableHead("construction, as built", ">parameters", ""),
      ...rows.map(({ name, value, colour, hollow }) => {
        const dot = `${hollow ? "box-shadow: inset 0 0 0 2px" : "background:"} var(${variable(colour)})`;
        const said = hollow ? `${limited}, at most ${sizes().b} bits in a weight` : name;
        const mark = expected.includes(name) ? "expected: not proved for every task"
          : value === null ? "none: too few bits for the hash of a sequence" : "";
        const header = element("span", {}, element("span", { class: "swatch", style: dot }), said);
        return tableRow(header, [value ?? element("td", { class: "n" }, "–"), mark], { "data-name": name });
      }),
    );
  }

  const variable = (colour) => `--${colour.slice(1)}`;

  function drawAnswers(known) {
    byId("answers").replaceChildren(
      tableHead("bound", ">value", "kind", "says"),
      ...known.map(({ paper, name, side, kind, expression, values, missing }) => {
        const says = `${expression} ${kind === "measured" ? "" : WORDS[side]}`;
        const value = values ? values[at.N] : element("td", { class: "n" }, `needs: ${missing.join(", ")}`);
        return tableRow(paper, [value, kind, element("td", { class: "wrap" }, says)], { "data-name": name });
      }),
    );
  }

  function drawCurves(built, known) {
    const width = Math.max(300, byId("curves").clientWidth), wide = width > 640, height = wide ? 440 : 340;
    const box = { left: 52, right: width - (wide ? 240 : 12), top: 12, bottom: height - 34 };
    const curves = [
      ...known.filter(({ values }) => values).map((each) => ({ ...each, colour: "--quiet", dash: STYLES[each.kind] })),
      ...built.map((made) => ({ ...made, colour: variable(made.colour), dots: true })),
    ];
    const all = curves.flatMap(({ values }) => values).filter((value) => value > 0);
    const top = Math.ceil(Math.log10(Math.max(...all))), last = grid.examples.length - 1;
    const across = (k) => box.left + ((box.right - box.left) * k) / last;
    const up = (value) => box.bottom - ((box.bottom - box.top) * Math.log10(Math.max(value, 1))) / top;
    const label = "Parameters against N; the tables below say the same in numbers at the chosen N";
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    const tick = (x, y, anchor, text) => svg("text", { class: "tick", x, y, "text-anchor": anchor }, text);
    for (let power = 0; power <= top; power += top > 8 ? 2 : 1) {
      picture.append(
        svg("line", { class: "grid", x1: box.left, x2: box.right, y1: up(10 ** power), y2: up(10 ** power) }),
        tick(box.left - 6, up(10 ** power) + 4, "end", `10${raised(power)}`),
      );
    }
    grid.examples.forEach((N, k) => {
      const power = Math.log10(N);
      if (Number.isInteger(power)) picture.append(tick(across(k), box.bottom + 18, "middle", `10${raised(power)}`));
    });
    picture.append(svg("line", { class: "here", x1: across(at.N), x2: across(at.N), y1: box.top, y2: box.bottom }));
    picture.append(tick((box.left + box.right) / 2, height - 2, "middle", "N"));
    for (const curve of curves) picture.append(...drawn(curve, across, up));
    if (wide) picture.append(...named(curves, box, up));
    byId("curves").replaceChildren(picture);
  }

  const raised = (power) => String(power).replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);

  function drawn({ values, colour, dash, dots, hollow }, across, up) {
    const points = values.flatMap((value, k) => (value === null ? [] : [[across(k), up(value)]]));
    const d = points.map(([x, y], k) => `${k ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    const stroke = `stroke: var(${colour})`;
    const path = svg("path", { d, style: stroke, "stroke-width": dots ? 1 : 1.5, "stroke-dasharray": dash || "none" });
    if (!dots) return [path];
    const fill = hollow ? "var(--paper)" : `var(${colour})`;
    const style = `fill: ${fill}; ${stroke}`;
    return [path, ...points.map(([x, y]) => svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: 2.6, style }))];
  }

  /** Return names for the ends of lines, moved apart if they would touch; curves that end together share a label. */
  function named(curves, box, up) {
    const ends = new Map();
    for (const { name, paper, side, kind, values, colour } of curves) {
      const value = values[values.length - 1];
      if (value === null) continue; // the curve ends earlier; its colour and the table name it
      const text = paper ? `${short(paper)}${name.endsWith("rank-one") ? ", rank one" : ""}` : name;
      const says = kind === "proved" ? side : kind, y = up(value), key = paper ? `${Math.round(y)} ${says}` : name;
      if (!ends.has(key)) ends.set(key, { texts: new Set(), says: paper && says, y, colour });
      ends.get(key).texts.add(text);
    }
    const labels = [...ends.values()].sort((a, b) => a.y - b.y);
    labels.forEach((label, k) => (label.at = Math.max(label.y, k ? labels[k - 1].at + 14 : box.top)));
    let room = box.bottom + 4;
    for (const label of labels.toReversed()) room = (label.at = Math.min(label.at, room)) - 14;
    return labels.flatMap(({ texts, says, y, at: place, colour }) => [
      svg("path", { d: `M${box.right + 5} ${y}L${box.right + 16} ${place}h6`, style: `stroke: var(${colour})` }),
      svg("text", { x: box.right + 26, y: place + 4 }, [...texts].join(", ") + (says ? ` (${says})` : "")),
    ]);
  }

  const short = (paper) => paper.replace(/^([^,&]+?)(,.*|\s&.*)?\s(\d{4})$/, "$1 $3");

  for (const { key, says, values, first } of SLIDERS) {
    const id = `slider-${key}`, value = element("output", { id: `value-${key}`, for: id });
    const oninput = (event) => ((at[key] = Number(event.target.value)), draw());
    byId("sliders").append(element("div", {},
      element("label", { for: id }, `${says}: `, value),
      element("input", { id, type: "range", min: 0, max: values.length - 1, step: 1, value: first, oninput }),
    ));
  }

  /** Set the sliders from the address, except for values that are not stops of a slider. */
  function follow() {
    const kept = state.read();
    for (const { key, values, first } of SLIDERS) {
      const index = values.indexOf(Number(kept[key]));
      at[key] = index < 0 ? at[key] ?? first : index;
      byId(`slider-${key}`).value = at[key];
    }
    if (kept.setting in bounds) byId("setting").value = kept.setting;
    draw();
  }

  byId("setting").addEventListener("change", draw);
  window.addEventListener("hashchange", follow);
  window.addEventListener("resize", draw);
  follow();
})();
