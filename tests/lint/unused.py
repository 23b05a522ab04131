#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Functions of the drivers and the command that nobody calls, or only a test: they go, with it.

A function counts as used when its name stands anywhere but in its definition, its declarations and
its EXPORT_SYMBOL, or when a macro puts it together (NAME_show and NAME_store of an attribute).
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


def main():
    files = subprocess.run(["git", "-C", TOP, "ls-files", "ibtrs/*.[ch]", "ibnbd/*.[ch]",
                            "tools/*.[ch]", "compat/*.[ch]"], check=True, capture_output=True,
                           text=True).stdout.split()
    texts = {f: code(TOP / f) for f in files}
    whole = "\n".join(texts.values())
    words, rest = {}, re.sub(r"\bEXPORT_SYMBOL(?:_GPL)?\(\w+\)", "", whole)
    for w in re.findall(r"\b\w+\b", rest):
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
    return 1 if bad or not heads else 0


if __name__ == "__main__":
    sys.exit(main())
