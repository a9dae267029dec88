"use strict";
// Evaluate exact networks (byheart.networks.exact) with integers of any size: every step, for every token.

const integers = (values) => (Array.isArray(values) ? values.map(integers) : BigInt(values));
const times = (W, x) => W.map((row) => row.reduce((sum, weight, k) => sum + weight * x[k], 0n));

function divided(value, by) {
  if (value % by !== 0n) throw new RangeError(`${value} / ${by} is not an integer`);
  return value / by;
}

/** Return the stream after every step as {name, says, weights, tokens}, with one list of integers per token. */
function steps(network, sequence) {
  const n = BigInt(sequence.length), found = [];
  let tokens = sequence.map((token) => [BigInt(token)]);
  const note = (name, says, weights) => found.push({ name, says, weights, tokens });
  for (const layer of network.layers) {
    if (layer.kind === "embedding") {
      const W_E = integers(layer.W_E);
      tokens = sequence.map((token) => W_E[token]);
      note(layer.name, "every token becomes its code, a row of W_E", { W_E });
    } else if (layer.kind === "attention") {
      const W_V = integers(layer.W_V), W_O = integers(layer.W_O);
      const sum = tokens[0].map((_, k) => tokens.reduce((total, token) => total + token[k], 0n));
      const added = times(W_O, times(W_V, sum)).map((value) => divided(value, n));
      tokens = tokens.map((token) => token.map((value, k) => value + added[k]));
      note(layer.name, `to every token W_O·W_V times the mean of all ${n} is added`, { W_V, W_O });
      tokens = tokens.slice(-1); // the later layers are token-wise, and the last token answers
    } else {
      const before = tokens;
      for (const step of layer.layers) {
        const W = integers(step.W), b = integers(step.b), by = 2n ** BigInt(step.shift);
        tokens = tokens.map((token) => times(W, token).map((value, k) => {
          const sum = value + b[k];
          return step.relu && sum < 0n ? 0n : divided(sum, by);
        }));
        const inner = step.shift ? `(Wx + b) / ${by}` : "Wx + b";
        const skip = layer.residual && layer.layers.length === 1;
        if (skip) tokens = tokens.map((token, j) => token.map((value, k) => value + before[j][k]));
        note(step.role, `${skip ? "x + " : ""}${step.relu ? `relu(${inner})` : inner}`, { W, b });
      }
    }
  }
  return found;
}

if (typeof module !== "undefined") module.exports = { steps };
