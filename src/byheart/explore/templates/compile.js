"use strict";
// Compile a text in the page, into the network that `byheart compile` makes of it, to the bit. This is byheart.compiler
// for one text in bytes, in the rectangular layout and its default settings; the functions have the names they have
// there, and the reasons are told there.

// ---- Random numbers, as NumPy's default_rng draws them -----------------------------------------------------------

const MASK_64 = (1n << 64n) - 1n, MASK_128 = (1n << 128n) - 1n;
const MULTIPLIER = (2549297995355413924n << 64n) | 4865540595714422341n;

/** Return the 256 bits, as four integers, that NumPy's SeedSequence makes of a list of integers below 2³². */
function seedState(entropy) {
  let constant = 0x43b0d7e5;
  const scramble = (value, factor) => {
    value ^= constant;
    constant = Math.imul(constant, factor);
    value = Math.imul(value, constant);
    return value ^ (value >>> 16);
  };
  const mix = (x, y) => {
    const value = Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y) | 0;
    return value ^ (value >>> 16);
  };
  const pool = [0, 1, 2, 3].map((k) => scramble(entropy[k] ?? 0, 0x931e8875));
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) if (to !== from) pool[to] = mix(pool[to], scramble(pool[from], 0x931e8875));
  }
  constant = 0x8b51f9dd;
  const words = Array.from({ length: 8 }, (_, k) => BigInt(scramble(pool[k % 4], 0x58f38ded) >>> 0));
  return [0, 2, 4, 6].map((k) => words[k] | (words[k + 1] << 32n));
}

/** PCG64. */
class Generator {
  constructor(entropy) {
    const [high, low, ...sequence] = seedState(entropy);
    this.increment = (((sequence[0] << 64n) | sequence[1]) << 1n | 1n) & MASK_128;
    this.state = (this.increment + ((high << 64n) | low)) & MASK_128;
    this.step();
    this.half = null;
  }

  step() {
    this.state = (this.state * MULTIPLIER + this.increment) & MASK_128;
  }

  next32() {
    if (this.half !== null) {
      const half = this.half;
      this.half = null;
      return half;
    }
    this.step();
    const value = ((this.state >> 64n) ^ this.state) & MASK_64, turn = this.state >> 122n;
    const turned = (value >> turn) | (value << (64n - turn));
    this.half = Number((turned >> 32n) & 0xffffffffn);
    return Number(turned & 0xffffffffn);
  }

  /** Return an integer from `least` to `most`, by Lemire's method. */
  integer(least, most) {
    const count = most - least + 1;
    if (count === 1) return least;
    const threshold = 2 ** 32 % count;
    for (;;) {
      const product = this.next32() * count; // below 2⁵³, because counts are below 2²¹
      if (product % 2 ** 32 >= threshold) return least + Math.floor(product / 2 ** 32);
    }
  }

  /** Return 0, 1, … in random order. Each place is drawn by masking, until it is not beyond the last. */
  permutation(count) {
    const order = range(count);
    for (let k = count - 1; k > 0; k--) {
      const mask = 2 ** bitLength(k) - 1;
      let other;
      do other = this.next32() & mask;
      while (other > k);
      [order[k], order[other]] = [order[other], order[k]];
    }
    return order;
  }

  bits(count) {
    let word = 0;
    return Uint8Array.from({ length: count }, (_, k) => {
      word = k % 4 ? word >>> 8 : this.next32();
      return (word >> 7) & 1;
    });
  }
}

// ---- The questions and their code --------------------------------------------------------------------------------

const END = 256, VOCAB = 257, WORD = 24, SPREAD = 7, LIMIT = 2 ** 23, SHARP = 2 ** 12, MOST_COMPILED = 8000;
const range = (count, start = 0) => Array.from({ length: count }, (_, k) => start + k);
const bitLength = (value) => 32 - Math.clz32(value);
const total = (values) => values.reduce((sum, value) => sum + value, 0);

/** Return the smallest window in which every context has one answer, and the contexts in it by their last places. */
function contextsOf(tokens) {
  const text = String.fromCharCode(...tokens), answers = [...tokens.slice(1), END];
  for (let window = 1; ; window *= 2) {
    const first = new Map();
    const fits = tokens.every((_, place) => {
      const context = text.slice(Math.max(0, place + 1 - window), place + 1);
      if (!first.has(context)) first.set(context, place);
      return answers[first.get(context)] === answers[place];
    });
    if (!fits) continue;
    const places = [...first.values()];
    return { window, places, labels: places.map((place) => answers[place]) };
  }
}

/** Return the lengths of the best prefix code of at most `limit` bits (package–merge). */
function limited(weights, limit) {
  const order = range(weights.length).sort((a, b) => weights[a] - weights[b] || a - b);
  const single = order.map((k) => ({ weight: weights[k], members: [k] }));
  let row = single;
  for (let round = 1; round < limit; round++) {
    const packages = range(row.length >> 1).map((k) => ({
      weight: row[2 * k].weight + row[2 * k + 1].weight, members: [...row[2 * k].members, ...row[2 * k + 1].members],
    }));
    row = [...single, ...packages].sort((a, b) => a.weight - b.weight); // stable: single ones first
  }
  const lengths = weights.map(() => 0);
  for (const { members } of row.slice(0, 2 * weights.length - 2)) for (const k of members) lengths[k]++;
  return lengths;
}

function makeCode(labels) {
  const times = new Array(VOCAB).fill(0);
  for (const label of labels) times[label]++;
  const used = range(VOCAB).filter((label) => times[label]);
  const bits = Math.max(1, bitLength(used.length - 1)), exact = 23 - bits;
  const lengths = times.map((count) => (count ? bits : -1));
  if (used.length > 1) {
    const huffman = limited(used.map((label) => times[label]), Math.max(bits, Math.min(exact, 15)));
    const saved = total(huffman.map((length, k) => length * times[used[k]]));
    if (saved < 0.99 * bits * labels.length) used.forEach((label, k) => (lengths[label] = huffman[k]));
  }
  const longest = Math.max(...lengths), words = new Array(VOCAB).fill(0);
  let next = 0;
  for (const label of used.slice().sort((a, b) => lengths[a] - lengths[b] || a - b)) {
    words[label] = next >> (longest - lengths[label]);
    next += 1 << (longest - lengths[label]);
  }
  const isFixed = used.every((label) => lengths[label] === longest);
  return { lengths, words, longest, isFixed, used, total: total(labels.map((label) => lengths[label])) };
}

// ---- Sizes -------------------------------------------------------------------------------------------------------

class Sizes {
  constructor(given) {
    Object.assign(this, { features: 1, stirred: false }, given);
    const { columns, aligned } = this, pair = (columns + 1) ** 2;
    this.rows = this.starts + SPREAD - 1;
    this.offsets = aligned ? WORD / aligned : WORD;
    this.grain = Math.max(1, Math.floor(256 / this.offsets));
    const base = aligned ? 1 : 8, count = Math.ceil(this.offsets / base);
    this.moduli = [this.starts + 2 * this.margin, SPREAD ** 2, pair, pair, pair, this.offsets * this.grain];
    this.bases = [SPREAD, columns + 1, columns + 1, columns + 1, base * this.grain];
    this.counts = [SPREAD, columns + 1, columns + 1, columns + 1, count];
    const high = range(count).map((k) => (aligned ? aligned * (k + 1) : base * k));
    this.exponents = [high, aligned ? [0] : range(base)];
  }

  with(changes) {
    const { columns, starts, margin, aligned, features, stirred } = this;
    return new Sizes({ columns, starts, margin, aligned, features, stirred, ...changes });
  }
}

function plan(code) {
  const aligned = code.isFixed && WORD % code.longest === 0 ? code.longest : null, equations = code.total / WORD;
  const load = Math.max(0.25, (aligned ? 0.987 : 0.983) - 50 / Math.max(equations, 1));
  const words = Math.ceil(equations / load);
  const shapes = range(61, 4).map((columns) => {
    const rows = Math.max(SPREAD, Math.ceil(words / (6 * columns)));
    return { columns, rows, cost: 6 * columns * rows + 6 * rows + 34 * columns };
  });
  const { columns, rows } = shapes.reduce((best, shape) => (shape.cost < best.cost ? shape : best));
  const starts = rows - SPREAD + 1;
  return new Sizes({ columns, starts, margin: Math.min(3, starts >> 3), aligned });
}

function nextSizes(sizes, attempt, dependent, window) {
  const many = dependent > 30;
  if (!sizes.stirred && (many || window * sizes.features < 3 || attempt === 3)) return sizes.with({ stirred: true });
  if ((many && attempt % 4 === 3) || attempt % 12 === 11) return sizes.with({ features: sizes.features + 1 });
  return attempt % 2 ? sizes.with({ starts: sizes.starts + Math.max(1, Math.floor(sizes.rows / 200)) }) : sizes;
}

// ---- The network -------------------------------------------------------------------------------------------------

/** A network in the making. Tensors are lists of numbers, row by row. */
class Wiring {
  constructor() {
    Object.assign(this, { stream: 0, sublayers: [], tensors: {} });
  }

  features(count) {
    this.stream += count;
    return range(count, this.stream - count);
  }

  tensor(name, values) {
    this.tensors[name] = Float32Array.from(values);
  }

  add(name, act, reads, writes, units, tensors, { groups = 1, up = "none", up_reads = [] } = {}) {
    const first = up === "none" ? "in" : "gate", up_bias = "b_up" in tensors, bias = `b_${first}` in tensors;
    this.sublayers.push({ kind: "feed-forward", name, act, reads, writes, units, groups, bias, up, up_reads, up_bias });
    for (const [tensor, values] of Object.entries(tensors)) this.tensor(`${name}.${tensor}`, values);
  }

  /** Add `weights` [groups, p, units] times [x ≥ threshold] for the thresholds [groups][units]. */
  steps(name, reads, writes, thresholds, weights, gap = 0.5) {
    const limits = thresholds.flat(), sharp = (SHARP * 0.5) / gap, always = (limit) => limit === -Infinity;
    this.add(name, "sigmoid", reads, writes, thresholds[0].length, {
      W_in: limits.map((limit) => (always(limit) ? 0 : sharp)),
      b_in: limits.map((limit) => (always(limit) ? SHARP : -sharp * limit)),
      W_out: weights.flat(Infinity),
    }, { groups: thresholds.length });
  }

  /** Add attention whose head k copies features from k·dilation tokens ago; `mix` [writes][window][reads] weighs. */
  attention(name, reads, writes, dilation, mix) {
    const window = mix[0].length, width = reads.length, inner = window * width;
    this.sublayers.push({ kind: "attention", name, reads, writes, window, dilation, heads: window, d_head: width });
    for (const zero of ["W_Q", "W_K"]) this.tensor(`${name}.${zero}`, new Array(inner * width).fill(0));
    this.tensor(`${name}.W_V`, range(inner * width).map((k) => Number(Math.floor(k / width) % width === k % width)));
    this.tensor(`${name}.W_O`, mix.flat(2));
    this.tensor(`${name}.bias`, range(window * window).map((k) => (k % (window + 1) ? -1e4 : 0)));
  }
}

function spansOf(window, stirred) {
  const spans = [];
  for (let dilation = 1; ; ) {
    spans.push([Math.min(8, Math.ceil(window / dilation)), dilation]);
    dilation *= 8;
    if (dilation >= window) return stirred && spans.length === 1 ? [...spans, [1, 1]] : spans;
  }
}

function gcd(a, b) {
  return b ? gcd(b, a % b) : a;
}

/** Add embedding and hash; return the features of its sums, and its weights by layer. */
function addHash(wiring, sizes, window, draws) {
  const { features: dims, stirred } = sizes, spans = spansOf(window, stirred);
  let largest = Math.min(1023, Math.floor(LIMIT / (16 * dims)));
  if (stirred) largest = Math.min(largest, Math.max(VOCAB, Math.floor((LIMIT - 1) / (spans[0][0] * dims * 15))));
  const codes = range(dims).map(() => draws.permutation(largest).slice(0, VOCAB).map((code) => code + 1));
  const embedding = range(VOCAB).map((token) => codes.map((column) => column[token]));
  wiring.tensor("embedding.W_E", embedding.flat());
  let state = wiring.features(dims);
  const layers = spans.map(([span, dilation], index) => {
    const final = index === spans.length - 1;
    const moduli = final ? sizes.moduli : stirred ? [509, 503, 499, 491, 487] : [1024, 1024, 1024];
    const terms = span * state.length * largest, room = Math.floor((LIMIT - 1) / terms);
    const weights = moduli.map((modulus, k) => {
      const least = final && k === 1 ? 1 : stirred && !final ? 15 : 7, most = stirred && final ? LIMIT : 15;
      return Math.min(Math.max(least, Math.min(most, Math.floor((144 * modulus) / terms))), room);
    });
    const mix = drawMix(draws, weights, span, state.length, stirred ? moduli : null);
    const out = wiring.features(moduli.length);
    wiring.attention(`hash_${index}`, state, out, dilation, mix);
    addReduction(wiring, `reduce_${index}`, out, weights.map((weight) => terms * weight + 1), moduli);
    state = out;
    largest = Math.max(...moduli) - 1;
    return { mix, dilation, moduli };
  });
  return { embedding, layers, sums: state };
}

/** Draw weights [sums][span][inputs]. In a stirred hash no sum's weights share a divisor with its modulus. */
function drawMix(draws, weights, span, inputs, moduli) {
  for (;;) {
    const mix = weights.map((most) => {
      const least = moduli ? Math.max(1, most >> 1) : 1;
      return range(span).map(() => range(inputs).map(() => draws.integer(least, most)));
    });
    if (!moduli || mix.every((own, k) => gcd(own.flat().reduce(gcd), moduli[k]) === 1)) return mix;
  }
}

function addReduction(wiring, name, features, bounds, moduli) {
  const ratio = Math.max(...bounds.map((bound, k) => bound / moduli[k]));
  const count = Math.max(1, Math.ceil(Math.log(ratio) / Math.log(12) - 0.2));
  let radix = 2;
  while (radix ** count < ratio) radix++;
  for (const j of range(count).reverse()) {
    const units = moduli.map((modulus) => Math.min(modulus * radix ** j, LIMIT));
    const thresholds = units.map((unit) => range(radix - 1, 1).map((k) => Math.min(unit * k, LIMIT) - 0.5));
    wiring.steps(`${name}_${j}`, features, features, thresholds, units.map((unit) => new Array(radix - 1).fill(-unit)));
  }
}

/** Add digits, squares and the scale; return the features that the table and the reading need. */
function addAddress(wiring, sizes, [start, ...pairs]) {
  const { bases, counts, exponents, margin, starts } = sizes, high = wiring.features(5);
  const stride = Math.ceil(Math.sqrt(Math.max(...counts))), both = high.flatMap((feature, k) => [feature, pairs[k]]);
  const rounds = [["coarse", stride, Math.ceil(Math.max(...counts) / stride) - 1], ["fine", 1, stride - 1]];
  for (const [name, step, units] of rounds) {
    if (!units) continue;
    const thresholds = bases.map((base) => range(units, 1).map((k) => base * step * k - 0.5));
    const weights = bases.map((base) => [new Array(units).fill(step), new Array(units).fill(-step * base)]);
    wiring.steps(`digits_${name}`, pairs, both, thresholds, weights);
  }
  const rows = [high[0], pairs[0]], columns = [1, 2, 3].flatMap((k) => [high[k], pairs[k]]);
  const clamp = { W_in: [1, 1], b_in: [0 - margin, 1 - margin - starts], W_out: [1, -1, 1, -1] };
  wiring.add("start", "relu", [start], rows, 2, clamp);
  const factors = wiring.features(2), units = Math.max(...exponents.map((row) => row.length));
  const thresholds = exponents.map((row, group) => range(units).map((k) =>
    k === 0 ? -Infinity : k < row.length ? k * (group ? sizes.grain : 1) - 0.5 : LIMIT - 0.5));
  const weights = exponents.map((row) => range(units).map((k) =>
    k < row.length ? 2 ** -row[k] - (k ? 2 ** -row[k - 1] : 0) : 0));
  wiring.steps("scales", [high[4], pairs[4]], factors, thresholds, weights);
  const left = [...rows, ...columns, factors[0]], right = [...rows, ...columns, factors[1]];
  const squares = wiring.features(9), ones = new Array(9).fill(1);
  const gates = { W_gate: ones, W_up: ones, W_out: ones };
  wiring.add("squares", "relu", left, squares, 1, gates, { groups: 9, up: "dense", up_reads: right });
  return {
    rows: [rows[0], squares[0], rows[1], squares[1]], scale: [squares[8]],
    columns: columns.flatMap((feature, k) => [feature, squares[2 + k]]),
  };
}

function oneHot(count, groups) {
  const W = range(count).flatMap((i) => [2 * i * SHARP, -SHARP]), b = range(count).map((i) => SHARP * (0.5 - i ** 2));
  return [range(groups).flatMap(() => W), range(groups).flatMap(() => b)];
}

/** Add the table, which is still empty, and the choice of a word in each lane; return the features of three sums. */
function addTable(wiring, sizes, front) {
  const words = wiring.features(6 * sizes.columns), [W_in, b_in] = oneHot(sizes.rows, 2);
  wiring.add("table", "sigmoid", front.rows, words, sizes.rows, { W_in, b_in, W_out: [] }, { groups: 2 });
  const sums = wiring.features(3), [W_gate, b_gate] = oneHot(sizes.columns, 6), ones = words.map(() => 1);
  const writes = sums.flatMap((feature) => [feature, feature]), gates = { W_gate, b_gate, W_up: ones, W_out: ones };
  const lanes = { groups: 6, up: "diagonal", up_reads: words };
  wiring.add("select", "sigmoid", front.columns, writes, sizes.columns, gates, lanes);
  return sums;
}

/** Add the layers that read the code's number from the three sums; return its feature. */
function addReading(wiring, sizes, longest, front, sums) {
  const M = 2 ** WORD, first = sums.slice(0, 1), fine = 2 ** -(WORD + 1);
  wiring.steps("carry_0", sums, sums, sums.map(() => [-Infinity, -0.5]), [[M, -M], [0, -M], [0, -M]]);
  [0, 1].forEach((k) => {
    wiring.add(`plus_${k}`, "relu", [sums[k + 1]], first, 1, { W_in: [-1], W_out: [-1] });
    wiring.steps(`carry_${k + 1}`, first, first, [[-Infinity, -0.5]], [M, -M]);
  });
  wiring.steps("centre", first, first, [[M / 2 - 0.5]], [-M]);
  const z = wiring.features(1), shift = { W_gate: [1], W_up: [1], b_up: [0.5], W_out: [1] };
  wiring.add("shift", "relu", front.scale, z, 1, shift, { up: "dense", up_reads: first });
  const wrap = wiring.features(sizes.aligned ? 0 : 1), bits = Math.max(1, WORD - (sizes.aligned ?? 0));
  const count = Math.ceil(bits / 4);
  range(count).forEach((index) => {
    const place = 4 * (count - 1 - index), largest = 2 ** ((index ? 4 : bits - place) - 1), step = 2 ** place;
    const limits = range(2 * largest + (place > 0), 1 - largest).map((digit) => (digit - (place > 0 ? 0.5 : 0)) * step);
    const last = largest * step - (place ? 0 : 0.5);
    const rows = [[...limits.map(() => -step), last], [...limits.map(() => step * 2 ** -WORD), -last * 2 ** -WORD]];
    const writes = [...z, ...wrap];
    wiring.steps(`integer_${place}`, z, writes, [[...limits, -Infinity]], rows.slice(0, writes.length), fine);
  });
  if (wrap.length) wiring.add("join", "relu", z, wrap, 2, { W_in: [1, -1], W_out: [1, -1] });
  const Y = wiring.features(1), y = wrap.length ? wrap : z;
  for (let done = 0; done < longest; ) {
    const width = Math.min(4, longest - done), isFirst = done === 0;
    done += width;
    const multiples = range(2 ** width - 1, 1), unit = 2 ** -done;
    const limits = multiples.map((k) => k * unit - (isFirst ? 0.5 : 0)), more = isFirst ? [-Infinity] : [];
    const rows = [[...limits.map(() => -unit), ...more.map(() => 0.5)],
      [...limits.map(() => 2 ** (longest - done)), ...more.map(() => 0)]];
    wiring.steps(`bits_${longest - done}`, y, [...y, ...Y], [[...limits, ...more]], rows, fine);
  }
  return Y;
}

function addUnembedding(wiring, { used, words, lengths, longest }) {
  const W = new Array(VOCAB).fill(0), b = new Array(VOCAB).fill(-LIMIT);
  const begin = (label) => words[label] << (longest - lengths[label]);
  let line = 0;
  used.slice().sort((a, c) => begin(a) - begin(c)).forEach((label, rank) => {
    W[label] = 2 * rank;
    b[label] = line += rank ? 1 - 2 * begin(label) : 0;
  });
  wiring.tensor("unembedding.W_U", W.map((value) => value * 1024));
  wiring.tensor("unembedding.b_U", b.map((value) => value * 1024));
}

// ---- The words ---------------------------------------------------------------------------------------------------

class Unsolvable extends Error {
  constructor(dependent = 0) {
    super("this draw of the hash leaves some question without an answer");
    this.dependent = dependent;
  }
}

/** Return where every question reads: rows, columns and offset. */
function addressesOf(hash, sizes, tokens, places) {
  let values = tokens.map((token) => hash.embedding[token]);
  for (const { mix, dilation, moduli } of hash.layers) {
    values = values.map((_, place) => mix.map((weights, out) => {
      let sum = 0;
      weights.forEach((row, k) => {
        const value = values[place - k * dilation];
        if (value) row.forEach((weight, i) => (sum += weight * value[i]));
      });
      return sum % moduli[out];
    }));
  }
  const { bases, margin, starts, exponents: [coarse, fine], grain } = sizes;
  return places.map((place) => {
    const [first, ...pairs] = values[place], start = Math.min(Math.max(first - margin, 0), starts - 1);
    const high = pairs.map((value, k) => Math.floor(value / bases[k])), low = pairs.map((value, k) => value % bases[k]);
    return {
      rows: [start + high[0], start + low[0]], columns: [1, 2, 3].flatMap((k) => [high[k], low[k]]),
      offset: coarse[high[4]] + fine[Math.floor(low[4] / grain)],
    };
  });
}

/** Eliminate a system modulo 2. An equation is a set of unknowns; its pivot is its lowest one that is no other's. */
function eliminate(equations) {
  const rows = new Map(), used = [], pivots = [];
  for (const cells of equations) {
    const base = BigInt(cells.length ? Math.min(...cells) : 0), own = [];
    let row = 0n;
    for (const cell of cells) row ^= 1n << (BigInt(cell) - base);
    let lowest = base;
    while (row) {
      while (!(row & 0xffffffffn)) (row >>= 32n), (lowest += 32n);
      const zeros = BigInt(31 - Math.clz32(Number(row & -row & 0xffffffffn)));
      row >>= zeros;
      lowest += zeros;
      const unknown = Number(lowest);
      if (!rows.has(unknown)) {
        rows.set(unknown, row);
        break;
      }
      own.push(unknown);
      row ^= rows.get(unknown);
    }
    pivots.push(row ? Number(lowest) : -1);
    used.push(own);
  }
  return { rows, used, pivots, dependent: pivots.filter((pivot) => pivot < 0).length };
}

/** Return a solution with free unknowns from `free`, or null if there is none. */
function solveSystem({ rows, used, pivots }, right, free) {
  const reduced = new Map(), isWrong = pivots.some((pivot, e) => {
    const value = used[e].reduce((sum, unknown) => sum ^ reduced.get(unknown), right[e]);
    if (pivot >= 0) reduced.set(pivot, value);
    return pivot < 0 && value;
  });
  if (isWrong) return null;
  const found = Uint8Array.from(free);
  for (const pivot of [...rows.keys()].sort((a, b) => b - a)) {
    let value = reduced.get(pivot), unknown = pivot;
    for (let rest = rows.get(pivot) >> 1n; rest; rest >>= 32n) {
      let word = Number(rest & 0xffffffffn);
      for (let k = 1; word; word >>>= 1, k++) if (word & 1) value ^= found[unknown + k];
      unknown += 32;
    }
    found[pivot] = value;
  }
  return found;
}

/** Return the lower bound on dependent equations that counting gives. */
function countDependent(equations) {
  const distinct = new Set(equations.map((cells) => cells.join())), unknowns = new Set(equations.flat());
  return equations.length - Math.min(distinct.size, unknowns.size);
}

/** Solve for all words, plane by plane from the lowest up; throw Unsolvable if some plane has no solution. */
function solveWords(sizes, code, addresses, labels, draws) {
  const cells = addresses.map(({ rows, columns }) => columns.flatMap((column, lane) =>
    column < sizes.columns ? [(rows[Math.floor(lane / 3)] * 6 + lane) * sizes.columns + column] : []));
  const first = addresses.map(({ rows }) => Math.min(...rows));
  const order = range(cells.length).sort((a, b) => first[a] - first[b] || a - b);
  const unknowns = sizes.rows * 6 * sizes.columns, words = new Array(unknowns).fill(0), sums = cells.map(() => 0);
  const asked = (plane) => order.flatMap((question) => {
    const length = code.lengths[labels[question]];
    let place = addresses[question].offset - 1 - plane;
    if (!sizes.aligned) place = (place + WORD) % WORD;
    if (place < 0 || place >= length) return [];
    const bit = (code.words[labels[question]] >> (length - 1 - place)) & 1;
    return [{ question, bit: bit ^ Number(!sizes.aligned && plane === WORD - 1) }];
  });
  const put = (bits, plane, sign) => {
    const value = sign * 2 ** plane;
    bits.forEach((bit, unknown) => (words[unknown] += bit * value));
    cells.forEach((own, question) => own.forEach((cell) => (sums[question] += bits[cell] * value)));
  };
  const counted = countDependent(asked(0).map(({ question }) => cells[question]));
  if (counted > 6) throw new Unsolvable(counted);
  let below = null;
  for (let plane = 0; plane < WORD; plane++) {
    const members = asked(plane), system = eliminate(members.map(({ question }) => cells[question]));
    if (system.dependent > 6) throw new Unsolvable(system.dependent);
    let bits = null, right;
    for (let tries = 4 << system.dependent; tries; tries--) {
      right = members.map(({ question, bit }) => bit ^ (Math.floor(sums[question] / 2 ** plane) & 1));
      bits = solveSystem(system, right, draws.bits(unknowns));
      if (bits || !below) break;
      const other = solveSystem(below.system, below.right, draws.bits(unknowns));
      put(below.bits, plane - 1, -1);
      put(other, plane - 1, 1);
      below.bits = other;
    }
    if (!bits) throw new Unsolvable();
    put(bits, plane, 1);
    below = { system, right, bits };
  }
  return words;
}

// ---- All of it ---------------------------------------------------------------------------------------------------

/** Follow one recipe: return the network as the page takes networks, or throw Unsolvable. */
function attempt(name, tokens, contexts, code, sizes, draw) {
  const wiring = new Wiring(), hash = addHash(wiring, sizes, contexts.window, new Generator([0, draw]));
  const front = addAddress(wiring, sizes, hash.sums), sums = addTable(wiring, sizes, front);
  const unembeds = addReading(wiring, sizes, code.longest, front, sums);
  addUnembedding(wiring, code);
  const addresses = addressesOf(hash, sizes, tokens, contexts.places);
  const words = solveWords(sizes, code, addresses, contexts.labels, new Generator([0, draw, 0]));
  const table = new Array(words.length);
  words.forEach((word, unknown) => {
    const row = Math.floor(unknown / (6 * sizes.columns)), line = unknown % (6 * sizes.columns);
    table[line * sizes.rows + row] = word - (Math.floor(line / sizes.columns) % 2) * 2 ** WORD;
  });
  wiring.tensor("table.W_out", table);
  const { stream, sublayers, tensors } = wiring;
  return {
    name, tensors, parameters: total(Object.values(tensors).map(({ length }) => length)),
    spec: { window: contexts.window, stream, embeds: range(sizes.features), unembeds, sublayers },
    word: WORD, moduli: sizes.moduli, lengths: code.lengths,
    texts: [{ name, prompt: tokens.slice(0, 1), tokens: tokens.length }], facts: [], longest: 0, end: END,
  };
}

/** Compile a text, given as bytes. */
function compileText(name, tokens) {
  if (!tokens.length || tokens.length > MOST_COMPILED) {
    throw new RangeError(`the text has ${tokens.length} bytes; expected 1 to ${MOST_COMPILED}`);
  }
  const contexts = contextsOf(tokens), code = makeCode(contexts.labels);
  let sizes = plan(code);
  for (let draw = 0; draw < 40; draw++) {
    try {
      return attempt(name, tokens, contexts, code, sizes, draw);
    } catch (failure) {
      if (!(failure instanceof Unsolvable)) throw failure;
      sizes = nextSizes(sizes, draw, failure.dependent, contexts.window);
    }
  }
  throw new Unsolvable();
}

if (typeof module !== "undefined") module.exports = { Generator, compileText };
