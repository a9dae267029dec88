"use strict";
// Evaluate a compiled network as PyTorch does, to the bit. Every product and every sum is rounded to float32. The
// values of a compiled network are exact (byheart.networks.transformer.proved), so the order of summation is free.

const f32 = Math.fround;

/** Return the features of ranges: 3, 4, 5, 9 for "3:6", "9:10", or for the numbers themselves. */
function features(ranges) {
  return ranges.flatMap((range) => {
    if (typeof range === "number") return range;
    const [start, stop] = range.split(":").map(Number);
    return Array.from({ length: stop - start }, (_, k) => start + k);
  });
}

function floats(base64) {
  if (typeof base64 !== "string") return base64.slice(); // compiled in the page
  const text = atob(base64);
  const view = new DataView(new ArrayBuffer(text.length));
  for (let k = 0; k < text.length; k++) view.setUint8(k, text.charCodeAt(k));
  return Float32Array.from({ length: text.length / 4 }, (_, k) => view.getFloat32(4 * k, true));
}

class Network {
  constructor(given) {
    this.given = given;
    this.spec = given.spec;
    this.tensors = Object.fromEntries(Object.entries(given.tensors).map(([name, text]) => [name, floats(text)]));
    this.embeds = features(this.spec.embeds);
    this.unembeds = features(this.spec.unembeds);
    this.layers = this.spec.sublayers.map((layer) => ({
      ...layer,
      reads: features(layer.reads),
      writes: features(layer.writes),
      up_reads: features(layer.up_reads || []),
      at: this.tensorsOf(layer.name),
    }));
    this.layers.filter(({ kind }) => kind === "attention").forEach((layer) => (layer.weights = this.fixed(layer)));
    this.named = Object.fromEntries(this.layers.map((layer) => [layer.name, layer]));
    this.last = this.layers.findLastIndex((layer) => layer.kind === "attention");
    this.table = this.layers.findIndex((layer) => layer.name === "table");
    this.sees = this.layers.reduce((sum, layer) => sum + reach(layer), 1);
  }

  /** Return the tensors of a sublayer by their own names. */
  tensorsOf(layer) {
    const own = Object.entries(this.tensors).filter(([name]) => name.startsWith(`${layer}.`));
    return Object.fromEntries(own.map(([name, tensor]) => [name.slice(layer.length + 1), tensor]));
  }

  /** Return the next token's stream after the last attention sublayer; `past` caches keys and values. */
  step(token, past, seen) {
    const width = this.embeds.length, stream = new Float32Array(this.spec.stream);
    this.embeds.forEach((feature, k) => (stream[feature] = this.tensors["embedding.W_E"][token * width + k]));
    for (const layer of this.layers.slice(0, this.last + 1)) {
      if (layer.kind === "attention") this.attend(layer, stream, (past[layer.name] ||= { K: [], V: [] }));
      else this.feed(layer, stream);
      if (seen) seen(layer, stream);
    }
    return stream;
  }

  /** Return the streams after the last attention sublayer, one per token. */
  mix(tokens, past = {}) {
    return tokens.map((token) => this.step(token, past));
  }

  /** Return the logits of a stream after the last attention sublayer, or of one before the sublayer `from`. */
  answer(stream, seen, from = this.last + 1) {
    for (const layer of this.layers.slice(from)) {
      this.feed(layer, stream);
      if (seen) seen(layer, stream);
    }
    const W = this.tensors["unembedding.W_U"], b = this.tensors["unembedding.b_U"];
    const read = this.unembeds.map((feature) => stream[feature]);
    return Float32Array.from(b, (bias, label) => f32(dot(W, label * read.length, read) + bias));
  }

  /** Return the logits after every token. */
  forward(tokens) {
    return this.mix(tokens).map((stream) => this.answer(stream));
  }

  /** Complete a stream after the last attention sublayer up to the table. It does not depend on the words. */
  front(stream) {
    for (const layer of this.layers.slice(this.last + 1, this.table)) this.feed(layer, stream);
    return stream;
  }

  /** Return the logits of a stream before the table, without changing the stream. */
  back(stream) {
    return this.answer(stream.slice(), null, this.table);
  }

  /** Return the logits after the last token, and the stream after each sublayer. */
  trace(tokens) {
    const after = {}, past = {};
    const seen = (layer, stream) => (after[layer.name] = stream.slice());
    this.mix(tokens.slice(-this.sees, -1), past);
    const logits = this.answer(this.step(tokens[tokens.length - 1], past, seen), seen);
    return { logits, after };
  }

  /** Return the weights of attention that asks nothing (W_Q or W_K is 0), which are the same everywhere; or null. */
  fixed({ heads, window, at }) {
    if ([at.W_Q, at.W_K].every((W) => W.some((value) => value !== 0))) return null;
    return Array.from({ length: heads }, (_, head) => softmax([...at.bias.slice(head * window, (head + 1) * window)]));
  }

  attend(layer, stream, past) {
    const { heads, d_head: d, window, dilation, at } = layer, inner = heads * d;
    const read = layer.reads.map((feature) => stream[feature]);
    const times = (W) => Float32Array.from({ length: inner }, (_, row) => dot(W, row * read.length, read));
    const place = past.V.push(times(at.W_V)) - 1, nothing = new Float32Array(inner); // read before the first token
    const looked = Array.from({ length: window }, (_, offset) => place - offset * dilation);
    const mixed = new Float32Array(inner);
    let weights = layer.weights;
    if (!weights) {
      const Q = times(at.W_Q), bias = at.bias;
      past.K.push(times(at.W_K));
      weights = Array.from({ length: heads }, (_, head) => softmax(looked.map((from, offset) => {
        const score = dot(past.K[from] || nothing, head * d, Q, head * d, d);
        return f32(f32(score / f32(Math.sqrt(d))) + bias[head * window + offset]);
      })));
    }
    weights.forEach((row, head) => row.forEach((weight, offset) => {
      const value = past.V[looked[offset]] || nothing;
      if (weight === 0) return;
      for (let k = head * d; k < (head + 1) * d; k++) mixed[k] = f32(mixed[k] + f32(weight * value[k]));
    }));
    add(stream, layer.writes, layer.writes.map((_, row) => dot(at.W_O, row * inner, mixed)));
  }

  feed(layer, stream) {
    const { groups, units, up, at } = layer, first = up === "none" ? "in" : "gate";
    const gather = (some) => some.map((feature) => stream[feature]);
    const gate = affine(at[`W_${first}`], layer.bias && at[`b_${first}`], gather(layer.reads), layer);
    const other = gather(layer.up_reads);
    const raise = up === "dense" && affine(at.W_up, layer.up_bias && at.b_up, other, layer);
    const out = layer.writes.length / groups, W_out = at.W_out, values = [];
    for (let group = 0; group < groups; group++) {
      const open = []; // units that are not 0, and their values
      for (let row = group * units; row < (group + 1) * units; row++) {
        const x = gate(row), y = layer.act === "relu" ? Math.max(x, 0) : f32(1 / f32(1 + f32(Math.exp(-x))));
        if (y === 0) continue;
        const times = raise ? raise(row) : up === "diagonal" ? f32(other[row] * at.W_up[row]) : 1;
        open.push([row - group * units, f32(y * times)]);
      }
      for (let row = group * out; row < (group + 1) * out; row++) {
        values.push(open.reduce((sum, [unit, y]) => f32(sum + f32(W_out[row * units + unit] * y)), 0));
      }
    }
    add(stream, layer.writes, values);
  }
}

/** Return a function from the number of a unit to its entry of W·read + b, computed in float32. */
function affine(W, b, read, { groups, units }) {
  const width = read.length / groups;
  return (row) => {
    const sum = dot(W, row * width, read, Math.floor(row / units) * width, width);
    return b ? f32(sum + b[row]) : sum;
  };
}

function reach(layer) {
  return layer.kind === "attention" ? (layer.window - 1) * layer.dilation : 0;
}

/** Return Σ W[start + k]·x[from + k], computed in float32. */
function dot(W, start, x, from = 0, width = x.length) {
  let sum = 0;
  for (let k = 0; k < width; k++) sum = f32(sum + f32(W[start + k] * x[from + k]));
  return sum;
}

function add(stream, features, values) {
  features.forEach((feature, k) => (stream[feature] = f32(stream[feature] + values[k])));
}

function softmax(scores) {
  const most = Math.max(...scores);
  const powers = scores.map((score) => f32(Math.exp(f32(score - most))));
  const sum = powers.reduce((total, power) => f32(total + power), 0);
  return powers.map((power) => f32(power / sum));
}

/** Return the index of the largest logit, the first if there are several. */
function argmax(logits) {
  return logits.reduce((best, logit, k) => (logit > logits[best] ? k : best), 0);
}

// ---- The table: rows, columns, words, bits -----------------------------------------------------------------------

const LANES = 6;

/** The table of words: its tensor, its entries by lane, row and column, and the words as integers. */
class Table {
  constructor(network) {
    this.tensor = network.tensors["table.W_out"];
    this.rows = network.named.table.units;
    this.columns = network.named.select.units;
    this.bits = network.given.word;
    this.size = 2 ** this.bits;
  }

  /** Return the index of the tensor's entry for a lane, a row and a column, or null for the null column. */
  entry(lane, row, column) {
    if (column >= this.columns) return null;
    return (lane * this.columns + column) * this.rows + row;
  }

  place(entry) {
    const line = Math.floor(entry / this.rows);
    return { lane: Math.floor(line / this.columns), row: entry % this.rows, column: line % this.columns };
  }

  /** Return a word as an integer. Words of odd lanes are stored minus 2^T (byheart.compiler.rectangular.table). */
  word(entry) {
    return this.tensor[entry] + (this.place(entry).lane % 2) * this.size;
  }

  flip(entry, bit) {
    this.tensor[entry] += bitOf(this.word(entry), bit) ? -(2 ** bit) : 2 ** bit;
  }
}

function bitOf(word, bit) {
  return Math.floor(word / 2 ** bit) % 2;
}

/** Return the places to read for a stream before the table: rows, offset, and each lane's row, column and entry. */
function placesIn(network, table, stream) {
  const take = (some) => some.map((feature) => stream[feature]);
  const [a, , b] = take(network.named.table.reads);
  const columns = take(network.named.select.reads).filter((_, k) => k % 2 === 0);
  const lanes = columns.map((column, lane) => {
    const row = lane < LANES / 2 ? a : b;
    return { lane, row, column, entry: table.entry(lane, row, column) };
  });
  return { rows: [a, b], offset: Math.round(-Math.log2(take(network.named.shift.reads)[0])) + 0, lanes };
}

/** One question that the network was compiled to answer: the first `length` of `tokens`, and the token that follows. */
class Memory {
  constructor(tokens, length, answer, stream, places) {
    Object.assign(this, { tokens, length, answer, stream, ...places });
  }

  get context() {
    return this.tokens.slice(0, this.length);
  }
}

/** Return every memory of the network, with the stream before the table and the places that it reads. */
function memories(network, table) {
  const { texts, facts, end } = network.given;
  const asked = [...texts.map(({ prompt, tokens }) => [prompt, null, tokens]),
    ...facts.map(({ prompt, completion }) => [prompt, completion, completion.length])];
  return asked.flatMap(([prompt, completion, count]) => {
    const tokens = [...prompt], past = {}, found = [];
    let stream = network.mix(prompt, past).pop();
    for (;;) {
      network.front(stream);
      const spoken = tokens.length - prompt.length;
      const next = !completion ? argmax(network.back(stream)) : spoken < count ? completion[spoken] : end;
      found.push(new Memory(tokens, tokens.length, next, stream, placesIn(network, table, stream)));
      if (next === end || spoken === count) return found;
      tokens.push(next);
      stream = network.step(next, past);
    }
  });
}

/** Return the first flip {entry, bit, memory} that turns the answer of some memory into another of the same kind:
 * a letter into a letter, or the middle of a character into another. If there is none, return one that changes any. */
function firstFlip(network, table, some) {
  const isLetter = (id) => /[a-z]/i.test(String.fromCharCode(id));
  const isAlike = (id, other) => (id < 128 ? isLetter(id) && isLetter(other) : id >> 6 === other >> 6);
  let any = null;
  for (const memory of some) {
    const words = memory.lanes.filter(({ entry }) => entry !== null);
    const length = network.given.lengths[memory.answer];
    const sum = words.reduce((total, { entry }) => total + table.word(entry), 0) % table.size;
    for (const { entry } of words.slice(0, 1)) {
      for (const { bit } of bitsRead(sum, memory.offset, length, table.bits)) {
        table.flip(entry, bit);
        const answer = argmax(network.back(memory.stream));
        table.flip(entry, bit);
        any ||= { entry, bit, memory };
        if (isAlike(memory.answer, answer)) return { entry, bit, memory };
      }
    }
  }
  return any;
}

/** Return every intermediate value between a prompt and the next token. */
function reading(network, table, tokens) {
  const { logits, after } = network.trace(tokens);
  const names = network.layers.map((layer) => layer.name);
  const hash = names.filter((name) => name.startsWith("hash_")).pop();
  const sums = network.named[hash].writes;
  const reduced = names.filter((name) => name.startsWith("reduce_")).pop();
  const before = names[names.indexOf("table") - 1];
  const take = (name, some) => some.map((feature) => after[name][feature]);
  const places = placesIn(network, table, after[before]);
  const lanes = places.lanes.map((lane) => ({ ...lane, word: lane.entry === null ? 0 : table.word(lane.entry) }));
  const sum = lanes.reduce((total, lane) => total + lane.word, 0) % table.size;
  const label = argmax(logits);
  const Y = after[names[names.length - 1]][network.unembeds[0]];
  const longest = Math.max(...network.given.lengths);
  return {
    ...places, logits, label, Y, lanes, sum, longest,
    code: bitsRead(sum, places.offset, longest, table.bits),
    length: network.given.lengths[label],
    sums: take(hash, sums),
    reduced: take(reduced, sums),
  };
}

/** Return the bits of the sum below the offset, as {bit, value}. After the lowest bit they continue at the highest,
 * which is then complemented (byheart.compiler.rectangular.read). */
function bitsRead(sum, offset, count, bits) {
  return Array.from({ length: count }, (_, k) => {
    const bit = offset - 1 - k, wrapped = bit < 0, place = wrapped ? bit + bits : bit;
    const value = bitOf(sum, place);
    return { bit: place, value: wrapped && place === bits - 1 ? 1 - value : value };
  });
}

/** Continue a prompt with the token of the largest logit, up to the end of the text or `most` tokens. */
function recite(network, prompt, most) {
  const said = [], past = {}, end = network.given.end;
  let stream = network.mix(prompt.slice(-network.sees), past).pop();
  while (said.length < most) {
    const token = argmax(network.answer(stream));
    if (token === end) return { said, ended: true };
    said.push(token);
    stream = network.step(token, past);
  }
  return { said, ended: false };
}

if (typeof module !== "undefined") {
  module.exports = { Network, Table, reading, memories, firstFlip, recite, bitsRead, argmax };
}
