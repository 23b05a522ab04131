# SPDX-License-Identifier: GPL-2.0-only
"""A write is answered by both legs, and one of them loses it with its cache.  md holds that both
have it, so its bit is soon clear, and what is copied by the bitmap is not that write.  Once with
unflushed=fence, once with the default, where more was written than is kept; then both legs lose
their caches, and an administrator chooses."""
description = ("a leg of a mirror that was fenced since its disk lost its cache is copied whole, "
               "and nothing is typed: the halves are the same")
long = True
vms = 3
links = 2
deadline = 240
import mirrors as M
programs = M.PROGRAMS
FILL = ("head -c 2097152 /dev/zero | tr '\\0' {} > /tmp/fill; dd if=/tmp/fill of={} bs=64k "
        "seek=128 oflag=direct conv=notrunc status=none")


def lose_one(t, servers, words, gap):
    m = M.Mirror(t, servers, ("", words)).watch()
    m.c.sh(FILL.format("o", m.dev))
    m.flush()
    m.hot()
    m.c.sh(FILL.format("o", m.dev))     # its bits are set: no page of md's bitmap to come
    if gap:
        m.b.server.sh(f"echo 15000 > {M.P}/flush_ms")
    m.c.sh(FILL.format("x", m.dev))
    if gap:
        for _ in range(4):      # on a slow machine the flush has ended, and covered some of it
            if m.attr(m.b, "kept") == "gap":
                break
            m.c.sh(FILL.format("x", m.dev))
        t.eq(m.attr(m.b, "kept"), "gap", "more than retain_mb= was written")
    m.lose(m.b)
    m.b.server.sh(f"echo 0 > {M.P}/flush_ms")
    m.copied(words)
    m.said("data-b is copied whole: it is fenced")
    m.cool()
    t.eq((m.on_disk(m.a, 8, 2), m.on_disk(m.b, 8, 2)), ("x", "x"),
         "what was written, and then lost by one, on each half")
    t.eq(m.compare(words), "", "the halves")
    m.end()


def lose_both(t, servers):
    m = M.Mirror(t, servers, ("unflushed=fence", "unflushed=fence")).watch()
    m.put("o", 8, flush=True)
    m.hot()
    m.put("x", 8)
    m.lose(*m.legs)
    for leg in m.legs:
        m.is_(leg, "fenced", "both legs")
    m.said("is fenced, and no other leg is in sync and open")
    m.cool()
    m.manual("Both legs are bad")
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
