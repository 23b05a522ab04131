# SPDX-License-Identifier: GPL-2.0-only
"""Messages of the block protocol (docs/protocol.md 10.1) as lines for `ibtrs-peer say`, and a
session in which any of them is said."""
import os, struct
import image

PROGRAM = image.REPO / "build/lib/ibtrs-peer"
DURABILITY = 6          # features: what OPEN_RSP ends with, and that needs identities
OPEN_RSP = {0: 56, 2: 96, DURABILITY: 128}
TYPES = dict(SESS_INFO=0, OPEN=2, IO=4, CLOSE=5)


def hello(features=0):
    magic = b"IBNX" if features else b""
    return "call " + struct.pack("<HHB3x4s4xQ12x", TYPES["SESS_INFO"], 0, 2, magic,
                                 features).hex() + " 36"


def opening(name, write, room=OPEN_RSP[0]):
    return "call " + struct.pack("<HHBB255s3x", TYPES["OPEN"], 0, write, 1,
                                 name.encode()).hex() + f" {room}"


HELLO = hello()
CLOSE = "call " + struct.pack("<HH", TYPES["CLOSE"], 0).hex() + "{4} 0"     # of the last answer


def storm(prefix, nr, write):
    """PREFIX0, PREFIX1 .. are opened and closed."""
    return "".join(f"{opening(f'{prefix}{i}', write)}\n{CLOSE}\n" for i in range(nr))


class Speaker:
    """A session with the server that has the disk open for writing, without a block layer."""
    def __init__(self, guest, disk, features=0, at="ip:10.0.0.2"):
        self.guest, self.disk, self.features, self.nr = guest, disk, features, 0
        guest.sh("rm -f /tmp/say /tmp/said; mkfifo /tmp/say; : > /tmp/said")
        self.peer = guest.spawn(f"exec ibtrs-peer say {at} < /tmp/say > /tmp/said 2>&1")
        self.held = guest.spawn("exec sleep 10000 > /tmp/say")      # open, between the lines
        err, answer = self.ask(hello(features))
        guest.t.eq((err, struct.unpack_from("<Q", answer, 16)[0]), (0, features), "features")
        guest.t.wait(lambda: self.open() == 0, 10, f"{disk} is opened")

    def send(self, line):
        self.nr += 1
        self.guest.sh(f"echo '{line}' > /tmp/say")

    def answer(self):
        """The errno, and the bytes, of the last line that was sent."""
        said = self.guest.sh(f"wait_for 30 eval '[ $(wc -l < /tmp/said) -ge {self.nr} ]'; "
                             "tail -n 1 /tmp/said", timeout=60)
        err, _, rest = said.partition(" ")
        return -int(err), b"" if int(err) else bytes.fromhex(rest)

    def ask(self, line):
        self.send(line)
        return self.answer()

    def open(self):
        """Opens the disk, again; the errno. What it says of the cache is in epoch and volatile."""
        err, answer = self.ask(opening(self.disk, True, OPEN_RSP[self.features]))
        if not err:
            self.device = struct.unpack_from("<I", answer, 4)[0]
            self.epoch, self.volatile = struct.unpack("<QI20x", answer[-32:]) \
                if self.features == DURABILITY else (0, 0)
        return err

    def message(self, words):
        """The line of a message, in words: IO of the disk, for its first sector, of 32 bytes,
        unless they say otherwise: dir= type= dev= sector= rw= bytes= hdr=. len= is the length of
        the data beside it, fill= the byte that it consists of."""
        w = dict(word.split("=") for word in words.split())
        way = w.pop("dir")
        n = {"type": TYPES["IO"], "dev": self.device, "sector": 0, "rw": 0, "bytes": 0, "hdr": 32,
             "fill": 0, **{k: int(v, 0) for k, v in w.items()}}
        hdr = struct.pack("<HHIQII8x", n["type"], 0, n["dev"], n["sector"], n["rw"],
                          n["bytes"])[:n["hdr"]].hex()
        if way == "r":
            return f"read {hdr} {n['len']}"
        return f"write {hdr} {bytes([n['fill']]).hex() * n['len']}"

    def say(self, words):
        """The errno of a message, in words, and the bytes of its answer."""
        return self.ask(self.message(words))

    def accepted(self, words):
        err, answer = self.say(words)
        self.guest.t.eq(err, 0, words)
        return answer

    def refused(self, words, why):
        err = self.say(words)[0]
        self.guest.t.match(os.strerror(err) if err else "", why, words)

    def end(self):
        self.held.kill()
        self.peer.wait(20)
