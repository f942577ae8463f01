import socket
import struct
import threading
import unittest

from atoll import frames


class Frames(unittest.TestCase):
    def setUp(self):
        self.near, self.far = socket.socketpair()
        self.addCleanup(self.near.close)
        self.addCleanup(self.far.close)

    def receive(self, data):
        """Reads a frame from a connection that brings data and ends."""
        self.near.sendall(data)
        self.near.close()
        return frames.read(self.far)

    def test_there_and_back(self):
        message = {"type": "step", "lr": 1e-3, "starts": [1, 2], "name": "Müller"}
        frames.write(self.near, message)
        frames.write(self.near, {"type": "stop"})
        self.assertEqual(frames.read(self.far), message)
        self.assertEqual(frames.read(self.far), {"type": "stop"})

    def test_length_is_big_endian(self):
        frames.write(self.near, {"type": "stop"})
        self.assertEqual(self.far.recv(100), b'\x00\x00\x00\x0f{"type":"stop"}')

    def test_many_reads(self):
        body = b'{"type":"loaded"}'
        whole = struct.pack(">I", len(body)) + body

        def dribble():
            for i in range(len(whole)):
                self.near.sendall(whole[i : i + 1])

        thread = threading.Thread(target=dribble)
        thread.start()
        self.assertEqual(frames.read(self.far), {"type": "loaded"})
        thread.join()

    def test_largest(self):
        empty = len(b'{"type":"x","a":""}')
        largest = {"type": "x", "a": "a" * (frames.LIMIT - empty)}
        thread = threading.Thread(target=frames.write, args=(self.near, largest))
        thread.start()
        self.assertEqual(frames.read(self.far), largest)
        thread.join()
        largest["a"] += "a"
        with self.assertRaisesRegex(frames.FrameError, "'x' has 1048577 bytes, a frame at most 1048576"):
            frames.write(self.near, largest)

    def test_end_between_frames(self):
        self.assertIsNone(self.receive(b""))

    def test_broken(self):
        for data, error in (
            (b"\x00\x00", "ended after 2 of 4 bytes of a frame's length"),
            (b"\x00\x00\x00\x09{}", "ended after 2 of 9 bytes"),
            (b"\x00\x10\x00\x01", "frame of 1048577 bytes was announced"),
            (b"\x00\x00\x00\x00", "0 bytes is not JSON"),
            (b"\x00\x00\x00\x02\xff\xff", "2 bytes is not JSON"),
            (b"\x00\x00\x00\x02[]", "no JSON object with a text field 'type'"),
            (b"\x00\x00\x00\x0a" + b'{"type":1}', "no JSON object with a text field 'type'"),
        ):
            with self.subTest(error), self.assertRaisesRegex(frames.FrameError, error):
                self.setUp()
                self.receive(data)

    def test_no_json(self):
        for value in (float("nan"), float("inf"), b"bytes"):
            with self.subTest(value), self.assertRaisesRegex(frames.FrameError, "message 'x' is not JSON"):
                frames.write(self.near, {"type": "x", "value": value})


if __name__ == "__main__":
    unittest.main()
