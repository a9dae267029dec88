"""Folding (ours): K labels in 2√2·√(K log₂R/λ) parameters plus lower-order terms; smallest from a few hundred labels.

Theorem, in the form of Kajitsuka & Sato's Theorem 1. Let there be K questions: K = N sequences over a finite
vocabulary, distinct up to permutation; in seq-to-seq, the K ≤ nN different (sequence, token) pairs. Labels are from
[0, C), R ≥ C is the radix (C itself if it has no prime factor above 13). Draw codes in D columns with |u_j| ≤ B, gates
and an offset, and let the draw be *good* at load λ (below). Then there is a Transformer (embedding, one layer of
uniform attention, token-wise layers, some with a skip connection) that answers every question, with at most

    X·(2 + 1/(D + 1)) + 2D² + D + 3 + (10⌈log₂m⌉ + 3) + 2·(2 + j + L) + (10⌈log₂C⌉ + 7)

parameters besides the embedding table, zeros counted, where X = √(2·K·log₂R / λ), m = ⌈√(K/(2λ log₂R))⌉, s =
⌈K/(λm(D + 1))⌉, j = 1 + ⌊log₂(s(⌊DB/3⌋ + 1))⌋ and L = max(1 + ⌊log₂(2sB + 1)⌋, 10 + b, 7 + ⌊3b/2⌋) with b = 1 +
⌊log₂m⌋. (For C ≤ 6 the last bracket is 6C − 5; for m = 1 the one before is 0.) So the leading term is 2√(2·K·log₂R/λ);
with D of order K^(1/6) the rest is O(K^(1/3)·√log R + log(K·B·C)). λ is 0.82 to 0.96 for token ids (N ≥ 1,000), 0.5 to
0.75 for vectors; 1 would be perfect.

**Idea.** Published constructions store every key beside its label. But a network need not know its keys: it only has
to answer right on them. So no key is stored. The label of a question is one digit, of radix R, of a linear combination
F = Σ_i f_i w_i of g big integers w_i, the *words*. The small pseudo-random coefficients f_i and the position of the
digit depend on the question. All questions that read the same digit are one system of linear equations modulo R in
that digit of the words.

**The layers** (stream in brackets; every weight is an integer). M = 2^γ·R^m with γ = 8 guard bits; V = 2^j·M.

1. Embedding and attention [u]: D hash integers, u = code(own token) + 3·Σ codes, codes small and random.
2. Words: n_k = relu(V·φ_k·(2Γ_k·u − τ_k) + W_k·(u, 1)), k < s, |W| ≤ M/2. Since |W_k·(u, 1)| < V and 2Γ_k·u − τ_k is
   odd, hence never 0, the ReLU is open iff the gate b_k = [2Γ_k·u > τ_k] is, and modulo V n_k is b_k·W_k·(u, 1). So f =
   b ⊗ (u, 1): *every* entry of the matrix is a word, g = s(D + 1) words for g parameters.
3. Sum [Z]: Z = 2·Σ n_k + 2V·o + V + 1 = 2V·A + (2F + 1 + V): since |F| < V/2 the *level* A = o + Σ b_k·φ_k·(2Γ_k·u −
   τ_k) < 2^L is what Z has above 2V, and does not depend on the words. The factors φ_k and the offset o are drawn.
4. Fold: Z ← Z − 2·relu(Z − t) for t = V·2^L, V·2^(L−1), …: the level is folded until it is uniform.
5. Shift [v, H], both Z at first: ⌈log₂m⌉ times, where H ≥ θ, v ← R^S·v and H ← 2θ − H: so v is multiplied by R^shift,
   shift ∈ [0, m), up to multiples of 2V.
6. Fold [Z], Z = v: down to [0, M].
7. Read ⌊Z / (2^γ·R^(m−1))⌋.

**A fold has two parameters.** On the mirrored stream Y = T − Z the fold at t is Y ← Y + relu(2(T − t) − 2Y): a layer of
one ReLU with a skip connection around it, and no second matrix. (In residual blocks with W_out it would have three, as
in an earlier version, and the constant would be 2√3 instead of 2√2.) A chain of ReLU layers of widths w_l has at most
Π(w_l + 1) linear pieces, and dropping b bits takes 2^b pieces. So at least b/log₂(w + 1) layers are needed, and one
unit per layer is the cheapest.

**The digit is right.** Digit p of the words has the weight 2^γ·R^p. After the shift by m − 1 − p digits Z is ±(2F +
1)·R^(m−1−p) modulo 2M: 2V and V are multiples of 2M, and so is all that mirrored levels add. Folding is the triangle
wave of period 2M, an even function: it gives r or 2M − r with r = (2F + 1)·R^(m−1−p) mod 2M. So the label that is read
depends on z = ⌊(2F + 1)/(2^γ·R^p)⌋ mod 2R: it is z if z < R and 2R − 1 − z otherwise. For a label y exactly one of
z = y and z = 2R − 1 − y has the parity that the digits below already fix (their contribution h', *half digits*, is
known because digits are solved from the lowest up). Then f·T_p ≡ (z − h')/2 modulo R is the equation for the digit T_p.
**No ties**: 2F + 1 is odd and 2^γ is even, so mirroring and reading never meet a boundary.

**Good draws.** (a) Questions with different labels have different u; Σ|u_j| + 1 ≤ DB/3 + 1 and |u_j| ≤ B; (b) Σ
b_k(2Γ_k·u − τ_k) ≤ sB; (c) no digit is read by more than g questions; (d) every system has a solution. All four are
checked; a draw that fails is drawn again, and after six failures with a fifth more words. (d) holds for *every*
labelling if the rows of f at each digit are independent modulo every prime p that divides R. For rows of independent
uniform residues that fails with probability below p^(K_p − g)/(p − 1) at a digit with K_p questions. The rows here are
less random: if some depend on others, the digits below are solved again with other free cells, which changes the
carries.

**Random and certain.** *Proved*: a network built from a good draw answers every question, and has exactly the planned
tensors; the certificate checks it once more. *Also proved*: every task has good draws if the number of words is not
limited: with s = K rows along one direction that tells the u apart, the matrix of the b_k is triangular. *Observed, not
proved*: draws are good at the loads above. So a plan from sizes alone is marked as *expected*. A task whose questions
are designed to look alike may take a fifth more words, and the account of the built network says so (``growth``).
"""

from byheart.constructions.folding.build import CONSTRUCTION, FoldingDemand, FoldingSettings, demand, plan, worst_demand

__all__ = ["CONSTRUCTION", "FoldingDemand", "FoldingSettings", "demand", "plan", "worst_demand"]
