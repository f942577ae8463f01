"""The digest of a model's weights, as `atoll new` puts it into recipes of adapters."""

import hashlib
import json
import os

from .serve import LearnerError

_WHOLE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_HEADER = 100 << 20  # bytes of a header, at most
_PART = 1 << 20


def digest(folder):
    """Returns the SHA-256, in hex, over tensors in the order of their names: of each a line NAME TYPE DIM DIM... and its bytes."""
    try:
        tensors = [tensor for name in _files(folder) for tensor in _tensors(os.path.join(folder, name))]
        whole = hashlib.sha256()
        for name, kind, shape, path, begin, end in sorted(tensors, key=lambda tensor: tensor[0]):
            whole.update((" ".join([name, kind, *map(str, shape)]) + "\n").encode())
            with open(path, "rb") as file:
                file.seek(begin)
                for at in range(begin, end, _PART):
                    whole.update(file.read(min(_PART, end - at)))
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise LearnerError(f"cannot read the weights of {folder}: {failure}", "give a folder with config.json and safetensors") from failure
    return whole.hexdigest()


def _files(folder):
    """The names of the files with the weights, as transformers chooses them."""
    if os.path.exists(os.path.join(folder, _WHOLE)):
        return [_WHOLE]
    with open(os.path.join(folder, _INDEX), encoding="utf-8") as file:
        return sorted(set(json.load(file)["weight_map"].values()))


def _tensors(path):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > _HEADER:
            raise ValueError(f"{path} is no file of tensors: its header would have {size} bytes")
        header = json.loads(file.read(size))
    for name, tensor in header.items():
        if name != "__metadata__":
            begin, end = tensor["data_offsets"]
            yield name, tensor["dtype"], tensor["shape"], path, 8 + size + begin, 8 + size + end
