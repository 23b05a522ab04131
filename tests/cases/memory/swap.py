# SPDX-License-Identifier: GPL-2.0-only
import hashlib

description = ("swap lies on the device: "
               "memory comes back as it went, over a lost path and over a time without any")
long = True
deadline = 200
links = 2
fresh = True
# what the hog holds; more than a third of that slows it down (memory.max
# would kill it while swap is held)
MIB = 48

LINE = "what is swapped out must come back\n"
HOG = f"""
echo $BASHPID > /sys/fs/cgroup/hog/cgroup.procs
{{ yes '{LINE.strip()}' || true; }} | head -c {MIB}m > /dev/shm/hog
sha1sum < /dev/shm/hog > /tmp/hog
rm /dev/shm/hog
"""


def run(t):
    c, s = t.client, t.server
    s.sh("serve; ram_disks 1 192")
    dev = c.sh("map ram0")
    c.sh("paths_up s1 2")
    c.sh(f"mkswap {dev} > /dev/null; swapon {dev}")
    c.sh("mkdir -p /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; "
         "echo +memory > /sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/hog; "
         f"echo {MIB // 3}M > /sys/fs/cgroup/hog/memory.high")
    swapped = lambda: int(c.sh("awk '/SwapTotal/ { t = $2 } /SwapFree/ { print t - $2 }' "
                               "/proc/meminfo")) >> 10

    sha1 = hashlib.sha1((LINE * ((MIB << 20) // len(LINE) + 1))[:MIB << 20].encode()).hexdigest()
    for faults in ([0], [0, 1]):
        hog = c.spawn(HOG)
        t.wait(lambda: swapped() >= 8, 60, "the hog is being swapped out")
        for link in faults:
            c.link(link, False)
        c.sh("sleep 3")
        for link in faults:
            c.link(link, True)
        t.wait(lambda: c.sh("paths_up s1 2 && echo yes || true") == "yes", 20, "both paths again")
        t.eq(hog.wait(90), 0, "the hog: " + hog.out())
        t.eq(c.sh("cut -c-40 /tmp/hog"), sha1, "what came back from swap")
    t.log(c.sh("grep -E 'pswp|oom_kill ' /proc/vmstat"))
    t.ok(int(c.sh("awk '/^pswpin/ { print $2 }' /proc/vmstat")) > 256 * MIB // 2,
         "half of it was read back from the device")
    c.sh(f"swapoff {dev}")
