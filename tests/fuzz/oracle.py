"""How many answers of a network are wrong, by plain means that share nothing with the judges.

Exact networks in python-flint's rationals; whatever has softmax attention of real numbers in mpmath, with thousands of
bits; float Transformers in float64 by loops over positions; stock models by transformers, a whole sequence at a time.
"""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
from tests.trained_in_plain import outputs

from byheart import tasks
from byheart.networks import load
from byheart.networks.exact import exact_layers as exact
from byheart.networks.exact.reference import evaluate as evaluate_exact
from byheart.networks.transformer.spec import Mixture, WindowAttention, expert_name
from byheart.tasks.tokenizers import from_files

TOLERANCE = 1e-6
"""What certificates allow unless they are told otherwise."""
Array = np.ndarray[Any, Any]


def wrong(folder: Path, questions: list[Path]) -> int:
    """Answers of the network in ``folder`` to the user's own files that are not right; what is not known counts not."""
    network: Any = load(folder)
    with np.errstate(all="ignore"):
        if network.kind == "exact":
            return _wrong_exact(network, tasks.load(questions[0]))
        if network.kind in ("softmax", "trained"):
            return _wrong_softmax(network, tasks.load(questions[0]))
        return sum(_is_wrong(network, *sequence) for sequence in _sequences(network, questions))


def _wrong_exact(network: Any, task: Any) -> int:
    if network.rational:
        return int((evaluate_exact(network, task.inputs) != task.labels).sum())
    outputs = np.array([_real(network, sequence) for sequence in task.inputs], dtype=object)
    return int((np.abs(outputs.reshape(task.labels.shape) - task.labels) >= 0.5).sum())


def _real(network: Any, sequence: Array) -> list[Any]:
    """The outputs of a network with softmax attention, with far more digits than its weights have."""
    import mpmath

    with mpmath.workprec(4 * network.account.max_bits + 400):
        rows = sequence[:, None] if network.inputs == "tokens" else sequence
        Z = np.array([[mpmath.mpf(float(x)) for x in row] for row in rows], dtype=object)
        for layer in network.layers:
            Z = _layer(layer, Z, mpmath)
        return [+z for z in (Z[:, 0] if network.outputs == "every" else Z[-1:, 0])]


def _layer(layer: Any, Z: Array, mpmath: Any) -> Array:
    match layer:
        case exact.Embedding():
            return np.array([[mpmath.mpf(int(x)) for x in layer.W_E[int(token[0])]] for token in Z], dtype=object)
        case exact.Positions() | exact.TokenSum():
            return Z + (layer.W_pos if isinstance(layer, exact.Positions) else 2 * Z.sum(axis=0))
        case exact.Flatten():
            return Z.reshape(1, -1)
        case exact.Residual():
            for block in layer.blocks:
                Z = Z + np.maximum(Z @ block.W_in.T + block.b_in, 0) @ block.W_out.T
            return Z
        case exact.FeedForward():
            result = Z
            for affine in layer.layers:
                result = (result @ affine.W.T + affine.b) / mpmath.mpf(2) ** affine.shift
                result = np.maximum(result, 0) if affine.relu else result
            return Z + result if layer.residual else result
    n, mixed = len(Z), np.empty_like(Z)
    for k in range(n):
        if isinstance(layer, exact.UniformAttention):
            weights = [mpmath.mpf(1) / n] * n
        else:
            scores = (Z @ layer.W_K.T) @ (layer.W_Q @ Z[k])
            seen = range(k + 1) if getattr(layer, "causal", False) else range(n)
            largest = max(scores[j] for j in seen)
            if isinstance(layer, exact.HardmaxAttention):
                raised = [mpmath.mpf(int(j in seen and scores[j] == largest)) for j in range(n)]
            else:
                raised = [mpmath.exp((score - largest) / mpmath.mpf(2) ** layer.score_shift) for score in scores]
            weights = [value / sum(raised) for value in raised]
        mixed[k] = sum(weight * row for weight, row in zip(weights, Z, strict=True))
    return Z + mixed @ layer.W_V.T @ layer.W_O.T / mpmath.mpf(2) ** getattr(layer, "shift", 0)


def _wrong_softmax(network: Any, task: Any) -> int:
    import mpmath

    with mpmath.workprec(4000):  # scores may have any exponent that float64 has, twice
        answer = _softmax if network.kind == "softmax" else _trained
        rows = [answer(network, task, example, mpmath) for example in range(task.size.examples)]
        if isinstance(task, tasks.QueryTargets):
            outputs, targets = (value for row in rows for value in row), task.coordinates.ravel().tolist()
            pairs = zip(outputs, targets, strict=True)
            return sum(abs(value - mpmath.mpf(target)) > TOLERANCE for value, target in pairs)
        if isinstance(task, tasks.NextTokenDistribution):
            each = [_divergence(row, p, mpmath) for row, p in zip(rows, task.probabilities.tolist(), strict=True)]
            return int(sum(w * kl for w, kl in zip(task.likelihoods.tolist(), each, strict=True)) > TOLERANCE)
        labels = zip(rows, task.labels.tolist(), strict=True)
        return sum(row[label] <= max(row[:label] + row[label + 1 :], default=-mpmath.inf) for row, label in labels)


def _softmax(network: Any, task: Any, example: int, mpmath: Any) -> list[Any]:
    """The outputs for one example, as the formulas of ``networks/softmax.py`` have them."""

    def exact(array: Array) -> Array:
        return np.vectorize(mpmath.mpf, otypes=[object])(array)

    W = {name: exact(tensor) for name, tensor in network.by_name().items()}
    if network.W_E is None:
        x, q = exact(task.vectors[example]), exact(task.queries[example])
    else:
        x = W["W_E"][task.tokens[example]] + W["W_pos"]
        q = x[-1]
    z = q.copy() if network.skip else 0
    for W_Q, W_K, W_V, W_O in zip(*(W[name] for name in ("W_Q", "W_K", "W_V", "W_O")), strict=True):
        scores = (x @ W_K) @ (q @ W_Q)
        raised = [mpmath.exp(score - max(scores)) for score in scores]
        z = z + (np.array(raised) / sum(raised)) @ x @ W_V @ W_O
    if "W_in" in W:
        z = np.array([mpmath.tanh(value) for value in z @ W["W_in"] + W["b_in"]])
    return list(z @ W["W_U"] if "W_U" in W else z)


def _trained(network: Any, task: Any, example: int, mpmath: Any) -> list[Any]:
    """The outputs for one example, as the table of ``networks/trained/steps.py`` has them."""
    network.check_inputs((task.inputs, getattr(task, "queries", None)))
    if network.embedding is None:
        return outputs(network, task.vectors[example], task.queries[example])
    row = task.tokens[example]
    return outputs(network, row[row != network.vocab])


def _divergence(row: list[Any], probabilities: list[float], mpmath: Any) -> Any:
    total = mpmath.log(sum(mpmath.exp(x - max(row)) for x in row))
    terms = zip(row, map(mpmath.mpf, probabilities), strict=False)  # what has no logit has no probability
    return sum(p * (mpmath.log(p) - (x - max(row)) + total) for x, p in terms if p)


def _sequences(network: Any, questions: list[Path]) -> list[tuple[list[int], int, int]]:
    """Every example, or every beginning of a text, with the label that follows; not what two texts share."""
    if questions[0].suffix in (".npz", ".jsonl"):
        task = tasks.load(questions[0])
        return [(row.tolist(), len(row) - 1, int(label)) for row, label in zip(task.tokens, task.labels, strict=True)]
    tokenizer = from_files(network.files)
    if questions[0].suffix == ".csv":
        with questions[0].open(encoding="utf-8-sig", newline="") as file:
            facts = [(row["prompt"].encode(), row["completion"].encode()) for row in csv.DictReader(file)]
        said = [([*prompt, *completion], len(prompt), len(completion)) for prompt, completion in facts]
        return [(ids, k + j - 1, [*ids, tokenizer.end][k + j]) for ids, k, m in said for j in range(m + 1)]
    texts = [tokenizer.encode(path.read_bytes()).tolist() for path in questions]
    found = [(text, at, [*text, tokenizer.end][at + 1]) for text in texts for at in range(len(text))]
    after: dict[tuple[int, ...], set[int]] = {}
    for text, at, label in found:
        after.setdefault(tuple(text[: at + 1]), set()).add(label)
    return [(text, at, label) for text, at, label in found if len(after[tuple(text[: at + 1])]) == 1]


_KNOWN: dict[tuple[str, tuple[int, ...]], Array] = {}


def _is_wrong(network: Any, tokens: list[int], at: int, label: int) -> bool:
    key = (network.fingerprint, tuple(tokens))
    if key not in _KNOWN:
        _KNOWN.clear()
        _KNOWN[key] = _stock(network, tokens) if network.kind == "stock" else _logits(network, tokens)
    row = _KNOWN[key][at]
    others = np.delete(row, label) if 0 <= label < len(row) else None
    return others is None or not np.isfinite(row).all() or bool(row[label] <= others.max(initial=-np.inf))


def _stock(network: Any, tokens: list[int]) -> Array:
    import torch

    first = [] if network.first is None else [network.first]
    with torch.inference_mode():
        logits: Array = network.model(torch.tensor([[*first, *tokens]])).logits[0, len(first) :].double().numpy()
    return logits


def _logits(network: Any, tokens: list[int]) -> Array:
    """Logits [T, labels] after each token."""
    W = {name: tensor.astype(np.float64) for name, tensor in network.tensors()}
    spec = network.spec
    x = np.zeros((len(tokens), spec.stream))
    np.add.at(x, (slice(None), list(spec.embeds)), W["embedding.W_E"][tokens])
    for layer in spec.sublayers:
        own = {name: W[f"{layer.name}.{name}"] for name in layer.shapes()}
        way = (
            _attention
            if isinstance(layer, WindowAttention)
            else _mixture
            if isinstance(layer, Mixture)
            else _feed_forward
        )
        change = way(layer, own, x)
        np.add.at(x, (slice(None), list(layer.writes)), change)
    logits: Array = x[:, list(spec.unembeds)] @ W["unembedding.W_U"].T + W["unembedding.b_U"]
    return logits


def _attention(layer: WindowAttention, W: dict[str, Array], x: Array) -> Array:
    seen, shape = x[:, list(layer.reads)], (len(x), layer.heads, layer.d_head)
    q, k, v = ((seen @ W[name].T).reshape(shape) for name in ("W_Q", "W_K", "W_V"))
    nothing, mixed = np.zeros(shape[1:]), np.empty(shape)
    for t in range(len(x)):
        places = [t - j * layer.dilation for j in range(layer.window)]
        keys, values = (np.array([kept[p] if p >= 0 else nothing for p in places]) for kept in (k, v))
        scores = np.einsum("hd,jhd->hj", q[t], keys) / np.sqrt(layer.d_head) + W["bias"]
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        mixed[t] = np.einsum("hj,jhd->hd", raised / raised.sum(axis=1, keepdims=True), values)
    return mixed.reshape(len(x), -1) @ W["W_O"].T


def _mixture(layer: Mixture, W: dict[str, Array], x: Array) -> Array:
    """Every place alone, by the expert with the largest score."""
    chosen = (x[:, list(layer.routes)] @ W["W_route"].T + W["b_route"]).argmax(axis=1)
    taken = ({**W, "W_out": W[expert_name(expert)]} for expert in chosen)
    return np.concatenate([_feed_forward(layer.block, own, row[None]) for own, row in zip(taken, x, strict=True)])


def _feed_forward(layer: Any, W: dict[str, Array], x: Array) -> Array:
    def affine(features: tuple[int, ...], name: str) -> Array:
        parts = x[:, list(features)].reshape(len(x), layer.groups, -1)
        return np.einsum("tgi,gui->tgu", parts, W[f"W_{name}"]) + W.get(f"b_{name}", 0.0)

    first = affine(layer.reads, "in" if layer.up == "none" else "gate")
    hidden = 1 / (1 + np.exp(-first)) if layer.act == "sigmoid" else np.maximum(first, 0)
    if layer.up == "dense":
        hidden = hidden * affine(layer.up_reads, "up")
    elif layer.up == "diagonal":
        hidden = hidden * (x[:, list(layer.up_reads)].reshape(hidden.shape) * W["W_up"])
    return np.einsum("tgu,gwu->tgw", hidden, W["W_out"]).reshape(len(x), -1)


def stated(said: str) -> int:
    """Answers of which a verdict says itself that they differ from the file, or counts them as wrong.

    Of equal questions that are asked once, one that is wrong stands for any number of answers.
    """
    counted = re.search(r"([\d,]+) wrong, 0 undecided", said)
    found = counted or re.search(r"([\d,]+) answers? differs? from", said)
    number = int(found[1].replace(",", "")) if found else 0
    return 1 << 62 if counted and number and "(asked in " in said else number
