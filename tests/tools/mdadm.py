#!/usr/bin/python3 -SE
# SPDX-License-Identifier: GPL-2.0-only
"""mdadm and md, as far as `ibnbd mirror` knows them: an array md127 of files below IBNBD_SYSFS.
The superblock of a disk is the file NAME.super beside its node, "UUID STATE SLOT"; what it was
called with, unless only to read, is in the file mdadm beside sys; a file mdadm-refuses there has a
word that fails."""
import os, shutil, sys
from pathlib import Path

SYS, ROOT = Path(os.environ["IBNBD_SYSFS"]), Path(os.environ["IBNBD_ROOT"])
MD = SYS / "block/md127"


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def super_of(disk):
    return ROOT / f"dev/{disk}.super"


def array(state):
    for name, text in (("level", "raid1"), ("array_state", state), ("sync_action", "idle"),
                       ("mismatch_cnt", 0), ("degraded", 0), ("sync_completed", "none"),
                       ("bitmap/location", "+8")):
        put(MD / "md" / name, text)


def member(disk, state):
    put(MD / f"md/dev-{disk}/state", state)
    holder = SYS / f"block/{disk}/holders/md127"
    holder.parent.mkdir(exist_ok=True)
    if not holder.exists():
        holder.symlink_to(MD)


def let_go(disk):
    shutil.rmtree(MD / f"md/dev-{disk}")
    (SYS / f"block/{disk}/holders/md127").unlink()


def main(words):
    if "--examine" not in words:
        with open(SYS.parent / "mdadm", "a") as log:
            log.write(" ".join(words) + "\n")
    refuses = SYS.parent / "mdadm-refuses"
    if refuses.exists() and refuses.read_text().strip() in words:
        sys.exit("mdadm: it does not want to")
    disks = [os.path.basename(w) for w in words if w.startswith("/dev/ibnbd")]
    if "--create" in words:
        uuid = next(w[7:] for w in words if w.startswith("--uuid="))
        array("clean")
        for slot, disk in enumerate(disks):
            member(disk, "in_sync,failfast" if "--failfast" in words else "in_sync")
            put(super_of(disk), f"{uuid} {'A' * len(disks)} {slot}")
    elif "--examine" in words:
        if not super_of(disks[0]).exists():
            sys.exit(f"mdadm: No md superblock detected on /dev/{disks[0]}.")
        uuid, state, slot = super_of(disks[0]).read_text().split()
        print(f"     Array UUID : {uuid}\n   Device Role : Active device {slot}\n"
              f"   Array State : {state} ('A' == active, '.' == missing, 'R' == replacing)")
    elif "--zero-superblock" in words:
        if (MD / f"md/dev-{disks[0]}").exists():
            sys.exit(f"mdadm: Couldn't open /dev/{disks[0]} for write - not zeroing")
        super_of(disks[0]).unlink(missing_ok=True)
    elif "--fail" in words:
        put(MD / f"md/dev-{disks[0]}/state", "faulty,failfast")
    elif "--remove" in words:
        let_go(disks[0])
    elif "--add" in words:
        member(disks[0], "spare,failfast")
        put(super_of(disks[0]), "0:0:0:0 AA 1")
    elif "--stop" in words:
        for d in list(MD.glob("md/dev-*")):
            let_go(d.name[4:])
        shutil.rmtree(MD)
    elif "--assemble" in words:
        array("clean")
        for disk in disks:
            member(disk, "in_sync,failfast")
    elif "--run" in words:
        put(MD / "md/array_state", "clean")
    else:
        sys.exit(f"mdadm: {words}?")


main(sys.argv[1:])
