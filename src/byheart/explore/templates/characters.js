"use strict";
// Tokens are bytes. Readers see characters: UTF-8, and what belongs together (a letter and its accent) as one.

const NAMED = { 9: "tab", 10: "⏎", 32: "␣" };
const READ = { ignoreBOM: true };
const UTF_8 = { loose: new TextDecoder("utf-8", READ), strict: new TextDecoder("utf-8", { ...READ, fatal: true }) };
const TOGETHER = new Intl.Segmenter("en", { granularity: "grapheme" });

const bytesOf = (text) => [...new TextEncoder().encode(text)];
const spelled = (ids) => UTF_8.loose.decode(Uint8Array.from(ids.filter((id) => id < 256)));

/** Return the code point that begins at a token as {text, count}, or null if none does. */
function pointAt(tokens, place) {
  const first = tokens[place], count = first < 128 ? 1 : first < 224 ? 2 : first < 240 ? 3 : 4;
  const ids = tokens.slice(place, place + count);
  if (ids.some((id) => id > 255)) return null;
  try {
    return { text: UTF_8.strict.decode(Uint8Array.from(ids)), count };
  } catch {
    return null;
  }
}

/** Return tokens as characters {start, stop, text}. A byte in no character is "�"; the token `end` is "∎". */
function characters(tokens, end) {
  const found = [];
  let run = [], text = "", place = 0;
  const close = () => { // group the code points since the last byte that is in none
    const points = run[Symbol.iterator]();
    for (const { segment } of TOGETHER.segment(text)) {
      const parts = [...segment].map(() => points.next().value);
      found.push({ start: parts[0].start, stop: parts[parts.length - 1].stop, text: segment });
    }
    run = [], text = "";
  };
  while (place < tokens.length) {
    const point = pointAt(tokens, place), stop = place + (point ? point.count : 1);
    if (point) {
      run.push({ start: place, stop });
      text += point.text;
    } else {
      close();
      found.push({ start: place, stop, text: tokens[place] === end ? "∎" : "�" });
    }
    place = stop;
  }
  close();
  return found;
}

/** Return the beginning of a text: at least `least` tokens, up to the end of a character. */
function opening(tokens, least) {
  const last = characters(tokens).find(({ stop }) => stop >= least);
  return tokens.slice(0, last ? last.stop : tokens.length);
}

/** Return the name of a token that stands alone: a letter, or a byte's number. */
function nameOfToken(id, end) {
  if (id === end) return "the end";
  return NAMED[id] || (id < 32 || id > 126 ? `byte ${id}` : spelled([id]));
}

/** Return the names of tokens in a text; the two bytes of one letter are "я 1/2" and "я 2/2". */
function namesOf(tokens, end) {
  return characters(tokens, end).flatMap(({ start, stop, text }) => {
    const isAlone = (id) => id < 128 || stop === start + 1;
    const name = (id, k) => (isAlone(id) ? nameOfToken(id, end) : `${text} ${k + 1}/${stop - start}`);
    return tokens.slice(start, stop).map(name);
  });
}

if (typeof module !== "undefined") module.exports = { bytesOf, spelled, characters, opening, namesOf };
