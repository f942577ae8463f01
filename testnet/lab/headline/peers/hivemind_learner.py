"""A learner of hivemind: python hivemind_learner.py FOLDER NUMBER.

The settings are those of hivemind's documentation: use_local_updates, matchmaking_time 3 and averaging_timeout 10 as in its
quickstart for peers of one machine, Float16Compression as its guide to Optimizer recommends. An epoch is H steps of every learner.
"""

import os
import sys
import time

import hivemind
import torch
from hivemind.compression import Float16Compression

from job import Job


def peers(job):
    """Waits for the addresses of the first learner, which the others join."""
    path = os.path.join(job.folder, "hivemind.addresses")
    while job.learner != 0 and not os.path.exists(path):
        time.sleep(0.1)
    if not os.path.exists(path):
        return path, []
    with open(path, encoding="utf-8") as file:
        return path, file.read().split()


def main(folder, learner):
    job = Job(folder, int(learner))
    path, initial = peers(job)
    dht = hivemind.DHT(initial_peers=initial, host_maddrs=["/ip4/127.0.0.1/tcp/0"], start=True)
    if job.learner == 0:
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write("\n".join(str(address) for address in dht.get_visible_maddrs()))
        os.rename(path + ".new", path)
    model = job.network()
    target = job.batch * job.h * job.learners  # rows of an epoch
    optimizer = hivemind.Optimizer(
        dht=dht,
        run_id="headline",
        batch_size_per_step=job.batch,
        target_batch_size=target,
        params=job.groups(model),
        optimizer=job.adamw,
        scheduler=lambda opt: torch.optim.lr_scheduler.LambdaLR(opt, lambda epoch: job.factor(epoch * target * job.model["context"])),
        use_local_updates=True,
        matchmaking_time=3.0,
        averaging_timeout=10.0,
        grad_compression=Float16Compression(),
        state_averaging_compression=Float16Compression(),
        verbose=True,
    )
    if initial:
        optimizer.load_state_from_peers()
    while (trained := optimizer.local_epoch * target * job.model["context"]) < job.tokens:
        optimizer.zero_grad()
        loss = job.loss(model)
        optimizer.step()
        job.tell("step", tokens=job.step_tokens, all=trained, loss=loss)
    job.end(model)


if __name__ == "__main__":
    main(*sys.argv[1:])
