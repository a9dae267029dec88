"""A GPT-2 of your own: how many of 40 answers does it hold after a moment of training? Proved, one by one.

python examples/own_checkpoint.py gpt2
byheart certify gpt2 --task gpt2/task.npz --count    # the same as a command
"""

import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import byheart

folder, sizes = Path(sys.argv[1]), {"vocab_size": 9, "n_positions": 3, "n_embd": 16, "n_layer": 1, "n_head": 2}
torch.manual_seed(0)
tokens, answers = torch.randint(9, (40, 3)), torch.randint(9, (40,))
model = GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=None, eos_token_id=None))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(100):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(tokens).logits[:, -1], answers).backward()
    optimizer.step()
model.save_pretrained(folder)
task = byheart.tasks.NextToken(tokens.numpy(), answers.numpy(), label_count=9, vocab=9)
byheart.tasks.save(task, folder / "task.npz")
print(byheart.certify(folder, task, count=True))
