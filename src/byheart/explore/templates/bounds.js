"use strict";
// The formulas of byheart.bounds for the sliders' values: N examples, length n, vocabulary ω, C labels, b bits.

const FLOAT_MARGIN = 2 ** -48, RAISED = 1 + 2 ** -32;

function bitsNeeded(answers, C) {
  return Number.isInteger(Math.log2(C)) ? answers * Math.log2(C) : answers * Math.log2(C) * (1 - FLOAT_MARGIN);
}

/** Return the smallest W whose sign patterns suffice for all labellings (byheart.bounds.vc). */
function fewest(questions, C) {
  const bits = bitsNeeded(questions, C);
  const enough = (W) => (1 + W * (Math.floor(W / 2) + Math.log2(2 * Math.E * questions * C))) * RAISED >= bits;
  let high = 1, low = -1;
  while (!enough(high)) high *= 2;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (enough(middle)) high = middle;
    else low = middle;
  }
  return high;
}

function attentionOnly(N, n, vocab, d, d_h) {
  return d * (n + 2 * vocab + 4 * d_h * headsNeeded(N, d, d_h));
}

function headsNeeded(N, d, d_h) {
  return Math.max(1, Math.ceil((N - d) / d_h));
}

const FORMULAS = {
  "dana-2025-next-token": ({ N, n, vocab }) => attentionOnly(N, n, vocab, 2, 1),
  "dana-2025-rank-one": ({ N, n, vocab }) => attentionOnly(N, n, vocab, 2, 2) - 4 * headsNeeded(N, 2, 2),
  "kajitsuka-sato-2025-next-token-upper": ({ N }) => Math.sqrt(N),
  "kajitsuka-sato-2025-next-token-lower": ({ N }) => Math.sqrt(N),
  "kajitsuka-sato-2025-seq-to-seq-upper": ({ N, n }) => Math.sqrt(n * N),
  "kajitsuka-sato-2025-seq-to-seq-lower": ({ N, n }) => Math.sqrt((n * N) / Math.max(1, Math.log(n * N))),
  "nichani-2024-facts": ({ N }) => N,
  "yu-gao-zhang-2025-upper": ({ N }) => N,
  "yu-gao-zhang-2025-lower": ({ N }) => N,
  counting: ({ N, C, b }) => Math.ceil(bitsNeeded(N, C) / b),
  "counting-seq-to-seq": ({ N, n, C, b }) => Math.ceil(bitsNeeded(n * N, C) / b),
  "vc-next-token": ({ N, C }) => fewest(N, C),
  "vc-seq-to-seq": ({ N, n, C }) => fewest(N * n, C),
  "allen-zhu-li-2024-trained": ({ N, C }) => (N * Math.log2(C)) / 2,
  "morris-2025-trained": ({ N, C }) => (N * Math.log2(C)) / 3.6,
};

/** Return true if there are N different sequences of n tokens. */
function mayDiffer({ N, n, vocab }) {
  return N === 1 || Math.log2(vocab) * n >= Math.log2(N);
}

if (typeof module !== "undefined") module.exports = { FORMULAS, mayDiffer };
