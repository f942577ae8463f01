"""atoll.save(model, folder): what `atoll new --from FOLDER` makes a run of, and what its first node reads by --init FOLDER."""

import json
import math
import os
import struct

from .serve import LearnerError, write_whole

FILES = ("model.safetensors", "config.json")


def save(model, folder, config=None):
    """Writes what a PyTorch model trains to a folder: model.safetensors, float32, beside a config.json.

    The names are those that join looks for; tied weights are one tensor. config, a dict, becomes part of the recipe on which the
    run's learners agree. A model of transformers or PEFT saves itself by save_pretrained.
    """
    if hasattr(model, "save_pretrained"):
        model.save_pretrained(folder)
        return
    from .values import names_of, unwrap

    tensors = [(names[0], p) for names, p in names_of(unwrap(model))]
    if not tensors:
        raise LearnerError("the model has no parameter to train", "set requires_grad on some")
    header, end = {}, 0
    for name, p in tensors:
        begin, end = end, end + 4 * math.prod(p.shape)
        header[name] = {"dtype": "F32", "shape": list(p.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    os.makedirs(folder, exist_ok=True)

    def write(file):
        file.write(struct.pack("<Q", len(text)) + text)
        for _, p in tensors:
            file.write(_bytes(p))

    write_whole(os.path.join(folder, FILES[0]), write)
    write_whole(os.path.join(folder, FILES[1]), lambda file: file.write(json.dumps(config or {}).encode()))


def _bytes(p):
    """The values of a parameter, little-endian float32, without the help of NumPy."""
    import torch

    values = p.detach().to("cpu", torch.float32).contiguous().reshape(-1)
    whole = bytearray(4 * values.numel())
    if whole:
        torch.frombuffer(whole, dtype=torch.float32).copy_(values)
    return whole
