# SPDX-License-Identifier: GPL-2.0-only
"""Finds trouble in a kernel log.

A report from "cut here" to "end trace", or from its title to a line of "=", counts as one.  It is
forgiven when any of its lines matches an allowed expression: one of kmsg.allow (the stock kernel's
own habits) or one a case names. Of warnings that two CPUs print at once each has such a line.
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
CUT = re.compile(r"\[ cut here \]")
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
    one line each, but from the head of a report to its end. What two CPUs warn of at once is one
    piece."""
    piece, heads, ends = [], 0, 0
    for line in text.splitlines():
        head = HEAD.search(line)
        both = piece and CUT.search(piece[0]) and CUT.search(line)
        if piece and (head and not both and len(piece) > 1 or len(piece) == LONGEST * heads):
            yield piece
            piece, heads, ends = [], 0, 0
        if not piece and not head:
            yield [line]
            continue
        heads += not piece or bool(both)
        piece.append(line)
        ends += bool(END.search(line))
        if ends == heads:
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
        pardon = [e.pattern for l in piece for e in forgive if e.search(l)]
        used.update(pardon)
        if len(pardon) < max(1, sum(bool(CUT.search(l)) for l in piece)):
            bad.append("\n".join(piece))
    return bad, used


def only_in(console, kernel_log):
    """Lines of the console that the kernel log lacks: the last words of a machine that died."""
    seen = set(kernel_log.splitlines())
    return "\n".join(l for l in console.splitlines() if l and l not in seen)
