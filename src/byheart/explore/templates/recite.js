"use strict";
// The first part of the page: a compiled network, a prompt, and every step to the next token.

(() => {
  const MOST_SAID = 400, MOST_MAPPED = 2500, MOST_LISTED = 60;
  const NAMES = ["start", "rows A, B", "columns 0, 1", "columns 2, 3", "columns 4, 5", "offset"];
  let network, table, all, flips, tokens, given, chosen, word;

  const typed = () => [...new TextEncoder().encode(byId("prompt").value)];
  const spelled = (ids) => new TextDecoder().decode(Uint8Array.from(ids.filter((id) => id < 256)));
  const NAMED = { 9: "tab", 10: "⏎", 32: "␣" };
  const shown = (id) => {
    if (id === network.given.end) return "the end";
    return NAMED[id] || (id < 32 || id > 126 ? `byte ${id}` : spelled([id]));
  };
  const visible = (text) => text.replaceAll("\n", "⏎");
  const half = (lane) => "AB"[Math.floor(lane / 3)];
  const nameOf = ({ lane, row, column }) => `${half(lane)}, row ${row}, lane ${lane}, column ${column}`;

  function open(index) {
    const found = data.networks[index];
    byId("network").selectedIndex = index;
    network = new Network(found);
    table = new Table(network);
    all = memories(network, table);
    flips = new Map();
    word = null;
    const parameters = number(found.parameters), words = number(table.tensor.length);
    byId("facts").textContent =
      `${parameters} parameters, ${words} of them words of ${table.bits} bits; window ${network.spec.window} tokens; ` +
      `${number(all.length)} memories: every context of the text and what follows it.`;
    byId("window").textContent = network.spec.window;
  }

  /** Continue the typed prompt, even if it is not in the network's texts. */
  function speak(prompt = given) {
    given = prompt;
    const longest = Math.max(...network.given.texts.map((text) => text.prompt.length + text.tokens));
    const most = Math.min(MOST_SAID, longest + 1);
    const { said, ended } = given.length ? recite(network, given, most) : { said: [], ended: false };
    tokens = [...given, ...said, ...(ended ? [network.given.end] : [])];
    const known = all.some((memory) => endsAlike(memory.context, given));
    byId("strange").textContent = !given.length
      ? "Type a prompt, for example the beginning of the text."
      : known ? "" : "No memory ends like this prompt: what follows is whatever the hash happens to read.";
    chosen = Math.min(Math.max(chosen, given.length), tokens.length - 1);
    state.write({ network: network.given.name, prompt: byId("prompt").value });
    drawSaid();
    inspect();
  }

  /** Return true if two contexts are equal as far back as the network sees. */
  function endsAlike(context, other) {
    const [a, b] = [context, other].map((ids) => ids.slice(-network.sees));
    return a.length === b.length && a.every((id, k) => id === b[k]);
  }

  function drawSaid() {
    const before = memoriesByContext();
    const parts = tokens.map((id, place) => {
      const memory = before.get(key(tokens.slice(0, place)));
      const wrong = place >= given.length && memory && memory.answer !== id;
      return element("span", {
        role: "option", "data-place": place, class: wrong && "wrong", id: `place-${place}`,
        "aria-label": wrong ? `${shown(id)}, wrong` : shown(id),
      }, id === network.given.end ? "∎" : id < 128 ? spelled([id]) : "�");
    });
    byId("given").textContent = spelled(given);
    byId("spoken").replaceChildren(...joined(parts).slice(given.length));
    byId("spoken").hidden = tokens.length === given.length;
  }

  /** Show the bytes of a letter beyond ASCII as one letter. */
  function joined(parts) {
    let place = 0;
    while (place < parts.length) {
      let stop = place + 1;
      while (stop < tokens.length && tokens[place] > 191 && tokens[stop] > 127 && tokens[stop] < 192) stop++;
      if (stop > place + 1) {
        parts[place].textContent = spelled(tokens.slice(place, stop));
        for (let k = place + 1; k < stop; k++) parts[k].textContent = "";
      }
      place = stop;
    }
    return parts;
  }

  const key = (context) => context.slice(-network.sees).join();
  const memoriesByContext = () => new Map(all.map((memory) => [key(memory.context), memory]));

  function inspect() {
    const context = tokens.slice(0, chosen);
    if (!context.length) return;
    for (const option of byId("spoken").children) {
      option.setAttribute("aria-selected", String(Number(option.dataset.place) === chosen));
    }
    byId("spoken").setAttribute("aria-activedescendant", `place-${chosen}`);
    const read = reading(network, table, context);
    byId("letter").textContent = shown(read.label);
    drawHash(context, read);
    drawWords(read);
    drawAnswer(read);
    drawMap(read);
  }

  function drawHash(context, read) {
    const { moduli } = network.given;
    const window = context.slice(-network.spec.window);
    const W_E = network.tensors["embedding.W_E"], width = network.embeds.length;
    const code = (id) => ` ${W_E.slice(id * width, (id + 1) * width).join(", ")}`;
    const coded = window.map((id) => element("span", {}, element("b", {}, shown(id)), code(id)));
    byId("codes").replaceChildren("Codes: ", ...coded);
    byId("hash").replaceChildren(
      tableHead("", ...NAMES.map((name) => `>${name}`)),
      tableRow("sum", read.sums),
      tableRow("number of values", moduli),
      tableRow("sum modulo that", read.reduced),
    );
    byId("places").textContent =
      `The hash gives row ${read.rows[0]} of half A, row ${read.rows[1]} of half B, a column in each of six lanes, ` +
      `and offset ${read.offset}. A column number without a column reads nothing.`;
  }

  function drawWords(read) {
    const rows = read.lanes.map((lane) => {
      const name = `${half(lane.lane)}, row ${lane.row}`;
      const head = `lane ${lane.lane}`;
      if (lane.entry === null) return tableRow(head, ["reads nothing", name, element("td", { class: "n" }, "none"), 0]);
      const open = element("button", {
        type: "button", class: "link", "aria-label": `Memories that use word ${nameOf(lane)}`,
        onclick: () => chooseWord(lane.entry, true),
      }, name);
      return tableRow(head, [switches(lane), open, lane.column, lane.word]);
    });
    const sum = tableRow("sum", [sumBits(read), "", "", read.sum], { class: "sum" });
    const focus = focused();
    const head = tableHead("", `bits, ${table.bits - 1} to 0`, "word", ">column", ">as a number");
    byId("words").replaceChildren(head, ...rows, sum);
    if (focus) byId("words").querySelector(focus)?.focus();
  }

  /** Return a selector for the switch with the focus, to restore it after the table is redrawn. */
  function focused() {
    const now = document.activeElement;
    return now && now.dataset.entry ? `[data-entry="${now.dataset.entry}"][data-bit="${now.dataset.bit}"]` : null;
  }

  function switches(lane) {
    const buttons = places().map((bit) => {
      const value = bitOf(lane.word, bit);
      return element("button", {
        type: "button", "data-entry": lane.entry, "data-bit": bit, tabindex: bit === table.bits - 1 ? 0 : -1,
        class: flips.has(`${lane.entry},${bit}`) && "flipped", "aria-label": `lane ${lane.lane}, bit ${bit}: ${value}`,
      }, String(value));
    });
    const name = `Bits of lane ${lane.lane}; arrow keys move`;
    return element("span", { class: "bits", role: "group", "aria-label": name }, ...buttons);
  }

  const places = () => Array.from({ length: table.bits }, (_, k) => table.bits - 1 - k);

  function sumBits(read) {
    const order = new Map(read.code.map(({ bit }, k) => [bit, k]));
    const bits = places().map((bit) => {
      const k = order.get(bit);
      const style = k === undefined ? false : k < read.length ? "read code" : "read";
      return element("span", { class: style }, String(bitOf(read.sum, bit)));
    });
    const name = `the sum's bits; read are bits ${read.code.map(({ bit }) => bit).join(", ")}`;
    return element("span", { class: "bits", role: "img", "aria-label": name }, ...bits);
  }

  function drawAnswer(read) {
    const code = read.code.map(({ value }) => value).join(""), own = Math.max(read.length, 0);
    byId("answer").replaceChildren(
      `The ${read.longest} bits below offset ${read.offset} `, element("code", {}, code), ` make Y = ${read.Y}`,
      own ? `; the first ${own} are the code of ` : "; that is no token's code, and the nearest is ",
      element("q", {}, shown(read.label)),
      ". The unembedding has one line per token; at Y, this token's line is the highest.",
    );
    const best = [...read.logits.keys()].sort((a, b) => read.logits[b] - read.logits[a]).slice(0, 4);
    byId("logits").replaceChildren(
      tableHead("token", ">logit"), ...best.map((id) => tableRow(shown(id), [read.logits[id]])),
    );
  }

  function drawMap(read) {
    const large = table.tensor.length > MOST_MAPPED;
    byId("map-hint").textContent = large
      ? `The table has ${number(table.tensor.length)} words, too many to draw; choose a word that is read above.`
      : "Every word of the table; the number and the shade show how many memories use it. Outlined: read now. " +
        "Arrow keys move.";
    if (large) return byId("map").replaceChildren();
    const uses = counted(), most = Math.max(...uses), now = new Set(read.lanes.map((lane) => lane.entry));
    const lanes = [0, 1, 2, 3, 4, 5];
    const head = element("tr", {}, element("th", {}, "row"),
      ...lanes.map((lane) =>
        element("th", { scope: "colgroup", colspan: table.columns }, `${half(lane)}, lane ${lane}`)));
    const rows = Array.from({ length: table.rows }, (_, row) => tableRow(String(row), lanes.flatMap((lane) =>
      Array.from({ length: table.columns }, (_, column) => {
        const entry = table.entry(lane, row, column), heat = most ? Math.round((42 * uses[entry]) / most) : 0;
        const button = element("button", {
          type: "button", "data-word": entry, style: `--heat: ${heat}%`, tabindex: entry === (word ?? 0) ? 0 : -1,
          class: now.has(entry) && "now", "aria-pressed": String(entry === word),
          "aria-label": `${nameOf({ lane, row, column })}: used by ${uses[entry]} memories`,
        }, String(uses[entry]));
        return element("td", { class: column === 0 && lane > 0 && "gap" }, button);
      }))));
    byId("map").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
  }

  function counted() {
    const uses = new Array(table.tensor.length).fill(0);
    for (const memory of all) for (const { entry } of memory.lanes) if (entry !== null) uses[entry]++;
    return uses;
  }

  function chooseWord(entry, go = false) {
    word = entry;
    const users = all.filter((memory) => memory.lanes.some((lane) => lane.entry === entry));
    byId("word-title").textContent = `Word ${nameOf(table.place(entry))}: ${number(table.word(entry))}`;
    byId("word-says").textContent = users.length
      ? `${users.length} of ${all.length} memories use it, and share its bits.`
      : "No memory uses it: its bits are free.";
    byId("uses").replaceChildren(...listed(users));
    for (const button of byId("map").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.word) === entry));
    }
    if (go) byId("word-title").focus();
  }

  /** Return memories as list items with buttons that show them. */
  function listed(some, says = (memory) => shown(memory.answer)) {
    const items = some.slice(0, MOST_LISTED).map((memory) => {
      const text = visible(spelled(memory.context.slice(-network.spec.window)));
      const onclick = () => remember(memory);
      const button = element("button", { type: "button", class: "link", onclick }, `…${text}`);
      return element("li", {}, button, ` → ${says(memory)}`);
    });
    const more = some.length - items.length;
    return more > 0 ? [...items, element("li", {}, `… and ${number(more)} more`)] : items;
  }

  function remember(memory) {
    byId("prompt").value = spelled(memory.context);
    chosen = 0;
    speak(memory.context);
    byId("spoken").focus();
  }

  function flip(entry, bit) {
    table.flip(entry, bit);
    const name = `${entry},${bit}`;
    if (!flips.delete(name)) flips.set(name, [entry, bit]);
    judge();
  }

  /** Show which memories are wrong with the current bits. */
  function judge() {
    const now = new Map(all.map((memory) => [memory, argmax(network.back(memory.stream))]));
    const wrong = all.filter((memory) => now.get(memory) !== memory.answer);
    const many = flips.size === 1 ? "One bit is flipped" : `${flips.size} bits are flipped`;
    byId("reset").hidden = !flips.size;
    byId("damage").textContent = !flips.size ? "" : wrong.length
      ? `${many}: ${wrong.length} of ${all.length} answers are wrong now, and all others are as they were.`
      : `${many}, and nothing breaks: all ${all.length} answers are as they were.`;
    const says = (memory) => `${shown(now.get(memory))} (was ${shown(memory.answer)})`;
    byId("broken").replaceChildren(...listed(wrong, says));
    speak();
    if (word !== null) chooseWord(word);
  }

  function pick(place) {
    chosen = place;
    inspect();
  }

  byId("network").append(...data.networks.map(({ name }) => element("option", {}, name)));
  byId("network").addEventListener("change", () => begin(byId("network").selectedIndex));
  byId("prompt").addEventListener("input", () => ((chosen = 0), speak(typed())));
  byId("reset").addEventListener("click", () => {
    for (const [entry, bit] of flips.values()) table.flip(entry, bit);
    flips.clear();
    judge();
  });
  byId("spoken").addEventListener("click", ({ target }) => target.dataset.place && pick(Number(target.dataset.place)));
  byId("spoken").addEventListener("keydown", (event) => {
    const options = [...byId("spoken").children];
    const now = options.findIndex((option) => Number(option.dataset.place) === chosen);
    arrows(event, options, now, (k) => pick(Number(options[k].dataset.place)));
  });
  byId("words").addEventListener("click", ({ target }) => {
    if (target.dataset.bit) flip(Number(target.dataset.entry), Number(target.dataset.bit));
  });
  byId("map").addEventListener("click", ({ target }) => target.dataset.word && chooseWord(Number(target.dataset.word)));
  for (const [box, inside] of [["words", ".bits"], ["map", "tr"]]) {
    byId(box).addEventListener("keydown", (event) => {
      const near = event.target.closest(inside);
      if (!near || event.target.classList.contains("link")) return;
      const buttons = [...near.querySelectorAll("button")];
      arrows(event, buttons, buttons.indexOf(event.target), (k) => buttons[k].focus());
    });
  }

  function begin(index, prompt) {
    open(index);
    byId("prompt").value = prompt ?? spelled(all[Math.min(4, all.length - 1)].context);
    chosen = 0;
    byId("damage").textContent = "";
    byId("word-title").textContent = "Which memories use a word";
    byId("word-says").textContent = "Choose a word above.";
    for (const id of ["broken", "uses"]) byId(id).replaceChildren();
    byId("reset").hidden = true;
    speak(typed());
  }

  const kept = state.read();
  begin(Math.max(0, data.networks.findIndex(({ name }) => name === kept.network)), kept.prompt);
})();
