#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What two documents say of the same thing must be the same: kernels, fabrics, limits, defaults.

The source is right (dkms.conf, the modules' parameters, constants); README, docs and packages are
compared with it, and the keys of a mapping by tests/unit/test_ibnbd_mapopt.c.  A number in a
sentence of README is looked for by that sentence, and so is what SENTENCES has.  What the walks of
docs/design.md and the tasks of CONTRIBUTING.md name has to be there.  Last line: N passed, N
failed.
"""
import os, re, subprocess, sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
os.chdir(TOP)
FILES = [f for f in subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                                   stdout=subprocess.PIPE, text=True,
                                   check=True).stdout.split("\n") if f and os.path.isfile(f)]
PROSE = [f for f in FILES
         if re.match(r"README\.md|docs/|debian/control$|rpm/.*\.spec$|dkms\.conf"
                     r"|tools/.*\.(c|h|json|conf)$"
                     r"|ib(nbd|trs)/.*\.[ch]$|systemd/|compat/compat\.h", f)]


def read(f):
    return Path(f).read_text(encoding="utf-8", errors="replace")


def define(f, name):
    return re.search(rf"^#define\s+{name}\s+\(?(\d+)", read(f), re.M)[1]


def fabrics():
    """iWARP is not supported: whoever names it says so."""
    for f in PROSE:
        for n, line in enumerate(read(f).split("\n"), 1):
            if re.search(r"iwarp", line, re.I) and not re.search(r"\b(no|not)\s+iwarp", line, re.I):
                yield f"{f}:{n}: promises iWARP: {line.strip()[:80]}"
    if not re.search(r"\b[Nn]ot iWARP", read("README.md")):
        yield "README.md does not say that iWARP is not supported"


def kernels():
    """The oldest and the newest are those of dkms.conf, wherever both are named."""
    conf = read("dkms.conf")
    oldest = re.search(r'KERNEL_MIN="([\d.]+)"', conf)[1]
    newest = re.search(r'KERNEL_MAX="(\d+\.\d+)', conf)[1]
    named = 0
    for f in PROSE:
        text = re.sub(r"\s+", " ", read(f))
        for a, b in re.findall(r"\b(\d+\.\d+) (?:to|\.\.\.?) (?:newest Debian )?\(?(\d+\.\d+)\b",
                               text):
            if a == oldest or b == newest:
                named += 1
                if (a, b) != (oldest, newest) and b != "5.14":
                    yield f"{f}: kernels {a} to {b}; dkms.conf has {oldest} to {newest}"
        for m in re.finditer(rf"\bfrom {re.escape(oldest)} on\b", text):
            words = re.split(r"[.|]", text[:m.start()])[-1]
            yield f"{f}: names no newest kernel, dkms.conf has {newest}:{words}{m[0]}"
    if named < 3:
        yield f"{named} documents say which kernels are supported"
    rows = re.findall(r"^(\d+\.\d+)-\S+ .*newest", read("tests/kernels/kernels.conf"), re.M)
    if rows != [newest]:
        yield f"tests/kernels/kernels.conf: the newest is {rows}, dkms.conf has {newest}"


def parameters():
    """docs/sysfs.md has each parameter of the modules with its mode,
    and its default as the module says it."""
    section = read("docs/sysfs.md").split("\n## Module parameters")[1]
    table = {}
    for module, names, defaults, modes in re.findall(
            r"^\| (ib\w+-\w+) \| (.*?) \| (.*?) \| (.*?) \|", section, re.M):
        for name, default in zip(re.findall(r"\w+", names), defaults.split(", ")):
            table[module, name] = default, modes
    said = set()
    for f in FILES:
        where = re.match(r"(ibtrs|ibnbd)/(client|server)/.*\.c$", f)
        for name, rest in re.findall(r"^(?:module_param(?:_named|_cb)?|IBTRS_ADMIN_PARAM)"
                                     r"\(\s*(\w+),\s+([^;]*)\);",
                                     read(f), re.M) if where else ():
            at = f"{where[1]}-{where[2]}", name
            said.add(at)
            text = re.search(rf"MODULE_PARM_DESC\(\s*{name},\s*\"(.*)\"\)", read(f))[1]
            default = re.search(r"\((?:default: )?(\w+)(?::[^)]*)?\)$", text)
            if at not in table:
                yield f"docs/sysfs.md: no parameter {name} of {at[0]}"
            elif not rest.endswith(table[at][1]):
                yield (f"docs/sysfs.md: {name} of {at[0]} has mode {table[at][1]}, "
                       f"{f} has {rest[-4:]}")
            elif default and default[1] != table[at][0]:
                yield (f"docs/sysfs.md: {name} of {at[0]} is {table[at][0]} by default, "
                       f"{f} says {default[1]}")
    for at in set(table) - said:
        yield f"docs/sysfs.md: {at[0]} has no parameter {at[1]}"
    if len(said) < 20:
        yield f"only {len(said)} parameters"


def limits():
    """Numbers in sentences of README."""
    readme = re.sub(r"\s+", " ", read("README.md"))
    hold = re.search(r'X\(hold, "hold", "\w+", INT, -?\d+, \d+, (\d+),',
                     read("ibnbd/logic/mapopt.h"))[1]
    depth = re.search(r"\.queue_depth\s*= (\d+),",
                      "".join(read(f) for f in FILES if f.startswith("ibtrs/server/")))[1]
    for number, sentence in ((hold, r"for (\d+)\s+seconds by default"),
                             (define("ibtrs/include/ibtrs/addr.h", "IBTRS_MAX_PATHS"),
                              r"(\d+) paths per session"),
                             (define("ibnbd/logic/mapopt.h", "IBNBD_MAP_PATHS"),
                              r"(\d+) of them at map time"),
                             (depth, r"queue depth (\d+)")):
        said = re.search(sentence, readme)
        if not said:
            yield f"README.md does not say: {sentence}"
        elif said[1] != number:
            yield f'README.md: "{said[0]}"; the source has {number}'


# What is said of one thing in several places: where it begins, and what must stand in its sentence.
SENTENCES = (
    ("hold= bounds I/O that path after path loses, too: docs/sysfs.md",
     r"\bh[eo]ld\b[^.;|]{0,60}?(?:without a path|no path is up)(?=([^.;|]*))", r"^, or "),
    ("the session that \"-\" makes: ibnbd-maps.conf(5)",
     r"(?:\\\"-\\\"|\*-\*) (?:as SESSION )?makes one(?=([^.]*))", r"(?=.*full name)(?=.*machine)"
     r"(?=.*address)"))


def sentences():
    """What several documents say of one thing."""
    for what, begin, must in SENTENCES:
        found = 0
        for f in PROSE:
            if re.match(r"ib(trs|nbd)/.*\.c$", f):  # what the code does, not what an option means
                continue
            # strings of C that stand one behind the other are one
            text = re.sub(r"\s+", " ", re.sub(r"\"\s*\n\s*\"", "", read(f)))
            for m in re.finditer(begin, text):
                found += 1
                if not re.search(must, m[1]):
                    yield f"{f}: {m[0]}{m[1][:80]}: another word for {what}"
        if found < 2:
            yield f"{found} documents say: {what}"


def troubleshooting():
    """docs/troubleshooting.md has a heading for each check of `ibnbd doctor`
    that can find something."""
    headings = set(re.findall(r"[\w.-]+", " ".join(
        re.findall(r"^### (.*)$", read("docs/troubleshooting.md"), re.M))))
    checks = set()
    for f in FILES:
        if re.match(r"tools/cmd/(cmd_)?doctor.*\.c$", f):
            checks |= set(re.findall(r'doctor_find\(\s*d,\s*"([\w.-]+)",(?!\s*DOCTOR_OK)', read(f)))
            checks |= set(re.findall(r'doctor_mistakes\(d,\s*"([\w.-]+)"', read(f)))
    for c in sorted(checks - headings):
        yield f"docs/troubleshooting.md: no heading {c}, which ibnbd doctor may find"
    if len(checks) < 15:
        yield f"only {len(checks)} checks of doctor"


def schema():
    """tools/share/schema.json has what host/state_fields.h and logic/mapopt.h say."""
    p = subprocess.run(["tools/share/schema.py", "--check"], stderr=subprocess.PIPE, text=True)
    if p.returncode:
        yield p.stderr.strip()


DEFINED = r"^[a-z_][\w \t*]*?[ \t*]{}\((?:[^();{{}}]|\([^()]*\))*\)\s*\{{"


def cited(text):
    """(files, functions, files that do not exist) in the backticks of a text."""
    files, functions, missing = [], [], []
    for word in re.findall(r"`([^`\n]+)`", text):
        if re.fullmatch(r"\w+\(\)", word):
            functions.append(word[:-2])
        elif re.fullmatch(r"[a-z_0-9./@-]+\.(?:c|h|py|json|rules|service)", word):
            found = [f for f in FILES if f == word or f.endswith("/" + word)]
            files += found
            missing += [] if found else [word]
    return files, functions, missing


def walks():
    """The walks of docs/design.md name files and functions that exist, in the step where they are,
    and have at most seven files to open; so do the tasks of CONTRIBUTING.md, in any file."""
    section = re.search(r"^## 10 .*?(?=^## 11 )", read("docs/design.md"), re.M | re.S)[0]
    contributing = read("CONTRIBUTING.md")
    steps = [("docs/design.md", s) for s in re.split(r"^(?=\d+\. |### )", section, flags=re.M)]
    for f, step in steps + [("CONTRIBUTING.md", contributing)]:
        files, functions, missing = cited(step)
        if f == "CONTRIBUTING.md":
            files = [g for g in FILES if g.endswith((".c", ".h"))]
        for name in missing:
            yield f"{f}: there is no file {name}"
        for name in functions:
            if not any(re.search(DEFINED.format(name), read(g), re.M) for g in files):
                yield f"{f}: {name}() is in no file that its step names: {step.split(chr(10))[0]}"
    opened = re.findall(r"^Open (.*?)\.(?= [A-Z]|\n)", section, re.M | re.S)
    for names in opened:
        if len(cited(names)[0]) > 7:
            yield f"docs/design.md: a walk with {len(cited(names)[0])} files to open"
    if len(opened) != 2 or len(steps) < 20:
        yield "docs/design.md, section 10: two walks with files to open were expected"


def maintainers():
    """The packages name one maintainer, and SECURITY.md no mailbox that there is not."""
    mail = r"[\w.+-]+@[\w-]+\.[\w.-]*\w"
    named = {m for f in ("debian/control", "debian/changelog", "rpm/ibnbd.spec")
             for m in re.findall(rf"<({mail})>", read(f))}
    if len(named) != 1:
        yield f"the packages name {sorted(named)} as maintainers"
    for m in re.findall(mail, read("SECURITY.md")):
        if m.endswith(".example") or m not in named:
            yield f"SECURITY.md: {m} reaches nobody, or not the maintainer of the packages"


failed = passed = 0
for check in (fabrics, kernels, parameters, limits, sentences, troubleshooting, schema, walks,
              maintainers):
    bad = list(check())
    for b in bad:
        print(b)
    print(f"{'FAIL' if bad else 'ok  '}  claims: {check.__name__}")
    passed, failed = passed + (not bad), failed + bool(bad)
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
