# SPDX-License-Identifier: GPL-2.0-only
"""Keys of authentication (docs/protocol.md 8.6) on the machines of a case."""
import base64
import zlib


def text(hexed):
    """A key of known bytes, as a file has it."""
    raw = bytes.fromhex(hexed)
    return "ibnbd-key:1:" + base64.b64encode(raw + zlib.crc32(raw).to_bytes(4, "little")).decode()


def give(guest, **keys):
    """Files of that name and text, and their keys in the kernel."""
    write = "; ".join(f"echo '{key}' > /etc/ibnbd/keys/{name.replace('_', '-')}"
                      for name, key in keys.items())
    guest.sh("modprobe ibtrs-core; mkdir -p -m 700 /etc/ibnbd/keys; umask 077; "
             f"{write}; ibnbd key load > /dev/null")


def share(name, first, *others):
    """The first machine makes the key, the others are given it, too."""
    key = first.sh(f"modprobe ibtrs-core; ibnbd key generate {name} > /dev/null; "
                   f"ibnbd key load > /dev/null; cat /etc/ibnbd/keys/{name}")
    for guest in others:
        give(guest, **{name: key})
    return key
