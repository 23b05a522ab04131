# SPDX-License-Identifier: GPL-2.0-only
"""policy.conf: checked, in force before anything is opened, shown, doubted by the doctor."""
import os
from kit import *
from test_list import schema
from test_path import KEPT, findings, host

PARAMS = "module/ibnbd_server/parameters"
CTL = "class/ibnbd-server/ctl/policy"
SERVER = "dev_search_path = /srv/exports\n"
RULES = "db1 key:web1 rw exclusive\ndb* addr:10.0.1.0/24 session:rep* ro\n* deny\n"


def in_force(w):
    return (w.sys / CTL).read_text()


@test
def mistakes_of_a_policy(w):
    """Each with its place and its hint, in one pass; nothing is changed for it."""
    w.server()
    w.conf(SERVER, "server.conf")
    out = ""
    for text in ("db1 wr\n* deny\ndb2 addr:10.0.0.0/33 ro\n", "db1\n", "db1 rw all\n",
                 "db1 key:a key:b ro\n", "db1 deny exclusive\n", "a//b ro\n", "db1 ro\0\n",
                 "* deny\ndb1 rw\n", "db1 rw\n", "", "# only a comment\n", RULES,
                 "db1 ro\r\n* deny\r\n"):
        w.conf(text, "policy.conf")
        r = w.run("server", "check", want=None)
        out += f"## {text!r}\n{r.err}{r.out}\n"
        eq(r.rc, 2 if "error:" in r.err else 0)
        if r.rc:
            has(w.run("server", "start", want=2).err,
                "policy.conf has mistakes; nothing was changed")
            eq((w.log(), in_force(w)), ([], "# no rules\n"))
            has(findings(w)["policy.conf", "error"]["hint"],
                "ibnbd server check" if text else "# no rules")
    w.golden("policy-conf.txt", out)
    long = w.put("long.conf", "# a line\n" * 8000)
    has(w.run("server", "check", "--policy-file", long, want=2).err, "at most 65536 bytes")
    for n, want in (65536, 0), (65537, 2):      # the end of the last line does not count
        for end in "", "\n":
            long.write_text("* deny\n" + "#" * (n - 7) + end)
            w.run("server", "check", "--policy-file", long, want=want)


@test
def a_rule_that_can_match_nothing(w):
    """Refused where no name can be so, a question where one might."""
    w.server()
    w.conf("dev_search_path = /srv/db/%SESSNAME%\n", "server.conf")
    for name in ("./db1", "db1/", "../db1", "db1/."):
        w.conf(f"{name} deny\n* rw\n", "policy.conf")
        for verb in ("check", "start"):
            has(w.run("server", verb, want=2).err, f"policy.conf:1:1: error: \"{name}\": no name")
    for name, words in (("/srv/db/db1", "this is about /srv/db/srv/db/db1: names count from"),
                        ("srv/db/x", "if that is not meant: x"), ("'db1'", "quotation mark"),
                        ('"db1"', "quotation mark"), ("db1 session:'a*'", "quotation mark")):
        w.conf(f"{name} deny\n* rw\n", "policy.conf")
        has(w.run("server", "check").err, "policy.conf:1:1: warning: ", words)
    for name in ("/db1", "srv/dba", "srv/db", "...", "a'b"):
        w.conf(f"{name} deny\n* rw\n", "policy.conf")
        hasnt(w.run("server", "check").err, "policy.conf:1:")


UNSEEN = ((0xa0, "no-break space"), (0xad, "soft hyphen"), (0x200b, "zero-width space"),
          (0x200f, "direction mark"), (0x2060, "word joiner"), (0x3000, "ideographic space"),
          (0x85, "control character"), (0xfeff, "byte order mark"))


@test
def a_character_that_nobody_sees_voids_no_rule(w):
    """Each by its name and place, wherever it stands; nothing is put in force."""
    w.server()
    w.conf(SERVER, "server.conf")
    for code, name in UNSEEN:
        for text, line, column in (("db1{} deny\n* rw\n", 1, 4), ("* rw\n\n{}db1 deny\n", 3, 1),
                                   ("db1{}addr:10.0.0.1 deny\n* rw\n", 1, 4),
                                   ("db1 session:a{} deny\n* rw\n", 1, 14),
                                   ("db1 deny{}\n* rw\n", 1, 9), ("* rw\n{}# db1 deny\n", 2, 1)):
            w.conf(text.format(chr(code)), "policy.conf")
            for verb in ("check", "start"):
                has(w.run("server", verb, want=2).err, f"policy.conf:{line}:{column}: error: "
                    f"a character that is not seen: {name}, U+{code:04X}", "separate words")
            eq((w.log(), in_force(w)), ([], "# no rules\n"))
    # in a comment they void nothing, but for what looks like the end of a line
    w.conf("* rw # voil\u00e0\u00a0!\n", "policy.conf")
    has(w.run("server", "check").out, "0 errors")
    for end in ("\u2028", "\u0085"):
        w.conf(f"* rw # all{end}db1 deny\n", "policy.conf")
        has(w.run("server", "check", want=2).err, "policy.conf:1:11: error: a character that is")
    (w.root / "etc/ibnbd/policy.conf").write_bytes(b"db1\xa0deny\n* rw\n")
    has(w.run("server", "check", want=2).err, "policy.conf:1:4: error: byte 0xa0 is not UTF-8")


@test
def other_systems_write_a_policy(w):
    """The whole file has one mistake, which says what it is."""
    w.server()
    w.conf(SERVER, "server.conf")
    f = w.conf("", "policy.conf")
    for data, words in ((RULES.encode("utf-16"), "it is UTF-16"),
                        (RULES.encode("utf-32"), "it is UTF-32"),
                        (RULES.replace("\n", "\r").encode(), "carriage return alone")):
        f.write_bytes(data)
        r = w.run("server", "check", want=2)
        eq(r.err.count("error: "), 1, r.err)
        has(r.err, f"{f}: error: ", words, "> NEW")
        w.run("server", "start", want=2)
    for data, words in ((b"a\0 rw\0\n* deny\n", "1:2: error: 2 NUL bytes"),
                        (b"a\x07 rw\n* deny\n", "1:2: error: control character 0x07"),
                        (b"a rw\rb deny\n* deny\n", "1:5: error: a carriage return that is not")):
        f.write_bytes(data)
        r = w.run("server", "check", want=2)
        eq(r.err.count("error: "), 1, r.err)
        has(r.err, words)
    eq((w.log(), in_force(w)), ([], "# no rules\n"))


@test
def a_policy_is_in_force_before_anything_is_open(w):
    w.conf(SERVER.replace("exports", "new"), "server.conf")
    conf = w.conf(RULES, "policy.conf")
    eq(w.neutral(w.run("server", "start", "-n").out),
       f"modprobe ibnbd-server {KEPT}\n"
       f"{{ cat ROOT/etc/ibnbd/policy.conf && echo && echo end; }} > SYS/{CTL}\n"
       f"echo '/srv/new' > 'SYS/{PARAMS}/dev_search_path'\n")
    conf.write_text("# no rule\n")
    eq(w.run("server", "start", "-n").out,
       f'modprobe ibnbd-server {KEPT} dev_search_path="/srv/new"\n')
    conf.write_text(RULES)
    w.server()
    w.run("server", "start")
    eq([l.split()[0] for l in w.log() if "/" in l.split()[0]], [CTL, f"{PARAMS}/dev_search_path"],
       "the policy first")
    eq(in_force(w), RULES)
    n = len(w.log())
    w.run("server", "start")
    eq(len(w.log()), n, "started again changes nothing")
    conf.write_text("* deny\n")
    w.run("server", "start")
    eq(in_force(w), "* deny\n")
    conf.write_text("# no rule\n")
    w.run("server", "start")
    eq(in_force(w), "# no rule\n", "no rule")


@test
def a_policy_that_the_server_does_not_take(w):
    """Nothing is opened then."""
    w.server()
    w.conf(SERVER.replace("exports", "new"), "server.conf")
    w.conf(RULES, "policy.conf")
    (w.sys / "refuse").touch()
    has(w.run("server", "start", want=None).err, "does not take", "the policy before stays",
        "journalctl -k")
    eq((w.sys / PARAMS / "dev_search_path").read_text(), "/srv/exports\n")
    (w.sys / "refuse").unlink()
    (w.sys / CTL).unlink()
    has(w.run("server", "start", want=8).err, "knows no policy", "nothing was changed",
        "modprobe -r ibnbd-server")
    eq((w.sys / PARAMS / "dev_search_path").read_text(), "/srv/exports\n")
    w.conf("# none\n", "policy.conf")
    w.run("server", "start")
    eq((w.sys / PARAMS / "dev_search_path").read_text(), "/srv/new\n",
       "an older driver, and nothing to tell it")


@test
def a_policy_that_is_gone(w):
    """It does not mean that everything is allowed, nor does what a power failure leaves of it: the
    server keeps what it has, and does not start. Unless server.conf says so."""
    w.server()
    f = w.root / "etc/ibnbd/policy.conf"
    f.unlink()
    w.put(f"sys/{CTL}", "* deny")
    new = SERVER.replace("exports", "new")
    for conf in (new, new + "auth = required\n", new + "policy = required\n"):
        w.conf(conf, "server.conf")
        for text in None, "", "\n \n":
            if text is not None:
                f.write_text(text)
            what = "it is not there" if text is None else "it is empty"
            for verb in ("check", "start"):
                has(w.run("server", verb, want=2).err, f"{f}: error: {what}, and a policy without",
                    "wants a rule" if "policy" in conf else "echo '# no rules' >")
            has(findings(w)["policy.conf", "error"]["message"], f"{what}, and a policy without")
        f.unlink()
    has(findings(w)["policy", "warning"]["message"], "there is a policy in force, and no ")
    f.write_text("# none\n")
    has(w.run("server", "start", want=2).err, "it has no rule, and a policy without")
    eq((in_force(w), w.log()), ("* deny\n", []))
    w.conf(new + "policy = optional\n", "server.conf")
    f.unlink()
    has(w.run("server", "start", want=1).err,
        "policy.conf is not there, and the server has a policy, which stays", "# no rules")
    eq((in_force(w), w.log()), ("* deny\n", []))
    f.write_text("")
    w.run("server", "start")
    eq(in_force(w), "\n")
    w.conf(new, "server.conf")
    f.write_text("# no rules\n")
    w.run("server", "start")
    # the module is loaded anew, as at boot
    shutil.rmtree(w.sys / "class")
    shutil.rmtree(w.sys / "module")
    f.unlink()
    r = w.run("server", "start", "-n", want=2)
    hasnt(r.out, "modprobe")
    has(r.err, "nothing was changed")
    w.conf(new + "policy = optional\n", "server.conf")
    eq(w.run("server", "start", "-n").out,
       f'modprobe ibnbd-server {KEPT} dev_search_path="/srv/new"\n')
    w.conf("# policy.conf is for later\n", "server.conf")
    eq(w.run("server", "start", "-n").out, f"modprobe ibnbd-server {KEPT}\n")


@test
def keys_without_a_policy(w):
    """Whoever has one of them may write to everything: said, unless it is meant."""
    w.server()
    w.put(f"sys/{PARAMS}/auth", "off")
    auth = SERVER + "auth = required\n"
    for conf, policy, said in ((auth, "# none\n", True), (auth, "* deny\n", False),
                               (auth + "policy = optional\n", "", False)):
        w.conf(conf, "server.conf")
        w.conf(policy, "policy.conf")
        for verb in ("check", "start"):
            eq("any of the keys may map every export" in w.run("server", verb).err, said)
    w.conf(auth + "policy = yes\n", "server.conf")
    has(w.run("server", "check", want=2).err, "policy: optional or required is expected")


@test
def a_policy_that_others_may_write(w):
    """It allows nothing, and is not taken for one without rules."""
    w.server()
    w.conf(SERVER.replace("exports", "new"), "server.conf")
    conf = w.conf("# none\n", "policy.conf")
    w.put(f"sys/{CTL}", "db1 deny")
    for mode, words in ((0o666, "everybody can write to it"), (0o660, "its group can write to it")):
        conf.chmod(mode)
        for verb in ("check", "start"):
            has(w.run("server", verb, want=2).err, words)
        has(w.run("doctor", want=2).out, words, "nothing of it is used")
    conf.chmod(0o644)
    if not os.getuid():
        os.chown(conf, 12345, -1)
        has(w.run("server", "start", want=2).err, "belongs to user 12345")
        os.chown(conf, 0, -1)
    conf.unlink()
    conf.mkdir()
    has(w.run("server", "start", want=2).err, "it is a directory")
    conf.rmdir()
    conf.symlink_to("nowhere")
    has(w.run("server", "start", want=2).err, "the link leads nowhere")
    eq((in_force(w), w.log()), ("db1 deny\n", []))
    shutil.rmtree(w.sys / "module")
    shutil.rmtree(w.sys / "class")
    has(w.run("server", "start", "-n", want=2).err, "nothing was changed")


@test
def exports_say_who_may(w):
    w.server()
    for name in ("db1", "db2", "web", "team/db3", "team/more/db4"):
        w.put(f"root/srv/{name}")
    (w.root / "srv/linked").symlink_to("team")      # no name leads through it
    w.put(f"sys/{PARAMS}/dev_search_path", "/srv")
    w.put(f"sys/{CTL}", RULES.rstrip("\n"))
    out = w.run("server", "exports").out
    # with a directory for each session, rules are about what is in it
    w.put(f"sys/{PARAMS}/dev_search_path", "/srv/%SESSNAME%")
    out += w.run("server", "exports").out
    w.put(f"sys/{PARAMS}/dev_search_path", "/dev")
    out += w.run("server", "exports").out
    w.put(f"sys/{PARAMS}/dev_search_path", "/srv/%SESSNAME%")
    w.golden("policy-exports.txt", out)
    doc = w.json("server", "exports")
    schema(doc, "exports", "policy")
    eq(doc["policy"][1], {"line": 2, "export": "db*", "who": "addr:10.0.1.0/24 session:rep*",
                          "access": "ro", "exclusive": False})
    w.put(f"sys/{CTL}", "vm gid:fe80::/10 migration\nvm addr:fd00::1 key:k rw")
    eq([r["who"] for r in w.json("server", "exports")["policy"]],
       ["gid:fe80:0000:0000:0000:0000:0000:0000:0000/10", "key:k addr:fd00::1"])
    w.put(f"sys/{CTL}")
    has(w.run("server", "exports").out,
        "policy: none, every client that is let in may map and write all of it")
    (w.sys / CTL).unlink()
    w.conf(RULES, "policy.conf")
    has(w.run("server", "exports").out, "policy: 3 rules of")


@test
def the_doctor_says_when_anybody_may_write(w):
    host(w)
    w.server()
    for name in ("db1", "db2"):
        w.put(f"root/srv/exports/{name}")
    warns = lambda: findings(w).get(("policy", "warning"), {}).get("message", "")

    def policy(text):
        w.conf(text, "policy.conf")
        w.put(f"sys/{CTL}", text.rstrip("\n"))

    def told(*rows):
        for text, name in rows:
            policy(text)
            eq(f"may map {name} and write" in warns() if name else not warns(), True,
               f"{text}: {warns()}")

    policy("")
    has(warns(), "any host that reaches the port may map every export and write to it")
    w.put(f"sys/{PARAMS}/allow", "session:s*")
    has(warns(), "every export")
    told(("db1 key:k rw\n* deny\n", ""), ("db1 session:secret rw\n* deny\n", "db1"),
         ("db1 deny\n", "db2"), ("* ro\n", ""),
         ("db1 session:x deny\ndb1 rw\n* deny\n", "db1"),
         ("db2 addr:0.0.0.0/0 rw\n* deny\n", "db2"),
         ("db2 gid:::/0 session:x rw\n* deny\n", "db2"),
         ("db? addr:0.0.0.0/0 deny\n", "db1"),
         ("db? addr:0.0.0.0/0 deny\ndb* deny\n", ""),
         ("db* addr:10.0.0.0/8 rw\ndb* gid:fe80::1 rw\ndb? deny\n", ""))
    policy("")
    for allow in ("0.0.0.0/0", "10.0.0.0/8 ::/0", "0.0.0.0/0 session:s"):
        w.put(f"sys/{PARAMS}/allow", allow)
        has(warns(), "every export")
    # a directory is no export, what is in it is
    for name in ("team/vol1", "team/sub/vol2"):
        w.put(f"root/srv/exports/{name}")
    (w.root / "srv/exports/linked").symlink_to("team")
    told(("db? deny\nteam deny\nteam/sub/* deny\n", "team/vol1"),
         ("db? deny\nteam/vol1 deny\n", "what is below team/sub"),
         ("db? deny\nteam/* deny\n", ""))
    w.put(f"sys/{PARAMS}/dev_search_path", "/srv/exports/%SESSNAME%")
    (w.root / "srv/exports/linked").unlink()
    policy("vol1 rw\n* deny\n")
    has(warns(), "may map a name like vol1 and write")
    policy("vol1 key:k rw\nvol1 session:s deny\nvol1 rw\n* deny\n")
    has(warns(), "a name like vol1")
    policy("* deny\n")
    eq(warns(), "")
    policy("db1 deny\n")
    w.put(f"sys/{PARAMS}/dev_search_path", "/dev")
    has(warns(), "whatever no line is about")
    told(("db1 rw\n* deny\n", "a name like db1"),
         ("db? deny\nsd* rw\n* deny\n", "a name like sd*"),
         ("sd* key:a rw\n* deny\n", ""), ("sd* ro\n* deny\n", ""),
         ("sd* deny\nsd* rw\n* deny\n", ""),
         ("a? deny\na* rw\n* deny\n", "a name like a*"),
         ("a????????? deny\na* rw\n* deny\n", "a name like a*"),
         ("a" * 246 + "*b rw\n* deny\n", "a name like " + "a" * 246 + "*b"),
         ("? deny\n", "whatever no line is about"))
    w.put(f"sys/{PARAMS}/dev_search_path", "/srv/new/%SESSNAME%")
    policy("disk rw\n* deny\n")
    has(warns(), "may map a name like disk")
    w.put(f"sys/{PARAMS}/dev_search_path", "/srv/hidden")
    w.put("root/srv/hidden/.img")
    policy(".img rw\n* deny\n")
    has(warns(), "may map .img and write")
    w.put(f"sys/{PARAMS}/allow", "10.0.0.0/8")
    policy("")
    eq(warns(), "", "allow has addresses")
    w.conf("* deny\n", "policy.conf")
    has(warns(), "is not that of")
    has(findings(w)["policy", "warning"]["hint"], "systemctl reload ibnbd-server")
    w.put(f"sys/{PARAMS}/allow", "")
    w.put(f"sys/{PARAMS}/auth", "required")
    hasnt(warns(), "any host that reaches the port")
