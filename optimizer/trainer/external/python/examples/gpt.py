"""A small GPT from scratch, with a data loader of its own: the files in Python that come with Python, byte by byte.

    python3 gpt.py --save gpt; atoll new --from gpt --context 128 --batch 16 --lr 1e-3 --tokens 2e6 first
    atoll join first --init gpt --learner "python3 gpt.py"        and others: atoll join LINK --learner "python3 gpt.py"
    atoll join LINK mine --learner attach                                   and then: python3 gpt.py --dir mine
"""

import argparse
import pathlib
import random

import atoll
import torch
import torch.nn.functional as F
from torch import nn

CONTEXT, ROWS, WIDE, HEADS, LAYERS = 128, 16, 128, 4, 4


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(256, WIDE), nn.Embedding(CONTEXT, WIDE)
        layer = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(WIDE, HEADS, 4 * WIDE, **layer) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDE), nn.Linear(WIDE, 256, bias=False)
        self.head.weight = self.wte.weight
        for embedding in (self.wte, self.wpe):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, tokens):
        length = tokens.shape[1]
        x = self.wte(tokens) + self.wpe.weight[:length]
        later = torch.full((length, length), float("-inf"), device=x.device).triu(1)
        for block in self.blocks:
            x = block(x, src_mask=later)
        return self.head(self.norm(x))


def batches(steps):
    files = sorted(pathlib.Path(pathlib.__file__).parent.glob("**/*.py"))[:1000]
    text = torch.frombuffer(bytearray(b"".join(file.read_bytes() for file in files if file.is_file())), dtype=torch.uint8)
    for _ in range(steps):
        starts = [random.randrange(len(text) - CONTEXT) for _ in range(ROWS)]
        yield torch.stack([text[s : s + CONTEXT + 1] for s in starts]).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", help="write the model that a run begins with to this folder, and end")
    parser.add_argument("--dir", help="attach to the node of this folder")
    parser.add_argument("--steps", type=int, default=1 << 60, help="leave the run after so many")
    options = parser.parse_args()
    model = GPT()
    if options.save:
        return atoll.save(model, options.save)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    optimizer = torch.optim.AdamW(model.to(device).parameters(), weight_decay=0.1)
    run = atoll.join(model, optimizer, folder=options.dir)
    for rows in batches(options.steps):
        rows = rows.to(device)
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        run.apply(optimizer)  # the node's learning rate
        optimizer.step()
        if not run.step(tokens=rows[:, 1:].numel(), loss=loss):
            break  # the run is over
    run.leave()


if __name__ == "__main__":
    main()
