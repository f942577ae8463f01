"""Fine-tunes a causal model of transformers on a text file. The folder has config.json, safetensors and a tokenizer.

    atoll new --from DIR --context 256 --batch 8 --tokens 1e6 tuned
    atoll join tuned --init DIR --learner "python3 finetune.py --model DIR --text FILE"    and others with the link
    atoll join LINK mine --learner attach            and then: python3 finetune.py --model DIR --text FILE --dir mine
"""

import argparse
import pathlib
import random

import atoll
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def batches(tokens, run, steps):
    """Rows of the run's length, from places of this learner's own text."""
    for _ in range(steps):
        starts = [random.randrange(len(tokens) - run.context) for _ in range(run.rows)]
        yield torch.stack([tokens[s : s + run.context + 1] for s in starts])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, help="folder of the model")
    parser.add_argument("--text", required=True, help="text file to train on")
    parser.add_argument("--dir", help="attach to the node of this folder")
    parser.add_argument("--steps", type=int, default=1 << 60, help="leave the run after so many")
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(options.model, local_files_only=True)
    tokens = torch.tensor(tokenizer(pathlib.Path(options.text).read_text(), verbose=False)["input_ids"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModelForCausalLM.from_pretrained(options.model, local_files_only=True).float().to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.1)
    run = atoll.join(model, optimizer, folder=options.dir)
    for rows in batches(tokens, run, options.steps):
        loss = model(input_ids=rows.to(device), labels=rows.to(device)).loss
        optimizer.zero_grad()
        loss.backward()
        run.apply(optimizer)  # the node's learning rate
        optimizer.step()
        if not run.step(tokens=rows[:, 1:].numel(), loss=loss):
            break  # the run is over
    run.leave()


if __name__ == "__main__":
    main()
