"use strict";
// The third part of the page: an exact network on five sequences, with the stream after every layer.

(() => {
  const { sequences, labels, networks, roles } = data.exact;

  function draw() {
    const network = networks[byId("exact-network").selectedIndex], place = byId("exact-sequence").selectedIndex;
    const sequence = sequences[place], found = steps(network, sequence);
    const answer = found[found.length - 1].tokens[0][0];
    byId("exact-facts").textContent =
      `${network.parameters} parameters; ${network.summary}. On ${sequence.join(", ")} it answers ${answer}; ` +
      `the label is ${labels[place]}.`;
    const first = { name: "tokens", says: "the sequence", tokens: sequence.map((token) => [BigInt(token)]) };
    byId("exact-steps").replaceChildren(...[first, ...found].map(card));
    state.write({ construction: network.name, sequence: place });
  }

  function card(step, index) {
    const tokens = step.tokens.map((values) => element("span", { class: "token" }, ...spaced(values)));
    const parts = [element("h3", {}, `${index}. ${step.name}`), element("p", {}, ...said(step))];
    parts.push(element("div", { class: "stream" }, ...tokens));
    if (step.weights) parts.push(weightsOf(step.weights));
    return element("div", { class: "layer" }, ...parts);
  }

  /** Return what a step does: in words if its role has a description, and as a formula. */
  function said({ name, says }) {
    return name in roles ? [`${roles[name]}: `, element("code", {}, says)] : [says];
  }

  function spaced(values) {
    const shown = (value) => element("span", { class: value === 0n && "zero" }, digits(value));
    return values.flatMap((value, k) => [k ? " " : "", shown(value)]);
  }

  const digits = (value) => value.toLocaleString("en").replace("-", "−");

  function weightsOf(weights) {
    const tables = Object.entries(weights).flatMap(([name, values]) => {
      const cells = (row) => [row].flat().map((value) => element("td", { class: "n" }, digits(value)));
      const rows = values.map((row) => element("tr", {}, ...cells(row)));
      return [element("h4", {}, name), element("div", { class: "table", tabindex: 0 }, element("table", {}, ...rows))];
    });
    return element("details", {}, element("summary", {}, `weights: ${Object.keys(weights).join(", ")}`), ...tables);
  }

  byId("exact-network").append(...networks.map(({ name }) => element("option", { value: name }, name)));
  const asked = sequences.map((sequence, k) => `${sequence.join(", ")} → ${labels[k]}`);
  byId("exact-sequence").append(...asked.map((text, k) => element("option", { value: k }, text)));
  const kept = state.read();
  if (networks.some(({ name }) => name === kept.construction)) byId("exact-network").value = kept.construction;
  if (sequences[kept.sequence]) byId("exact-sequence").value = kept.sequence;
  for (const id of ["exact-network", "exact-sequence"]) byId(id).addEventListener("change", draw);
  draw();
})();
