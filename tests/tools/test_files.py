# SPDX-License-Identifier: GPL-2.0-only
"""Files that people write: bytes that no text has, rights, and what stands in the place of a file.
One reader has them all."""
import os, stat, subprocess, time
from kit import *

LINE = "vol1 vol/1 store1 path=10.0.1.7 path=10.0.2.7\n"
SERVER = "dev_search_path = /srv/exports\nallow = 10.0.0.0/24\n"
ROOT = os.geteuid() == 0
SOMEBODY = 65534


def conf(w, data, name="maps.conf"):
    f = w.conf("", name)
    f.write_bytes(data if isinstance(data, bytes) else data.encode())
    return f


def server(w, *args, **how):
    return w.run("server", *args, "--no-modprobe" if args[0] == "start" else "--quiet", **how)


# ---- NUL, limits ----

@test
def a_nul_hides_nothing(w):
    """Behind it stood the access list."""
    w.server()
    f = conf(w, SERVER.replace("allow", "\0\0\0allow"), "server.conf")
    for args in (("check",), ("start",)):
        has(server(w, *args, want=2).err, f"{f}:2:1: error: 3 NUL bytes", "not written to its end")
    eq((w.sys / "module/ibnbd_server/parameters/allow").read_text(), "\n", "nothing was changed")
    has(w.run("doctor", want=2).out, "1 mistake in server.conf")
    hasnt(server(w, "check", want=2).err, "there is no allow")
    for text in (SERVER + "# \0", SERVER + "\0" * 4096, "\0" + SERVER,
                 SERVER.replace("\n", "\0", 1)):
        conf(w, text, "server.conf")
        eq(server(w, "check", want=2).err.count("error: "), 1)


@test
def a_nul_costs_its_line(w):
    conf(w, f"a\0b c d path=10.0.0.1\n{LINE}{chr(0) * 1000}\n")
    r = w.run("maps", "check", want=2)
    has(r.err, "maps.conf:1:2: error: a NUL byte", "maps.conf:3:1: error: 1000 NUL bytes")
    has(r.out, "1 mapping, 2 errors")


@test
def what_is_no_configuration_says_so_in_few_words(w):
    for data in (b"\0" * 100000, bytes(range(256)) * 400, b"x\n" * 5000, os.urandom(65536)):
        conf(w, data)
        r = w.run("maps", "check", want=2)
        eq(0 < r.err.count("error: ") <= 101, True, r.err.count("error: "))
    has(r.err, "and more mistakes in this file, which are not told")
    for code in ("utf-16", "utf-16-be", "utf-32", "utf-32-be"):
        conf(w, ("\ufeff" * code.endswith("-be") + LINE).encode(code))
        r = w.run("maps", "check", want=2)
        what = code[:6].upper()
        has(r.err, f"maps.conf: error: it is {what}, and", f"iconv -f {what} -t UTF-8")
        eq(r.err.count("error: "), 1, r.err)


@test
def a_file_that_is_too_long_is_refused_whole(w):
    """Its beginning alone is another configuration."""
    long = "#" * 79 + "\n"
    f = conf(w, LINE + long * ((16 << 20) // 80 + 2))
    r = w.run("maps", "check", want=2)
    has(r.err, f"{f}: error: it is longer than 16 MiB, and nothing of it is used")
    has(r.out, "0 mappings")
    size = f.stat().st_size
    has(w.run("map", "d", "s", "10.0.0.1", "--name", "d", "--save-only", want=2).err,
        "not changed while a file of it is not used")
    w.run("maps", "remove", "vol1", want=2)
    eq(f.stat().st_size, size)
    w.server()
    conf(w, SERVER + long * ((16 << 20) // 80 + 2) + "allow = 10.0.0.0/8\n", "server.conf")
    has(server(w, "start", want=2).err, "longer than 16 MiB")
    conf(w, SERVER.replace("10.0.0.0/24", "10.9.0.0/24") + long * ((2 << 20) // 80), "server.conf")
    server(w, "start")
    eq((w.sys / "module/ibnbd_server/parameters/allow").read_text(), "10.9.0.0/24\n")


# ---- other systems ----

@test
def a_byte_order_mark_costs_nothing(w):
    for text in (LINE, "[defaults] hold=7\n" + LINE):
        conf(w, "\ufeff" + text)
        r = w.run("maps", "check")
        has(r.err, "maps.conf:1:1: warning: the file begins with a byte order mark")
        has(r.out, "1 mapping, 0 errors, 1 warning")
    has(w.run("maps", "show").out, "hold=7")
    conf(w, "\ufeff" + SERVER.replace("\n", "\r\n"), "server.conf")
    r = server(w, "check")
    has(r.err, "byte order mark", "carriage return")
    hasnt(r.err, "no dev_search_path", "no allow")


@test
def ends_of_lines_of_an_old_system(w):
    """One line with a carriage return at its end is none."""
    for name, args in (("maps.conf", ("maps", "check")), ("server.conf", ("server", "check"))):
        text = LINE if name == "maps.conf" else SERVER
        f = conf(w, "# a comment\r" + text.replace("\n", "\r"), name)
        r = w.run(*args, want=2)
        eq(r.err.count("error: "), 1, r.err)
        has(r.err, f"{f}: error: its lines end with a carriage return alone",
            f"tr '\\r' '\\n' < {f} > NEW")
        conf(w, "# a comment\r" + text, name)
        has(w.run(*args, want=2).err, f"{f}:1:12: error: a carriage return that is not at the end")
        conf(w, "# a comment\u2028" + text, name)
        has(w.run(*args, want=2).err, f"{f}:1:12: error: a character that is not seen")
        f.unlink()
    conf(w, LINE.replace("\n", "\r"))
    has(w.run("maps", "check").out, "1 mapping, 0 errors")
    for name in ("fstab", "crypttab"):
        f = w.root / "etc" / name
        f.write_bytes(b"# one\r/dev/ibnbd/by-name/vol1 /a ext4 defaults 0 2\r")
        has(w.run("maps", "check", want=2).err, f"{f}: error: its lines end with a carriage return")
        f.write_bytes(b"x /a ext4\ry /b ext4\nz /c ext4\n")
        has(w.run("maps", "check").err, f"{f}:1:10: warning: a carriage return that is not at")
        f.unlink()


@test
def a_line_of_server_conf_is_not_continued(w):
    """Behind the backslash stood what closes the door."""
    w.server()
    for end in ("\\", " \\", " \\ \t", "\\\r"):
        for text, line in ((f"writer_file = /var/lib/w{end}\nauth = required\n", 1),
                           (f"{SERVER}# comment{end}\nallow = 10.0.0.0/24{end}\n", 4),
                           (f"{SERVER}{end}\nauth = required", 3),
                           (f"{SERVER}auth = required{end}", 3)):
            f = conf(w, text, "server.conf")
            for args in (("check",), ("start",)):
                has(server(w, *args, want=2).err, f"{f}:{line}:",
                    "error: a backslash at the end continues no line here", "in one line")
    eq((w.sys / "module/ibnbd_server/parameters/allow").read_text(), "\n", "nothing was changed")
    conf(w, SERVER + "# a comment \\\nauth = required\n", "server.conf")
    hasnt(server(w, "check").err, "error")
    w.put("sys/module/ibnbd_server/parameters/auth", "off")
    server(w, "start")
    eq((w.sys / "module/ibnbd_server/parameters/auth").read_text(), "required\n")


@test
def other_line_ends_in_fstab_and_crypttab(w):
    conf(w, LINE)
    (w.root / "etc/crypttab").write_bytes(b"\xef\xbb\xbf"
                                          b"crypt /dev/ibnbd/by-name/vol1 none luks,_netdev\r\n"
                                          b"naked /dev/ibnbd/by-name/vol1\r\n"
                                          b"other /dev/ibnbd/by-name/vol1 none luks\r\n")
    (w.root / "etc/fstab").write_bytes(b"/dev/ibnbd/by-name/vol1 /a ext4 _netdev 0 2\r\n"
                                       b"/dev/ibnbd/by-name/vol1 /b ext4 defaults 0 2\r\n")
    r = w.run("maps", "check")
    eq(sorted(re.findall(r"(\S+) \(.*\) has no _netdev", r.err)), ["/b", "naked", "other"])
    eq((r.err.count("carriage return"), r.err.count("byte order mark")), (2, 1))


@test
def bytes_in_fstab_and_crypttab(w):
    conf(w, LINE)
    (w.root / "etc/crypttab").write_bytes(b"# x\ncr\0ypt /dev/ibnbd/by-name/vol1 none luks\n"
                                          b"other /dev/ibnbd/by-name/vol1 none luks\n")
    (w.root / "etc/fstab").write_bytes("/dev/ibnbd/by-name/vol1 /a ext4 defaults 0 2\n"
                                       "/dev/x\0 /b ext4\n"
                                       "UUID=1\u00a0/c xfs defaults 0 0\n".encode())
    r = w.run("maps", "check", want=2)
    has(r.err, "crypttab:2:3: error: a NUL byte", "fstab:2:7: error: a NUL byte",
        "fstab:3:7: warning: a character that is not seen: no-break space, U+00A0",
        "2 | cr?ypt /dev/ibnbd/by-name/vol1", "2 | /dev/x? /b ext4")
    eq(sorted(re.findall(r"(\S+) \(.*\) has no _netdev", r.err)), ["/a", "other"])
    has(w.run("doctor", want=2).out, "2 mistakes in fstab")


@test
def quotes_in_fstab_and_crypttab(w):
    conf(w, LINE.replace("\n", " uuid=0123-abcd\n"))
    (w.root / "etc/fstab").write_text("UUID=\"0123-abcd\" /a xfs defaults 0 0\n"
                                      "UUID='0123-ABCD' /b xfs defaults 0 0\n"
                                      "\"UUID=0123-abcd\" /c xfs defaults 0 0\n"
                                      "UUID=\"0123-abcd\" /d xfs _netdev 0 0\n"
                                      "UUID=\"9\" /e xfs defaults 0 0\n"
                                      "UUID=\"0123-abcd' /i xfs defaults 0 0\n"
                                      "LABEL='x /j xfs defaults 0 0\n"
                                      "//dev//ibnbd//by-name/./vol1 /k xfs defaults 0 0\n"
                                      "//server/share /l cifs defaults 0 0\n")
    (w.root / "etc/crypttab").write_text("f UUID=\"0123-abcd\" none luks\n"
                                         "g UUID='0123-abcd' - luks\n"
                                         "h 'UUID=0123-abcd' - luks,_netdev\n")
    r = w.run("maps", "check")
    eq(sorted(re.findall(r"(\S+) \(.*\) has no _netdev", r.err)),
       ["/a", "/b", "/c", "/k", "f", "g"])
    eq(sorted(re.findall(r"(\S+): the quote in", r.err)), ["/i", "/j"])
    eq(sorted(re.findall(r"(\S+): the quotes around", r.err)), ["/c", "h"])


# ---- rights ----

def refused(w, f, words, server_conf=False):
    """Nothing of it is used, by anybody who reads it."""
    if server_conf:
        if not (w.sys / "module/ibnbd_server").exists():
            w.server()
        for args in (("check",), ("start",)):
            has(server(w, *args, want=2).err, words)
        eq((w.sys / "module/ibnbd_server/parameters/allow").read_text(), "\n",
           "nothing was changed")
        has(w.run("doctor", want=2).out, words, "nothing of it is used")
        return
    r = w.run("maps", "check", want=2)
    has(r.err, words)
    has(r.out, "0 mappings")
    w.client()
    has(w.run("maps", "apply", want=2).err, words)
    has(w.run("maps", "start", "vol1", want=3).err, words)
    has(w.run("map", "vol1", want=2).err, words)
    has(w.run("maps", "show", want=2).err, words)
    has(w.run("maps", "apply", "--prune", want=2).err, "nothing is unmapped")
    has(w.run("map", "d", "s", "10.0.0.1", "--name", "d", "--save-only", want=2).err, words,
        "not changed while")
    eq(w.log(), [])
    has(w.run("doctor", want=2).out, words, "nothing of it is used")
    out = w.dir / "generated"
    out.mkdir(exist_ok=True)
    kmsg = w.put("root/dev/kmsg")
    kmsg.write_text("")
    w.run(out, program="ibnbd-generator", want=1)
    has(kmsg.read_text(), words, "nothing of it is mapped")
    eq(list(out.iterdir()), [])


@test
def others_may_write_to_it(w):
    for name, text in (("maps.conf", LINE), ("server.conf", SERVER)):
        f = conf(w, text, name)
        for mode, words in ((0o666, "everybody can write to it"),
                            (0o664, "its group can write to it"),
                            (0o646, "everybody can write to it")):
            f.chmod(mode)
            refused(w, f, words, name == "server.conf")
        f.chmod(0o600)
    w.run("maps", "check")
    server(w, "check")


@test
def others_may_write_to_its_directory(w):
    for name, text in (("maps.conf", LINE), ("server.conf", SERVER)):
        f = conf(w, text, name)
        f.parent.chmod(0o775)
        refused(w, f, "its group can write to the directory ", name == "server.conf")
        f.parent.chmod(0o1777)
        # nobody can replace the file of another there
        has(w.run("maps", "check").out, " 0 errors")
        f.parent.chmod(0o755)
    f = conf(w, LINE.replace("vol1 ", "vol2 "), "maps.conf.d/10-a.conf")
    f.parent.chmod(0o777)
    r = w.run("maps", "check", want=2)
    has(r.err, "maps.conf.d: error: everybody can write to the directory ", "chmod go-w ")
    has(r.out, "1 mapping, 1 error")


@test
def a_link_leads_where_others_may_write(w):
    """/etc/ibnbd, a file, a link to a link: each directory on the way counts."""
    kept = w.dir / "kept/a"
    kept.mkdir(parents=True)
    f = kept / "maps.conf"
    f.write_text(LINE)
    (w.dir / "kept/link").symlink_to("a/maps.conf")
    (w.root / "etc/ibnbd/maps.conf").symlink_to(w.dir / "kept/link")
    has(w.run("maps", "check").out, "1 mapping, 0 errors")
    (w.dir / "kept").chmod(0o777)
    has(w.run("maps", "check", want=2).err, "everybody can write to the directory ", "/kept")
    (w.dir / "kept").chmod(0o755)
    kept.chmod(0o777)
    has(w.run("maps", "check", want=2).err, "everybody can write to the directory ", "/kept/a")
    (w.root / "etc/ibnbd/maps.conf").unlink()
    shutil.rmtree(w.root / "etc/ibnbd")
    (w.root / "etc/ibnbd").symlink_to(kept)
    has(w.run("maps", "check", want=2).err, "everybody can write to the directory ")
    kept.chmod(0o755)
    has(w.run("maps", "check").out, "1 mapping, 0 errors")


@test
def it_belongs_to_somebody_else(w):
    if not ROOT:
        return
    for name, text in (("maps.conf", LINE), ("server.conf", SERVER)):
        f = conf(w, text, name)
        os.chown(f, SOMEBODY, -1)
        refused(w, f, f"it belongs to user {SOMEBODY}, not to root", name == "server.conf")
        os.chown(f, 0, -1)
        os.chown(f.parent, SOMEBODY, -1)
        refused(w, f, f"belongs to user {SOMEBODY}, not to root", name == "server.conf")
        os.chown(f.parent, 0, -1)
        f.rename(w.dir / "real")
        f.symlink_to(w.dir / "real")
        os.lchown(f, SOMEBODY, -1)
        refused(w, f, f"belongs to user {SOMEBODY}, not to root", name == "server.conf")
        check = name.split(".")[0], "check"
        has(w.run(*check, want=2).err, f"chown -h root {f}")
        subprocess.run(["chown", "-h", "root", f], check=True)
        hasnt(w.run(*check).err, "belongs to user")
        f.unlink()


@test
def one_refused_file_does_not_cost_the_others(w):
    w.client()
    conf(w, LINE)
    conf(w, LINE.replace("vol1 vol/1", "vol2 vol/2"), "maps.conf.d/10-a.conf").chmod(0o666)
    conf(w, "vol1 vol/9 store1 path=10.0.1.7 path=10.0.2.7 override\n",
         "maps.conf.d/20-b.conf").chmod(0o666)
    r = w.run("maps", "apply", want=9)
    eq([(d["name"], d["device_path"]) for d in w.json("list")["devices"]], [("vol1", "vol/1")])
    out = w.dir / "generated"
    out.mkdir()
    w.run(out, program="ibnbd-generator", want=1)
    eq(sorted(p.name for p in out.iterdir()),
       ["ibnbd-map@vol1.service.d", "ibnbd-maps.target.wants"])
    eq(w.run("ibnbd0", program="ibnbd-udev").rc, 0)


# ---- what stands in the place of a file ----

def instead(w, f, what):
    if f.is_symlink() or f.exists():
        f.unlink()
    what(f)


KINDS = (("a directory", lambda f: f.mkdir(), "cannot be read: it is a directory"),
         ("a FIFO", os.mkfifo, "cannot be read: it is a FIFO"),
         ("a loop of links", lambda f: f.symlink_to(f.name),
          "cannot be read: Too many levels of symbolic links"),
         ("a link that leads nowhere", lambda f: f.symlink_to("nowhere"), "the link leads nowhere"),
         ("a device", lambda f: f.symlink_to("/dev/zero"), "cannot be read: it is a device"))


@test
def something_else_stands_there(w):
    conf(w, "")
    for name in ("maps.conf", "server.conf"):
        for _, make, words in KINDS:
            f = w.root / "etc/ibnbd" / name
            instead(w, f, make)
            refused(w, f, words, name == "server.conf")
            f.rmdir() if f.is_dir() and not f.is_symlink() else f.unlink()
    for name in ("fstab", "crypttab"):
        for _, make, words in KINDS:
            f = w.root / "etc" / name
            instead(w, f, make)
            has(w.run("maps", "check", want=2).err, f"{f}: error: {words}")
            has(w.run("doctor", want=2).out, f"{f}: {words}")
            f.rmdir() if f.is_dir() and not f.is_symlink() else f.unlink()
    w.run("maps", "check")
    d = w.root / "etc/ibnbd/maps.conf.d"
    d.write_text(LINE)
    has(w.run("maps", "check", want=2).err, f"{d}: error: cannot be read: Not a directory")


@test
def masked_by_a_link_to_dev_null(w):
    """As units are. Nothing is written to where it leads."""
    f = conf(w, LINE, "maps.conf.d/d.conf")
    instead(w, f, lambda f: f.symlink_to("/dev/null"))
    has(w.run("maps", "check").out, "0 mappings, 0 errors")
    has(w.run("map", "d", "s", "10.0.0.1", "--name", "d", "--save-only", want=2).err,
        f"{f} is there, and was not written by this command")
    eq(stat.S_ISCHR(os.stat("/dev/null").st_mode), True)


@test
def no_permission_is_not_absence(w):
    if not ROOT:
        return
    w.dir.chmod(0o755)
    for name, cmd in (("maps.conf", ("maps", "check")), ("server.conf", ("server", "check"))):
        f = conf(w, LINE, name)
        f.chmod(0o600)
        r = w.run(*cmd, user=SOMEBODY, want=2)
        has(r.err, "cannot be read: Permission denied", "sudo")
        hasnt(r.err, "is not there")
        f.unlink()
    (w.root / "etc/ibnbd").chmod(0o700)
    for cmd in (("maps", "check"), ("server", "check")):
        has(w.run(*cmd, user=SOMEBODY, want=2).err, "cannot be read: Permission denied")
    (w.root / "etc/ibnbd").chmod(0o755)
    has(w.run("server", "check", want=3).err, "is not there")


@test
def a_file_of_ones_own(w):
    """A draft, a pipe, standard input."""
    f = conf(w, LINE, "draft")
    has(w.run("maps", "check", "--file", f).out, "1 mapping, 0 errors")
    with open(f) as i:
        has(w.run("maps", "check", "--file", "/dev/stdin", stdin=i).out, "1 mapping, 0 errors")
    p = subprocess.Popen(["cat", str(f)], stdout=subprocess.PIPE)
    has(w.run("maps", "check", "--file", "/dev/stdin", stdin=p.stdout).out, "1 mapping, 0 errors")
    p.wait(DEADLINE)
    p.stdout.close()
    os.mkfifo(w.dir / "fifo")
    has(w.run("maps", "check", "--file", w.dir / "fifo", want=2).err, "it is a FIFO")


@test
def other_answers_with_a_nul(w):
    """What sysfs says is whole or unknown."""
    w.client()
    conf(w, LINE)
    w.run("maps", "start", "vol1")
    for name in ("state", "state_detail"):
        (w.sys / "block/ibnbd0/ibnbd" / name).write_bytes(b"open\0closed\n")
    hasnt(w.run("list").out, "open")
    os.mkfifo(w.root / "etc/os-release")
    w.run("doctor", want=None)


@test
def a_server_value_that_breaks_out(w):
    """modprobe(8) reads quotes."""
    conf(w, 'dev_search_path = "/srv\\" port_nr=99 x=\\""\n', "server.conf")
    has(server(w, "check", want=2).err, "a quotation mark cannot be part of it")


# ---- names ----

@test
def names_for_systemd(w):
    """Its units of our names are files; each of these fits, and the generator can write it."""
    out = w.dir / "generated"
    out.mkdir()
    for name, rc in (("a" * 64, 0), ("a" + "-" * 54, 0), ("a" + "-" * 55, 2), ("a" + "-" * 63, 2),
                     ("_" * 64, 0)):
        conf(w, f"{name} vol/1 store1 path=10.0.1.7 path=10.0.2.7\n")
        r = w.run("maps", "check", want=rc)
        if rc:
            has(r.err, "the name is too long for systemd")
        w.run(out, program="ibnbd-generator")
    eq(len(list((out / "ibnbd-maps.target.wants").iterdir())), 3)


@test
def names_that_are_resolved(w):
    w.client()
    has(w.run("map", "d", "s", "store_1.invalid.", "--no-modprobe", want=7).err,
        "the host store_1.invalid. cannot be resolved")
    dots, two = "something between its dots", "two of them: SOURCE,DESTINATION"
    scope, one_word = "behind a link-local address only", "words of their own"
    for text, words in ((".", dots), ("..", dots), ("...", dots), ("store1..", dots),
                        ("store%eth0", scope), ("store1%", scope), ("10.0.1.7%eth0", scope),
                        ("store,", "empty destination address"), (",store", "empty source address"),
                        ("a,b,c", two), ("a@b@c", two), ("10.0.0.1,10.0.0.2,10.0.0.3", two),
                        ("a,b@c", two), ("10.0.1.7,path=10.0.2.7", one_word),
                        ("store1,path=store2", one_word), ("[store1]", "only an IPv6 address"),
                        ("ip:store1", "a name of a host stands alone"), ("a,b!c", "is made of"),
                        ("1.2.3", "malformed IPv4"), ("store1,1.2.3.400", "malformed IPv4"),
                        ("store1,fe80::g", "malformed IPv6 address"),
                        *((text, "dest_port= gives it") for text in
                          ("10.0.0.1:1234", "store1:1234", "10.0.0.1,10.0.0.2:1", "[fd00::1]:12",
                           "ip:10.0.0.1:1234", "ip:[fd00::1]:12", "fe80::1%eth2:12")),
                        *((text, "malformed IPv4") for text in
                          ("0x0a000001", "0XA", "10.0.0.0x1", "0x0a.0x0.0x0.0x1.", "h,0xff")),
                        ("10.0.0.1,fd00::1", "of different kinds")):
        conf(w, f"vol1 vol/1 s path={text}\n")
        for args in (("map", "d", "s", f"path={text}"), ("map", "d", "s", text),
                     ("maps", "check"), ("path", "add", "s", text)):
            if args[0] == "path" and not (w.sys / "class/ibtrs-client/s").exists():
                continue
            r = w.run(*args, want=2)
            has(r.err, words)
            hasnt(r.err, "resolve")
        many = two is words or one_word is words
        eq("several paths are several path=" in w.run("maps", "check", want=2).err, many)
    for text, names in (("store1,10.0.1.7", 'the name "store1"'),
                        ("10.0.1.7@store2", 'the name "store2"'),
                        ("store1@store2", 'the names "store1" and "store2"')):
        conf(w, f"vol1 vol/1 s path={text}\n")
        r = w.run("maps", "check")
        has(r.err, f"warning: {names} must be resolved", "this host has no such address",
            "two paths are path=")
    has(w.run("map", "d", "s", "path=store!1", want=2).err, "letters, digits, '-', '_' and '.'")
    has(w.run("map", "d", "s", "fe80::1", want=2).err, "needs its interface, as in fe80::1%eth2")
    has(w.run("map", "d", "s", "path=fe80::1", want=2).err, "needs its interface")
    w.run("map", "d", "s", "10.0.0.1")
    has(w.run("path", "add", "s", "fe80::1", want=2).err, "needs its interface")
    r = w.run("map", "E-ETIMEDOUT", "s2", "192.0.2.7,192.0.2.8", want=7)
    has(r.err, "the path leaves this host by ip:192.0.2.7, and this host has no such address")
    conf(w, "vol1 vol/1 s3 path=192.0.2.7,192.0.2.8\n")
    has(w.run("doctor", want=2).out, "vol1: the path leaves this host by ip:192.0.2.7",
        "two paths are two path=")


@test
def the_server_waits_for_what_is_late(w):
    """As its unit does: a link that leads nowhere yet gets its time, and is named."""
    w.server()
    search = w.sys / "module/ibnbd_server/parameters/dev_search_path"
    search.write_text("\n")
    exports, disk = w.root / "etc/ibnbd/exports", w.dir / "vg-db"
    (exports / "sub").mkdir(parents=True)
    (exports / "sub/db").symlink_to(disk)
    (exports / "there").symlink_to(w.dir)
    conf(w, "dev_search_path = /etc/ibnbd/exports\n", "server.conf")
    args = str(w.build / "ibnbd-faked"), "server", "start", "--no-modprobe", "--wait", "30"
    p = subprocess.Popen(args, env=w.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)
    time.sleep(1)
    eq((p.poll(), search.read_text()), (None, "\n"), "nobody is let in meanwhile")
    disk.write_text("")
    out, _ = p.communicate(timeout=DEADLINE)
    eq((p.returncode, search.read_text().strip()), (0, "/etc/ibnbd/exports"))
    has(out, f"waiting for what the exports lead to: sub/db ({disk})")
    hasnt(out, "not there yet")
    # who exports already does not wait, and nobody waits unasked
    disk.unlink()
    server(w, "start", "--wait", "30")
    search.write_text("\n")
    has(server(w, "start").err, f"not there yet: sub/db ({disk}); clients that have it mapped")
    eq(search.read_text().strip(), "/etc/ibnbd/exports", "the others are exported")
    server(w, "start", "--wait", "soon", want=2)
