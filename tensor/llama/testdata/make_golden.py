#!/usr/bin/python3
"""Writes golden.json: one batch through a tiny Llama in PyTorch, with every gradient.

    /usr/bin/python3 make_golden.py > golden.json

The model is written out with plain operators so that it can be read beside pass.go. Weights and tokens
are float32 and int; the arithmetic is float64, so that the file holds the true values and the Go side is
charged with its own rounding only. Weights are larger than a fresh model's: attention that is nearly
uniform and gates that are nearly linear would hide mistakes.
"""
import base64
import json
import math

import torch

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, INTERMEDIATE, CONTEXT = 17, 16, 2, 4, 2, 24, 8
BATCH, THETA, EPS = 2, 10000.0, 1e-5
HEAD_DIM = HIDDEN // HEADS


def shapes():
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", (HIDDEN,)
        yield at + "self_attn.q_proj.weight", (HIDDEN, HIDDEN)
        yield at + "self_attn.k_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN)
        yield at + "self_attn.v_proj.weight", (KV_HEADS * HEAD_DIM, HIDDEN)
        yield at + "self_attn.o_proj.weight", (HIDDEN, HIDDEN)
        yield at + "post_attention_layernorm.weight", (HIDDEN,)
        yield at + "mlp.gate_proj.weight", (INTERMEDIATE, HIDDEN)
        yield at + "mlp.up_proj.weight", (INTERMEDIATE, HIDDEN)
        yield at + "mlp.down_proj.weight", (HIDDEN, INTERMEDIATE)
    yield "model.norm.weight", (HIDDEN,)


def fresh(shape):
    value = torch.randn(shape)
    value = 1 + 0.2 * value if len(shape) == 1 else 0.4 * value
    return value.double().requires_grad_()  # float32 values, float64 arithmetic


def rms_norm(x, weight):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS) * weight


def rotate(x):  # [batch, heads, context, head_dim]
    frequency = 1.0 / THETA ** (torch.arange(0, HEAD_DIM, 2).float() / HEAD_DIM)
    angle = torch.outer(torch.arange(CONTEXT).float(), frequency).double()
    first, second = x.chunk(2, -1)
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1)


def heads(x, count):
    return x.view(BATCH, CONTEXT, count, HEAD_DIM).transpose(1, 2)


def attention(x, p, at):
    q = rotate(heads(x @ p[at + "q_proj.weight"].T, HEADS))
    k = rotate(heads(x @ p[at + "k_proj.weight"].T, KV_HEADS))
    v = heads(x @ p[at + "v_proj.weight"].T, KV_HEADS)
    k, v = (y.repeat_interleave(HEADS // KV_HEADS, 1) for y in (k, v))
    future = torch.ones(CONTEXT, CONTEXT).triu(1).bool()
    scores = (q @ k.transpose(-1, -2) / math.sqrt(HEAD_DIM)).masked_fill(future, -math.inf)
    out = (scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, CONTEXT, HIDDEN)
    return out @ p[at + "o_proj.weight"].T


def mlp(x, p, at):
    gate = x @ p[at + "gate_proj.weight"].T
    return (gate * torch.sigmoid(gate) * (x @ p[at + "up_proj.weight"].T)) @ p[at + "down_proj.weight"].T


def forward(p, inputs):
    x = p["model.embed_tokens.weight"][inputs]
    for layer in range(LAYERS):
        at = f"model.layers.{layer}."
        x = x + attention(rms_norm(x, p[at + "input_layernorm.weight"]), p, at + "self_attn.")
        x = x + mlp(rms_norm(x, p[at + "post_attention_layernorm.weight"]), p, at + "mlp.")
    return rms_norm(x, p["model.norm.weight"]) @ p["model.embed_tokens.weight"].T


def pack(tensors):  # float32, little-endian, one after the other
    flat = torch.cat([t.detach().float().flatten() for t in tensors])
    return base64.b64encode(flat.numpy().astype("<f4").tobytes()).decode()


torch.manual_seed(1)
params = {name: fresh(shape) for name, shape in shapes()}
tokens = torch.randint(0, VOCAB, (BATCH, CONTEXT + 1))
logits = forward(params, tokens[:, :-1])
loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCAB), tokens[:, 1:].reshape(-1))
loss.backward()
print(json.dumps({
    "config": {
        "Vocab": VOCAB, "Hidden": HIDDEN, "Layers": LAYERS, "Heads": HEADS, "KVHeads": KV_HEADS,
        "Intermediate": INTERMEDIATE, "Context": CONTEXT, "RopeTheta": THETA, "NormEps": EPS, "Tied": True,
    },
    "batch": BATCH,
    "tokens": tokens.flatten().tolist(),
    "names": list(params),
    "params": pack(params.values()),
    "loss": loss.item(),
    "logits": pack([logits[0, -1]]),
    "grads": pack([p.grad for p in params.values()]),
}, indent=1))
