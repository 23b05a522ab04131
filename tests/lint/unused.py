#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Functions of the drivers and the command that nobody calls, or only a test: they go, with it;
and shims of compat/ that only tests/kernels/wrappers uses.

A function counts as used when its name stands anywhere but in its definition, its declarations and
its EXPORT_SYMBOL, or when a macro puts it together (NAME_show and NAME_store of an attribute,
NAME_at of __free).
"""
import re, subprocess, sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
ARGS = r"\((?:[^(){};]|\([^()]*\))*\)"
HEAD = r"^[a-z_][\w \t*]*?[ \t*]"
# for kernels that have none: what calls them is the kernel's own code, or a probe of compat
OURS_FOR = re.compile(r"^compat/")
# what another language's runtime calls
MAIN = {"main"}


def code(path):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S)


def shims():
    """Names that compat's headers define, and neither a driver, nor a module for tests, nor another
    shim uses."""
    headers = {f: code(TOP / f) for f in ("compat/core.h", "compat/bdev.h", "compat/mq.h",
                                          "compat/rdma.h")}
    within = "\n".join((*headers.values(), code(TOP / "compat/blk.c")))
    users = subprocess.run(["git", "-C", TOP, "ls-files", "ibtrs/*.[ch]", "ibnbd/*.[ch]",
                            "tests/*.[ch]", ":!tests/kernels/wrappers"], check=True,
                           capture_output=True, text=True).stdout.split()
    used = set(re.findall(r"\b\w+\b", "\n".join(code(TOP / f) for f in users)))
    for f, text in headers.items():
        for name in sorted({next(filter(None, m)) for m in re.findall(
                rf"^\s*#define (\w+)|^static inline [^\n(]*?(\w+)\(|^typedef [^\n]*?(\w+);", text,
                re.M)}):
            # its heads, and what it asks whether it is there
            own = (rf"#(?:define|ifndef|ifdef|undef) {name}\b|^static inline [^\n(]*?\b{name}\("
                   rf"|^typedef [^\n]*?\b{name};")
            if name not in used and not name.endswith("_H") and \
                    not re.search(rf"\b{name}\b", re.sub(own, "", within, flags=re.M)):
                yield f"{f}: {name} is used by no driver"


def main():
    files = subprocess.run(["git", "-C", TOP, "ls-files", "ibtrs/*.[ch]", "ibnbd/*.[ch]",
                            "tools/*.[ch]", "compat/*.[ch]"], check=True, capture_output=True,
                           text=True).stdout.split()
    texts = {f: code(TOP / f) for f in files}
    whole = "\n".join(texts.values())
    words, rest = {}, re.sub(r"\bEXPORT_SYMBOL(?:_GPL)?\(\w+\)", "", whole)
    freed = [f"{w}_at" for w in re.findall(r"__free\((\w+)\)", rest)]
    for w in re.findall(r"\b\w+\b", rest) + freed:
        words[w] = words.get(w, 0) + 1
    heads = {}
    for m in re.finditer(rf"{HEAD}(\w+){ARGS}[^;{{}}=]*[;{{]", rest, re.M):
        heads[m[1]] = heads.get(m[1], 0) + 1
    bad = 0
    for f, text in texts.items():
        for m in re.finditer(rf"{HEAD}(\w+){ARGS}\s*\{{", text, re.M):
            name = m[1]
            stem = re.sub(r"_(show|store)$", "", name)
            if words[name] > heads.get(name, 0) or name in MAIN or OURS_FOR.match(f) or (
                    stem != name and re.search(rf"ATTR\w*\({stem}\b", whole)):
                continue
            print(f"{f}: {name}() is called by nobody")
            bad += 1
    for b in shims():
        print(b)
        bad += 1
    return 1 if bad or not heads else 0


if __name__ == "__main__":
    sys.exit(main())
