#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Calls between the files of a driver: who calls whom, and which files form a circle.

    tests/lint/circles.py            circles that docs/design.md does not list, calls up its tables
                                     of rooms, files without a row there, and essays that say
                                     "Called by: FILE.c" of a file which calls nothing
    tests/lint/circles.py --show     each file with what it calls, lowest first

A room is FILE.c with FILE.h.  An edge goes from the room that calls a function to the room that
defines it.  Taking a function's address is no call, nor is an inline function of a header: it reads
or writes the object of that room.  A circle is a set of rooms that all reach each other.
"""
import re, sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FOLDERS = ("ibtrs/core", "ibtrs/client", "ibtrs/server", "ibnbd/client", "ibnbd/server")
PURE = ("ibtrs/proto", "ibtrs/logic", "ibnbd/logic")
TOOLS = ("tools/cli", "tools/cmd", "tools/conf", "tools/host", "tools/out")
# where the rooms of a driver are; those of the others say their folder in the head of the table
SECTIONS = dict(zip(FOLDERS, ("5", "6.1", "7.1", "8.1", "9.1")))
# * `ibtrs/client`: `a`, `b`: why
LISTED = re.compile(r"^\* `(\S+)`: (`[^`]+`(?:, `[^`]+`)*): \S", re.M)


def code(path):
    """The text without comments, strings and preprocessor lines."""
    s = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", path.read_text(), flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", s, flags=re.M)


def defined(text):
    """Functions with a body at the left margin that other files can see."""
    heads = re.finditer(r"^(?P<head>[a-z_][\w \t*]*?[ \t*])(?P<name>\w+)"
                        r"\((?:[^();{}]|\([^()]*\))*\)\s*\{", text, re.M)
    return {m["name"] for m in heads if not re.search(r"\bstatic\b", m["head"])}


def graph(folder):
    rooms = {}
    for f in sorted((TOP / folder).glob("*.[ch]")):
        rooms[f.stem] = rooms.get(f.stem, "") + code(f)
    home = {name: room for room, text in rooms.items() for name in defined(text)}
    calls = {}
    for room, text in rooms.items():
        calls[room] = {}
        for name in set(re.findall(r"\b(\w+)\s*\(", text)) & home.keys():
            if home[name] != room:
                calls[room].setdefault(home[name], set()).add(name)
    return calls


def circles(calls):
    """Strongly connected components of more than one room (Tarjan), lowest first."""
    index, low, stack, found, order = {}, {}, [], [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(calls[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = set()
            while v not in part:
                part.add(stack.pop())
            order.append(sorted(part))
            if len(part) > 1:
                found.append(frozenset(part))

    for v in sorted(calls):
        if v not in index:
            visit(v)
    return found, order


def listed():
    """{(folder, rooms)} of docs/design.md."""
    text = (TOP / "docs/design.md").read_text()
    return {(m[1], frozenset(re.findall(r"`([^`]+)`", m[2]))) for m in LISTED.finditer(text)}


def rooms(text, folder):
    """The names in the first column of the folder's table."""
    if folder in SECTIONS:
        head = re.search(rf"^(#+) {re.escape(SECTIONS[folder])} .*$", text, re.M)
        text = re.split(rf"^#{{1,{len(head[1])}}} ", text[head.end():], maxsplit=1, flags=re.M)[0]
        found = re.search(r"^\| room \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M)
    else:
        found = re.search(rf"^\| `{folder}` \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.M)
    return re.findall(r"`(\w+)`", " ".join(re.findall(r"^\|([^|]*)\|", found[1], re.M))) \
        if found else []


def upward(folder, calls, known):
    """Calls from a room to one that stands before it in the table, other than in a listed circle.
    Rooms of one row are read from left to right."""
    order = rooms((TOP / "docs/design.md").read_text(), folder)
    for caller in order:
        for callee in sorted(set(calls.get(caller, ())) & set(order)):
            if order.index(callee) < order.index(caller) and \
                    not any(f == folder and {caller, callee} <= c for f, c in known):
                yield (f"docs/design.md: {folder}: {caller} calls {callee}, whose row stands above "
                       f"({' '.join(sorted(calls[caller][callee]))})")


def mistaken(folder, calls):
    """Files of this folder that an essay names as callers, and that call nothing of its room."""
    for f in sorted((TOP / folder).glob("*.c")):
        essay = re.match(r"(?://[^\n]*\n)?/\*(.*?)\*/", f.read_text(), re.S)
        text = re.sub(r"\n \*[ \t]?", " ", essay[1]) if essay else ""
        said = re.search(r"\bCalled by:? (.*?)(?:\.(?= |$)|;)", re.sub(r"\([^)]*\)", "", text))
        for caller in re.findall(r"(?<![\w/])(\w+)\.c\b", said[1]) if said else ():
            if caller in calls and f.stem not in calls[caller]:
                yield f"{folder}/{f.name}: not called by {caller}.c, as its essay says"


def homeless():
    """What files and tables of rooms say differently."""
    text = (TOP / "docs/design.md").read_text()
    for folder in FOLDERS + PURE + TOOLS:
        files, rows = {f.stem for f in (TOP / folder).glob("*.c")
                       if not f.name.endswith(".mod.c")}, rooms(text, folder)
        # a command is said in its own table, tools/cli/commands.h
        for name in sorted(n for n in files - set(rows)
                           if folder != "tools/cmd" or not n.startswith("cmd_")):
            yield f"{folder}/{name}.c has no row in docs/design.md's table of rooms"
        for name in sorted(set(rows) - files) + sorted({r for r in rows if rows.count(r) > 1}):
            yield f"docs/design.md: {folder} has no file {name}, or {name} has two rows"


def main():
    if "--show" in sys.argv:
        for folder in FOLDERS:
            calls = graph(folder)
            found, order = circles(calls)
            print(f"{folder}: circles of {', '.join(str(len(c)) for c in found) or 'none'}")
            for part in order:
                for room in part:
                    to = ", ".join(f"{r} ({' '.join(sorted(n))})"
                                   for r, n in sorted(calls[room].items()))
                    print(f"  {'o' if len(part) > 1 else ' '} {room:14} -> {to}")
        return 0
    known, bad = listed(), list(homeless())
    for folder in FOLDERS:
        calls = graph(folder)
        bad += [*upward(folder, calls, known), *mistaken(folder, calls)]
        found = {(folder, c) for c in circles(calls)[0]}
        for _, c in sorted(found - known, key=str):
            bad.append(f"{folder}: {', '.join(sorted(c))} call each other in a circle "
                       "(circles.py --show names the calls)")
        for f, c in sorted(known - found, key=str):
            if f == folder:
                bad.append(f"docs/design.md lists a circle of {folder} that is none: "
                           f"{', '.join(sorted(c))}")
    for b in bad:
        print(b)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
