"""Folding: N labels in about 3.5·√(N log₂C) parameters. Ours: smaller than any construction we know of.

Theorem, in the form of Kajitsuka & Sato's Theorem 1. Let N sequences over a finite vocabulary be distinct up to
permutation, with labels from [0, C), c = ⌈log₂C⌉. There is a Transformer (embedding, one layer of uniform attention,
token-wise layers) that memorizes them with 2√(3·c·N/λ) + O(N^¼ + log N + c) parameters beside the embedding table,
where λ is the load that the linear systems below reach (0.87 to 0.95 for token ids, 0.75 to 0.85 for vectors; 1 would
be perfect). Seq-to-seq: the same with the number of different (sequence, token) pairs, at most nN, for N.

**Idea.** Published constructions store every key beside its label. Nothing forces a network to know its keys: it only
has to answer right on them. So no key is stored. The label of a question is one c-bit digit of a linear combination F
= Σ_i f_i w_i of g big integers w_i, the *words*, with small pseudo-random coefficients f_i that depend on the
question; which digit depends on the question as well. All questions that read the same digit are one system of linear
equations modulo 2^c in that digit of the words.

**The layers** (stream in brackets; every weight is an integer).

1. Embedding and attention [u]: D hash integers, u = code(own token) + 3·Σ codes, codes small and random.
2. Words: n_k = relu(V·(2Γ_k·u − τ_k) + W_k·(u, 1)), k < s. Since |W_k·(u, 1)| < V and 2Γ_k·u − τ_k is odd, hence
   never 0, the ReLU is open iff the gate b_k = [2Γ_k·u > τ_k] is, and modulo V (a power of two above every digit) n_k
   is b_k·W_k·(u, 1). So f = b ⊗ (u, 1): *every* entry of the matrix is a word, g = s(D + 1) words for g parameters.
3. Sum [v, h]: v = 2·Σ n_k + 1 and the position hash h = β·u + const.
4. Shift: h is folded until it is uniform; then ⌈log₂m⌉ residual blocks multiply v by 2^(c·shift), shift ∈ [0, m).
5. Fold [Z]: Z ← Z − 2·relu(Z − 2^k) from the top bit down to 2^(γ + cm): a residual block of three parameters per bit.
6. Read the top c bits of what is left.

**The digit is right.** With γ guard bits, digit p of the words starts at bit γ + cp. After the shift by m − 1 − p
digits, Z = (2F + 1)·2^(c(m−1−p)). Folding is the triangle wave of period 2·2^(γ+cm): it keeps r = Z mod 2^(γ+cm+1) or
mirrors it to 2^(γ+cm+1) − r. So what is read depends on the (c + 1)-bit window z of F whose lowest bit is bit γ + cp
− 1: it is z if z < 2^c and 2^(c+1) − 1 − z otherwise. For a label y exactly one of z = y and z = 2^(c+1) − 1 − y has
the parity that the digits below already fix (their contribution h', *half digits*, is known when digits are solved
from the lowest up); then f·T_p ≡ (z − h')/2 modulo 2^c is the equation for the digit T_p. **No ties**: the +1 in v
keeps Z off every multiple of 2^(γ+c(m−1)), so mirroring and reading never meet a boundary.

**Why the folds are needed.** A chain of ReLU layers of widths w_l has at most Π(w_l + 1) linear pieces, and to drop b
bits takes 2^b pieces: b/log₂(w + 1) layers at least. A unit in a residual block costs three parameters, and one unit
per block is the cheapest: 3 per bit, against 3w/log₂(w + 1).

**Random and certain.** Codes, gates and hash are drawn; a draw is used if all questions with different labels differ,
sums stay within the planned ranges, no digit is asked for too often, and all systems are solvable (a few dependent
rows are cured by other free cells one digit below). Otherwise it is drawn again, and after six failures
with a fifth more words. The result is certain, and the certificate checks it; only time is random.
"""

from byheart.constructions.folding.build import CONSTRUCTION, Demand, Settings, demand, plan, worst_demand

__all__ = ["CONSTRUCTION", "Demand", "Settings", "demand", "plan", "worst_demand"]
