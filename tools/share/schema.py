#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""schema.json beside this file, as far as it follows from tables: objects of the drivers from
host/state_fields.h, options of a mapping from ibnbd/logic/mapopt.h.

    tools/share/schema.py            writes them into schema.json (make -C tools schema)
    tools/share/schema.py --check    says what is different (tests/lint/claims.py)

The rest of schema.json is written by hand, and so are an enum and an object that hangs below
another one: those of the tables' objects are kept."""
import json, re, sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SCHEMA = TOP / "tools/share/schema.json"
OBJECTS = {"DEV": "device", "SESSION": "session", "PATH": "path", "EXPORT": "export",
           "OPEN": "open"}
KINDS = {"TEXT": "string", "NUM": "integer", "BYTES": "integer", "NS": "integer",
         "FLAG": "boolean"}
STRING = r'"(?:[^"\\]|\\.)*"'


def objects():
    """{name: {key: (type, description)}} of state_fields.h"""
    text = (TOP / "tools/host/state_fields.h").read_text().replace("\\\n", "")
    for table, body in re.findall(r"^#define STATE_(\w+)\(X\)(.*)$", text, re.M):
        rows = re.findall(rf"X\((\w+), {STRING}, (\w+), (?:{STRING}|NULL), \w+,\s*({STRING})\)",
                          body)
        if len(rows) != body.count("X("):
            sys.exit(f"state_fields.h: STATE_{table} has a row that is not understood")
        yield OBJECTS[table], {key: (KINDS[kind], json.loads(help)) for key, kind, help in rows}


def options():
    """{key: schema} of mapopt.h; those that `maps show` always has stand in schema.json."""
    text = (TOP / "ibnbd/logic/mapopt.h").read_text().replace("\\\n", "")
    row = rf"X\(\w+, \"(\w+)\", (?:{STRING}|NULL), (INT|WORD|KEY), [^\"]*?({STRING}|NULL), "
    for key, kind, words in re.findall(row, text):
        yield key, ({"type": "integer"} if kind == "INT" else
                    {"type": ["string", "null"]} if kind == "KEY" else
                    {"enum": [w.split(":")[0] for w in json.loads(words).split("|")]})


def made(old):
    new = json.loads(json.dumps(old))
    for name, rows in objects():
        was = old["definitions"][name]["properties"]
        fields = {key: {"type": [kind, "null"], "description": help,
                        **({"enum": was[key]["enum"]} if "enum" in was.get(key, {}) else {})}
                  for key, (kind, help) in rows.items()}
        below = {key: v for key, v in was.items() if v.get("type") == "array"}
        new["definitions"][name]["properties"] = {**fields, **below}
        new["definitions"][name]["required"] = list(rows)
    entry = new["definitions"]["map"]["properties"]
    for key, schema in options():
        entry[key] = {**schema, **{k: v for k, v in entry.get(key, {}).items()
                                   if k == "description"}}
    return json.dumps(new, indent=1, ensure_ascii=False) + "\n"


text = SCHEMA.read_text()
new = made(json.loads(text))
if sys.argv[1:] != ["--check"]:
    SCHEMA.write_text(new)
elif new != text:
    sys.exit("tools/share/schema.json is not what its tables say: make -C tools schema")
