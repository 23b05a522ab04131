# SPDX-License-Identifier: GPL-2.0-only
"""What a log of three writes and their flushes proves, with each thing that a disk may hold
afterwards.  Logs and scans are written by hand; no machine is needed."""
import image

description = "the integrity checker knows which of the lost writes a flush had covered"
crowd = True
vms = 0
deadline = 60

CHECK = str(image.REPO / "tests/stamp/check.py")
# One thread: write 1, a flush, write 2.  A second one: write 3 to another block.
FIRST = ["H 1 7 0", "I 1 0 1 100", "A 1 101 1", "F 102 105 3", "I 2 0 1 110", "A 2 111 1", "X"]
OTHER = ["H 1 7 1", "I 3 1 1 90", "A 3 {} 1", "X"]
ALL, OLD, NONE = "is 0 1 7 2", "is 0 1 7 1", "zero"


def run(t):
    rows = (    # what block 0 and block 1 hold; when write 3 was acknowledged; verdict; P1, P2 hold
        ("all is there", ALL, "is 1 1 7 3", 95, "lost 0, .* flushed 0", True, True),
        ("the unflushed one is lost", OLD, "is 1 1 7 3", 95, "lost 1, .* flushed 0", True, False),
        ("the flushed one is lost", NONE, "is 1 1 7 3", 95, "lost 1, .* flushed 1", False, False),
        ("another thread's, acknowledged before", ALL, NONE, 101, "lost 1, .* flushed 1", False,
         False),
        ("another thread's, of that moment", ALL, NONE, 102, "lost 1, .* flushed 0", True, False),
        ("another thread's, while it flushed", ALL, NONE, 104, "lost 1, .* flushed 0", True, False),
        ("a broken block", "bad", "is 1 1 7 3", 95, "wrong 1; .* flushed 0", False, False))

    def check(*words):
        return t.host([CHECK, *words, str(t.logdir / "scan"), str(t.logdir / "log")])

    def verdict(what, zero, one, acked, want, p1, p2, first=FIRST):
        (t.logdir / "log.0").write_text("".join(f"{line}\n" for line in first))
        (t.logdir / "log.1").write_text("".join(f"{line.format(acked)}\n" for line in OTHER))
        (t.logdir / "scan").write_text(f"0 {zero}\n1 {one}\n")
        for words, holds in ((("--p1",), p1), ((), p2)):
            rc, out = check(*words)
            t.match(out, want, f"{what} {words}")
            t.eq(rc, 0 if holds else 1, f"status, {what} {words}")

    for row in rows:
        verdict(*row)
    failed = [line.replace("F 102 105 3", "f 5 105 3") for line in FIRST]
    verdict("the flush failed", NONE, "is 1 1 7 3", 95, "0 flushes, 1 failed; flushed 0", True,
            False, failed)
    late = FIRST[:-1] + ["F 120 121 1", "X"]
    verdict("a flush that came after the loss", OLD, "is 1 1 7 3", 95, "flushed 1", False, False,
            late)
    told = ["I 2 0 1 110", "E 2 5 111 1", "F 120 121 1", "X"]
    for what, first, words, want in (
            ("lost, told, and flushed then", FIRST[:3] + told, ("--p1", "--told"), "flushed 0"),
            ("the same, and nobody says so", FIRST[:3] + told, ("--p1",), "flushed 1"),
            ("flushed, and lost", FIRST[:4] + told, ("--p1", "--told"), "flushed 1")):
        (t.logdir / "log.0").write_text("".join(f"{line}\n" for line in first))
        (t.logdir / "log.1").write_text("".join(f"{line.format(95)}\n" for line in OTHER))
        (t.logdir / "scan").write_text(f"0 {NONE}\n1 is 1 1 7 3\n")
        rc, out = check(*words)
        t.match(out, want, what)
        t.eq(rc, int(want != "flushed 0"), f"status, {what}")
    stamp = str(image.compiled(image.REPO / "tests/stamp/stamp.c", "-static", "-pthread"))
    disk = t.logdir / "disk"
    with open(disk, "wb") as f:
        f.truncate(4 << 20)
    rc, out = t.host([stamp, "run", str(disk), str(t.logdir / "run"), "ms=800", "flush=8"])
    t.eq(rc, 0, f"stamp: {out[-300:]}")
    t.eq(t.host([stamp, "scan", str(disk), "1024", str(t.logdir / "scan")])[0], 0, "scan")
    disk.unlink()
    rc, out = t.host([CHECK, "--p1", str(t.logdir / "scan"), str(t.logdir / "run")])
    t.match(out, "lost 0, ghosts 0, wrong 0; [1-9][0-9]* flushes, 0 failed; flushed 0", "a run")
