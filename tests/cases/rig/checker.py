# SPDX-License-Identifier: GPL-2.0-only
"""The checker is shown liars before it is believed: a disk that drops a write it
acknowledged, one that writes an old block again, one that swaps two.  It runs on a file of
this host, no machine is needed."""
import image

description = ("the integrity checker passes an honest disk and finds a lost, "
               "a returned and a misplaced write")
crowd = True
vms = 0
deadline = 60

STAMP = image.REPO / "tests/stamp"
WANT = {"none": ("lost 0, ghosts 0, wrong 0", 0), "drop": ("lost 1, ghosts 0, wrong 0", 1),
        "replay": ("lost 0, ghosts 1, wrong 0", 1), "swap": ("lost 0, ghosts 0, wrong 2", 1)}


def run(t):
    stamp = str(image.compiled(STAMP / "stamp.c", "-static", "-pthread"))
    for mutant, (verdict, status) in WANT.items():
        here = t.logdir / mutant
        here.mkdir(exist_ok=True)
        disk, log, scan = here / "disk", here / "log", here / "scan"
        with open(disk, "wb") as f:
            f.truncate(4 << 20)
        rc, out = t.host([stamp, "run", str(disk), str(log), "ms=1500", "think_us=500",
                          "blocks=1024", f"mutant={mutant}"])
        t.eq(rc, 0, f"stamp itself with mutant {mutant}: {out[-500:]}")
        t.eq(t.host([stamp, "scan", str(disk), "1024", str(scan)])[0], 0, "scan")
        disk.unlink()
        rc, out = t.host([str(STAMP / "check.py"), str(scan), str(log)])
        t.match(out, verdict, f"verdict on mutant {mutant}")
        t.eq(rc, status, f"exit status of the check of mutant {mutant}")
    # a log without its last acknowledgements is no fault, one whose write was never issued is
    lines = (t.logdir / "none/log.0").read_text().splitlines(True)
    (t.logdir / "none/log.0").write_text("".join(l for l in lines if not l.startswith("A ")))
    t.eq(t.host([str(STAMP / "check.py"), str(t.logdir / "none/scan"),
                 str(t.logdir / "none/log")])[0], 0,
         "check without acknowledgements of one thread")
    (t.logdir / "none/log.0").write_text(lines[0])
    t.match(t.host([str(STAMP / "check.py"), str(t.logdir / "none/scan"),
                    str(t.logdir / "none/log")])[1],
            "which nobody issued", "check without what one thread issued")
