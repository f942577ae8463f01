# Trains the model of an exchange file in PyTorch: python trainer.py FILE THREADS. Each line of stdout is a JSON
# object: {"step", "loss"} with the mean nats per token before that step, at last {"val_bpb"}.
import hashlib
import json
import math
import sys

import torch
import torch.nn.functional as F

TYPES = {"F32": torch.float32, "F64": torch.float64, "U8": torch.uint8}


def load(path):
    """The arrays of a safetensors file by name, and its metadata."""
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        data = bytearray(f.read())
    meta = header.pop("__metadata__")
    if hashlib.sha256(data).hexdigest() != meta["sha256"]:
        sys.exit(f"{path} is damaged: its SHA-256 is another than its header says")
    arrays = {}
    for name, entry in header.items():
        start, end = entry["data_offsets"]
        kind = TYPES[entry["dtype"]]
        # A copy is aligned, which a place in the file need not be.
        arrays[name] = torch.frombuffer(data[start:end], dtype=kind).reshape(entry["shape"])
    return arrays, json.loads(meta["recipe"])


class Llama:
    """A decoder in the arithmetic of LlamaForCausalLM, on parameters by name."""

    def __init__(self, params, shape):
        self.params, self.shape = params, shape
        size = shape["Hidden"] // shape["Heads"]
        frequencies = shape["RopeTheta"] ** (-torch.arange(0, size, 2).double() / size)
        angles = torch.outer(torch.arange(shape["Context"]).double(), frequencies)
        self.cos, self.sin = angles.cos().float(), angles.sin().float()
        self.ahead = torch.ones(shape["Context"], shape["Context"], dtype=torch.bool).triu(1)

    def linear(self, x, name):
        return F.linear(x, self.params[name + ".weight"])

    def norm(self, x, name):
        scale = torch.rsqrt(x.square().mean(-1, keepdim=True) + self.shape["NormEps"])
        return x * scale * self.params[name + ".weight"]

    def rotate(self, x):
        n, half = x.size(-2), x.size(-1) // 2
        a, b, cos, sin = x[..., :half], x[..., half:], self.cos[:n], self.sin[:n]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def attend(self, x, name):
        rows, n, _ = x.shape
        heads, groups = self.shape["Heads"], self.shape["KVHeads"]

        def part(letter, count):
            return self.linear(x, f"{name}.{letter}_proj").view(rows, n, count, -1).transpose(1, 2)

        q, k, v = self.rotate(part("q", heads)), self.rotate(part("k", groups)), part("v", groups)
        k, v = (t.repeat_interleave(heads // groups, 1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        weights = scores.masked_fill(self.ahead[:n, :n], -math.inf).softmax(-1)
        return self.linear((weights @ v).transpose(1, 2).reshape(rows, n, -1), name + ".o_proj")

    def loss(self, tokens):
        """Mean nats per target; of each row the last token is only a target."""
        embedding = self.params["model.embed_tokens.weight"]
        x = F.embedding(tokens[:, :-1], embedding)
        for i in range(self.shape["Layers"]):
            layer = f"model.layers.{i}."
            x = x + self.attend(self.norm(x, layer + "input_layernorm"), layer + "self_attn")
            y, mlp = self.norm(x, layer + "post_attention_layernorm"), layer + "mlp."
            y = F.silu(self.linear(y, mlp + "gate_proj")) * self.linear(y, mlp + "up_proj")
            x = x + self.linear(y, mlp + "down_proj")
        head = embedding if self.shape["Tied"] else self.params["lm_head.weight"]
        logits = F.linear(self.norm(x, "model.norm"), head)
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def train(model, recipe, rates, batches):
    params, adam = list(model.params.values()), recipe["AdamW"]
    groups = [{"params": [p for p in params if p.dim() == 2], "weight_decay": adam["WeightDecay"]},
              {"params": [p for p in params if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(adam["Beta1"], adam["Beta2"]), eps=adam["Eps"])
    for step, (rate, batch) in enumerate(zip(rates.tolist(), batches)):
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = model.loss(batch.long())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, recipe["Clip"])
        optimizer.step()
        print(json.dumps({"step": step, "loss": loss.item()}), flush=True)


def bits_per_byte(model, text):
    """Windows of the context, stride the context; every byte but the first is a target once."""
    context, targets = model.shape["Context"], len(text) - 1
    full, nats = targets // context, 0.0
    windows = text[:full * context + 1].unfold(0, context + 1, context) if full else []
    parts = list(windows.split(32)) if full else []
    if targets > full * context:
        parts.append(text[full * context:][None])
    with torch.no_grad():
        for part in parts:
            nats += model.loss(part.long()).item() * part.size(0) * (part.size(1) - 1)
    return nats / targets / math.log(2)


def main(path, threads):
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)
    arrays, recipe = load(path)
    rates, batches, held_out = (arrays.pop(name) for name in ("learning_rates", "batches", "held_out"))
    model = Llama({name: p.requires_grad_() for name, p in arrays.items()}, recipe["Model"])
    train(model, recipe, rates, batches)
    print(json.dumps({"val_bpb": bits_per_byte(model, held_out)}), flush=True)


main(*sys.argv[1:])
