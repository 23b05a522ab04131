#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The shape of the source: include direction, sizes, what may stand where.

    tests/lint/shape.py [RULE..]

Each rule is a function that yields "file:line: message"; a rule passes when it yields nothing.  A
rule's docstring is what is printed.  Files are those git knows or would add.  Warnings do not fail.
"""
import fnmatch, os, re, subprocess, sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
os.chdir(TOP)
FILES = [f for f in subprocess.run(["git", "ls-files", "-co", "--exclude-standard"],
                                   stdout=subprocess.PIPE, text=True,
                                   check=True).stdout.split("\n") if f and os.path.isfile(f)]
TEXT = {}
WARN_LINES, MAX_LINES, ESSAY_LINES = 500, 700, 150
DRIVERS = ("ibtrs/", "ibnbd/")
USER = ("ibtrs/user/", "ibnbd/user/")   # the libraries: no driver has them
PROGRAMS = ("ibnbd/user/serverd/", "ibnbd/user/ping/", "ibtrs/user/peer/")     # on them
# what libibtrs and libibnbd are made of, and what shows how to use them, may be used in programs of
# any licence
DUAL = (*USER, "ibtrs/proto/", "ibtrs/logic/", "ibnbd/proto/", "ibnbd/logic/", "docs/examples/", *(
    f"ibtrs/include/ibtrs/{h}.h" for h in ("pure", "addr", "key", "words", "dir", "version")))
# lines of C and files: who needs more says so here, and why in the commit; who needs less, likewise
BUDGET = {DRIVERS: (35593, 198), USER: (12897, 53), PROGRAMS: (6332, 20),
          ("tools/",): (20597, 104)}


def text(f):
    if f not in TEXT:
        raw = Path(f).read_bytes()
        TEXT[f] = None if b"\0" in raw else raw.decode("utf-8", "replace")
    return TEXT[f]


def c_files(*where):
    return [f for f in FILES if f.endswith((".c", ".h"))
            and f.startswith(where or DRIVERS + ("tools/", "compat/"))]


def without_comments(s):
    """Blank comments and strings, keep the lines."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, s, flags=re.S)


def grep(files, regex, message, code_only=True):
    for f in files:
        s = without_comments(text(f)) if code_only else text(f)
        for n, line in enumerate((s or "").split("\n"), 1):
            if m := re.search(regex, line):
                yield f"{f}:{n}: {message}: {m.group().strip()}"


# ---- include direction ---------------------------------------------------------------------------
# who may include whom; a room is the longest prefix
PURE = ["ibtrs/include/ibtrs/pure.h", "ibtrs/include/ibtrs/addr.h", "ibtrs/include/ibtrs/dir.h",
        "ibtrs/include/ibtrs/words.h", "ibtrs/include/ibtrs/key.h"]
MAY = {
    "ibtrs/include": ["ibtrs/include"],
    "ibtrs/proto": ["ibtrs/proto"] + PURE,
    "ibtrs/logic": ["ibtrs/logic", "ibtrs/proto"] + PURE,
    "ibtrs/core": ["ibtrs/core", "ibtrs/logic", "ibtrs/proto", "ibtrs/include"],
    "ibtrs/client": ["ibtrs/client", "ibtrs/core", "ibtrs/logic", "ibtrs/proto", "ibtrs/include"],
    "ibtrs/server": ["ibtrs/server", "ibtrs/core", "ibtrs/logic", "ibtrs/proto", "ibtrs/include"],
    "ibtrs/user": ["ibtrs/user", "ibtrs/logic", "ibtrs/proto"] + PURE,
    "ibtrs/user/peer": ["ibtrs/user/peer", "ibtrs/user/libibtrs.h", "tools/out"] + PURE,
    "ibnbd/proto": ["ibnbd/proto"] + PURE,
    "ibnbd/logic": ["ibnbd/logic", "ibnbd/proto"] + PURE,
    "ibnbd/user": ["ibnbd/user", "ibnbd/logic", "ibnbd/proto", "ibtrs/user/libibtrs.h"] + PURE,
    "ibnbd/user/serverd": ["ibnbd/user/serverd", "ibnbd/logic", "ibnbd/proto", "tools/conf",
                           "tools/host", "tools/out", "ibtrs/user/libibtrs.h",
                           "ibtrs/include/ibtrs/version.h"] + PURE,
    "ibnbd/user/ping": ["ibnbd/user/libibnbd.h", "ibnbd/proto", "tools/host/sysfs.h", "tools/out",
                        "ibtrs/user/libibtrs.h", "ibtrs/include/ibtrs/version.h"] + PURE,
    "ibnbd/client": ["ibnbd/client", "ibnbd/logic", "ibnbd/proto", "ibtrs/include"],
    "ibnbd/server": ["ibnbd/server", "ibnbd/logic", "ibnbd/proto", "ibtrs/include"],
    "tools": ["tools", "ibnbd/logic", "ibnbd/proto", "ibtrs/logic/addr.h",
              "ibtrs/include/ibtrs/version.h"] + PURE,
}
PURE_ROOMS = ("ibtrs/proto/", "ibtrs/logic/", "ibnbd/proto/", "ibnbd/logic/")


def included(f):
    """(line, as written, path in this tree or None) of each #include."""
    for n, line in enumerate(text(f).split("\n"), 1):
        if not (m := re.match(r'\s*#\s*include\s+(["<])([^">]+)[">]', line)):
            continue
        for base in ("", "ibtrs/include/", os.path.dirname(f) + "/"):
            path = os.path.normpath(base + m[2])
            if os.path.isfile(path):
                break
        else:
            path = None
        yield n, m[1] + m[2], path


def include_direction():
    """includes point the way the architecture says"""
    for f in c_files(*DRIVERS, "tools/"):
        room = max((r for r in MAY if f.startswith(r + "/")), key=len, default=None)
        if room is None:
            yield f"{f}:1: belongs to no known room"
            continue
        for n, written, path in included(f):
            if path and not any(path == a or path.startswith(a + "/") for a in MAY[room]):
                yield f"{f}:{n}: {room} may not include {path}"
            elif path and path.startswith("compat/"):
                yield f"{f}:{n}: compat is forced in, nobody includes it"
            elif written[0] == '"' and not path:
                yield f"{f}:{n}: no such file from the top of the tree: {written[1:]}"


def pure_code_is_pure():
    """pure code reaches the world through pure.h alone"""
    for f in c_files(*PURE_ROOMS):
        for n, written, path in included(f):
            if not path:
                yield f"{f}:{n}: pure code may not include {written[1:]}"


# ---- what may stand where ------------------------------------------------------------------------
def no_version_checks():
    """no kernel versions and no probe answers outside compat/"""
    yield from grep(c_files(*DRIVERS, "tools/"),
                    r"\b(LINUX_VERSION_CODE|KERNEL_VERSION|RHEL_\w+|HAVE_[A-Z]\w*)"
                    r"|linux/version\.h", "belongs in compat/")
    yield from grep(c_files("compat/"), r"\b(LINUX_VERSION_CODE|KERNEL_VERSION|RHEL_\w+)",
                    "probe for the fact")


def no_warn_no_bug():
    """no WARN and no BUG in the drivers"""
    yield from grep(c_files(*DRIVERS),
                    r"\b(WARN(_ON|_ONCE|_ON_ONCE|_RATELIMIT|_TAINT)?|BUG(_ON)?|panic)\s*\(",
                    "a peer or a lost packet may reach it")


def no_own_pr_fmt():
    """pr_fmt is compat.h's"""
    yield from grep(c_files(*DRIVERS), r"^\s*#\s*define\s+pr_fmt\b", "compat.h has defined it")


def one_word_of_intent():
    """nothing is left for later"""
    words = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X"))
    yield from grep([f for f in FILES if text(f) and not f.startswith("tests/fuzz/corpus")],
                    rf"\b({words})\b", "finish it or leave it out", code_only=False)


def licence_lines():
    """an SPDX line in every source file, with BSD in what the libraries are made of alone"""
    code = re.compile(r"\.(c|h|py|sh|awk|mk|map|conf|rules|service|target|path|socket)$"
                      r"|(^|/)(Kbuild|Makefile|run)$")
    for f in FILES:
        if not text(f) or f.startswith(("tests/fuzz/corpus", "debian/")) or not (
                code.search(f) or text(f).startswith("#!")):
            continue
        head = text(f).split("\n")[:3]
        dual = f.startswith(DUAL) and not f.startswith(PROGRAMS)
        licence = "GPL-2.0-only OR BSD-3-Clause" if dual else "GPL-2.0-only"
        if not any(re.search(rf"SPDX-License-Identifier: {licence}(?! OR)", l) for l in head):
            yield f"{f}:1: no SPDX-License-Identifier: {licence} in the first lines"


def copyrights():
    """each file has a stanza of debian/copyright, which says what its SPDX line says"""
    stanzas = []
    for stanza in text("debian/copyright").split("\n\n"):
        if m := re.match(r"Files: (.*(?:\n .*)*)\nCopyright: .*\nLicense: (.*)", stanza):
            stanzas.append((m[1].split(), m[2], set()))
    for f in FILES:
        spdx = re.search(r"SPDX-License-Identifier: ([\w.+-]+(?: OR [\w.+-]+)*)",
                         (text(f) or "")[:400])
        for globs, licence, seen in reversed(stanzas):
            if any(fnmatch.fnmatchcase(f, g) for g in globs):
                seen.add(f)
                if spdx and spdx[1].replace(" OR ", " or ") != licence:
                    yield f"{f}:1: {spdx[1]} here, {licence} in debian/copyright"
                break
        else:
            yield f"{f}:1: no stanza of debian/copyright has it"
    for globs, _, seen in stanzas:
        if not seen:
            yield f"debian/copyright:1: {' '.join(globs)} is no file"


def sizes():
    """files are short"""
    for f in (c_files(*DRIVERS, "tools/", "compat/", "tests/")
              + [f for f in FILES if f.endswith((".py", ".sh"))]):
        lines = text(f).count("\n")
        if lines > MAX_LINES:
            yield f"{f}:{lines}: {lines} lines, more than {MAX_LINES}: split it by noun"
        elif lines > WARN_LINES:
            print(f"warn  {f}: {lines} lines, more than {WARN_LINES}")


def budget():
    """drivers, library and command have no more lines and files than BUDGET says"""
    for where, (most, files) in BUDGET.items():
        found = [f for f in c_files(*where) if where == max(
            (w for w in BUDGET if f.startswith(w)),
            key=lambda w: max(len(p) for p in w if f.startswith(p)))]
        lines = sum(text(f).count("\n") for f in found)
        print(f"info  {' '.join(where)} {lines} lines in {len(found)} files")
        if lines > most or len(found) > files:
            yield (f"tests/lint/shape.py:1: {' '.join(where)} {lines} lines in {len(found)} files, "
                   f"more than the {most} in {files} of BUDGET")


def essays():
    """a long file opens with an essay"""
    for f in c_files():
        s = text(f)
        if s.count("\n") <= ESSAY_LINES:
            continue
        body = re.sub(r"^\s*(//[^\n]*|/\* SPDX[^\n]*)\n", "", s)
        essay = re.match(r"\s*(#(ifndef|define)[^\n]*\n\s*)*/\*.*?\*/", body, re.S)
        if not essay or (essay.group().count("\n") < 2 and f.startswith(DRIVERS)):
            if not f.startswith("compat/"):
                yield (f"{f}:1: {s.count(chr(10))} lines and no comment at the head "
                       "that says what it owns")


def ends_of_lines():
    """no white space at the end of a line, a newline at the end of a file"""
    for f in FILES:
        if (not text(f) or f == "COPYING" or f.startswith(("tests/fuzz/corpus", "tests/vm/guest/"))
                or f.endswith((".patch", ".out"))):
            continue
        for n, line in enumerate(text(f).split("\n"), 1):
            if line.endswith((" ", "\t")):
                yield f"{f}:{n}: white space at the end of the line"
        if not text(f).endswith("\n"):
            yield f"{f}:{text(f).count(chr(10)) + 1}: no newline at the end of the file"


def only_the_project():
    """the repository speaks of the project alone"""
    places = "|".join(("/work" + "/(main|shared)", "/tmp" + "/brief", r"deb\.debian" + r"\.org"))
    yield from grep([f for f in FILES if text(f) and not f.startswith("tests/fuzz/corpus")], places,
                    "a place of one machine", code_only=False)


def one_version():
    """dkms.conf and the packages carry the version of version.h"""
    version = re.search(r'#define IBNBD_VERSION "([^"]+)"',
                        text("ibtrs/include/ibtrs/version.h"))[1]
    for f, regex in (("dkms.conf", r'^PACKAGE_VERSION="([^"]+)"'),
                     ("debian/changelog", r"^\S+ \(([^-)]+)"),
                     ("rpm/ibnbd.spec", r"^Version:\s*(\S+)"),
                     ("rpm/kmod-ibnbd.spec", r"^Version:\s*(\S+)")):
        if f in FILES and ((m := re.search(regex, text(f), re.M)) is None or m[1] != version):
            yield f"{f}:1: version {m and m[1]}, version.h says {version}"


def long_cases_run():
    """a case that make check leaves out is run by another target"""
    recipes = dict(re.findall(r"^([a-z-]+):.*\n((?:\t.*\n)*)", text("Makefile"), re.M))
    recipes["check-boot"] += text("tests/kernels/boot.sh")
    if ("run.py -j2 --again --long" not in recipes["check-long"]
            or "--faults" not in recipes["check-faults"]):
        yield ("Makefile:1: check-long does not run the long cases, "
               "or check-faults not those with faults")
    for f in [f for f in FILES if f.startswith("tests/cases/")]:
        target = re.search(r'^target = "([a-z-]+)"', text(f), re.M)
        name = f[len("tests/cases/"):-3]
        if target and not re.search(rf"run\.py\b.*(?<![\w/-]){name}(?![\w/-])|--faults",
                                    recipes.get(target[1], "")):
            yield f"{f}:1: the target {target[1]} of the Makefile does not run it"



def code_is_narrow():
    """code and comments are at most 100 columns wide; what people look for with grep aside"""
    scripts = [f for f in FILES if f.endswith((".py", ".sh", ".mk", ".rules"))
               or os.path.basename(f) in ("Makefile", "Kbuild")]
    for f in c_files(*DRIVERS, "tools/", "compat/", "tests/") + scripts:
        if f.startswith("compat/expected/") or f.endswith("/trace.h"):
            continue
        for n, line in enumerate(text(f).split("\n"), 1):
            if len(line.expandtabs(8)) <= 100:
                continue
            if f.endswith((".c", ".h")) and (line.count('"') >= 2 or line.startswith("#")):
                continue        # a message, an include
            if os.path.basename(f) == "Makefile" and "\t## " in line:
                continue        # a line of make help
            if f.endswith((".sh", ".mk")) and re.match(r"\s*(sed -n )?'s/", line):
                continue        # one expression of sed
            yield f"{f}:{n}: {len(line.expandtabs(8))} columns"


def prose_is_narrow():
    """prose is at most 80 columns wide; tables, code and links aside"""
    for f in [f for f in FILES if f.endswith(".md")]:
        code = False
        for n, line in enumerate(text(f).split("\n"), 1):
            code ^= line.lstrip().startswith("```")
            if (len(line) > 80 and not code and not line.startswith(("|", "    ", "\t", "#"))
                    and "](" not in line):
                yield f"{f}:{n}: {len(line)} columns"


def readme_is_short():
    """README.md has at most 150 lines"""
    n = text("README.md").count("\n")
    if n > 150:
        yield f"README.md:{n}: {n} lines"


def cited_things_exist():
    """each file, law, decision, section, E- number, case and function that is cited exists"""
    design, proto = text("docs/design.md"), text("docs/protocol.md")
    laws = set(re.findall(r"^(?:\| |### Law )L(\d+)\b", design, re.M))
    decisions = set(re.findall(r"^(?:\| |### Decision )(\d+)\b", design, re.M))
    sections = set(re.findall(r"^###? (\d+(?:\.\d+)?)", proto, re.M))
    table = proto[proto.index("Where a peer's input is checked"):]
    checks = {n for cell in re.findall(r"^\| (E-[^|]*) \|", table, re.M)
              for n in re.findall(r"E-(\d+)", cell)}
    word = r"(?<![\w./%$*<-])((?:[a-z_0-9]+/)*[a-z_0-9-]+\.[ch])\b(?![\w(.])"
    for f in [f for f in FILES if f.endswith((".c", ".h", ".md", ".scd", ".py", ".patch"))
              and text(f)]:
        source = f.startswith(DRIVERS + ("tools/",)) and f.endswith((".c", ".h"))
        for n, line in enumerate(text(f).split("\n"), 1):
            at = f"{f}:{n}: there is no"
            if source and not line.lstrip().startswith("#include"):
                for name in re.findall(word, line):
                    if not (name in FILES or any(g.endswith("/" + name) for g in FILES)
                            if "/" in name
                            else os.path.isfile(os.path.join(os.path.dirname(f), name))):
                        yield f"{at} file {name}"
            for name in (re.findall(r"\b[Ll]aws? L(\d+)\b|\(L(\d+)\)", line)
                         if source or f.endswith(".md") else []):
                if "".join(name) not in laws:
                    yield f"{at} law L{''.join(name)}"
            for name in re.findall(r"\b[Dd]ecision (\d+)\b", line):
                if name not in decisions:
                    yield f"{at} decision {name}"
            if source:
                for names in re.findall(r"\b[Pp]rotocol (\d[\d., -]*(?: \+ [\d.]+)?)", line):
                    for name in set(re.findall(r"\d+(?:\.\d+)?", names)) - sections:
                        yield f"{at} section {name} in docs/protocol.md"
                for name in re.findall(r"(?<![\w.])[A-F]\.\d+\b|\bspec\b", line):
                    yield f"{f}:{n}: {name} is nothing that the repository has"
            for name in re.findall(r"\bE-(\d+)\b", line):
                if name not in checks:
                    yield f"{at} E-{name} in docs/protocol.md"
            for name in re.findall(r"tests/cases/([a-z-]+/[a-z-]+)\b(?!/)", line):
                if f"tests/cases/{name}.py" not in FILES:
                    yield f"{at} case {name}"
    code = "".join(text(f) for f in c_files(*DRIVERS))
    for name in set(re.findall(r"`([a-z_0-9]+)`", table)):
        if not re.search(rf"\b{name}\b", code):
            yield f"docs/protocol.md:1: there is no function {name}"


RULES = [include_direction, pure_code_is_pure, no_version_checks, no_warn_no_bug, no_own_pr_fmt,
         one_word_of_intent, licence_lines, copyrights, sizes, budget, essays, ends_of_lines,
         only_the_project, one_version, long_cases_run, code_is_narrow, prose_is_narrow,
         readme_is_short, cited_things_exist]


def main(wanted):
    passed = failed = 0
    for rule in RULES:
        if wanted and rule.__name__ not in wanted:
            continue
        found = list(rule())
        for line in found:
            print(line)
        print(f"{'FAIL' if found else 'ok':<6}{rule.__doc__}")
        failed, passed = failed + bool(found), passed + (not found)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


sys.exit(main(sys.argv[1:]))
