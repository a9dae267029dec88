#!/bin/sh
# The whole way of the data, one command after the other. Run by `make demo`; writes into the folder given as $1.
set -eu
folder=${1:-demo}
byheart=${BYHEART:-byheart}
mkdir -p "$folder"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '\033[2m$ byheart %s\033[0m\n' "$*"; "$byheart" "$@"; }

say "1. Ten thousand random sequences of 16 tokens, each with a random label, 0 or 1. Nothing to learn: only to memorize."
run task random --examples 10000 --length 16 --vocab 64 --labels 2 --seed 0 -o "$folder/task.npz"
run task check "$folder/task.npz"

say "2. The theorem of Kajitsuka & Sato 2025, run: a Transformer with Õ(√N) parameters that has memorized them."
run build kajitsuka-sato-2025 --task "$folder/task.npz" -o "$folder/net"

say "3. Is it true? Every answer, in exact integer arithmetic, from the files; and two lies that must be found out."
run certify "$folder/net" --task "$folder/task.npz" --controls

say "4. Beyond the theorem: folding stores no keys, only labels."
run build folding --task "$folder/task.npz" -o "$folder/folded"
run certify "$folder/folded" --task "$folder/task.npz" --controls

say "5. One label for every token instead of one a sequence, and tokens as vectors of 8 real numbers."
run task random --examples 500 --length 16 --vocab 200 --dim 8 --labels 10 --seq-to-seq --seed 0 -o "$folder/tags.npz"
run build folding --task "$folder/tags.npz" -o "$folder/tags-net"
run certify "$folder/tags-net" --task "$folder/tags.npz"

say "6. How few is that? Every construction on the first task, smallest first. interpolate is the plain network: 3 a label."
run compare --task "$folder/task.npz" --plot "$folder/parameters.png" --plot-constant "$folder/constant.png"
printf '\nThe pictures: %s and %s\n' "$folder/parameters.png" "$folder/constant.png"
