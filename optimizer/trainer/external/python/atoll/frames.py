"""Frames over a socket: a big-endian uint32 length, then that many bytes of one JSON object."""

import json
import struct

LIMIT = 1 << 20  # bytes of one JSON object

_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """What came over the connection, or was to go over it, is no frame."""


def write(connection, message):
    """Sends one message, a dict with a field `type`."""
    kind = message.get("type")
    try:
        # Go refuses NaN and infinity, which JSON does not have.
        body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as failure:
        raise FrameError(f"message {kind!r} is not JSON: {failure}") from failure
    if len(body) > LIMIT:
        raise FrameError(f"message {kind!r} has {len(body)} bytes, a frame at most {LIMIT}: send less at once")
    connection.sendall(_LENGTH.pack(len(body)) + body)


def read(connection):
    """Returns the next message, or None where the connection ends between two frames."""
    head = _receive(connection, _LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise FrameError(f"the connection ended after {len(head)} of {_LENGTH.size} bytes of a frame's length")
    (size,) = _LENGTH.unpack(head)
    if size > LIMIT:
        raise FrameError(f"a frame of {size} bytes was announced, the limit is {LIMIT}: the other side speaks no frames")
    body = _receive(connection, size)
    if len(body) < size:
        raise FrameError(f"the connection ended after {len(body)} of {size} bytes of a frame")
    return _decode(body)


def _decode(body):
    try:
        message = json.loads(body)
    except ValueError as failure:  # covers wrong UTF-8 as well
        raise FrameError(f"a frame of {len(body)} bytes is not JSON: {failure}") from failure
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise FrameError(f"a frame of {len(body)} bytes is no JSON object with a text field 'type'")
    return message


def _receive(connection, size):
    """Returns size bytes, or fewer where the connection ends."""
    data, got = bytearray(size), 0
    with memoryview(data) as view:
        while got < size:
            count = connection.recv_into(view[got:])
            if count == 0:
                break
            got += count
    return bytes(data[:got])
