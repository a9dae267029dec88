"""A second opinion on a network of Byheart: one file that needs only Python's standard library.

    python -I verify.py FOLDER (a.txt b.txt | --task task.npz | --facts facts.csv) [--sample 2000]

It reads a network's folder and the user's own questions, computes the answers anew, and calls an answer *right* only
if that is proved. Numbers are integers over common denominators; exp and log are those of Python's ``decimal``.

- **exact** networks (integer weights): outputs are rational numbers, and right if they equal the label. Behind softmax
  attention outputs are real numbers; they are enclosed, and right if they lie within 1/2 of the label.
- **softmax** networks (float64 weights, read as real numbers): outputs are enclosed. A label is right if its logit is
  the largest, a target if its error is below the tolerance. Distributions are right, all together, if their average
  divergence from the network's is below the tolerance. Each must hold for the whole enclosure.
- **transformer** networks (float32, float64): logits are those of *floating point*, and a label is right if its logit
  is the largest. Every sum is computed in integers, and proved to be the same in IEEE arithmetic in any order, with or
  without fused products. Either all terms are multiples of some 2^e, and the positive ones, and the negative ones, add
  up to at most 2^(e + p), p = 24 or 53; or there are two terms, and they and their sum have p bits. Nothing overflows
  or is subnormal, so nothing is rounded. Assumed of exp: exp(0) = 1; exp(-x) is 0 and exp(x) infinite for x > 1000 (by
  far, in both formats). So softmax gives 0 to a score 1000 below the largest, and the sigmoid 1 / (1 + exp(-x)) is
  exactly 0 or 1 beyond 1000, where x may itself be rounded. An answer that is not proved like this is *undecided*.

A folder must hold no file or key that Byheart does not write, since other programs might load it. Questions come from
the user's files alone: edits that a folder mentions are not applied. If a folder says that it refuses prompts that are
no facts, by 16 bits or more, a prompt with a flipped bit is asked per fact, too. Sizes are checked before anything is
expanded. Exit code 0: all answers asked for are proved right; 1: they are not; 2: a file is unreadable, or unknown.
"""

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # files beside this one must not be imported in place of the standard library
import argparse, ast, csv, decimal, functools, hashlib, io, itertools, json, math, operator, os
import random, re, struct, time, zipfile
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

Vector: TypeAlias = list[int]
Json: TypeAlias = dict[str, Any]
LARGEST = 1 << 26  # bytes of a file, also when unpacked; checking larger networks takes too long
BITS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)  # precisions of enclosures, tried until one decides the answer
HARMLESS = {"README.md", "LICENSE", "certificate.json", "task.npz", "grid", "grid.npz"}  # no program runs these
HARMLESS |= {".git", ".gitattributes", ".gitignore", ".cache"}
KEYS = {"byheart-exact-1": {"format", "network", "about"}, "byheart-softmax-1": {"format", "skip", "about"}}
TENSORS = {"byheart-exact-1": {"lengths", "magnitudes"}, "byheart-softmax-1": {"W_in", "b_in", "W_U", "W_E", "W_pos"}}
TENSORS["byheart-softmax-1"] |= {"W_Q", "W_K", "W_V", "W_O"}
KEYS["byheart"] = {"model_type", "architectures", "auto_map", "dtype", "vocab_size", "spec", "about"}
KEYS["byheart"] |= {"eos_token_id", "pad_token_id"}
CODE = {"ece625d5344100d41a1039147fe81d9830aa69d38e444835561228d0ecc4f482"}  # SHA-256 of the code for other programs
CODE |= {"81967f53430ba89aeeac79d5fd5ecf08063de7959bd3ae8570554926e3c604e6"}
TOKENIZERS = {"c4429f1e2474db4d04f444c85ff683b8823c1aab37bdfb4a3f2d640704907966": "tokenizer.json"}  # those for bytes
TOKENIZERS |= {"67af072b5fda6725e6b084009153609d306e9d98988084a34083f37d5a36fe51": "tokenizer_config.json"}
TOKENIZERS |= {"d976ae3c7792453442867c7875a242c3c7178f818a29680aad0d519f771ee206": "tokenizer_config.json"}
SOFT, CAUSAL, UNIFORM, HARD = (f"{word}Attention" for word in ("Softmax", "CausalHardmax", "Uniform", "Hardmax"))


def need(condition: object, otherwise: str) -> None:
    """Raise ValueError with the reason ``otherwise`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(otherwise)


def read(*parts: str) -> bytes:
    """Read a regular file that is not too large."""
    path = os.path.join(*parts)
    need(os.path.isfile(path) and os.path.getsize(path) <= LARGEST, f"{path}: no such file, or over {LARGEST:,} bytes")
    with open(path, "rb") as file:
        return file.read(LARGEST)


def decoded(dtype: str, shape: Any, data: bytes) -> Any:
    """Decode little-endian numbers as lists of lists; the number of bytes must be that of the shape."""
    codes = {"U8": "B", "I32": "i", "F32": "f", "F64": "d", "f4": "f", "f8": "d", "i1": "b", "u1": "B", "i2": "h"}
    codes |= {"u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"}
    if dtype == "BF16":  # the upper half of a float32
        dtype, data = "F32", b"".join(b"\0\0" + data[i : i + 2] for i in range(0, len(data), 2))
    need(len(shape) < 9 and sum(itertools.accumulate(shape[:-1], operator.mul)) <= 1 << 24, "too many lists of numbers")
    values: Any = list(struct.unpack(f"<{math.prod(shape)}{codes[dtype]}", data))
    for size in reversed(shape[1:]):
        values = [values[i : i + size] for i in range(0, len(values), size)]
    return values if shape else values[0]


def leaves(values: Any) -> Iterator[Any]:
    """Yield all numbers in lists of lists."""
    yield from (leaf for value in values for leaf in leaves(value)) if isinstance(values, list) else [values]


def read_safetensors(data: bytes) -> Json:
    """Return every tensor's dtype and numbers. Eight bytes give the header's length; it gives the tensors' places."""
    begin, tensors = 8 + int.from_bytes(data[:8], "little"), {}
    for name, pairs in json.loads(data[8:begin], object_pairs_hook=list):  # a dict would lose repeated names
        if name != "__metadata__":
            entry = dict(pairs)
            start, stop = entry["data_offsets"]
            fits = name not in tensors and 0 <= start <= stop <= len(data) - begin
            need(fits, f"{name!r:.60} lies outside of its file, or is there twice")
            tensors[name] = entry["dtype"], decoded(entry["dtype"], entry["shape"], data[begin + start : begin + stop])
    return tensors


def read_weights(folder: str) -> Json:
    """Read the tensors of model.safetensors; or of the parts that an index names: all of them, where it says."""
    whole, index, there = "model.safetensors", "model.safetensors.index.json", os.listdir(folder)
    if index not in there:
        return read_safetensors(read(folder, whole))
    places, tensors = json.loads(read(folder, index))["weight_map"], dict[str, Any]()
    count, named = len({*places.values()}), {*places.values(), *(own for own in there if own.endswith(".safetensors"))}
    parts = [f"model-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]
    need({*parts} == named, f"{index}: expected parts by their numbers, no {whole}")
    need(sum(os.path.getsize(os.path.join(folder, part)) for part in parts) <= LARGEST, f"over {LARGEST:,} bytes")
    for part in parts:
        found = read_safetensors(read(folder, part))
        need({*found} == {name for name in places if places[name] == part}, f"{part}: not the tensors of {index}")
        tensors |= found
    return tensors


def check_closed(folder: str, config: Json, name: str, texts: bool) -> None:
    """Raise ValueError if other programs could load anything from the folder that is not read here."""
    there, index = {*os.listdir(folder)}, "model.safetensors.index.json"
    parts = {index, *(place for place in there if place.endswith(".safetensors"))} if index in there else set()
    known = {"config.json", "model.safetensors", *parts, *HARMLESS}
    beside = {"modeling_byheart.py", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}
    strange = there - known - (beside if name == "byheart" else set()) | config.keys() - KEYS[name]
    need(not strange, f"{min(strange, default='')!r:.60} is nothing that Byheart writes for this network")
    hashes = {place: hashlib.sha256(read(folder, place)).hexdigest() for place in beside & there}
    need(hashes.get("modeling_byheart.py", min(CODE)) in CODE, "modeling_byheart.py: not a version that is known here")
    for place in ("tokenizer.json", "tokenizer_config.json") if texts else ():
        need(TOKENIZERS.get(hashes.get(place, "")) == place, f"{place} is not the one for bytes: no byte pairs")
    if name == "byheart":
        spec, ours = config["spec"], {"AutoConfig": "ByheartConfig", "AutoModelForCausalLM": "ByheartForCausalLM"}
        code = {key: f"modeling_byheart.{own}" for key, own in ours.items()} if "auto_map" in config else None
        expected = {"architectures": [ours["AutoModelForCausalLM"]], "auto_map": code, "dtype": spec["precision"]}
        end, refuse = config["about"].get("end"), config["about"].get("refuse") or {}
        ends = [end, refuse["token"]] if refuse else end
        is_end = end == (256 if "tokenizer.json" in hashes else None) and refuse.get("token", 257) > 256
        need(is_end, "texts would end at another token than 256")
        expected |= {"model_type": name, "vocab_size": spec["vocab"], "eos_token_id": ends, "pad_token_id": end}
        wrong = [key for key, value in expected.items() if config.get(key) != value]
        if "generation_config.json" in hashes:
            settings = {"bos_token_id": None, "eos_token_id": ends, "pad_token_id": end, "do_sample": False}
            wrong += ["generation_config.json"] * (json.loads(read(folder, "generation_config.json")) != settings)
        need(not wrong, f"{wrong[:1]} is not what Byheart writes for this network")


def read_npz(path: str) -> Json:
    """Read the arrays of an .npz; those that do not hold numbers are left out."""
    arrays: Json = {}
    with zipfile.ZipFile(io.BytesIO(read(path))) as archive:
        fits = sum(member.file_size for member in archive.infolist()) <= LARGEST
        fits &= {member.compress_type for member in archive.infolist()} <= {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
        need(fits, f"{path}: too large when unpacked, or packed in an unknown way")
        for member in archive.infolist():
            name, data = member.filename.removesuffix(".npy"), archive.open(member).read(member.file_size)
            begin = 10 if data[6] == 1 else 12
            end = begin + int.from_bytes(data[8:begin], "little")
            header = ast.literal_eval(data[begin : min(end, 1 << 16)].decode("latin-1").strip())
            dtype, shape, by_columns = header["descr"], header["shape"], header["fortran_order"]
            need(name not in arrays and not (by_columns and shape[1:]), f"{path}: {name} is there twice, or by columns")
            arrays |= {name: decoded(dtype[1:], shape, data[end:])} if dtype[0] in "<|" and dtype[1] in "fiu" else {}
    return arrays


def read_task(path: str) -> Json:
    """Read a task: its kind, and inputs, answers, maybe queries and weights, one of each per example."""
    arrays = read_npz(path) if path.endswith(".npz") else {}
    if not path.endswith(".npz"):
        lines = [json.loads(line) for line in read(path).splitlines() if line.strip()]
        header = lines.pop(0) if "task" in lines[0] else {}
        many = {"context": "contexts", "query": "queries", "label": "labels", "target": "targets", "weight": "weights"}
        arrays = {many.get(key, key): [line[key] for line in lines] for key in lines[0]}
        arrays |= {"contexts": header["context"]} if "context" in header else {}
    [source] = {"tokens", "vectors", "contexts"} & {*arrays}
    [asked] = {"labels", "targets", "probabilities"} & {*arrays}
    ids = (value for name in {source, asked} & {"tokens", "labels"} for value in leaves(arrays[name]))
    need(all(type(value) is int and value >= 0 for value in ids), f"{path}: ids that are not integers, 0 or more")
    if source == "contexts" and not isinstance(arrays[source][0][0], list):
        arrays[source] = [arrays[source]] * len(arrays[asked])  # one context for all examples
    names = {source: "inputs", asked: "answers", "queries": "queries", "weights": "weights"}
    task = {names[name]: array for name, array in arrays.items() if name in names}
    need(all(len(part) == len(task["answers"]) > 0 for part in task.values()), f"{path}: not one answer for a question")
    each = "every" if asked == "labels" and isinstance(arrays[asked][0], list) else "last"
    return task | {"kind": f"{asked} of {source}, {each}"}


def read_facts(paths: list[str]) -> list[tuple[bytes, bytes]]:
    """Read prompts and completions from tables (.csv) or records (.jsonl), each pair once."""
    pairs: list[tuple[bytes, bytes]] = []
    for path in paths:
        need(path.endswith((".csv", ".jsonl")), f"{path}: facts are known here as .csv and .jsonl")
        bare = re.sub('"[^"]*"', "", (text := read(path).decode("utf-8-sig")).partition("\n")[0])
        table = csv.DictReader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=bare.count))
        for row in table if path.endswith(".csv") else map(json.loads, filter(str.strip, text.split("\n"))):
            names = ("prompt", "completion") if "prompt" in row else ("question", "answer")
            pairs.append((row[names[0]].encode(), row[names[1]].encode()))
    return list(dict.fromkeys(pairs))


def read_texts(folder: str, pairs: list[tuple[bytes, bytes]]) -> tuple[list[Vector], list[tuple[int, int, int]]]:
    """Return prompts with texts as tokens (bytes and 256, the end), and questions: (text, place of last token, answer).

    Every token after the prompt is asked for; without a prompt, every token but the first.
    """
    merges = json.loads(read(folder, "tokenizer.json"))["model"]["merges"]
    need(not merges, "the network reads byte pairs, which are not known here; expected bytes")
    texts, asked, beginnings = [[*prompt, *text, 256] for prompt, text in pairs], [], {(0, 0): 0}
    follows: dict[int, set[int]] = {}
    for number, text in enumerate(texts):
        node = 0  # number of the text's beginning
        for place, (token, label) in enumerate(itertools.pairwise(text)):
            node = beginnings.setdefault((node, token), len(beginnings))
            if place + 1 >= len(pairs[number][0]):
                follows.setdefault(node, set()).add(label)
                asked.append((number, place, label, node))
    # If texts begin alike and continue differently, no answer is right: these questions are left out.
    return texts, [(text, place, label) for text, place, label, node in asked if len(follows[node]) == 1]


def others(pairs: list[tuple[bytes, bytes]]) -> list[bytes]:
    """Flip one bit of every prompt; leave out those that are the beginning of a fact."""
    known = {prompt + said[:length] for prompt, said in pairs for length in range(len(said) + 1)}
    places = [number % len(prompt) for number, (prompt, _) in enumerate(pairs)]
    near = [p[:k] + bytes([p[k] ^ 1]) + p[k + 1 :] for k, (p, _) in zip(places, pairs, strict=True)]
    return [prompt for prompt in near if prompt not in known]


def scaled(values: Any, bits: int | None = None) -> tuple[Any, int]:
    """Return lists of numbers as lists of integers over a power of two, exactly, and its exponent."""
    bits = max(value.as_integer_ratio()[1].bit_length() for value in leaves(values)) - 1 if bits is None else bits
    return ([scaled(v, bits)[0] for v in values] if type(values) is list else int(Fraction(values) * (1 << bits))), bits


def real(function: str, numerator: int, denominator: int, bits: int) -> int:
    """Return 2^bits exp(x), x <= 0, or 2^bits ln(x), x a fraction, within 2: ``decimal`` rounds each step correctly."""
    with decimal.localcontext(prec=bits // 3 + 20):
        return int(getattr(decimal.Decimal(numerator) / denominator, function)() * (1 << bits))


def decided(gap: Any, error: Any) -> bool | None:
    """Return True if a number within ``error`` of ``gap`` is positive, False if not, None if that is uncertain."""
    return True if gap > error else False if gap <= -error else None


class Matrix:
    """A matrix of integers; ``norm``, the largest sum of a row's absolute values, bounds the growth of errors."""

    def __init__(self, rows: Iterable[Iterable[int]], reads: Iterable[Vector] | None = None, add: Any = sum) -> None:
        given = [list(row) for row in rows]
        self.norm, self.add, self.columns = max(sum(map(abs, row)) for row in given), add, len(given[0])
        pairs = zip(given, reads or [list(range(self.columns))] * len(given), strict=True)
        used = ([(w, j) for w, j in zip(*pair, strict=True) if w] for pair in pairs)
        self.rows = [([w for w, _ in own], [j for _, j in own]) for own in used]

    def __call__(self, x: Vector) -> Vector:
        """Return the product with a vector: each row's weights times the entries that they read, added up."""
        need(self.add is not sum or len(x) == self.columns, f"a matrix of {self.columns} columns, {len(x)} numbers")
        return [self.add(map(operator.mul, w, [x[j] for j in own])) for w, own in self.rows]


class Stream(NamedTuple):
    """Vectors of integers over one denominator; every entry is within error / den of the true one."""

    rows: list[Vector]
    den: int
    error: int = 0

    def plus(self, added: list[Vector], factor: int, error: int) -> "Stream":
        """Return the sum of itself and added / (den factor), which is within error / (den factor)."""
        pairs, den, error = zip(self.rows, added, strict=True), self.den * factor, self.error * factor + error
        rows = [[a * factor + b for a, b in zip(*pair, strict=True)] for pair in pairs]
        common = math.gcd(den, error, *(value for row in rows for value in row))
        return Stream([[v // common for v in row] for row in rows], den // common, error // common)

    def affine(self, bits: int, W: Matrix, b: Vector, shift: int, act: str) -> "Stream":
        """Apply (W x + b) / 2^shift to every vector, then the ReLU or tanh, which make no error larger."""
        need(shift + self.den.bit_length() < 1 << 23, "shifts by too many bits")
        rows = [[v + c * self.den for v, c in zip(W(row), b, strict=True)] for row in self.rows]
        den, error, one = self.den << shift, self.error * W.norm, 1 << bits
        if act == "tanh":  # (1 - e) / (1 + e), e = exp(-2 |v|) within 2: within 4, and 1 for the cut
            raised = [[(v, real("exp", -2 * abs(v), den, bits)) for v in row] for row in rows]
            rows = [[(one - e << bits) // (one + e) * (1 if v > 0 else -1) for v, e in row] for row in raised]
            return Stream(rows, one, (error << bits) // den + 6)
        return Stream([[max(v, 0) for v in row] for row in rows] if act == "relu" else rows, den, error)


def attend(head: Any, x: Stream, queries: list[Vector], places: Vector, bits: int) -> tuple[list[Vector], int, int]:
    """Return W_O W_V Σ_j a_j x_j per query, in units of 1 / (den factor); the factor; and the error, in these units."""
    # A head is its kind, W_Q, W_K transposed, W_V, W_O, and the powers of two that scores and outputs are over. The
    # weights a are equal for all largest scores (for all, if scores are 0), or the softmax of the scores: exponentials
    # within 2, their sum, 1 or more, within 2n, so quotients within 2n + 3.
    kind, W_Q, W_K, W_V, W_O, score_shift, shift = head
    fits = (kind == UNIFORM or not x.error) and max(shift, score_shift) + x.den.bit_length() < 1 << 23
    need(fits, "attention with scores that are only enclosed, or shifts by too many bits")
    found, largest, unit = [], [max(map(abs, row)) for row in x.rows], x.den**2 << score_shift
    for query, place in zip(queries, places, strict=True):
        seen, direction = x.rows[: place + 1] if kind == CAUSAL else x.rows, W_K(W_Q(query))
        need(len(direction) == len(x.rows[0]), "keys and queries of different sizes")
        scores = [sum(map(operator.mul, row, direction)) for row in seen]
        top, off = max(scores), 0
        weights = [int(score == top) for score in scores]
        if kind == SOFT:
            raised, off = [real("exp", score - top, unit, bits) for score in scores], 2 * len(seen) + 3
            weights = [(value << bits) // sum(raised) for value in raised]
        sums = W_O(W_V([sum(map(operator.mul, weights, column)) for column in zip(*seen, strict=True)]))
        error = off * sum(largest) + x.error * (sum(weights) + off * len(seen))
        found.append((1 << bits if kind == SOFT else sum(weights), sums, error * W_V.norm * W_O.norm))
    factor = math.lcm(*(own for own, _, _ in found))
    rows = [[v * (factor // own) for v in sums] for own, sums, _ in found]
    return rows, factor << shift, max(error * (factor // own) for own, _, error in found)


def exact_layers(network: Json, tensors: Json) -> Iterator[tuple[str, Any]]:
    """Yield every layer: a chain of affine maps, with or without a skip connection; heads; or a named layer."""
    (_, lengths), magnitudes = tensors["lengths"], bytes(tensors["magnitudes"][1])
    need(sum(map(abs, lengths)) == len(magnitudes), "the lengths of the integers do not add up")
    ends = zip(lengths, itertools.pairwise(itertools.accumulate(map(abs, lengths), initial=0)), strict=True)
    stored = (int.from_bytes(magnitudes[begin:end], "little") * (1 if n > 0 else -1) for n, (begin, end) in ends)

    def take(rows: int, columns: int) -> list[Vector]:
        need(rows > 0 < columns, "a matrix without entries")
        return [[next(stored) for _ in range(columns)] for _ in range(rows)]

    for layer in network["layers"]:
        kind, shapes = layer["kind"], layer.get("shapes", {})
        if kind == "FeedForward":
            parts = [(take(*part["shape"]), take(1, part["shape"][0])[0], part) for part in layer["layers"]]
            chain = [(Matrix(W), b, part["shift"], "relu" if part["relu"] else "") for W, b, part in parts]
            yield "skip" if layer["residual"] else "chain", chain
        for block in layer["blocks"] if kind == "Residual" else ():
            W_in, [b], W_out = take(*block["shape"]), take(1, block["shape"][0]), take(*block["shape"][::-1])
            yield "skip", [(Matrix(W_in), b, 0, "relu"), (Matrix(W_out), [0] * len(W_out), 0, "")]
        W = {name: take(*shape) for name, shape in shapes.items()}
        if kind in (SOFT, CAUSAL, UNIFORM, HARD):
            Q, K = (W[name] if kind != UNIFORM else [[0] * len(W["W_V"][0])] for name in ("W_Q", "W_K"))
            matrices = Matrix(Q), Matrix(zip(*K, strict=True)), Matrix(W["W_V"]), Matrix(W["W_O"])
            yield "heads", (True, [(kind, *matrices, layer.get("score_shift", 0), layer.get("shift", 0))])
        elif kind not in ("FeedForward", "Residual"):
            need(" ".join([kind, *W]) in ("Embedding W_E", "Positions W_pos", "TokenSum", "Flatten"), f"layer {kind!r}")
            yield kind, (*W.values(), 0)
    need(next(stored, None) is None, "more integers than the layers have")


def softmax_layers(skip: bool, tensors: Json) -> Iterator[tuple[str, Any]]:
    """Yield the layers of a softmax network: embedding, positions; [x_n +] heads; tanh(W_in z + b_in); W_U z."""
    own = {dtype for dtype, _ in tensors.values()}
    need(own == {"F64"} and type(skip) is bool and skip <= ("W_E" in tensors), "not float64, or a skip from nowhere")
    if "W_E" in tensors:
        (W_E, W_pos), bits = scaled([tensors["W_E"][1], tensors["W_pos"][1]])
        yield from (("Embedding", (W_E, bits)), ("Positions", (W_pos, bits)))
    (Q, q), (K, k), (V, v), (O, o) = (scaled(tensors[name][1]) for name in ("W_Q", "W_K", "W_V", "W_O"))
    four = zip(*([Matrix(zip(*head, strict=True)) for head in part] for part in (Q, V, O)), map(Matrix, K), strict=True)
    yield "heads", (skip, [(SOFT, W_Q, W_K, W_V, W_O, q + k, v + o) for W_Q, W_V, W_O, W_K in four])
    for W, b, act in (("W_in", "b_in", "tanh"), ("W_U", None, "")):
        if W in tensors:
            (rows, own), bits = scaled([tensors[W][1], tensors[b][1] if b else [0] * len(tensors[W][1][0])])
            yield "chain", [(Matrix(zip(*rows, strict=True)), own, bits, act)]


def layered(config: Json, tensors: Json, task: Json, limit: Fraction) -> Callable[[int, int], Any]:
    """Return the function that judges the answers of an exact or a softmax network."""
    network, asks = config["network"] if config["format"] == "byheart-exact-1" else None, task["kind"].split()[0]
    layers = list(exact_layers(network, tensors) if network else softmax_layers(config["skip"], tensors))
    kinds, last = [kind for kind, _ in layers], not network or network["outputs"] == "last"
    reads = network["inputs"] if network else "tokens" if "Embedding" in kinds else "contexts"
    answers = f"{'labels' if network else asks} of {reads}, {'last' if last else 'every'}"
    need(task["kind"] == answers, f"the network answers {answers!r:.60}; the task asks for {task['kind']}")
    length = network["length"] if network else len(layers[1][1][0]) if reads == "tokens" else None
    final = max((i for i, kind in enumerate(kinds) if kind in ("heads", "TokenSum", "Flatten")), default=None)
    soft = any(head[0] == SOFT for kind, weights in layers if kind == "heads" for head in weights[1])

    def outputs(example: int, bits: int) -> Stream:
        given = task["inputs"][example]
        need(length in (None, len(given)), f"{len(given)} tokens; the network reads {length!r:.60}")
        query = task["queries"][example] if reads == "contexts" else [0]
        (rows, query), power = scaled([[[token] for token in given] if reads == "tokens" else given, query])
        x, places = Stream(rows, 1 << power), list(range(len(given)))
        for i, (kind, weights) in enumerate(layers):
            if kind in ("chain", "skip"):
                y = functools.reduce(lambda y, affine: y.affine(bits, *affine), weights, x)
                x = x.plus(y.rows, y.den // x.den, y.error) if kind == "skip" else y
            elif (i, kind, reads) == (0, "Embedding", "tokens"):
                x = Stream([weights[0][token] for [token] in x.rows], 1 << weights[1])
            elif kind == "Positions":
                x = x.plus([[v * x.den >> weights[1] for v in weights[0][place]] for place in places], 1, 0)
            elif kind == "TokenSum":
                x = x.plus([[2 * sum(column) for column in zip(*x.rows)]] * len(x.rows), 1, 2 * len(x.rows) * x.error)
            elif kind == "Flatten":
                x = x._replace(rows=[[v for row in x.rows for v in row]])
            else:
                places = places[-1:] if last and i == final else places  # no others are asked for
                own = x._replace(rows=[query] if reads == "contexts" else x.rows[-len(places) :])
                found = [attend(head, x, own.rows, places, bits) for head in weights[1]]
                rows = [[sum(column) for column in zip(*each)] for each in zip(*(rows for rows, _, _ in found))]
                own = own if weights[0] else Stream([[0] * len(row) for row in rows], x.den)
                x = own.plus(rows, found[0][1], sum(error for *_, error in found))
        return x

    @functools.cache
    def divergence(bits: int) -> tuple[Fraction, Fraction]:
        """Return Σ_t π_t Σ_j p_tj (log p_tj - log softmax(logits_t)_j) and its error: 2r if logits are off by r."""
        total, error, count = Fraction(0), Fraction(0), len(task["answers"])
        for example, probabilities in enumerate(task["answers"]):
            [row], den, moved = outputs(example, bits)
            weight, top = Fraction(task["weights"][example]) if "weights" in task else Fraction(1, count), max(row)
            log_sum = real("ln", sum(real("exp", v - top, den, bits) for v in row), 1 << bits, bits)
            for p, v in ((Fraction(p), v) for p, v in zip(probabilities, row, strict=True) if p):
                log_p = real("ln", p.numerator, p.denominator, bits)
                total += weight * p / (1 << bits) * (log_p + (top - v << bits) // den + log_sum)
                error += weight * p / (1 << bits) * (2 * len(row) + (2 * moved << bits) // den + 9)
        return total, error

    def ask(example: int, bits: int) -> Any:
        wanted = task["answers"][example]
        if asks == "probabilities":
            return [(None, "its distribution", decided(limit - divergence(bits)[0], divergence(bits)[1]))]
        rows, den, error = outputs(example, bits)
        if network:
            labels, rows = ([wanted], rows[-1:]) if last else (wanted, rows)
            far = enumerate((w, abs(v - w * den)) for [v], w in zip(rows, labels, strict=True))
            return [(None if last else k, w, decided(den - 2 * d, 2 * error) if soft else d == 0) for k, (w, d) in far]
        if asks == "labels":
            gaps = [rows[0][wanted] - v for j, v in enumerate(rows[0]) if j != wanted]
            return [(None, wanted, decided(min(gaps, default=math.inf), 2 * error))]
        off = max(abs(Fraction(v, den) - Fraction(w)) for v, w in zip(rows[0], leaves(wanted), strict=True))
        return [(None, wanted, decided(limit - off, Fraction(error, den)))]

    return ask


def transformer(spec: Json, tensors: Json, sequences: Any, questions: Any) -> Callable[[int, int], Any]:
    """Return the function that judges the answers of a float Transformer: the label's logit must be the largest."""
    dtype, p, least, most = {"float32": ("F32", 24, 126, 127), "float64": ("F64", 53, 1022, 1023)}[spec["precision"]]
    kept = {name: "BF16" if name in spec.get("bfloat16", ()) else dtype for name in tensors}
    need(kept == {name: tensors[name][0] for name in kept}, "tensors of another precision than config.json says")
    room = [sum(1 for _ in leaves([values for _, values in tensors.values()]))]  # a part's feature has its own weight
    point = least + p - 1  # numbers are integers in units of 2^-point; the stream's last entry is the number 1
    one, tiny, huge = 1 << point, 1 << p - 1, 1 << point + most

    def add(given: Iterable[int], shift: int = 0, step: bool = False) -> int:
        """Add terms in units of 2^-(point + shift); raise FloatingPointError unless every order gives the same sum."""
        # With ``step``, return its sigmoid, 0 or 1: then the sum of two terms that have p bits may be rounded, once.
        terms = [term for term in given if term]
        total, above = sum(terms), sum(term for term in terms if term > 0)
        size = max(above, above - total)  # no part of the sum is larger
        low = min((term & -term for term in terms), default=one << shift)  # all terms are multiples of it
        whole = terms if step or not total else [*terms, total]
        two = len(terms) <= 2 and all(abs(term) < (term & -term) << p for term in whole)
        exact = (two or size <= low << p) and size < huge << shift and low >= tiny << shift
        if not exact or (step and abs(total) <= 1001 * one << shift):
            raise FloatingPointError
        return one * (total > 0) if step else total >> shift

    def features(ranges: list[str]) -> Vector:  # what "3:5" and "9:10" name
        found = [range(*map(int, part.split(":"))) for part in ranges]
        room[0] -= sum(map(len, found))
        need(room[0] >= 0 and all(0 <= r.start < r.stop <= spec["stream"] < 1 << 20 for r in found), "no such features")
        return [feature for own in found for feature in own]

    def matrix(name: str, part: str, reads: Vector, bias: bool = False, step: bool = False) -> Matrix:
        """Return W and b. W is [rows, reads]; with groups, [groups, rows, reads of one]; diagonal, [groups, rows]."""
        W = tensors[f"{name}.W_{part}"][1]
        if not isinstance(W[0][0], list):
            W = [[[w]] for row in W for w in row] if part == "up" else [W]
        b, wide = leaves(tensors[f"{name}.b_{part}"][1]) if bias else itertools.repeat(0), len(reads) // len(W)
        rows, shift = scaled([[*row, next(b)] for group in W for row in group])
        places = ([*reads[g * wide : g * wide + wide], -1] for g, group in enumerate(W) for _ in group)
        return Matrix(rows, places, lambda terms: add(terms, shift, step))

    def plus(x: Vector, writes: Vector, values: Vector) -> Vector:  # ``writes`` may name a feature twice
        parts: dict[int, Vector] = {}
        for feature, value in zip(writes, values, strict=True):
            parts.setdefault(feature, [x[feature]]).append(value)
        return [add(parts[feature]) if feature in parts else v for feature, v in enumerate(x)]

    (codes, bits), embeds, sharp = scaled(tensors["embedding.W_E"][1]), features(spec["embeds"]), True
    logits = matrix("unembedding", "U", features(spec["unembeds"]), True)
    stages: list[Any] = [(None, [])]  # attention sublayers, each with the feed-forward sublayers behind it
    for layer in spec["sublayers"]:
        name, reads, writes = layer["name"], features(layer["reads"]), features(layer["writes"])
        if layer["kind"] == "attention":
            bias, V, back = scaled(tensors[f"{name}.bias"][1]), matrix(name, "V", reads), layer["dilation"]
            # Scores are the bias, where queries and keys are 0 (others are not decided here). All weight is on the
            # largest: on one, or in equal parts on two to some power of them, if all others are 1000 below.
            lows = [max(own) - (1000 << bias[1]) for own in bias[0]]
            tops = [[k for k, v in enumerate(own) if v > low] for own, low in zip(bias[0], lows, strict=True)]
            each = {(len({own[k] for k in top}), len(top).bit_count()) for own, top in zip(bias[0], tops, strict=True)}
            sharp &= each == {(1, 1)} and not any(leaves([tensors[f"{name}.W_{part}"][1] for part in "QK"]))
            need(back > 0, "attention to what is still to come")
            W_O, offsets = matrix(name, "O", list(range(len(V.rows)))), range(0, back * len(bias[0][0]), back)
            stages.append(((V, offsets, tops, W_O, writes), []))
        else:  # W_out act(W_in x + b_in), or W_out (act(W_gate x + b_gate) · (W_up x + b_up))
            act, up, above = layer["act"], layer.get("up", "none"), features(layer.get("up_reads", []))
            need(act in ("sigmoid", "relu") and up in ("none", "dense", "diagonal"), f"{act!r:.60} or {up!r:.60}")
            first = matrix(name, "in" if up == "none" else "gate", reads, layer.get("bias", True), act == "sigmoid")
            second = matrix(name, "up", above, layer.get("up_bias", False)) if up != "none" else None
            several = layer["kind"] == "mixture"  # of experts: that with the largest score, W_route x + b_route
            route: Any = matrix(name, "route", features(layer["routes"]), True) if several else lambda _: [0]
            named = map("out.{}".format, range(layer["experts"])) if several else ["out"]
            experts = [matrix(name, part, list(range(len(first.rows)))) for part in named]
            stages[-1][1].append((first, second, route, experts, writes))

    @functools.lru_cache(maxsize=int((1 << 25) // (spec["stream"] + 1)))
    def stream(stage: int, number: int, place: int) -> tuple[Vector, Vector]:
        """Return the stream behind a stage, and the values that the next attention reads there: 0 before the start."""
        x, (attention, others) = [0] * (spec["stream"] + 1), stages[stage]
        if place >= 0 and attention is None:
            x = plus([*x[1:], one], embeds, [v << point - bits for v in codes[sequences[number][place]]])
        elif place >= 0:
            V, offsets, tops, W_O, writes = attention
            found = [stream(stage - 1, number, place - back)[1] for back in offsets]
            chosen = [tops[i * len(tops) // len(V.rows)] for i in range(len(V.rows))]
            mixed = [add([found[k][i] * (one // len(top)) for k in top], point) for i, top in enumerate(chosen)]
            x = plus(stream(stage - 1, number, place)[0], writes, W_O(mixed))
        for first, second, route, experts, writes in others if place >= 0 else ():
            hidden = [max(0, v) for v in first(x)]
            hidden = [add([a * b], point) for a, b in zip(hidden, second(x), strict=True)] if second else hidden
            (top, best), *rest = sorted(zip(route(x), experts, strict=True), key=operator.itemgetter(0), reverse=True)
            if rest and rest[0][0] == top:  # either of the two may be taken
                raise FloatingPointError
            x = plus(x, writes, best(hidden))
        return x, stages[stage + 1][0][0](x) if stage + 1 < len(stages) else []

    def ask(question: int, _: int) -> Any:
        number, place, label = questions[question]
        try:
            found = logits(stream(len(stages) - 1, number, place)[0])
            return [(place, label, all(found[label] > v for j, v in enumerate(found) if j != label) if sharp else None)]
        except FloatingPointError:
            return [(place, label, None)]

    return ask


def verify(given: argparse.Namespace) -> Json:
    """Check a network; return the object that --json prints."""
    began, config, questions = time.perf_counter(), json.loads(read(given.folder, "config.json")), []
    name, limit = config.get("format", config.get("model_type")), given.tolerance
    need(name in ("byheart-exact-1", "byheart-softmax-1", "byheart"), f"{name!r:.60} is not a kind that is known here")
    need(len([*filter(None, (given.texts, given.task, given.facts))]) == 1, "expected texts, --task or --facts FILE")
    check_closed(given.folder, config, name, not given.task)
    tensors = read_weights(given.folder)
    need({*tensors} <= TENSORS.get(name, {*tensors}), "model.safetensors: has other tensors than the network needs")
    task: Json = read_task(given.task) if given.task else {"kind": "texts"}
    fits = limit is None or (limit > 0 and name == "byheart-softmax-1" and "labels" not in task["kind"])
    need(fits, "--tolerance is for real answers, and above 0")
    if name == "byheart":
        need(task["kind"] in ("texts", "labels of tokens, last"), f"the task asks for {task['kind']}")
        questions = [(n, len(row) - 1, task["answers"][n]) for n, row in enumerate(task.get("inputs", []))]
        if not given.task:
            pairs = read_facts(given.facts) if given.facts else [(b"", read(path)) for path in given.texts]
            task["inputs"], questions = read_texts(given.folder, pairs)
            refuse = config.get("about", {}).get("refuse") or {}
            near = others(pairs) if given.facts and refuse and refuse.get("bits", 64) > 15 else []
            questions += [(len(pairs) + n, len(prompt) - 1, refuse["token"]) for n, prompt in enumerate(near)]
            task["inputs"] += map(list, near)
        ask = transformer(config["spec"], tensors, task["inputs"], questions)
    else:
        ask = layered(config, tensors, task, Fraction(limit or 1e-6))
    count, answers = len(questions or task["inputs"]), []
    asked = count if given.sample is None else min(given.sample, count)
    need(asked == count or "probabilities" not in task["kind"], "distributions are judged all together: no --sample")
    for question in sorted(random.Random(given.seed).sample(range(count), asked)):
        for bits in BITS:
            found = ask(question, bits)
            if questions or all(right is not None for *_, right in found):
                break
        answers += [(questions[question][0] if questions else question, *answer) for answer in found]
    right, wrong, undecided = (sum(answer[3] is was for answer in answers) for was in (True, False, None))
    result: Json = {"verdict": "right" if right == len(answers) > 0 else "not right", "right": right, "wrong": wrong}
    scope = f"{asked:,} of {count:,} questions" + (f", a sample (seed {given.seed})" if asked < count else "")
    result |= {"undecided": undecided, "asked": asked, "questions": count, "scope": scope}
    result["not_right"] = [answer[:3] for answer in answers if not answer[3]][:100000]
    return result | {"seconds": round(time.perf_counter() - began, 1)}


def main() -> int:
    """Run the command; return its exit code."""
    parser = argparse.ArgumentParser(description="A second opinion.", epilog="example: verify.py net --task task.npz")
    parser.add_argument("folder", help="the network's folder")
    parser.add_argument("texts", nargs="*", help="the texts that it recites")
    parser.add_argument("--task", help="the task that it answers (.npz or .jsonl)")
    parser.add_argument("--facts", action="append", default=[], help="the facts that it knows (.csv or .jsonl)")
    parser.add_argument("--sample", type=int, help="number of questions to ask, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (default: 0)")
    parser.add_argument("--tolerance", type=float, help="largest error of targets and distributions (default: 1e-6)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    try:
        found = verify(given)
    except Exception as error:  # whatever goes wrong with a file, nothing is affirmed
        print("verify:", "".join(filter(str.isprintable, f"{type(error).__name__}: {error}"[:300])), file=sys.stderr)
        return 2
    line = "{verdict}: {right:,} right, {wrong:,} wrong, {undecided:,} undecided; {scope}; {seconds} s".format(**found)
    first = "".join(f"; not right, first: example {n}, position {k}, {w}" for n, k, w in found["not_right"][:1])
    print(json.dumps(found) if given.json else line + first)
    return 0 if found["verdict"] == "right" else 1


if __name__ == "__main__":
    sys.exit(main())
