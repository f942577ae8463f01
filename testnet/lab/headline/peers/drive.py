"""Runs a world of a peer: python drive.py [--kill SHARE --back SHARE] FOLDER SYSTEM. The last line of stdout is JSON.

SYSTEM is hivemind, torchft-diloco or torchft-ddp, or example-hivemind and example-torchft for what their documentation shows. With --kill the last learner is killed when that share of the tokens is trained,
and starts again at the share of --back. Of `unshare --net`, whose loopback is down, it brings that up, and counts every
byte that passes: the learners are alone there. `python drive.py FOLDER wrap COMMAND...` does the same around a command.
"""

import argparse
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LOOK = 0.25  # s between two looks
END_WITHIN = 120  # s for which the others may go on when the first learner has ended
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


def bytes_passed():
    """Returns the bytes that the loopback has carried."""
    with open("/proc/net/dev", encoding="utf-8") as file:
        for line in file:
            name, _, rest = line.partition(":")
            if name.strip() == "lo":
                return int(rest.split()[0])
    return 0


def own_network():
    """Says whether these processes have a network of their own, so that no others' bytes are counted."""
    with open("/proc/net/dev", encoding="utf-8") as file:
        return sum(":" in line for line in file) == 1


def memory():
    """Returns the resident bytes of each process, and its parent."""
    all_, page = {}, os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            all_[int(name)] = (int(fields[1]), int(fields[21]) * page)
    return all_


def private(pid, resident):
    """Returns the bytes that a process shares with no other: a fork shares most of its pages. resident is said where that is not known."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
            return 1024 * sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
    except OSError:
        return resident


def family_memory(root):
    """Returns the resident bytes of a process, with what those that it has started have beside it."""
    all_ = memory()
    mine = {root}
    for _ in range(8):  # generations
        mine |= {p for p, (parent, _) in all_.items() if parent in mine}
    return all_.get(root, (0, 0))[1] + sum(private(p, all_[p][1]) for p in mine - {root} if p in all_)


class World:
    def __init__(self, folder, system):
        self.folder, self.system = folder, system
        with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
            self.job = json.load(file)
        self.began, self.rss, self.wrong = time.time(), 0, []
        self.read = [0] * self.job["learners"]
        self.lines = [[] for _ in range(self.job["learners"])]
        self.others = []
        if system.startswith("torchft"):
            self.lighthouse()
        self.learners = [self.start(i) for i in range(self.job["learners"])]

    def popen(self, name, command, env=None):
        log = open(os.path.join(self.folder, name + ".log"), "ab")
        return subprocess.Popen(command, stdout=log, stderr=log, env=env, start_new_session=True)

    def lighthouse(self):
        """Starts torchft's lighthouse with the settings of its README."""
        program = os.path.join(os.path.dirname(sys.executable), "torchft_lighthouse")
        command = [program, "--min_replicas", "1", "--quorum_tick_ms", "100", "--join_timeout_ms", "10000", "--bind", "127.0.0.1:29510"]
        self.others.append(self.popen("lighthouse", command))
        self.job["lighthouse"] = "http://127.0.0.1:29510"
        with open(os.path.join(self.folder, "job.json"), "w", encoding="utf-8") as file:
            json.dump(self.job, file)

    def start(self, i):
        program, _, kind = self.system.partition("-")
        command = [sys.executable, os.path.join(HERE, program + "_learner.py"), self.folder, str(i)] + ([kind] if kind else [])
        env = dict(os.environ, OMP_NUM_THREADS="1")
        return self.popen(f"learner{i}", command, env)

    def look(self):
        """Reads what the learners have told."""
        for i in range(len(self.learners)):
            path = os.path.join(self.folder, f"learner{i}.jsonl")
            if not os.path.exists(path):
                continue
            with open(path, "rb") as file:
                file.seek(self.read[i])
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self.read[i] += len(whole)
            self.lines[i] += [json.loads(line) for line in whole.splitlines()]
        for p in self.learners:
            if p.poll() is None:
                self.rss = max(self.rss, family_memory(p.pid))

    def trained(self):
        return max((line.get("all", 0) for line in self.lines[0]), default=0)

    def kill(self, p):
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.wait()

    def end(self):
        for p in self.learners + self.others:
            self.kill(p)

    def ended(self, i):
        return any(line["what"] == "end" for line in self.lines[i])

    def died(self, away=None):
        """Names learners that ended without their model, with the last line of their log. One may be away for a while."""
        for i, p in enumerate(self.learners):
            if i != away and p.poll() is not None and not self.ended(i):
                with open(os.path.join(self.folder, f"learner{i}.log"), "rb") as file:
                    last = file.read().decode(errors="replace").strip().splitlines()[-1:]
                yield f"learner {i} ended with {p.returncode}: {''.join(last)[:200]}"


def run(world, kill, again):
    killed = back = None
    last = world.job["learners"] - 1
    while not world.ended(0):
        time.sleep(LOOK)
        world.look()
        if time.time() - world.began > world.job["timeout"]:
            world.wrong.append(f"not over after {world.job['timeout']} s")
            break
        if kill and killed is None and world.trained() >= kill * world.job["tokens"]:
            world.kill(world.learners[last])
            killed = time.time()
        if killed and back is None and world.trained() >= again * world.job["tokens"]:
            world.learners[last] = world.start(last)
            back = time.time()
        away = last if killed and back is None else None
        if any(world.died(away)):
            world.look()  # what they told last
        world.wrong = list(world.died(away))
        if world.wrong:
            break
    over = time.time()
    if kill and back is None and not world.wrong:
        world.wrong.append("the run was over before the learner that was killed could start again: use more tokens")
    passed = bytes_passed()
    while not world.wrong and time.time() < over + END_WITHIN and not all(world.ended(i) for i in range(last + 1)):
        time.sleep(LOOK)
        world.look()
    return report(world, over, passed, killed, back)


def report(world, over, passed, killed, back):
    steps = [line for lines in world.lines for line in lines if line["what"] == "step"]
    r = {
        "system": world.system,
        "tokens": world.trained() if world.wrong else world.job["tokens"],
        "wall_s": over - world.began,
        "first_step_s": min((s["at"] for s in steps), default=over) - world.began,
        "all_step_s": max((next((s["at"] for s in lines if s["what"] == "step"), over) for lines in world.lines), default=over) - world.began,
        "stepped": sum(s["tokens"] for s in steps),
        "rss_bytes": world.rss,
        "progress": [[line["at"] - world.began, line["all"]] for line in world.lines[0] if line["what"] == "step"],
        "wrong": world.wrong,
    }
    if own_network():
        r["bytes"] = passed
    if killed:
        survivors = sorted(s["at"] for lines in world.lines[:-1] for s in lines if s["what"] == "step" and s["at"] >= killed - 1)
        r["kill_s"] = killed - world.began
        r["stall_s"] = max((b - a for a, b in zip(survivors, survivors[1:])), default=0)
        if back:
            r["back_s"] = min((s["at"] for s in world.lines[-1] if s["what"] == "step" and s["at"] > back), default=over) - back
            r["start_s"] = back - world.began
    return r


def example(folder, peer):
    """Runs a peer's documented example with two learners."""
    began, address, others = time.time(), "-", []
    if peer == "torchft":
        program = os.path.join(os.path.dirname(sys.executable), "torchft_lighthouse")
        command = [program, "--min_replicas", "1", "--quorum_tick_ms", "100", "--join_timeout_ms", "10000", "--bind", "127.0.0.1:29510"]
        others.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        address = "http://127.0.0.1:29510"
    logs = [open(os.path.join(folder, f"learner{i}.log"), "ab") for i in range(2)]
    command = [sys.executable, os.path.join(HERE, "example.py"), peer, folder]
    # To files: what a learner has started would keep a pipe open.
    texts = [open(os.path.join(folder, f"learner{i}.said"), "w+", encoding="utf-8") for i in range(2)]
    both = [subprocess.Popen(command + [str(i), address], stdout=texts[i], stderr=logs[i], start_new_session=True) for i in range(2)]
    for p in both:
        p.wait()
    said = []
    for text in texts:
        text.seek(0)
        said.append(text.read().strip())
    for p in others:
        p.kill()
        p.wait()
    for p in both:
        try:
            os.killpg(p.pid, signal.SIGKILL)  # what it has started
        except ProcessLookupError:
            pass
    wrong = [f"the example of {peer}, learner {i}: {text or 'said nothing'}" for i, (p, text) in enumerate(zip(both, said)) if p.returncode]
    return {"system": peer, "wall_s": time.time() - began, "example": said, "wrong": wrong}


def wrap(folder, command):
    """Runs a command, and leaves the bytes that passed in bytes.json."""
    code = subprocess.call(command)
    with open(os.path.join(folder, "bytes.json"), "w", encoding="utf-8") as file:
        json.dump({"bytes": bytes_passed() if own_network() else 0}, file)
    return code


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("system", choices=["hivemind", "torchft-diloco", "torchft-ddp", "example-hivemind", "example-torchft", "wrap"])
    parser.add_argument("--kill", type=float, default=0)
    parser.add_argument("--back", type=float, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if own_network():
        loopback_up()
    if options.system == "wrap":
        return wrap(options.folder, options.command)
    if options.system.startswith("example-"):
        print(json.dumps(example(options.folder, options.system.removeprefix("example-"))))
        return 0
    world = World(options.folder, options.system)
    try:
        print(json.dumps(run(world, options.kill, options.back)))
    finally:
        world.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
