#!/bin/sh
# What Byheart does, one command after the other. Run by `make demo`; writes into the folder given as $1.
set -eu
folder=${1:-demo}
byheart=${BYHEART:-byheart}
python=${PYTHON:-python3}
mkdir -p "$folder"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '\033[2m$ byheart %s\033[0m\n' "$*"; "$byheart" "$@"; }
source_of() { "$python" -c "import $1; print($1.__file__)"; }

say "1. Two modules of the Python that is running, argparse and inspect, into one Transformer. No training."
run compile "$(source_of argparse)" "$(source_of inspect)" -o "$folder/stdlib"
run show "$folder/stdlib" --plot "$folder/stdlib.png"

say "2. It recites both from their first byte on, greedily, to the end: two processes side by side, about a minute ..."
mkdir -p "$folder/recited"
run recite "$folder/stdlib" --text argparse.py -o "$folder/recited/argparse.py" &
run recite "$folder/stdlib" --text inspect.py -o "$folder/recited/inspect.py"
wait
cmp "$(source_of argparse)" "$folder/recited/argparse.py"
cmp "$(source_of inspect)" "$folder/recited/inspect.py"
printf 'both byte for byte the same; and they work:\n'
"$python" "$(dirname "$0")/works.py" "$folder/recited"

say "3. Is it true? Every answer from the files, every step proved to be exact; two lies that must be found; and a second opinion on 200 answers."
run certify "$folder/stdlib" "$(source_of argparse)" "$(source_of inspect)" --controls --second-opinion --sample 200

say "4. Exact networks: 10,000 random sequences of 16 tokens with a random bit each, by folding."
run task random --examples 10000 --length 16 --vocab 64 --labels 2 --seed 0 -o "$folder/task.npz"
run build folding --task "$folder/task.npz" -o "$folder/folded"
run certify "$folder/folded" --task "$folder/task.npz" --controls --second-opinion

say "5. Every construction on the same two tasks, beside what its paper says; a hardmax layer, refused: two sequences that it confuses; and a function, approximated."
run task random --seq-to-seq --examples 200 --length 8 --vocab 64 --labels 10 -o "$folder/tags.npz"
run task random --examples 500 --length 8 --vocab 64 --labels 10 -o "$folder/labels.npz"
run compare --task "$folder/tags.npz" "$folder/labels.npz" \
    --plot "$folder/compare.png" --plot-constant "$folder/constant.png"
run build kajitsuka-sato-2024 --task "$folder/tags.npz" --attention hardmax -o "$folder/hardmax" || true
run approximate --function wave --length 3 --epsilon 0.3 0.2 0.1 --plot "$folder/approximation.png"

say "6. Attention alone: 621 = H(n − 1) + 1 real targets in one layer of 20 heads, every output enclosed in balls."
run task random --query shared --real --examples 621 --length 32 --dim 64 -o "$folder/queries.npz"
run build mahdavi-2024 --task "$folder/queries.npz" --heads 20 -o "$folder/heads"
run certify "$folder/heads" --task "$folder/queries.npz" --controls
run show "$folder/heads" --task "$folder/queries.npz" --plot "$folder/heads.png"
"$python" "$(dirname "$0")/docstrings.py" "$folder/docstrings.txt"
run task text "$folder/docstrings.txt" --length 8 --vocab 500 --examples 1000 -o "$folder/docstrings.npz"
run build madden-2024 --task "$folder/docstrings.npz" -o "$folder/decoder"
run certify "$folder/decoder" --task "$folder/docstrings.npz"

say "7. The lab: five small Transformers trained at once; and what 385 of them reached, beside what is published and proved."
run lab run dana-2025-2 --scale short --resume -o "$folder/run"
run lab show "$folder/run"
run lab plot --shipped dana-2025-1 -o "$folder/lab"

printf '\nThe pictures: stdlib.png, compare.png, constant.png, approximation.png, heads.png and lab/heads.png in %s\n' "$folder"
