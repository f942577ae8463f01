"""The loop of a learner: it meets the node and answers its requests, one at a time."""

import math
import os
import signal
import socket
import sys
import threading
import traceback

from . import frames
from .slab import Slab, SlabError, layout_digest, layout_of

PROTOCOL = 1
SMALLER = "use a smaller --batch"

_LONGEST = 4000  # characters of an error's text: a compiler's message can be longer than a frame
_PATIENCE = 30  # seconds for the connection to come up
_LOOK = 0.5  # seconds between two looks at the parent


class LearnerError(Exception):
    """What was asked for has not happened.

    error names the thing and its value, remedy is what a person can do. kind is "diverged" where the loss is
    not finite. After a fatal error the learner exits: its values are no longer known.
    """

    def __init__(self, error, remedy="", kind="", fatal=False):
        super().__init__(error)
        self.error, self.remedy, self.kind, self.fatal = error, remedy, kind, fatal


class Learner:
    """What serve asks of a learner. A method that fails raises LearnerError and has changed nothing."""

    def hello(self):
        """Returns a dict of name, version, devices, precision and evaluates, as the protocol has them."""
        raise NotImplementedError

    def start(self, run):
        """Takes a Run. Returns a dict of layout, tokens_per_second and memory_bytes."""
        raise NotImplementedError

    def load(self, pieces):
        """Copies pieces, [offset, length] in values, from run.slab."""
        raise NotImplementedError

    def step(self, number, lr, starts):
        """Takes one optimizer step. Returns how many targets it had, and their mean loss before it."""
        raise NotImplementedError

    def flush(self, pieces):
        """Copies pieces to run.slab. Where it fails, the slab is as it was."""
        raise NotImplementedError

    def evaluate(self, starts):
        """Returns the number of targets, the mean loss and the bytes of text, of the values that were loaded, on held-out text.

        starts are places in run.held_out. It changes nothing. A learner that has it says "evaluates": True in hello.
        """
        raise LearnerError("this learner does not evaluate", "leave it to others")

    def save(self, path):
        """Writes the optimizer's state, without the values."""
        raise NotImplementedError

    def stop(self):
        """Ends the work."""


class Run:
    """What the node says of the run: the fields of its message, and the mapped slab."""

    def __init__(self, message):
        def field(name, kind):
            if type(message.get(name)) is not kind:
                raise LearnerError(
                    f"the node's run has {name} = {message.get(name)!r}, which is no {kind.__name__}",
                    "use a node and a learner of one version",
                )
            return message[name]

        self.layout = field("layout", str)
        self.recipe = field("recipe", str)
        self.seed = field("seed", int)
        self.author = field("author", str)
        self.rows = field("rows", int)
        self.context = field("context", int)
        self.text = field("text", str)
        self.held_out = field("held_out", str) if "held_out" in message else ""
        self.tokenizer = field("tokenizer", str) if "tokenizer" in message else ""
        self.resume = field("resume", str)
        self.steps = field("steps", int)
        count = field("values", int)
        self.tensors = layout_of(field("tensors", list), count)
        self._check_layout()
        try:
            self.slab = Slab(field("slab", str), field("begin", int), count)
        except OSError as failure:  # it may be in the node's memory: /proc/PID/fd/N
            raise LearnerError(
                f"map the values of the node: {failure}",
                "run the learner as the node's user and outside a container, or have it attach to the node: --learner attach",
            ) from failure

    def _check_layout(self):
        digest = layout_digest(self.tensors)
        if digest != self.layout:
            raise LearnerError(
                f"the node's layout is {self.layout}, but its tensors have {digest}",
                "use a node and a learner of one version",
            )


def log(text):
    """Writes a line to stderr, which the node shows."""
    print(f"learner: {text}", file=sys.stderr, flush=True)


def attaches(environment=os.environ):
    """Reports whether this program has to find its node by a folder: no node has started it."""
    return bool(environment.get("ATOLL_DIR")) and not environment.get("ATOLL_LEARNER")


def connect(environment=os.environ):
    """Connects to the node that started this process, or to that of ATOLL_DIR. Returns the connection and the token."""
    if attaches(environment):
        from . import attach

        return attach.find(environment["ATOLL_DIR"])
    address, token = environment.get("ATOLL_LEARNER", ""), environment.get("ATOLL_TOKEN", "")
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise LearnerError(f"ATOLL_LEARNER is {address!r}, not HOST:PORT", "let a node start this program: --learner CMD, or set ATOLL_DIR")
    try:
        connection = socket.create_connection((host, int(port)), timeout=_PATIENCE)
    except (OSError, OverflowError) as failure:
        raise LearnerError(f"cannot reach the node at ATOLL_LEARNER={address}: {failure}", "start the node again") from failure
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection, token


def serve(learner, connection=None, token="", watch=True, tracking=None):
    """Answers the node's requests until it says stop. Returns the exit code of the process.

    Without a connection it makes one. watch ends the process soon after its node, even inside a step. One that attached is its
    user's: it ends with the connection alone. tracking is where steps are logged, a Tracking.
    """
    try:
        if connection is None:
            connection, token = connect()
        with connection:
            return _Session(learner, connection, watch and not attaches(), tracking).run(token)
    except LearnerError as failure:
        log(f"{failure.error}: {failure.remedy}")
    except (frames.FrameError, OSError) as failure:
        log(f"the connection to the node failed: {failure}")
    return 1


class _Session:
    def __init__(self, learner, connection, watch, tracking=None):
        self.learner, self.connection, self.tracking = learner, connection, tracking
        self.number = 0  # of the last step
        self.started = False
        self.failure = None  # of the last request
        self.over = threading.Event()  # the node has said stop, or has left
        if watch:
            _ignore_interrupts()
            threading.Thread(target=_watch, args=(connection, self.over), daemon=True).start()

    def run(self, token):
        try:
            self.hello(token)
            while True:
                request = frames.read(self.connection)
                if request is None:
                    log("the node has closed the connection")
                    return 1
                code = self.serve(request)
                if code is not None:
                    return code
        finally:
            self.over.set()
            self.end_tracking()

    def end_tracking(self):
        if self.tracking:
            self.tracking.close()

    def stepped(self, number, lr, tokens, loss):
        """Tells the node of a step, and then those who watch curves."""
        self.number = number
        self.send({"type": "stepped", "tokens": int(tokens), "loss": float(loss)})
        if self.tracking:
            self.tracking.stepped(number, lr, int(tokens), float(loss))

    def hello(self, token):
        self.send({"type": "hello", "protocol": PROTOCOL, "token": token, **self.learner.hello()})

    def send(self, message):
        frames.write(self.connection, message)

    def serve(self, request):
        """Answers a request. Returns the exit code where it is the last."""
        kind, self.failure = request["type"], None
        if kind == "refused":
            self.failure = LearnerError(f"the node refuses this learner: {request.get('error', '')}")
            log(self.failure.error)
            return 1
        try:
            answer = self.answer(kind, request)
        except Exception as failure:
            self.failure = error = _explain(failure)
            self.send({"type": "error", "error": error.error[:_LONGEST], "remedy": error.remedy, "kind": error.kind})
            # Half-loaded values are of no use to anybody.
            if error.fatal or kind == "load":
                log(f"cannot go on after this {kind}: {error.error}: {error.remedy}")
                return 1
            return None
        if kind == "stop":
            self.over.set()  # before the answer, after which the node may leave
            self.end_tracking()
        if kind == "step":
            self.stepped(**answer)
        else:
            self.send(answer)
        return 0 if kind == "stop" else None

    def answer(self, kind, request):
        handle = getattr(self, "on_" + kind, None)
        if handle is None:
            raise LearnerError(f"the request {kind!r} is not known", "use a node and a learner of one version")
        if kind not in ("run", "stop") and not self.started:
            raise LearnerError(f"the request {kind!r} came before a run was ready", "send run first")
        return handle(request)

    def on_run(self, request):
        if self.started:
            raise LearnerError("a second run came", "start another learner for it")
        run = Run(request)
        ready = self.learner.start(run)
        self.started = True
        if self.tracking:
            self.tracking.began(run)
        return {"type": "ready", **ready}

    def on_load(self, request):
        self.learner.load(request["pieces"])
        return {"type": "loaded"}

    def on_step(self, request):
        number, lr, starts = request["number"], float(request["lr"]), request.get("starts") or []
        tokens, loss = self.learner.step(number, lr, starts)
        if not math.isfinite(loss):
            raise diverged(number, f"loss {loss}", lr)
        return {"number": number, "lr": lr, "tokens": tokens, "loss": loss}

    def on_evaluate(self, request):
        tokens, loss, count = self.learner.evaluate(request.get("starts") or [])
        if not math.isfinite(loss):
            raise LearnerError(f"the loss on held-out text is {loss}", "lower the learning rate of the run", "diverged")
        if self.tracking:
            self.tracking.evaluated(self.number, int(tokens), float(loss))
        return {"type": "evaluated", "tokens": int(tokens), "loss": float(loss), "bytes": int(count)}

    def on_flush(self, request):
        self.learner.flush(request["pieces"])
        return {"type": "flushed"}

    def on_save(self, request):
        path = request["path"]
        try:
            self.learner.save(path)
        except OSError as failure:
            raise LearnerError(f"cannot save the optimizer's state to {path}: {failure}", "free some disk space") from failure
        return {"type": "saved"}

    def on_stop(self, _):
        self.learner.stop()
        return {"type": "stopped"}


def diverged(number, what, lr):
    """Returns the error of a step whose loss or gradient is not finite."""
    return LearnerError(f"step {number}: {what}: training diverged", f"restore earlier values or lower the learning rate of {lr}", "diverged")


def write_whole(path, write):
    """Has write(file) fill a new file and then gives it its name, so that a crash leaves the old one whole."""
    part = path + ".part"
    try:
        with open(part, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise


def _explain(failure):
    """Makes a LearnerError of any exception."""
    if isinstance(failure, LearnerError):
        return failure
    text = f"{type(failure).__name__}: {failure}"
    if out_of_memory(failure):
        return LearnerError(text, SMALLER)
    if isinstance(failure, SlabError):
        return LearnerError(str(failure), "use a node and a learner of one version")
    traceback.print_exception(type(failure), failure, failure.__traceback__)
    return LearnerError(text, "the learner's log says where it happened")


def out_of_memory(failure):
    """Reports whether an exception says so. Frameworks have classes of their own, which this package does not import."""
    if isinstance(failure, MemoryError) or type(failure).__name__ == "OutOfMemoryError":
        return True
    return any(words in str(failure).lower() for words in ("out of memory", "can't allocate memory", "not enough memory"))


def _ignore_interrupts():
    """Ctrl-C in a terminal reaches the learner too, but the node has to flush before it lets go."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _watch(connection, over):
    """Ends the process when its parent or its node has gone, for a step may last minutes."""
    parent = os.getppid()
    while not over.wait(_LOOK):
        if os.getppid() != parent or _closed(connection):
            # The loop reads the end of the connection as well, and says so, unless it is inside a step.
            if not over.wait(_LOOK):
                log("the node is gone, and so is this learner")
                os._exit(1)


def _closed(connection):
    """Reports whether the node has closed the connection. Looks without taking bytes from the loop."""
    if not hasattr(socket, "MSG_DONTWAIT"):
        return False  # the parent has to do
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
