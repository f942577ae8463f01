"""A learner of torchft: python torchft_learner.py FOLDER NUMBER diloco|ddp.

diloco has the settings of torchft's own trainer of DiLoCo: synchronous quorum, SGD with 0.7, 0.9 and Nesterov outside, timeouts of
10 s. ddp has those of train_ddp.py, its documented example: the wrappers DistributedDataParallel and Optimizer, timeouts of 5 and
30 s. Each learner is a replica group of one process, and Gloo carries what they say, as on machines without GPUs.
"""

import sys
from datetime import timedelta

import torch
from torch.distributed import TCPStore
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo
from torchft.local_sgd import DiLoCo

from job import Job


def manager_of(job, model, optimizer, kind):
    def state():
        return {"model": model.state_dict(), "optim": optimizer.state_dict()}

    def load(saved):
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optim"])

    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    times = {"timeout": timedelta(seconds=30)}
    if kind == "diloco":
        times = {name: timedelta(seconds=10) for name in ("timeout", "quorum_timeout", "connect_timeout")}
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=10 if kind == "diloco" else 5)),
        min_replica_size=1,
        use_async_quorum=kind == "ddp",
        load_state_dict=load,
        state_dict=state,
        replica_id=f"learner{job.learner}",
        store_addr="localhost",
        store_port=store.port,
        rank=0,
        world_size=1,
        lighthouse_addr=job.lighthouse,
        **times,
    )
    return manager, store


def diloco(job):
    model = job.network()
    inner = job.adamw(job.groups(model))
    outer = torch.optim.SGD(model.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    manager, store = manager_of(job, model, inner, "diloco")
    with DiLoCo(manager, [model], inner, outer, sync_every=job.h):
        train(job, model, model, inner, manager, job.h)


def ddp(job):
    model = job.network()
    inner = job.adamw(job.groups(model))
    manager, store = manager_of(job, model, inner, "ddp")
    train(job, model, DistributedDataParallel(manager, model), Optimizer(manager, inner), manager, 1)


def train(job, model, forward, optimizer, manager, steps):
    """Steps until all learners together have trained what the job asks, by what was committed."""
    while (trained := manager.batches_committed() * steps * job.step_tokens) < job.tokens:
        for group in optimizer.param_groups:
            group["lr"] = job.rate * job.factor(trained)
        optimizer.zero_grad()
        loss = job.loss(forward)
        optimizer.step()
        job.tell("step", tokens=job.step_tokens, all=trained, loss=loss)
    job.end(model)


def main(folder, learner, kind):
    {"diloco": diloco, "ddp": ddp}[kind](Job(folder, int(learner)))


if __name__ == "__main__":
    main(*sys.argv[1:])
