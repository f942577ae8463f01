"""No language model: an MLP that tells ten kinds of synthetic images apart. A token of the run is an image.

    python3 vision.py --save mlp; atoll new --from mlp --context 1 --batch 64 --lr 1e-3 --tokens 2e5 first
    atoll join first --init mlp --learner "python3 vision.py"     and others: atoll join LINK --learner "python3 vision.py"
    atoll join LINK mine --learner attach                                   and then: python3 vision.py --dir mine
"""

import argparse
import random

import atoll
import torch
import torch.nn.functional as F
from torch import nn

KINDS, SIDE, IMAGES = 10, 16, 64


def batches(steps):
    """Each kind is a pattern that all learners know; an image is one of them, moved around and under noise."""
    patterns = torch.randn(KINDS, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    own = torch.Generator().manual_seed(random.getrandbits(60))  # each learner sees other images
    for _ in range(steps):
        kinds = torch.randint(KINDS, (IMAGES,), generator=own)
        move = torch.randint(3, (2,), generator=own).tolist()
        yield torch.roll(patterns[kinds], move, (1, 2)) + torch.randn(IMAGES, SIDE, SIDE, generator=own), kinds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", help="write the model that a run begins with to this folder, and end")
    parser.add_argument("--dir", help="attach to the node of this folder")
    parser.add_argument("--steps", type=int, default=1 << 60, help="leave the run after so many")
    options = parser.parse_args()
    model = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 256), nn.GELU(), nn.Linear(256, 128), nn.GELU(), nn.Linear(128, KINDS))
    if options.save:
        return atoll.save(model, options.save)
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    run = atoll.join(model, optimizer, folder=options.dir)
    for images, kinds in batches(options.steps):
        loss = F.cross_entropy(model(images), kinds)
        optimizer.zero_grad()
        loss.backward()
        run.apply(optimizer)  # the node's learning rate
        optimizer.step()
        if not run.step(tokens=len(images), loss=loss):
            break  # the run is over
    run.leave()


if __name__ == "__main__":
    main()
