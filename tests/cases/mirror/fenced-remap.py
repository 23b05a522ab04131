# SPDX-License-Identifier: GPL-2.0-only
"""A write is answered by both legs, and one of them loses it with its cache.  md holds that both
have it, so its bit is soon clear, and what is copied by the bitmap is not that write.  Once with
unflushed=fence, once with the default, where more was written than is kept; then both legs lose
their caches."""
description = ("a leg of a mirror that was fenced since its disk lost its cache, taken back as the "
               "manual says: the halves are the same")
long = True
vms = 3
links = 2
deadline = 240
import mirrors as M
programs = M.PROGRAMS
FILL = ("head -c 2097152 /dev/zero | tr '\\0' {} > /tmp/fill; dd if=/tmp/fill of=/dev/md0 bs=64k "
        "seek=128 oflag=direct conv=notrunc status=none")


def lose_one(t, servers, words, gap):
    m = M.Mirror(t, servers, ("", words))
    m.c.sh(FILL.format("o"))
    m.flush()
    m.hot()
    m.c.sh(FILL.format("o"))    # its bits are set: no page of md's bitmap, and no flush, to come
    if gap:
        m.b.server.sh(f"echo 15000 > {M.P}/flush_ms")
    m.c.sh(FILL.format("x"))
    if gap:
        t.eq(m.attr(m.b, "kept"), "gap", "more than retain_mb= was written")
    m.lose(m.b)
    m.is_(m.b, "fenced", "the leg")
    m.b.server.sh(f"echo 0 > {M.P}/flush_ms")
    m.removed(m.b)
    m.flush()
    t.eq((m.on_disk(m.a, 8, 2), m.on_disk(m.b, 8, 2)), ("x", "o"),
         "what was written, and then flushed, on each half")
    m.forget()
    m.cool()
    m.c.sh(f"/usr/share/ibnbd/md-readd {m.b.dev}")
    t.eq(m.state(m.b), "", "the rule leaves it to the administrator")
    m.copy_whole(m.b, words)
    t.eq(m.compare(words), "", "the halves")
    m.end()


def lose_both(t, servers):
    m = M.Mirror(t, servers, ("unflushed=fence", "unflushed=fence"))
    m.put("o", 8, flush=True)
    m.hot()
    m.put("x", 8)
    m.lose(*m.legs)
    for leg in m.legs:
        m.is_(leg, "fenced", "both legs")
    m.cool()
    m.manual("Both legs are bad", m.b)
    t.ok(m.healed(), "the mirror is whole again")
    t.eq(m.compare("both fenced"), "", "the halves")
    m.put("z", 8, flush=True)
    m.end()


def run(t):
    servers = M.machines(t)
    lose_one(t, servers, "unflushed=fence", False)
    lose_one(t, servers, "retain_mb=1", True)
    lose_both(t, servers)
    M.leave(t)
