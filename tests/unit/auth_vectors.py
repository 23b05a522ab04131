#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Golden vectors of authentication (docs/protocol.md 8.6), computed by Python's hmac from what is
written there, and from nothing of our code.

    tests/unit/auth_vectors.py > tests/unit/auth_vectors.h
"""
import hashlib
import hmac
import struct


def mac(key, text):
    return hmac.new(key, text, hashlib.sha256).digest()


def run(start, n):
    return bytes((start + i) & 255 for i in range(n))


KEY, NEXT = run(0x10, 32), run(0x80, 32)
PATH, SESSION = run(0xa0, 16), run(0xc0, 16)
NONCE_C, NONCE_S = run(0x01, 32), run(0x41, 32)
NAME = b"db-1"
RECON = 7
CLIENT, SERVER = run(0xe0, 16), run(0x30, 16)

auth_req = struct.pack("<HHHHHH16s16sBB2s8s", 0, 0x1bba, 0x0100, 0, 0, RECON, PATH, SESSION, 0,
                       0x10, b"IX", b"")
auth_rsp = struct.pack("<HH52s", 0x1bba, 0x0100, b"")
hello = struct.pack("<H6s64s32s", 20, b"", NAME, NONCE_C)
t = auth_req[2:] + auth_rsp + NAME.ljust(64, b"\0") + NONCE_C + NONCE_S + CLIENT + SERVER
challenge = struct.pack("<H6s32s32s32s", 21, b"", NONCE_S, mac(KEY, b"ibtrs auth 1 server" + t),
                        mac(NEXT, b"ibtrs auth 1 server" + t))
proof = struct.pack("<HHI32s", 22, 0, 0, mac(KEY, b"ibtrs auth 1 client" + t))
proof_next = struct.pack("<HHI32s", 22, 1, 0, mac(NEXT, b"ibtrs auth 1 client" + t))
verdict = struct.pack("<HHI184s", 23, 129, 0, b"no")
ks = mac(KEY, b"ibtrs auth 1 session" + t)

conn_req = struct.pack("<HHHHHH16s16sBB2s", 0, 0x1bbd, 0x0200, 2, 5, RECON, PATH, SESSION, 1,
                       0x1f, b"IX")
conn_req += mac(ks, b"ibtrs auth 1 conn" + conn_req[2:])[:8]
conn_rsp = struct.pack("<HHHHIIIII", 0x1bbd, 0x0200, 0, 512, 126976, 4096, 0,
                       struct.unpack("<I", b"IBTX")[0], 0x1f)
conn_rsp += mac(ks, b"ibtrs auth 1 answer" + conn_req[2:] + conn_rsp)[:16] + bytes(12)

assert len(auth_req) == len(auth_rsp) == len(conn_req) == len(conn_rsp) == 56
print("/* SPDX-License-Identifier: GPL-2.0-only */")
print("/* Written by auth_vectors.py. */")
for name in ("KEY", "NEXT", "NONCE_C", "NONCE_S", "CLIENT", "SERVER", "auth_req", "auth_rsp",
             "hello", "challenge", "proof", "proof_next", "verdict", "ks", "conn_req", "conn_rsp"):
    data = globals()[name]
    print(f"static const u8 golden_{name.lower()}[{len(data)}] = {{")
    for i in range(0, len(data), 12):
        print("\t" + " ".join(f"0x{b:02x}," for b in data[i:i + 12]))
    print("};")
