# SPDX-License-Identifier: GPL-2.0-only
"""Messages of the block protocol as lines for `ibtrs-peer say` (docs/protocol.md 9)."""
import struct

HELLO = "call " + struct.pack("<HHB31x", 0, 0, 2).hex() + " 36"
CLOSE = "call " + struct.pack("<HH", 5, 0).hex() + "{4} 0"      # what the last answer opened


def opening(name, write):
    return "call " + struct.pack("<HHBB255s3x", 2, 0, write, write, name.encode()).hex() + " 56"


def storm(prefix, nr, write):
    """PREFIX0, PREFIX1 .. are opened and closed."""
    return "".join(f"{opening(f'{prefix}{i}', write)}\n{CLOSE}\n" for i in range(nr))
