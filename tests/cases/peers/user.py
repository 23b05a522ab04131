# SPDX-License-Identifier: GPL-2.0-only
description = ("libibtrs over RDMA: with the kernel's server, locked chunks or not; with itself; "
               "the kernel's client with its server; errors; keys; RDMA that is found, lost and "
               "found again")
crowd = True
links = 2
deadline = 300
import base64
import json
import struct
import time
import image
import messages
programs = [image.REPO / "build/lib/ibtrs-peer"]
AT = "ip:10.0.0.2"
BOTH = "ip:10.0.0.2,ip:10.0.1.2"
DISK = "/dev/testdisk0"


def say(t, *lines):
    """Requests of one session; (errno, hexadecimal answer) of each."""
    text = "\n".join(lines)
    out = t.client.sh(f"ibtrs-peer say {AT} <<'END'\n{text}\nEND")
    return [(int(err), rest) for err, _, rest in (a.partition(" ") for a in out.split("\n"))]


def blocks(kind, sector):
    """The header of 4 KiB of I/O to the device of the answer before."""
    return struct.pack("<HH", 4, 0).hex() + "{4}" + struct.pack("<QIIH6x", sector, kind, 4096,
                                                               0).hex()


def block(machine, n):
    """4 KiB of the server's disk, hexadecimal."""
    return machine.sh(f"dd if={DISK} bs=4096 skip={n} count=1 iflag=direct status=none | "
                      "od -An -v -tx1 | tr -d ' \\n'")


def kernel(t, invalidate):
    """A session with the kernel's server: who are you, open, 4 KiB read and written."""
    c, s = t.client, t.server
    s.sh(f"serve always_invalidate={invalidate}; modprobe ibnbd-testdisk; "
         f"dd if=/dev/urandom of={DISK} bs=64k count=1 conv=fsync status=none")
    opening = messages.opening("testdisk0", True)
    there = block(s, 3)
    new = "".join(f"{n % 251:02x}" for n in range(4096))
    said = say(t, messages.HELLO, opening,
               # each request needs the device's number, which only OPEN has told
               f"read {blocks(0, 24)} 4096")
    t.eq([err for err, _ in said], [0, 0, 0], "errors")
    t.eq(said[0][1][:4], "0100", "the type of SESS_INFO_RSP")
    t.eq(said[1][1][:4], "0300", "the type of OPEN_RSP")
    t.ok(said[2][1] == there, "4 KiB of the server's disk")
    said = say(t, messages.HELLO, opening, f"write {blocks(1, 40)} {new}")
    t.eq(said[2], (0, ""), "the write")
    t.ok(block(s, 5) == new, "the server's disk has what was written")
    said = say(t, messages.HELLO, messages.opening("nosuchdisk", True), opening)
    t.eq([err for err, _ in said], [0, -2, 0], "an export that does not exist")
    t.match(c.sh(f"ibtrs-peer ping {BOTH} 3"),
            r"queue_depth 512, max_io_size 131072, paths [12] of 2\n(\d+ us\n?){3}", "ping")
    s.sh("modprobe -r ibnbd-server ibtrs-server ibnbd-testdisk")


def itself(t):
    """User space on both sides: data, a path that falls silent, a server that is killed."""
    c, s = t.client, t.server
    server = s.spawn("exec ibtrs-peer serve ip:0.0.0.0 16")
    t.wait(lambda: "port 1234" in server.out(), 10, "the server listens")
    c.sh("dd if=/dev/urandom of=/tmp/data bs=100k count=10 status=none; "
         f"ibtrs-peer put {AT} 4097 < /tmp/data; "
         f"ibtrs-peer get {AT} 4097 $((1000 * 1024)) | cmp - /tmp/data")
    c.sh("dd if=/dev/urandom of=/tmp/data bs=100001 count=10 status=none; "
         f"ibtrs-peer --in-place put {BOTH} 1 < /tmp/data; "
         f"ibtrs-peer --in-place get {BOTH} 1 1000010 | cmp - /tmp/data; "
         f"ibtrs-peer get {AT} 1 1000010 | cmp - /tmp/data")
    t.match(server.out(), "session peer from ip:10.0.0.1", "what the server says")
    for policy, way in ("min-inflight", "write"), ("min-latency", "read"):
        for place in "", "--in-place":
            said = json.loads(c.sh(f"IBTRS_POLICY={policy} ibtrs-peer --json {place} "
                                   f"load {BOTH} {way} 1"))
            t.ok(said["requests"] > 100 and said["latency_us"]["p50"] > 0, f"{policy}: {said}")
            t.eq([path["transport"] for path in said["paths"]], ["rdma"] * 2, "RDMA both")
    # the port tells of its link; heartbeats would take three seconds
    job = c.spawn(f"IBTRS_POLICY=round-robin exec ibtrs-peer --json load {BOTH} read 6 4")
    time.sleep(3)
    c.link(0, False)
    t.eq(job.wait(40), 0, f"a path loses its link: {job.out()}")
    t.below(json.loads(job.out())["latency_us"]["max"], 2e6, "us for the slowest read")
    c.link(0, True)
    # heartbeats get through, and large packets do not: who sends them has to notice
    for loser, way in (c, "read"), (s, "write"):
        loser.sh("net_small 1")
        job = c.spawn(f"exec ibtrs-peer load {BOTH} {way} 3")
        time.sleep(1.5)
        loser.sh("net_small 1 2000")
        t.eq(job.wait(40), 0, f"large packets of a {way} are lost on one path: {job.out()}")
        loser.sh("net_small 1")
    # an ordinary user of a container, which may lock 8 MiB, where none of our modules is
    c.sh("! grep -E '^ib(trs|nbd)_' /proc/modules")
    c.sh("chmod 666 /dev/infiniband/*; cat > /tmp/contained <<'END'\n"
         "set -e\nulimit -l 8192\n[ $(id -u) = 1000 ]\n[ $$ = 1 ]\n"
         f"ibtrs-peer ping {BOTH} 3\nibtrs-peer put {AT} 5000 < /tmp/data\n"
         f"ibtrs-peer get {AT} 5000 1000010 | cmp - /tmp/data\nEND\n"
         "unshare -m -p -u -i -f lessen user bash /tmp/contained")
    c.fails(f"lessen user bash -c 'ulimit -l 256; exec ibtrs-peer ping {AT}'",
            f"{AT}: no memory, or more than may be locked: raise LimitMEMLOCK=")
    # the session fits, 100 MiB more do not
    c.fails(f"lessen user bash -c 'ulimit -l 60000; "
            f"exec ibtrs-peer --in-place get {AT} 0 104857600'",
            "peer: no memory, or more than may be locked: raise LimitMEMLOCK=")

    at = struct.pack("<IIQ", 0x52454550, 0, 0).hex()
    job = c.spawn(f"mkfifo /tmp/say; exec 3<> /tmp/say; "
                  f"IBTRS_POLICY=round-robin ibtrs-peer say {BOTH} < /tmp/say & "
                  f"echo write {at} abcdef >&3; "
                  f"for i in 1 2 3; do wait_for 90 test -e /tmp/go$i; echo read {at} 3 >&3; done; "
                  "wait_for 90 test -e /tmp/go4; kill %1")
    t.wait(lambda: job.out() == "0 \n", 20, "the write is answered")
    s.link(0, False)
    c.sh("touch /tmp/go1 /tmp/go2")                 # one goes to each path
    t.wait(lambda: job.out() == "0 \n" + 2 * "0 abcdef\n", 40, "both reads, over one path")
    s.link(0, True)
    server.kill()
    c.sh("touch /tmp/go3; sleep 1")
    t.eq(job.out(), "0 \n" + 2 * "0 abcdef\n", "the next one waits for a server")
    server = s.spawn("exec ibtrs-peer serve ip:0.0.0.0 16")
    t.wait(lambda: job.out().endswith("\n0 000000\n"), 40, "it is sent to the next server")
    c.sh("touch /tmp/go4")
    return server


def kernel_client(t, server):
    """The kernel's client gets its session, and is told that this server knows no disks."""
    t.client.fails("map nosuchdisk", "the server does not speak our block protocol")
    t.match(server.out(), "session s1 from ip:10.0.0.1", "what the server says")


def keys(t):
    """A key that both ends have to prove: user space with the kernel, both ways round."""
    c, s = t.client, t.server
    s.sh("serve auth=required; ibnbd key generate db-1; ibnbd key load")
    text = s.sh("cat /etc/ibnbd/keys/db-1").strip()
    # a key has two forms: that of the command, and its 32 bytes
    right = base64.b64decode(text.split(":")[2])[:32]
    octal = lambda key: "".join(f"\\{byte:03o}" for byte in key)
    for machine, place, key in ((c, "right", text), (c, "wrong", octal(right[::-1])),
                                (s, "right", octal(right))):
        machine.sh(f"mkdir -p /tmp/{place}; printf '{key}' > /tmp/{place}/db-1")
    no_proof = f"{AT}: key db-1: the server does not prove that it has the key"
    c.fails(f"ibtrs-peer ping {AT}",
            f"{AT}: the server says: authentication is required here: map with auth=KEY")
    c.fails(f"IBTRS_KEY=/tmp/wrong/db-1 ibtrs-peer ping {AT}", no_proof)
    t.match(c.sh(f"IBTRS_KEY=/tmp/right/db-1 ibtrs-peer ping {BOTH} 3"),
            r"paths [12] of 2\n(\d+ us\n?){3}", "ping with the key")
    s.sh("ibnbd key remove db-1")
    c.fails(f"IBTRS_KEY=/tmp/right/db-1 ibtrs-peer ping {AT}", no_proof)
    s.sh("modprobe -r ibnbd-server ibtrs-server")

    server = s.spawn("IBTRS_KEY=/tmp/right/db-1 exec ibtrs-peer serve ip:0.0.0.0 16")
    t.wait(lambda: "port 1234" in server.out(), 10, "the server listens")
    c.fails(f"IBTRS_KEY=/tmp/wrong/db-1 ibtrs-peer ping {AT}", no_proof)
    c.sh(f"IBTRS_KEY=/tmp/right/db-1 ibtrs-peer ping {AT}")
    c.sh("modprobe ibnbd-client; mkdir -p -m 700 /etc/ibnbd/keys; umask 077; "
         f"echo '{text}' > /etc/ibnbd/keys/db-1; ibnbd key load")
    c.fails("map nosuchdisk auth=db-1", "the server does not speak our block protocol")
    t.match(server.out(), "session s1 from ip:10.0.0.1, key db-1", "what the server says")
    c.fails("map nosuchdisk", "authentication is required here: open with a key")
    server.kill()


def both_kinds(t):
    """auto: is RDMA as long as that gets through, then the stream, then RDMA again."""
    c, s = t.client, t.server
    key = "IBTRS_KEY=/tmp/right/db-1"
    server = s.spawn(f"{key} exec ibtrs-peer serve ip:0.0.0.0,tcp:0.0.0.0:1234 16")
    t.wait(lambda: server.out().count("port 1234") == 2, 10, "the server listens twice")
    job = c.spawn(f"{key} ibtrs-peer --json load auto:10.0.0.2 write 40 4 > /tmp/auto")

    def bytes_per_s(count):
        before = int(c.sh(count))
        time.sleep(1)
        return int(c.sh(count)) - before
    rdma = "echo $(($(hw_counter 0 sent_pkts) + $(hw_counter 1 sent_pkts)))"
    tcp = "cat /sys/class/net/eth0/statistics/tx_bytes"
    t.wait(lambda: bytes_per_s(rdma) > 100, 20, "requests go over RDMA")
    for i in (0, 1):        # packets of RDMA are UDP to this port
        s.sh(f"tc qdisc replace dev eth{i} root handle 1: prio bands 3 priomap{' 0' * 16}; "
             f"tc qdisc add dev eth{i} parent 1:3 netem loss 100%; "
             f"tc filter add dev eth{i} parent 1: protocol ip prio 1 u32 "
             "match ip protocol 17 0xff match ip dport 4791 0xffff flowid 1:3")
    t.wait(lambda: bytes_per_s(tcp) > 1e5 and bytes_per_s(rdma) < 100, 30,
           "requests go over the stream")
    s.sh("net_fifo eth0; net_fifo eth1")
    t.wait(lambda: bytes_per_s(rdma) > 100, 30, "requests go over RDMA again")
    t.eq(job.wait(60), 0, "no request has failed")
    said = json.loads(c.sh("cat /tmp/auto"))
    up = [(path["path"], path["transport"]) for path in said["paths"] if path["state"] == "up"]
    # the second RDMA path is one that the server has told of
    t.eq(sorted(up), [("ip:10.0.0.2", "rdma"), ("ip:10.0.1.2:1234", "rdma"),
                      ("tcp:10.0.0.2", "tls")], "paths")
    server.kill()


def run(t):
    c, s = t.client, t.server
    if c.rc("command -v ibtrs-peer")[0]:
        t.skip("make lib has not been run")
    for machine in (c, s):
        machine.sh("modprobe rdma_ucm")
    c.fails(f"ibtrs-peer ping {AT}", f"{AT}: nothing listens there")
    c.fails("ibtrs-peer ping ip:10.9.9.9", "ip:10.9.9.9: no route leads there")
    c.fails("ibtrs-peer ping ip:10.0.0.77", "ip:10.0.0.77: .*does not answer")
    c.fails(f"lessen user ibtrs-peer ping {AT}", f"{AT}: nothing listens there")
    for invalidate in "NY":
        kernel(t, invalidate)
    server = itself(t)
    kernel_client(t, server)
    server.kill()
    keys(t)
    both_kinds(t)
