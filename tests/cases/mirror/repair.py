# SPDX-License-Identifier: GPL-2.0-only
"""The leg in slot 0 loses a write with its cache, behind which the application has flushed, and
that succeeded, for the other leg has it.  With unflushed=ignore, as with an in-kernel server,
nobody is told, the leg stays in, and an administrator replaces it; with unflushed=fence it is
fenced, and copied whole without a word."""
description = ("the first leg of a mirror has lost its cache: what an application has flushed is "
               "there in the end, on both halves")
long = True
vms = 3
links = 2
deadline = 180
import mirrors as M
programs = M.PROGRAMS


def scene(t, servers, how):
    m = M.Mirror(t, servers, (f"unflushed={how}", "")).watch()
    m.put("o", 8, flush=True)
    m.hot()
    m.put("x", 8)
    m.lose(m.a, told=how == "fence")
    m.flush()
    if how == "fence":
        m.copied(how)
    m.cool()
    if how == "ignore":
        t.eq((m.on_disk(m.a, 8), m.on_disk(m.b, 8)), ("o", "x"), "what is on slot 0 and 1")
        m.c.sh("ibnbd mirror replace data data-a", timeout=60)
        t.ok(m.healed(), "it is whole again")
    t.eq((m.on_disk(m.a, 8), m.on_disk(m.b, 8)), ("x", "x"), f"{how}: and afterwards")
    t.eq(m.compare(how), "", "the halves")
    m.end()


def run(t):
    servers = M.machines(t)
    for how in "ignore", "fence":
        scene(t, servers, how)
    M.leave(t)
