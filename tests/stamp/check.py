#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Proves from the logs and the scan of stamp.c that no write was lost, came back or went astray.

    tests/stamp/check.py [--p1 [--told]] SCAN LOG..
                                            LOG is what `stamp run` got: LOG.0, LOG.1 .. are read

Writers are ordered by their number: what a higher one wrote is newer.  A block may hold the newest
write that was acknowledged, or one issued after that which was not.  Anything else is
    lost    an acknowledged write is not there, what was before it is
    ghost   an older write came back over a newer one that was acknowledged, or had been read
    wrong   a block of another place, of nobody, or broken
The same is asked of everything that was read during the run.

A disk may lose its cache.  What is lost then is told apart by the flushes of `stamp run flush=N`:
one that succeeded covers each write that was acknowledged before it was sent, by its own thread,
or by another of the same writer in an earlier millisecond.
    flushed    of what is lost or has come back, how much a flush had covered
With --p1 only that, and what is wrong, is a fault: the promise P1. Without, each loss is: P2.
With --told an error tells the writer that what no flush had covered by then may be lost, and the
run went on: a later flush does not cover it.
"""
import bisect, glob, re, sys
from collections import defaultdict

NOTHING = (0, 0)


class Logs:
    """What the writers say.  Keys of writes are (writer, sequence), which is their order."""
    def __init__(self, prefixes, told=False):
        self.told = told
        # key: (block, count, ms) / (ms, took) / (errno, ms, took)
        self.issued, self.acked, self.failed = {}, {}, {}
        self.history = defaultdict(list)                        # block: keys, in the order of issue
        # (ms, took, block, keys) / (errno, ms, took)
        self.read, self.read_errors, self.wrong = [], [], []
        self.boots = defaultdict(set)
        self.flushes, self.flush_errors = [], []    # (sent, answered, took) / (errno, ms, took)
        self.covered = set()                        # keys that a flush of their own thread covers
        # writer: when its flushes that succeeded were sent, and when it heard of an error
        self.flush_sent, self.errors = defaultdict(list), defaultdict(list)
        for prefix in prefixes:
            files = sorted(glob.glob(glob.escape(str(prefix)) + ".[0-9]*"))
            if not files:
                raise ValueError(f"no log {prefix}.0")
            for name in files:
                self.load(name)
        for lists in self.history, self.flush_sent, self.errors:
            for values in lists.values():
                values.sort()

    def load(self, name):
        writer, waiting = None, []
        with open(name) as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break               # the machine died while it wrote this line
                kind, *rest = line.split()
                if kind == "V":
                    self.wrong.append((rest[0], int(rest[1]), (int(rest[2]), int(rest[3])),
                                       (writer, int(rest[4]))))
                    continue
                n = [int(x) for x in rest]
                if kind == "H":
                    writer = n[0]
                    self.boots[writer].add(n[1])
                elif kind == "I":
                    key = (writer, n[0])
                    if key in self.issued:
                        raise ValueError(f"{name}: write {n[0]} was issued twice")
                    self.issued[key] = tuple(n[1:])
                    for b in range(n[1], n[1] + n[2]):
                        self.history[b].append(key)
                elif kind == "A":
                    self.acked[writer, n[0]] = tuple(n[1:])
                    waiting.append((writer, n[0]))
                elif kind == "F":
                    self.flushes.append(tuple(n))
                    self.flush_sent[writer].append(n[0])
                    self.covered.update(waiting)
                    waiting = []
                elif kind == "f":
                    self.flush_errors.append(tuple(n))
                    waiting = self.error(writer, n[1], waiting)
                elif kind == "E":
                    self.failed[writer, n[0]] = tuple(n[1:])
                    waiting = self.error(writer, n[2], waiting)
                elif kind == "R":
                    self.read.append((n[2], n[3], n[0],
                                      [(writer, s) if s else NOTHING for s in n[4:]]))
                elif kind == "r":
                    self.read_errors.append(tuple(n))
                    waiting = self.error(writer, n[1], waiting)
                elif kind != "X":
                    raise ValueError(f"{name}: {line!r}")

    def error(self, writer, ms, waiting):
        """What a flush of this thread would still cover."""
        self.errors[writer].append(ms)
        return [] if self.told else waiting

    def is_covered(self, key):
        if key in self.covered:
            return True
        if key not in self.acked:
            return False
        acked, sent = self.acked[key][0], self.flush_sent[key[0]]
        i = bisect.bisect_right(sent, acked)
        if i == len(sent):
            return False
        errors = self.errors[key[0]]
        j = bisect.bisect_left(errors, acked)
        return not (self.told and j < len(errors) and errors[j] <= sent[i])


class Verdict:
    def __init__(self, logs):
        self.logs, self.lost, self.ghost, self.wrong, self.texts = logs, 0, 0, 0, []
        self.flushed = 0
        self.seen = defaultdict(lambda: NOTHING)
        for _, _, block, keys in logs.read:
            for i, key in enumerate(keys):
                self.seen[block + i] = max(self.seen[block + i], key)

    def newest_acked(self, block):
        return max((k for k in self.logs.history[block] if k in self.logs.acked), default=NOTHING)

    def older(self, block, found, due, where):
        """An older write stands where `due` was acknowledged: lost, or a ghost?"""
        self.flushed += any(found < k <= due and self.logs.is_covered(k)
                            for k in self.logs.history[block])
        between = [k for k in self.logs.history[block] if found < k < due and k in self.logs.acked]
        ghost = found != NOTHING and (between or self.seen[block] > found)
        self.ghost, self.lost = self.ghost + bool(ghost), self.lost + (not ghost)
        self.texts.append(
            f"block {block}: "
            f"{'an older write came back' if ghost else 'an acknowledged write is lost'}: {where} "
            f"holds write {found}, acknowledged was {due}"
            + (f", and {len(between)} more between them" if between else ""))

    def bad(self, text):
        self.wrong += 1
        self.texts.append(text)

    def live(self):
        for kind, block, found, due in self.logs.wrong:
            if kind == "LOST":
                self.older(block, found, due, "a read")
            else:
                self.bad(f"block {block}: a read found {kind.lower()} data, of write {found}; "
                         f"acknowledged was {due}")

    def disk(self, scan):
        count = 0
        with open(scan) as lines:
            for line in lines:
                words, count = line.split(), count + 1
                block, kind, due = int(words[0]), words[1], self.newest_acked(int(words[0]))
                if kind == "bad":
                    self.bad(f"block {block} is no whole block of anybody")
                    continue
                if kind == "zero":
                    if due != NOTHING:
                        self.older(block, NOTHING, due, "the disk")
                    continue
                place, writer, boot, seq = map(int, words[2:])
                key = (writer, seq)
                if place != block:
                    self.bad(f"block {block} holds what write {key} wrote to block {place}")
                elif key not in self.logs.history[block] or boot not in self.logs.boots[writer]:
                    self.bad(f"block {block} holds write {key}, which nobody issued")
                elif key < due:
                    self.older(block, key, due, "the disk")
        if count <= max((b for b in self.logs.history if self.logs.history[b]), default=0):
            self.bad(f"the scan has {count} blocks, and more were written")

    def line(self):
        g = self.logs
        return (f"{len(g.issued)} writes, {len(g.acked)} acknowledged, {len(g.failed)} failed; "
                f"{len(g.read)} reads, {len(g.read_errors)} failed; lost {self.lost}, "
                f"ghosts {self.ghost}, wrong {self.wrong}; "
                f"{len(g.flushes)} flushes, {len(g.flush_errors)} failed; flushed {self.flushed}")

    def breaks(self, p1):
        """Is the promise broken: P1, or P2?"""
        return bool(self.wrong or (self.flushed if p1 else self.lost or self.ghost))


def check(scan, prefixes, told=False):
    verdict = Verdict(Logs(prefixes, told))
    verdict.live()
    verdict.disk(scan)
    return verdict


def main():
    p1 = sys.argv[1:2] == ["--p1"]
    if p1:
        del sys.argv[1]
    told = p1 and sys.argv[1:2] == ["--told"]
    if told:
        del sys.argv[1]
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    prefixes = sorted({re.sub(r"\.\d+$", "", p) for p in sys.argv[2:]})
    verdict = check(sys.argv[1], prefixes, told)
    for text in verdict.texts[:50]:
        print(text)
    print(verdict.line())
    if not verdict.logs.acked:
        print("nothing was acknowledged: nothing is proven")
        return 2
    return 1 if verdict.breaks(p1) else 0


if __name__ == "__main__":
    sys.exit(main())
