"""Finds the device to train on. What was asked for is used or refused, never replaced."""

import os
import platform

import torch

KINDS = ("cuda", "mps", "cpu")  # in the order of preference


class DeviceError(Exception):
    """A device or a precision that this machine does not have."""


def found():
    """Returns the kinds of device that PyTorch can use here."""
    return [kind for kind in KINDS if _usable(kind)]


def _usable(kind):
    if kind == "cuda":
        return torch.cuda.is_available()
    if kind == "mps":
        return hasattr(torch.backends, "mps") and torch.backends.mps.is_available()
    return True


def choose(asked):
    """Returns the device for "auto" or a kind."""
    kinds = found()
    if asked == "auto":
        return torch.device(kinds[0])
    if asked not in kinds:
        raise DeviceError(f"--device {asked} was asked for, but PyTorch {torch.__version__} found only: {', '.join(kinds)}")
    return torch.device(asked)


def of_rank(device):
    """Returns the accelerator of this process of torchrun."""
    if device.type == "mps":
        raise DeviceError("torchrun cannot share mps among processes: use --device cpu, or one process")
    if device.type != "cuda":
        return device
    local, count = int(os.environ["LOCAL_RANK"]), torch.cuda.device_count()
    if local >= count:
        raise DeviceError(f"process {local} of torchrun has no accelerator, this machine has {count}: use --nproc-per-node {count}")
    torch.cuda.set_device(local)
    return torch.device("cuda", local)


def describe(device):
    """Returns the device as hello has it."""
    name, memory = _DESCRIBE[device.type](device)
    return {"kind": _kind(device), "name": name, "count": 1, "memory_bytes": memory}


def _kind(device):
    # PyTorch calls AMD's accelerators cuda as well.
    return "rocm" if device.type == "cuda" and getattr(torch.version, "hip", None) else device.type


def _cuda(device):
    properties = torch.cuda.get_device_properties(device)
    return properties.name, properties.total_memory


def _mps(_):
    most = getattr(torch.mps, "recommended_max_memory", None) if hasattr(torch, "mps") else None
    return platform.processor() or "Apple", most() if most else 0


def _cpu(_):
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not on Windows
        memory = 0
    return _processor(), memory


def _processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


_DESCRIBE = {"cuda": _cuda, "mps": _mps, "cpu": _cpu}


def check_bf16(device):
    """Raises DeviceError where the device has no autocast to bfloat16."""
    try:
        with torch.autocast(device.type, dtype=torch.bfloat16):
            x = torch.ones(8, 8, device=device)
            works = (x @ x).dtype == torch.bfloat16
    except (RuntimeError, TypeError) as failure:
        raise DeviceError(f"--precision bf16 does not work on {device.type}: {failure}: use --precision f32") from failure
    if not works:
        raise DeviceError(f"--precision bf16 does not work on {device.type} with PyTorch {torch.__version__}: use --precision f32")


def synchronize(device):
    """Waits until the device has done its work, so that a clock shows the truth."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps" and hasattr(torch, "mps"):
        torch.mps.synchronize()


def memory_bytes(device):
    """What this process has taken of the device's memory, or 0 where it cannot say."""
    return torch.cuda.max_memory_reserved(device) if device.type == "cuda" else 0
