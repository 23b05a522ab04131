# SPDX-License-Identifier: GPL-2.0-only
"""What the doctor says of ports that paths share, of headers, and of signatures."""
import shutil
from kit import *
from test_path import SECOND, findings, host, mapped


@test
def paths_that_share_a_port(w):
    """Two paths that one failure takes away: said when they are made, and from then on."""
    host(w)
    for eth in "eth0", "eth1":
        w.put(f"sys/class/infiniband/rxe{eth[-1]}/parent", eth)
    addresses = "eth0 10.0.0.1\neth1 10.0.0.11\neth2 10.0.0.21\neth0 10.0.3.1\neth1 10.0.1.1"
    w.put("root/ifaddrs", addresses)
    w.client()
    none = "when that port fails, the session has no path"
    # one network, two ports; eth2 has no RDMA
    one = "s path=10.0.0.2 path=10.0.0.12"
    ports = "all 2 paths leave this host by eth0: " + none
    name_it = "name the source of each path: 10.0.0.1,10.0.0.2 10.0.0.11,10.0.0.12"
    for line, said in ((one, (ports, name_it)),
                       ("s path=10.0.0.1,10.0.0.2 path=10.0.0.1,10.0.0.12", (ports, name_it)),
                       ("s path=10.0.0.1,10.0.0.2 path=10.0.0.11,10.0.0.12", ()),
                       ("s path=10.0.0.2 path=10.0.1.2", ()),
                       ("s path=10.0.0.2 path=10.0.3.2",     # aliases of one port
                        (ports, "an address of another port of this host")),
                       ("s path=10.0.0.1,10.0.0.2 path=10.0.1.1,10.0.0.2",
                        ("all 2 paths lead to ip:10.0.0.2: " + none, "another port of the server")),
                       ("s path=10.0.0.2 path=172.16.0.1", ()),      # it has a router
                       ("s path=10.0.0.2 path=10.0.0.12 path=10.0.1.2", ())):
        w.conf(f"v ram0 {line}\n")
        r = w.run("maps", "check")
        eq("warning" in r.err, bool(said), r)
        has(r.err, *said)
    r = w.run("map", "ram0", "s", "10.0.0.2", "10.0.0.12")
    has(r.err, f"session s: {ports}", name_it)
    found = findings(w)["path", "warning"]
    has(found["message"], "all 2 paths of session s leave this host by rxe0 port 1: " + none)
    has(found["hint"], "ibnbd path add s 10.0.0.11,ip:10.0.0.12; "
        "ibnbd path remove s ip:10.0.0.1@ip:10.0.0.12")
    eq(("path", "ok") in findings(w), False)
    has(w.run("path", "add", "s", "10.0.0.1,10.0.0.22").err, "all 3 paths of session s leave")
    w.put("sys/class/ibtrs-client/s/paths/ip:10.0.0.1@ip:10.0.0.22/hca_name", "rxe1")
    eq(("path", "warning") in findings(w), False, "the third is enough")
    # a bond is two ports; two ports and one address are one
    mapped(w)
    has(findings(w)["path", "warning"]["message"], "session store1 leave this host by rxe0")
    w.put("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "bond0")
    (w.sys / "class/net/bond0/bonding").mkdir(parents=True)
    eq(("path", "warning") in findings(w), False)
    w.put("root/ifaddrs", "bond0 10.0.0.1")
    w.conf(f"v ram0 {one}\n")
    hasnt(w.run("maps", "check").err, "warning")
    w.put(SECOND + "/hca_port", "2")
    eq(("path", "warning") in findings(w), False)
    w.put(SECOND + "/dst_addr", "ip:10.0.1.7")
    found = findings(w)["path", "warning"]
    has(found["message"], "all 2 paths of session store1 lead to ip:10.0.1.7: " + none)
    has(found["hint"], "ibnbd path add store1 ADDRESS-OF-ANOTHER-PORT")
    # the server sees its own ports
    w.server()
    eq(("path", "warning") in findings(w) and
       "arrive" in findings(w)["path", "warning"]["message"], False)
    (w.sys / "class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0").unlink()
    shutil.copytree(w.sys / "class/ibtrs-server/clt1/paths/ip:10.0.0.1@ip:10.0.0.2",
                    w.sys / "class/ibtrs-server/clt1/paths/ip:10.0.0.1@ip:10.0.0.3")
    has(findings(w)["path", "warning"]["message"],
        "all 2 paths of the client's session clt1 arrive at rxe0 port 1: " + none)


@test
def doctor_names_the_package_of_the_headers(w):
    """As the distribution calls it for this flavour of its kernel."""
    host(w, built=False, headers=False)
    el, suse, deb = 'ID="rhel"\nID_LIKE="fedora"', 'ID="sles"\nID_LIKE="suse"', "ID=debian"
    for ids, release, hint in (
            (el, "5.14.0-503.el9.x86_64", "dnf install kernel-devel-5.14.0-503.el9.x86_64"),
            (el, "5.14.0-503.el9.aarch64+64k",
             "dnf install kernel-64k-devel-5.14.0-503.el9.aarch64"),
            (el, "5.14.0-503.el9.x86_64+rt", "dnf install kernel-rt-devel-5.14.0-503.el9.x86_64"),
            (el, "6.12.0-55.el10.aarch64+rt-64k",
             "dnf install kernel-rt-64k-devel-6.12.0-55.el10.aarch64"),
            (el, "5.14.0-284.11.1.rt14.296.el9_2.x86_64",
             "dnf install kernel-rt-devel-5.14.0-284.11.1.rt14.296.el9_2.x86_64"),
            (el, "5.14.0-503.el9.x86_64+debug",
             "dnf install kernel-debug-devel-5.14.0-503.el9.x86_64"),
            ('ID="ol"\nID_LIKE="fedora"', "5.15.0-200.131.27.el9uek.x86_64",
             "dnf install kernel-uek-devel-5.15.0-200.131.27.el9uek.x86_64"),
            (suse, "6.4.0-150600.23.25-default", "zypper install kernel-default-devel"),
            (suse, "6.4.0-150600.8.17-azure", "zypper install kernel-azure-devel"),
            (suse, "6.4.0-150600.23.25-64kb", "zypper install kernel-64kb-devel"),
            (suse, "6.4.0-150600.10.17-rt", "zypper install kernel-rt-devel"),
            (deb, "6.12.48+deb13-rt-amd64", "apt install linux-headers-6.12.48+deb13-rt-amd64"),
            (deb, "6.8.12-4-pve", "apt install proxmox-headers-6.8.12-4-pve"),
            ("ID=x", "6.1.0", "install the headers of kernel 6.1.0")):
        w.put("root/etc/os-release", f"NAME=x\n{ids}")
        w.put("root/proc/sys/kernel/osrelease", release)
        eq(findings(w)["headers", "error"]["hint"], hint)


@test
def doctor_of_a_kernel_that_was_updated(w):
    """The archive has no headers of what runs any more; what runs may be gone as well."""
    host(w, built=False, headers=False)
    w.put("root/lib/modules/6.1.0-9-amd64/modules.dep")
    w.put("root/lib/modules/6.1.0-8-amd64/modules.dep")
    w.put("root/lib/modules/6.1.0-12-amd64/extra")      # no kernel
    eq(findings(w)["headers", "error"]["hint"], "apt install linux-headers-6.1.0-9-amd64")
    w.put("root/lib/modules/6.1.0-10-amd64/modules.dep")
    eq(findings(w)["headers", "error"]["hint"], "apt install linux-headers-6.1.0-9-amd64; "
       "if that is not to be had any more, reboot into the new one, 6.1.0-10-amd64")
    shutil.rmtree(w.root / "lib/modules/6.1.0-9-amd64")
    found = findings(w)["headers", "error"]
    has(found["message"], "6.1.0-9-amd64 runs, and an update has removed its files")
    eq(found["hint"], "reboot into the new one, 6.1.0-10-amd64")


@test
def doctor_signed_modules_only(w):
    """Not only Secure Boot wants signatures: who wants them, and what can be done."""
    host(w)
    rejected = "Loading of unsigned module is rejected"
    locked = "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7"
    enforce = "sys/module/module/parameters/sig_enforce"
    lockdown = "sys/kernel/security/lockdown"
    w.put(enforce, "N")
    w.put(lockdown, "[none] integrity confidentiality")
    eq(findings(w)["loaded", "warning"]["hint"], "modprobe ibnbd-client")
    for files, cmdline, line, words, hint in (
            ({enforce: "Y"}, "ro module.sig_enforce=1", rejected, "module.sig_enforce",
             "take module.sig_enforce off the kernel's command line"),
            ({enforce: "Y"}, "ro", "Loading of module with unavailable key is rejected",
             "module.sig_enforce", "a kernel without CONFIG_MODULE_SIG_FORCE"),
            ({lockdown: "none [integrity] confidentiality"}, "ro lockdown=integrity", locked,
             "lockdown=integrity", "take lockdown= off"),
            ({lockdown: "none integrity [confidentiality]"}, "ro", locked,
             "lockdown=confidentiality", "sign the modules")):
        w.put(enforce, "N")
        w.put(lockdown, "[none] integrity confidentiality")
        w.put("root/proc/cmdline", cmdline)
        for name, text in files.items():
            w.put(name, text)
        w.put("root/dev/kmsg", "")
        has(findings(w)["signature", "warning"]["message"], words)
        w.put("root/dev/kmsg", f"5,100,1,-;{line}")
        f = findings(w)
        has(f["signature", "error"]["message"], words, line)
        has(f["signature", "error"]["hint"], hint)
        eq(f["loaded", "warning"]["hint"], "that first, then: modprobe ibnbd-client")
    w.put(lockdown, "[none] integrity confidentiality")
    w.put("root/dev/kmsg", "")
    w.put("root/proc/sys/kernel/modules_disabled", "1")
    f = findings(w)["loaded", "warning"]
    has(f["message"], "kernel.modules_disabled")
    has(f["hint"], "reboot, and load it before")


@test
def doctor_knows_an_upgrade(w):
    """The driver in memory is another one than the next boot loads: which runs, which is there."""
    mapped(w)
    host(w)
    runs = (w.sys / "module/ibnbd_client/version").read_text().strip()
    w.put("sys/module/ibnbd_client/srcversion", "AAAA")
    installs = w.put("root/sbin/modinfo")
    for version, source, said in (
            (runs, "AAAA", None), (runs, "", None), ("", "", None),
            ("99.0.0", "BBBB", f"driver ibnbd_client {runs} runs, 99.0.0 is installed"),
            (runs, "BBBB", f"driver ibnbd_client {runs} runs, another build of it")):
        installs.write_text(f"#!/bin/sh\n[ \"$*\" = ibnbd_client ] || exit 1\n"
                            f"echo 'filename:       x.ko'; echo 'version:        {version}'\n"
                            f"echo 'srcversion:     {source}'; echo >> {w.dir}/asked\n")
        installs.chmod(0o755)
        found = findings(w).get(("version", "warning"))
        eq(bool(found), bool(said), found)
        (w.dir / "asked").unlink()
        err = w.run("list").err
        eq((w.dir / "asked").read_text(), "\n", "asked once")
        if said:
            has(found["message"], said)
            has(found["hint"], "the next boot", "modprobe -r ibnbd_client")
            has(err, said, "ibnbd doctor")
        else:
            eq(err, "")
        eq(w.run("list", "-H").err, "")
    has(findings(w)["version", "warning"]["message"], "another build")
