"""How a script that runs already finds its node: by the file that the node keeps in its folder while it waits."""

import json
import os
import time

from .serve import LearnerError, connect

FILE = os.path.join("learner", "attach.json")

_SETTLE = 3.0  # seconds for the node to see that an earlier script is gone
_LOOK = 0.05


def find(folder):
    """Connects to the node of a folder. Returns the connection and the token."""
    end = time.monotonic() + _SETTLE
    while True:
        notice = _read(folder)
        if "address" in notice:
            try:
                return _connect(folder, notice)
            except LearnerError as failure:
                stale = failure
            if _read(folder) == notice:
                raise stale
        if time.monotonic() > end:
            raise LearnerError(
                f"another script is attached to the node of {folder}: {notice.get('attached', 'one that came just now')}",
                "end that one first, or start another node for this one",
            )
        time.sleep(_LOOK)


def _connect(folder, notice):
    address = notice["address"]
    if not str(address).startswith("127.0.0.1:"):
        raise LearnerError(f"the node of {folder} says that it listens at {address!r}, which is not on this machine", "start the node again")
    try:
        return connect({"ATOLL_LEARNER": address, "ATOLL_TOKEN": str(notice.get("token", ""))})
    except LearnerError as failure:
        raise LearnerError(f"nobody listens at {address}, where the node of {folder} was: it has ended", _again(folder)) from failure


def _again(folder):
    return f"start it by `atoll join {folder} --learner attach`"


def _read(folder):
    path = os.path.join(folder, FILE)
    try:
        with open(path, encoding="utf-8") as file:
            _check_owner(path, os.fstat(file.fileno()))
            notice = json.load(file)
    except FileNotFoundError:
        raise _nobody(folder) from None
    except PermissionError as failure:
        raise _foreign(path, os.stat(os.path.dirname(path))) from failure
    except (OSError, ValueError) as failure:
        raise LearnerError(f"cannot read {path}: {failure}", "start the node again") from failure
    if not isinstance(notice, dict):
        raise LearnerError(f"{path} is not of a node", "start the node again")
    return notice


def _check_owner(path, status):
    # The file says where values are written: nobody else may have made it.
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise _foreign(path, status)


def _foreign(path, status):
    who = f" is user {os.getuid()}'s" if hasattr(os, "getuid") else " is another user's"
    return LearnerError(f"{path} is of user {status.st_uid}, and this script{who}", "run node and script as the same user")


def _nobody(folder):
    """Says why there is no file."""
    if not os.path.isdir(folder):
        return LearnerError(f"there is no folder {os.path.abspath(folder)}", "give the folder of a node on this machine")
    if not os.path.exists(os.path.join(folder, "genesis")):
        return LearnerError(f"{folder} is no node's folder", "give the folder of a node on this machine")
    learner = _learner(folder)
    if learner != "attach":
        how = f"with {learner!r}" if learner else "by itself"
        return LearnerError(f"the node of {folder} trains {how}, and waits for no script", f"stop it and {_again(folder)}")
    return LearnerError(f"the node of {folder} does not run", _again(folder))


def _learner(folder):
    try:
        with open(os.path.join(folder, "learner.cmd"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""
