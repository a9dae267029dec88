"use strict";
// The first part of the page: a compiled network, a prompt, and every step to the next token.

(() => {
  const LEAST_GIVEN = 5, MOST_SAID = 400, MOST_MAPPED = 2500, MOST_LISTED = 60, MOST_SHOWN = 300, LONGEST = 64;
  const PARTS = ["start", "rows A, B", "columns 0, 1", "columns 2, 3", "columns 4, 5", "offset"];
  let network, table, all, known, flips, tokens, names, given, most, chosen, word, read;
  let playing = null;

  const visible = (text) => text.replaceAll("\n", "⏎");
  const visibly = (character) => NAMED[character.codePointAt(0)] ?? character;
  const shown = (id) => nameOfToken(id, network.given.end);
  const half = (lane) => "AB"[Math.floor(lane / 3)];
  const nameOf = ({ lane, row, column }) => `${half(lane)}, row ${row}, lane ${lane}, column ${column}`;
  const key = (ids, length = ids.length) => ids.slice(Math.max(0, length - network.sees), length).join();
  const wordsOf = ({ lanes }) => lanes.filter(({ entry }) => entry !== null);

  function open(index) {
    const found = data.networks[index];
    byId("network").selectedIndex = index;
    network = new Network(found);
    table = new Table(network);
    all = memories(network, table);
    known = new Map(all.map((memory) => [key(memory.tokens, memory.length), memory]));
    flips = new Map();
    word = null;
    const parameters = number(found.parameters), words = number(table.tensor.length);
    const learned = found.facts.length ? `It knows ${number(found.facts.length)} facts: ${number(all.length)} answers. `
      : all.length ? `It has ${number(all.length)} answers by heart: after every beginning of the text, the next byte. `
        : "It was compiled from facts, which it does not list: type a prompt that it knows. ";
    byId("facts").textContent =
      `${learned}It has ${parameters} parameters, ${words} of them words of ${table.bits} bits, and looks at the ` +
      `last ${network.spec.window} bytes.`;
    byId("window").textContent = network.spec.window;
    byId("fact").parentElement.hidden = !found.facts.length;
    byId("fact").replaceChildren(...found.facts.map(({ prompt }, k) =>
      element("option", { value: k }, visible(spelled(prompt)).slice(0, MOST_LISTED))));
  }

  /** Continue a prompt, even if it is not in the network's texts. */
  function speak(prompt = given, place = 0) {
    stop();
    given = prompt;
    const { texts, longest, end } = network.given;
    const whole = Math.max(longest, ...texts.map((text) => text.prompt.length + text.tokens)) + 1;
    const { said, ended } = given.length ? recite(network, given, Math.min(most, whole)) : { said: [], ended: false };
    tokens = [...given, ...said, ...(ended ? [end] : [])];
    names = namesOf(tokens, end);
    byId("strange").textContent = !given.length ? "Type a prompt, for example the beginning of the text."
      : known.has(key(given)) ? ""
        : all.length ? "Nothing that it knows ends like this prompt: what follows is whatever the hash happens to read."
          : ended ? "" : "This does not come to an end: the prompt is probably none that it knows.";
    byId("more").hidden = ended || said.length < most;
    chosen = Math.min(Math.max(place, given.length), tokens.length - 1);
    state.write({ network: network.given.name, prompt: byId("prompt").value });
    drawSaid();
    inspect();
  }

  /** Show the text, character by character; a character that the prompt cuts is said. */
  function drawSaid() {
    const isWrong = (place) => {
      const memory = place >= given.length && known.get(key(tokens, place));
      return memory && memory.answer !== tokens[place];
    };
    const [before, after] = [[], []];
    for (const { start, stop, text } of characters(tokens, network.given.end)) {
      if (stop <= given.length) {
        before.push(text);
        continue;
      }
      const wrong = Array.from({ length: stop - start }, (_, k) => start + k).some(isWrong);
      after.push(element("span", {
        role: "option", "data-place": Math.max(start, given.length), "data-stop": stop, class: wrong && "wrong",
        id: `place-${start}`, "aria-label": visibly(text) + (wrong ? ", wrong" : ""),
      }, text));
    }
    const left = before.length - MOST_SHOWN;
    byId("given").textContent = (left > 0 ? "…" : "") + before.slice(Math.max(0, left)).join("");
    byId("spoken").replaceChildren(...after);
    byId("spoken").hidden = !after.length;
  }

  /** Show how the network computed the chosen token; return how many seconds the picture moves. */
  function inspect(pace = 1) {
    const context = tokens.slice(0, chosen);
    if (!context.length) return;
    for (const option of byId("spoken").children) {
      const { place, stop } = option.dataset, here = Number(place) <= chosen && chosen < Number(stop);
      option.setAttribute("aria-selected", String(here));
      if (here) byId("spoken").setAttribute("aria-activedescendant", option.id);
    }
    read = reading(network, table, context);
    byId("letter").textContent = names[chosen];
    const seconds = drawPicture(pace);
    drawBytes();
    drawHash(context, read);
    drawWords(read);
    drawAnswer(read);
    drawMap(read);
    return seconds;
  }

  function drawPicture(pace) {
    const seen = Math.max(0, chosen - network.spec.window), first = Math.max(0, seen - LONGEST);
    const before = characters(tokens.slice(first, chosen)).filter(({ stop }) => first + stop > seen);
    const letters = before.map(({ text }) => visibly(text));
    const { start, stop, text } = characters(tokens, network.given.end).find((each) => each.stop > chosen);
    const answer = visibly(text);
    const says = stop - start > 1 ? `is byte ${chosen - start + 1} of ${stop - start} of` : "is the code of";
    return picture.draw(byId("picture"), { letters, read, table, flips, answer, says, pace });
  }

  /** Say the text letter by letter, faster and faster. */
  function play() {
    if (playing !== null) return stop();
    const options = [...byId("spoken").children];
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    byId("play").textContent = "■ Stop";
    byId("recite").classList.add("playing");
    const next = (k) => {
      options.forEach((option, j) => option.classList.toggle("later", j > k));
      if (k === options.length) return stop();
      chosen = Number(options[k].dataset.place);
      byId("said").scrollTop = options[k].offsetTop - byId("said").offsetTop - 40;
      const seconds = inspect(Math.max(0.08, 0.75 ** k));
      playing = setTimeout(next, 1000 * (still ? 0.7 : seconds + 0.1), k + 1);
    };
    next(0);
    const isTall = byId("how").offsetHeight > innerHeight / 2;
    byId("how").scrollIntoView({ block: isTall ? "start" : "nearest" });
  }

  function stop() {
    clearTimeout(playing);
    playing = null;
    byId("play").textContent = "▶ Watch it speak";
    byId("recite").classList.remove("playing");
    for (const option of byId("spoken").children) option.classList.remove("later");
  }

  /** Offer the bytes of a character that has several. */
  function drawBytes() {
    const option = byId("spoken").querySelector('[aria-selected="true"]');
    const first = Number(option.dataset.place), count = Number(option.dataset.stop) - first;
    byId("bytes").hidden = count < 2;
    byId("bytes").replaceChildren("This character has several bytes: ", ...Array.from({ length: count }, (_, k) =>
      element("button", {
        type: "button", "aria-pressed": String(first + k === chosen), onclick: () => pick(first + k),
      }, names[first + k])));
  }

  function drawHash(context, read) {
    const { moduli } = network.given, last = names.slice(0, chosen).slice(-network.spec.window);
    const W_E = network.tensors["embedding.W_E"], width = network.embeds.length;
    const code = (id) => ` ${W_E.slice(id * width, (id + 1) * width).join(", ")}`;
    const coded = context.slice(-last.length).map((id, k) => element("span", {}, element("b", {}, last[k]), code(id)));
    byId("codes").replaceChildren("Codes: ", coded.length > MOST_LISTED ? "… " : "", ...coded.slice(-MOST_LISTED));
    byId("hash").replaceChildren(
      tableHead("", ...PARTS.slice(0, moduli.length).map((name) => `>${name}`)),
      tableRow("sum", read.sums),
      tableRow("number of values", moduli),
      tableRow("remainder", read.reduced),
    );
    const none = read.lanes.filter(({ entry }) => entry === null).map(({ lane }) => lane);
    byId("places").textContent =
      `The remainders say: row ${read.rows[0]} of half A, row ${read.rows[1]} of half B, one column in each of six ` +
      `lanes, and the bits of the sum from ${read.code[0].bit} down.` +
      (none.length ? ` One column number means “no word”: lane ${none.join(" and ")} has it here, and adds 0.` : "");
  }

  function drawWords(read) {
    const code = new Map(read.code.map(({ bit }, k) => [bit, k]));
    const rows = read.lanes.map((lane) => {
      const name = `${half(lane.lane)}, row ${lane.row}`, head = `lane ${lane.lane}`;
      if (lane.entry === null) return tableRow(head, ["no word", name, element("td", { class: "n" }, "none"), 0]);
      const open = element("button", {
        type: "button", class: "link", "aria-label": `What uses word ${nameOf(lane)}`,
        onclick: () => chooseWord(lane.entry, true),
      }, name);
      return tableRow(head, [switches(lane, read, code), open, lane.column, lane.word]);
    });
    const sum = tableRow("sum", [sumBits(read, code), "", "", read.sum], { class: "sum" });
    const focus = focused(), head = tableHead("", `bits, ${table.bits - 1} to 0`, "word", ">column", ">as a number");
    byId("words").replaceChildren(head, ...rows, sum);
    if (focus) byId("words").querySelector(focus)?.focus();
  }

  /** Return a selector for the switch with the focus, to restore it after the table is redrawn. */
  function focused() {
    const { entry, bit } = document.activeElement?.dataset ?? {};
    return bit ? `[data-entry="${entry}"][data-bit="${bit}"]` : null;
  }

  function switches(lane, read, code) {
    const buttons = places().map((bit) => {
      const value = bitOf(lane.word, bit), decides = code.get(bit) < read.length;
      const style = [flips.has(`${lane.entry},${bit}`) && "flipped", decides && "decides"].filter(Boolean).join(" ");
      return element("button", {
        type: "button", role: "switch", "aria-checked": String(value === 1), "data-entry": lane.entry, "data-bit": bit,
        tabindex: bit === table.bits - 1 ? 0 : -1, class: style || false, "aria-label": `lane ${lane.lane}, bit ${bit}`,
      }, String(value));
    });
    const name = `Bits of lane ${lane.lane}; arrow keys move`;
    return element("span", { class: "bits", role: "group", "aria-label": name }, ...buttons);
  }

  const places = () => Array.from({ length: table.bits }, (_, k) => table.bits - 1 - k);

  function sumBits(read, code) {
    const bits = places().map((bit) => {
      const k = code.get(bit), style = k === undefined ? false : k < read.length ? "read code" : "read";
      return element("span", { class: style }, String(bitOf(read.sum, bit)));
    });
    const name = `the sum's bits; read are bits ${read.code.map(({ bit }) => bit).join(", ")}`;
    return element("span", { class: "bits", role: "img", "aria-label": name }, ...bits);
  }

  function drawAnswer(read) {
    const code = read.code.map(({ value }) => value).join(""), own = Math.max(read.length, 0);
    byId("answer").replaceChildren(
      `The ${read.longest} marked bits are `, element("code", {}, code), `, the number ${read.Y}`,
      own ? `; its first ${own} bits are the code of ` : ". No token has this code; the nearest is that of ",
      element("q", {}, names[chosen]),
      read.code.some(({ bit }, k) => k && bit > read.code[k - 1].bit)
        ? `. (They go on at bit ${table.bits - 1}, which counts the other way round.)` : ".",
      " Every token gets points (a logit), most for the one whose code was read: it is said.",
    );
    const best = [...read.logits.keys()].sort((a, b) => read.logits[b] - read.logits[a]).slice(0, 4);
    byId("logits").replaceChildren(
      tableHead("token", ">logit"),
      ...best.map((id) => tableRow(id === read.label ? names[chosen] : shown(id), [read.logits[id]])),
    );
  }

  function drawMap(read) {
    const large = table.tensor.length > MOST_MAPPED;
    byId("map-hint").textContent = large
      ? `The table has ${number(table.tensor.length)} words, too many to draw; choose a word that is read above.`
      : "Every word of the table; the number and the shade show how many answers use it. Outlined: read now. " +
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
          "aria-label": `${nameOf({ lane, row, column })}: used by ${uses[entry]} answers`,
        }, String(uses[entry]));
        return element("td", { class: column === 0 && lane > 0 && "gap" }, button);
      }))));
    byId("map").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
  }

  function counted() {
    const uses = new Array(table.tensor.length).fill(0);
    for (const memory of all) for (const { entry } of wordsOf(memory)) uses[entry]++;
    return uses;
  }

  function chooseWord(entry, go = false) {
    word = entry;
    const users = all.filter((memory) => wordsOf(memory).some((lane) => lane.entry === entry));
    byId("word-title").textContent = `Word ${nameOf(table.place(entry))}: ${number(table.word(entry))}`;
    byId("word-says").textContent = users.length
      ? `${users.length} of ${all.length} answers use it, and share its bits.`
      : "No answer uses it: its bits are free.";
    byId("uses").replaceChildren(...listed(users));
    for (const button of byId("map").querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.word) === entry));
    }
    if (go) byId("word-title").focus();
  }

  /** Return memories as list items with buttons that show them. */
  function listed(some, says = (memory) => nameIn(memory, memory.answer)) {
    const items = some.slice(0, MOST_LISTED).map((memory) => {
      const first = Math.max(0, memory.length - Math.min(network.spec.window, MOST_LISTED));
      const text = visible(spelled(memory.tokens.slice(first, memory.length)).replace(/^�+|�+$/g, ""));
      const onclick = () => remember(memory);
      const button = element("button", { type: "button", class: "link", onclick }, `…${text}`);
      return element("li", {}, button, ` → ${says(memory)}`);
    });
    const more = some.length - items.length;
    return more > 0 ? [...items, element("li", {}, `… and ${number(more)} more`)] : items;
  }

  /** Return the name of a token after a memory's context. */
  function nameIn(memory, id) {
    const right = memory.answer === id ? memory.tokens.slice(memory.length, memory.length + 4) : [id];
    const before = memory.tokens.slice(Math.max(0, memory.length - 4), memory.length);
    return namesOf([...before, ...right], network.given.end)[before.length] ?? shown(id);
  }

  function remember(memory) {
    prompt(memory.context);
    byId("spoken").focus();
  }

  /** Give a prompt. The page shows its whole characters, and the network gets all of its bytes. */
  function prompt(ids, place) {
    const whole = characters(ids).filter(({ text }) => text !== "�").map(({ text }) => text).join("");
    byId("prompt").value = whole;
    speak(ids, place);
  }

  function flip(entry, bit) {
    table.flip(entry, bit);
    const name = `${entry},${bit}`;
    if (!flips.delete(name)) flips.set(name, [entry, bit]);
    judge();
  }

  /** Flip a bit on which an answer in the text hangs, and show where the text breaks. */
  function breakText() {
    putBack();
    speak();
    const later = Array.from({ length: tokens.length - given.length }, (_, k) => given.length + k);
    const some = later.map((place) => known.get(key(tokens, place)) ?? readAt(place));
    const found = firstFlip(network, table, [...some.slice(4, 60), ...some.slice(0, 4)]);
    if (found) flip(found.entry, found.bit);
  }

  /** Return what is asked at a place of the text, as a memory. */
  function readAt(place) {
    const stream = network.front(network.mix(tokens.slice(Math.max(0, place - network.sees), place)).pop());
    return new Memory(tokens, place, tokens[place], stream, placesIn(network, table, stream));
  }

  /** Show what is wrong with the current bits. Only answers that use a word with a flipped bit can have changed. */
  function judge() {
    const touched = new Set([...flips.values()].map(([entry]) => entry));
    const now = new Map(all.filter((memory) => wordsOf(memory).some(({ entry }) => touched.has(entry)))
      .map((memory) => [memory, argmax(network.back(memory.stream))]));
    const wrong = [...now.keys()].filter((memory) => now.get(memory) !== memory.answer);
    speak(given, chosen);
    const right = intact(), broken = tokens.findIndex((id, k) => id !== right[k]);
    if (broken >= 0) pick(broken);
    byId("reset").hidden = !flips.size;
    byId("damage").textContent = flips.size ? damage(wrong.length, broken) : "";
    byId("broken").replaceChildren(...listed(wrong, (memory) =>
      `${nameIn(memory, now.get(memory))} (was ${nameIn(memory, memory.answer)})`));
    if (word !== null) chooseWord(word);
  }

  /** Say how many answers are wrong, and where the text breaks, or which bits would break it. */
  function damage(wrong, broken) {
    const bits = number(table.tensor.length * table.bits);
    const many = flips.size === 1 ? `One bit of ${bits} is flipped` : `${flips.size} bits of ${bits} are flipped`;
    const answers = wrong ? `${many}, and ${wrong} of ${number(all.length)} answers are wrong.` : `${many}.`;
    if (broken >= 0) {
      return `${answers} After “${visible(lastCharacters(broken))}” the text says “${names[broken]}”, and goes on from there.`;
    }
    if (wrong) return answers;
    const which = read.length > 0 ? ` The switches with a mark decide “${names[chosen]}”.` : "";
    return `${many}, and nothing breaks: ${all.length ? "no answer hangs" : "this text does not hang"} on it.${which}`;
  }

  /** Return the text as it is without flips. */
  function intact() {
    const flipAll = () => flips.forEach(([entry, bit]) => table.flip(entry, bit));
    flipAll();
    const { said, ended } = given.length ? recite(network, given, tokens.length) : { said: [], ended: false };
    flipAll();
    return [...given, ...said, ...(ended ? [network.given.end] : [])];
  }

  const lastCharacters = (place) =>
    characters(tokens.slice(Math.max(0, place - 40), place)).filter(({ text }) => text !== "�").slice(-12)
      .map(({ text }) => text).join("");

  function putBack() {
    flips.forEach(([entry, bit]) => table.flip(entry, bit));
    flips.clear();
  }

  function pick(place) {
    stop();
    chosen = place;
    inspect();
  }

  /** Compile the reader's own text, and show its network. */
  function learn() {
    const name = "your text", began = performance.now(), last = data.networks.length - 1;
    try {
      const compiled = compileText(name, bytesOf(byId("own").value));
      data.networks.splice(data.networks[last].name === name ? last : last + 1, 1, compiled);
    } catch (error) {
      byId("learned").textContent = `Not learned: ${error.message}.`;
      return;
    }
    const duration = Math.ceil(performance.now() - began);
    list();
    begin(data.networks.length - 1);
    byId("learned").textContent =
      `Learned in ${number(duration)} ms, in your browser: the same weights, to the bit, as byheart compile gives.`;
  }

  const list = () => byId("network").replaceChildren(...data.networks.map(({ name }) => element("option", {}, name)));

  list();
  byId("learn").addEventListener("click", learn);
  byId("network").addEventListener("change", () => begin(byId("network").selectedIndex));
  byId("prompt").addEventListener("input", () => {
    most = MOST_SAID;
    speak(bytesOf(byId("prompt").value));
  });
  byId("fact").addEventListener("change", ({ target }) => prompt(network.given.facts[target.value].prompt));
  byId("play").addEventListener("click", play);
  window.addEventListener("resize", () => read && drawPicture(0));
  byId("break").addEventListener("click", breakText);
  byId("reset").addEventListener("click", () => (putBack(), judge()));
  byId("more").addEventListener("click", () => ((most *= 4), speak(given, chosen)));
  byId("spoken").addEventListener("click", ({ target }) => target.dataset.place && pick(Number(target.dataset.place)));
  byId("spoken").addEventListener("keydown", (event) => {
    const options = [...byId("spoken").children];
    const now = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
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

  function begin(index, text) {
    open(index);
    most = MOST_SAID;
    for (const id of ["damage", "learned"]) byId(id).textContent = "";
    byId("word-title").textContent = "What uses a word";
    byId("word-says").textContent = "Choose a word above.";
    for (const id of ["broken", "uses"]) byId(id).replaceChildren();
    byId("reset").hidden = true;
    const { texts: [first], facts: [fact] } = network.given;
    if (text !== undefined) {
      byId("prompt").value = text;
      speak(bytesOf(text));
    } else if (first) {
      const blank = Math.max(0, all[0].tokens.findIndex((id) => id > 32));
      prompt(opening(all[0].tokens, Math.max(blank + LEAST_GIVEN, first.prompt.length)));
    } else prompt(fact ? fact.prompt : []);
  }

  const kept = state.read(), index = data.networks.findIndex(({ name }) => name === kept.network);
  begin(Math.max(0, index), index < 0 ? undefined : kept.prompt);
})();
