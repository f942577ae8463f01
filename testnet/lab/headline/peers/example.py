"""Each peer's documented example, with random images in place of CIFAR-10: python example.py hivemind|torchft FOLDER NUMBER ADDRESS.

hivemind: the two peers of its quickstart, who average a small network. torchft: the two replicas of train_ddp.py, without the
gigabyte that only makes failures likely there. Settings are those of the examples. It ends well once two have agreed.
"""

import os
import sys
import time
from datetime import timedelta

import torch
import torch.nn.functional as F
from torch import nn

ROWS, STEPS = 32, 100  # rows of a step; steps of torchft
WITHIN = 240  # s


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2, 2))
        self.classifier = nn.Sequential(nn.Linear(16 * 5 * 5, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))

    def forward(self, x):
        return self.classifier(self.convolutions(x).flatten(1))


def images():
    """Returns images whose kind can be seen: its brightness."""
    kinds = torch.randint(10, (ROWS,))
    return torch.rand(ROWS, 3, 32, 32) + kinds[:, None, None, None] / 5, kinds


def hivemind_example(folder, number):
    import hivemind

    path = os.path.join(folder, "addresses")
    while number != "0" and not os.path.exists(path):
        time.sleep(0.1)
    initial = open(path, encoding="utf-8").read().split() if number != "0" else []
    dht = hivemind.DHT(initial_peers=initial, host_maddrs=["/ip4/127.0.0.1/tcp/0"], start=True)
    if number == "0":
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write("\n".join(map(str, dht.get_visible_maddrs())))
        os.rename(path + ".new", path)
    model = Network()
    opt = hivemind.Optimizer(
        dht=dht, run_id="my_cifar_run", batch_size_per_step=ROWS, target_batch_size=10_000,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, nesterov=True),
        use_local_updates=True, matchmaking_time=3.0, averaging_timeout=10.0, verbose=True,
    )  # fmt: skip
    until, together, last = time.time() + WITHIN, False, 0.0
    while time.time() < until and not (together and opt.local_epoch >= 2):
        x, kinds = images()
        opt.zero_grad()
        loss = F.cross_entropy(model(x), kinds)
        loss.backward()
        opt.step()
        together, last = together or opt.tracker.global_progress.num_peers == 2, loss.item()
    return together and opt.local_epoch >= 2, f"epoch {opt.local_epoch}, loss {last:.3f}"


def torchft_example(number, address):
    from torch.distributed import TCPStore
    from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

    torch.manual_seed(int(number))
    model = Network()
    inner = torch.optim.AdamW(model.parameters())
    store = TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=5)), min_replica_size=1, timeout=timedelta(seconds=30), replica_id=f"train_ddp_{number}",
        load_state_dict=lambda s: (model.load_state_dict(s["model"]), inner.load_state_dict(s["optim"])),
        state_dict=lambda: {"model": model.state_dict(), "optim": inner.state_dict()},
        store_addr="localhost", store_port=store.port, rank=0, world_size=1, lighthouse_addr=address,
    )  # fmt: skip
    wrapped, optimizer = DistributedDataParallel(manager, model), Optimizer(manager, inner)
    together, last, until = 0, 0.0, time.time() + WITHIN
    while manager.current_step() < STEPS and time.time() < until:
        x, kinds = images()
        optimizer.zero_grad()
        loss = F.cross_entropy(wrapped(x), kinds)
        loss.backward()
        optimizer.step()
        together, last = together + (manager.num_participants() == 2), loss.item()
    return together >= STEPS // 10, f"step {manager.current_step()}, {together} of them together, loss {last:.3f}"


def main(peer, folder, number, address):
    torch.set_num_threads(1)
    well, text = hivemind_example(folder, number) if peer == "hivemind" else torchft_example(number, address)
    print(text, flush=True)
    os._exit(0 if well else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
