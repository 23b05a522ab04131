# SPDX-License-Identifier: GPL-2.0-only
"""Finds trouble in a kernel log.

A report from "cut here" to "end trace", or from its title to a line of "=", counts as one.  It is
forgiven when any of its lines matches an allowed expression: one of kmsg.allow (the stock kernel's
own habits) or one a case names.
"""
import re
from pathlib import Path

TROUBLE = re.compile(
    r"BUG:|BUG at|WARNING:|KASAN|UBSAN|KCSAN|lockdep|possible (circular|recursive)"
    r"|INFO: task .* blocked|Oops|refcount_t|kmemleak|list_(add|del) corruption"
    r"|general protection|DEBUG_LOCKS|sleeping function|Call Trace"
    r"|Kernel panic|soft lockup|hard LOCKUP|rcu.*(stall|self-detected)|Bad page|double free"
    r"|use-after-free|invalid opcode|unable to handle|Object padding overwritten"
    r"|Poison overwritten|Redzone overwritten|INFO: trying to register|suspicious RCU"
    r"|held lock freed|BUG \S+ \((Tainted|Not tainted)|bad unlock balance|workqueue lockup")
HEAD = re.compile(r"\[ cut here \]|BUG: |BUG \S+ \((?:Tainted|Not tainted)|INFO: task .* blocked"
                  r"|Kernel panic|general protection|rcu: INFO: .*(?:stall|self-detected)"
                  r"|: vmalloc error: |: page allocation failure|kmem_cache_create\w*\(.*\) failed"
                  r"|Freezing .* failed after .* refusing to freeze")
END = re.compile(r"---\[ end (trace|Kernel panic)|={60}")
LONGEST = 60


def allowed():
    lines = (Path(__file__).parent / "kmsg.allow").read_text().splitlines()
    return [l for l in lines if l and not l.startswith("#")]


def reports(text):
    """The log in pieces, lists of lines:
    one line each, but from the head of a report to its end. Two CPUs that report at once begin with
    two heads; such reports are one piece."""
    piece, heads, ends = [], 0, 0
    for line in text.splitlines():
        head = bool(HEAD.search(line))
        if piece and (head and len(piece) > heads or len(piece) == LONGEST * heads):
            yield piece
            piece, heads, ends = [], 0, 0
        if not piece and not head:
            yield [line]
            continue
        piece.append(line)
        heads += head
        ends += bool(END.search(line))
        if ends >= heads:
            yield piece
            piece, heads, ends = [], 0, 0
    if piece:
        yield piece


def trouble(text, extra_allowed=()):
    """Reports (strings) that nobody forgave, and the allowed expressions that matched something."""
    forgive = [re.compile(e) for e in [*allowed(), *extra_allowed]]
    bad, used = [], set()
    for piece in reports(text):
        if not any(TROUBLE.search(l) for l in piece):
            continue
        pardon = [e.pattern for e in forgive if any(e.search(l) for l in piece)]
        used.update(pardon)
        if not pardon:
            bad.append("\n".join(piece))
    return bad, used


def only_in(console, kernel_log):
    """Lines of the console that the kernel log lacks: the last words of a machine that died."""
    seen = set(kernel_log.splitlines())
    return "\n".join(l for l in console.splitlines() if l and l not in seen)
