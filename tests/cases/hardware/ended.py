# SPDX-License-Identifier: GPL-2.0-only
import signal
import hardware as H

description = ("tests/hardware/run.sh is interrupted, is killed, and loses its server: what it "
               "changed is restored each time, and so is a link that it takes away")
long = True
fresh = True
door = True
links = 2
disk = 96
mem = 1536
deadline = 900
needs = ["null_blk"]
programs = [H.DROPBEAR]
allow = [r"null_blk: .*", r"nvmet?: .*"]

LINK = "ip addr show eth0 | grep 'inet.*global'; ip route; ip -6 route | sort"


def links_lost(t, before):
    """A link goes and comes as it was.  No I/O: soft-RoCE does not survive that an interface is set
    down (paths/rdma-device-lost)."""
    c = t.client
    c.put("stacks.sh", (H.image.REPO / "tests/hardware/kit/stacks.sh").read_text())
    kit = H.SOURCE + ". /h/stacks.sh; KIT=$(cat /h/agent.sh /h/host.sh /h/stacks.sh) AGENT=$$; "
    c.fails(kit + "SSH_CONNECTION='10.99.0.2 1 10.99.0.15 22'; link_check 10.99.0.15",
            "door carries this ssh connection")
    c.fails(kit + "link_check 10.9.9.9", "no link has the address 10.9.9.9")
    c.sh("ip route add 10.77.0.0/16 via 10.0.0.2 dev eth0; ip route add fd77::/64 dev eth0")
    there = c.sh(LINK)
    t.eq(c.sh(kit + "link_check 10.0.0.1"), "eth0", "the link of an address")
    c.sh(kit + "begin; link_away eth0 1")
    t.eq(c.sh(LINK).split(),
         there.split(), "addresses and routes")
    # who is killed in between
    c.sh(kit + "link_away eth0 100 & sleep 2; kill -9 $!; ip link show eth0 | grep -q DOWN; "
         "restore")
    t.eq(c.sh(LINK).split(),
         there.split(), "addresses and routes, restored")
    c.sh("ip route del 10.77.0.0/16; ip -6 route del fd77::/64")
    H.same(t, before, "links were lost")


def mapped(t):
    return t.client.rc("ls -d /sys/block/ibnbd0")[0] == 0


def ended(t, hw, before):
    """A run that is interrupted, one that is killed, and one whose server dies."""
    words = ["--scratch", "/dev/vda", "--destroy", "rig-disk", "--stacks", "ibnbd", *H.SMALL,
             *H.ONE, "--seconds", "5"]
    for number, status in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        child = hw.start(*words)
        try:
            t.wait(lambda: mapped(t), 150, "the client has a disk")
            t.ok(H.look(t)["client"] != before["client"], "the run has changed something")
            child.send_signal(number)
            t.eq(child.wait(120 * H.vm.SLOW), status, f"exit status after signal {number}")
        finally:
            child.kill()
            hw.said()
        t.wait(lambda: H.look(t) == before, 90, f"after signal {number} all is as it was")
        t.server.sh(H.SOURCE + "check_disk /dev/vda")
    child = hw.start(*words, "--wait", "2")
    try:
        t.wait(lambda: mapped(t), 150, "the client has a disk")
        t.server.kill()
        t.eq(child.wait(240 * H.vm.SLOW), 1, "exit status when the server is lost")
    finally:
        child.kill()
        said = hw.said()
    t.match(said, "does not answer any more")
    t.match(said, r"server .* was lost and is not back")
    H.same(t, before, "the server was lost")
    t.match(hw.report(), r"Result: \*\*failed\*\*")


def run(t):
    hw = H.Hardware(t)
    try:
        before = H.look(t)
        links_lost(t, before)
        ended(t, hw, before)
    finally:
        hw.close()
