"""LoRA with PEFT: the base model is frozen and stays on its machine, and the run trains the adapters alone.

    python3 lora.py --base DIR --save lora; atoll new --from lora --base DIR --context 256 --batch 8 --lr 1e-3 --tokens 1e6 first
    atoll join first --init lora --learner "python3 lora.py --base DIR --text FILE"         and others with the link
    atoll join LINK mine --learner attach            and then: python3 lora.py --base DIR --text FILE --dir mine
"""

import argparse
import pathlib
import random

import atoll
import peft
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def batches(tokens, run, steps):
    """Rows of the run's length, from places of this learner's own text."""
    for _ in range(steps):
        starts = [random.randrange(len(tokens) - run.context) for _ in range(run.rows)]
        yield torch.stack([tokens[s : s + run.context + 1] for s in starts])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True, help="folder of the base model: config.json, safetensors and a tokenizer")
    parser.add_argument("--text", help="text file to train on")
    parser.add_argument("--save", help="write the adapters that a run begins with to this folder, and end")
    parser.add_argument("--dir", help="attach to the node of this folder")
    parser.add_argument("--steps", type=int, default=1 << 60, help="leave the run after so many")
    options = parser.parse_args()
    base = AutoModelForCausalLM.from_pretrained(options.base, local_files_only=True).float()
    model = peft.get_peft_model(base, peft.LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"))
    if options.save:
        return atoll.save(model, options.save)
    if not options.text:
        parser.error("--text is missing: a text file to train on")
    tokenizer = AutoTokenizer.from_pretrained(options.base, local_files_only=True)
    tokens = torch.tensor(tokenizer(pathlib.Path(options.text).read_text(), verbose=False)["input_ids"])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    optimizer = torch.optim.AdamW([p for p in model.to(device).train().parameters() if p.requires_grad])
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
