"""Train a small GPT-2 of your own for a moment, and prove how many of 40 answers it holds.

    python examples/own_checkpoint.py gpt2
    byheart certify gpt2 --task gpt2/task.npz --count

The second command repeats the count.
"""

import sys

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import byheart

torch.manual_seed(0)
tokens, answers = torch.randint(9, (40, 3)), torch.randint(9, (40,))
model = GPT2LMHeadModel(GPT2Config(vocab_size=9, n_positions=3, n_embd=16, n_layer=1, n_head=2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(tokens).logits[:, -1], answers).backward()
    optimizer.step()
model.save_pretrained(sys.argv[1])
task = byheart.tasks.NextToken(tokens.numpy(), answers.numpy(), label_count=9, vocab=9)
byheart.tasks.save(task, f"{sys.argv[1]}/task.npz")
print(byheart.certify(sys.argv[1], task, count=True))
