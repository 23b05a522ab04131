# SPDX-License-Identifier: GPL-2.0-only
"""[defaults] of maps.conf: what it gives, a mistake in it, and lines that are saved below it."""
from kit import *

PATHS = "path=10.0.0.1 path=10.0.0.2"
LINE = f"v1 vol/1 s1 {PATHS}\n"
SHOWN = "v1 vol/1 s1 path=ip:10.0.0.1 path=ip:10.0.0.2"


@test
def defaults_of_each_kind(w):
    """A number, a word and a name, each whole."""
    name = "k" * 63
    w.conf(f"[defaults] hold=5 policy=rr auth={name} nofail\n{LINE}")
    eq(w.run("maps", "show").out, f"{SHOWN} hold=5 policy=round-robin auth={name} nofail\n")
