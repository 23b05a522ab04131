# SPDX-License-Identifier: GPL-2.0-only
"""What a guest boots: an unpacked vmlinux and an initramfs.

The initramfs is two cpio archives one after the other, which the kernel unpacks in turn.  The
*base* holds the tools and the stock modules; it depends on the kernel and the host's packages alone
and is kept in the cache.  The *overlay* holds what changes from run to run: modules built here,
programs under test, and the module index over all of them.  It is made afresh each time.

An ELF vmlinux boots by PVH: no BIOS, no decompression in the guest,
half the time of a bzImage under TCG.
"""
import fcntl, gzip, hashlib, lzma, os, re, shutil, struct, subprocess, tempfile, threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPO = HERE.parent.parent
CACHE = Path(os.environ.get("IBNBD_CACHE") or REPO / "build/cache").absolute()
PATHS = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]

MODULES = """
virtio_pci virtio_net virtio_blk virtio_console virtio_rng 9p 9pnet_virtio
rdma_rxe siw rdma_cm rdma_ucm ib_uverbs ib_umad
dummy veth bridge nf_tables nft_compat
sch_netem sch_tbf sch_prio sch_ingress cls_u32 cls_matchall act_police
sd_mod sg brd null_blk loop nbd scsi_debug
dm-mod dm-delay dm-flakey dm-dust dm-log-writes dm-zero dm-snapshot dm-thin-pool dm-multipath
dm-crypt dm-raid raid1
ext4 xfs btrfs vfat overlay configfs
crc32_generic crc32c_generic crc32c-intel crc32-pclmul xxhash_generic
nvme-rdma nvmet-rdma nvme-tcp nvmet-tcp
ib_srp ib_srpt ib_iser ib_isert iscsi_target_mod target_core_iblock
""".split()

# timeout: busybox's runs its own modprobe, which says nothing when it is refused
TOOLS = """
bash ip ss tc rdma kmod mount umount losetup lsblk blkid findmnt blkdiscard blockdev wipefs sfdisk
dmesg mkfs.ext4 e2fsck tune2fs chattr mkfs.xfs xfs_repair xfs_io mkfs.btrfs btrfs dmsetup
strace ping nproc setsid flock timeout pkill pgrep
ibv_devinfo ibv_devices ibv_rc_pingpong rping
ib_write_bw ib_read_bw ib_send_bw ib_send_lat ib_write_lat
""".split()
OPTIONAL_TOOLS = ["udevadm", "nvme", "fsfreeze", "fallocate"]
UDEV_RULES = ["50-udev-default.rules", "60-block.rules", "60-persistent-storage.rules"]


def need(path, why):
    if not Path(path).exists():
        raise SystemExit(f"rig: no {path} ({why}); run tests/vm/setup.sh")
    return Path(path)


def which(tool):
    return shutil.which(tool, path=os.pathsep.join(PATHS))


def qemu():
    """QEMU's command: that of qemu.sh, else the host's."""
    own = CACHE / "qemu/usr"
    exe = own / "bin/qemu-system-x86_64"
    if not exe.exists():
        return ["qemu-system-x86_64"]
    return [exe, "-L", own / "share/qemu", "-L", own / "share/seabios", "-L", "/usr/share/qemu"]


def default_kver():
    try:
        deps = subprocess.run(["dpkg-query", "-W", "-f", "${Depends}", "linux-headers-amd64"],
                              capture_output=True, text=True).stdout
    except FileNotFoundError:
        deps = ""
    found = re.search(r"linux-headers-([^ ,]+)", deps)
    return os.environ.get("KVER") or (found.group(1) if found else os.uname().release)


_checked = set()


def kernel_root(kver):
    """The unpacked kernel package of that version, fetched if the cache has none."""
    root = CACHE / "kernels" / kver
    if root not in _checked:
        subprocess.run([HERE / "kernel.sh", kver], check=True)
        _checked.add(root)
    return root


def config(kver, option):
    """What that kernel was configured with: the text after "=", None for an option that is off."""
    path = kernel_root(kver) / f"boot/config-{kver}"
    found = re.search(rf"^CONFIG_{option}=(.*)", path.read_text() if path.exists() else "", re.M)
    return found.group(1) if found else None


def unpack_vmlinux(kver):
    """The ELF image inside boot/vmlinuz; None (then bzImage is booted) when its compression is
    unknown, or with KASAN, whose shadow does not exist yet when the entry of PVH needs it."""
    root = kernel_root(kver)
    out = root / "vmlinux"
    if config(kver, "KASAN"):
        return None
    if out.exists():
        return out
    image = (root / f"boot/vmlinuz-{kver}").read_bytes()
    start, length = struct.unpack_from("<II", image, 0x248)
    start += (image[0x1f1] + 1) * 512
    # the last four bytes are the size of the ELF file
    data = image[start:start + length - 4]
    if data[:6] == b"\xfd7zXZ\0":
        elf = lzma.LZMADecompressor().decompress(data)
    elif data[:2] == b"\x1f\x8b":
        elf = gzip.decompress(image[start:start + length])      # whose own last four these are
    elif data[:4] == b"\x28\xb5\x2f\xfd":
        elf = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
    elif data[:4] == b"\x02\x21\x4c\x18":
        elf = subprocess.run(["lz4", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
    else:
        return None
    if elf[:4] != b"\x7fELF":
        return None
    write_whole(out, elf)
    return out


def hz(kver):
    """Timer ticks per second of that kernel; Debian's say 250."""
    return int(config(kver, "HZ") or 250)


def write_whole(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    part.write_bytes(data)
    part.replace(path)


def compiled(source, *flags):
    """A small C helper of ours, built once per source text, headers beside it included."""
    text = b"".join(p.read_bytes() for p in [source, *sorted(source.parent.glob("*.h"))])
    out = (CACHE / "bin"
           / f"{source.stem}-{hashlib.sha1(text + repr(flags).encode()).hexdigest()[:10]}")
    if not out.exists():
        out.parent.mkdir(parents=True, exist_ok=True)
        part = f"{out}.{os.getpid()}.{threading.get_ident()}"
        subprocess.run(["gcc", "-O2", "-Wall", "-Werror", "-o", part, source, *flags], check=True)
        os.replace(part, out)
    return out


class Tree:
    """Files of one cpio archive, written in the order they came, parents first."""
    def __init__(self):
        self.out, self.seen, self.ino = bytearray(), set(), 0

    def entry(self, path, mode, data=b"", rdev=(0, 0)):
        self.ino += 1
        name = path.encode() + b"\0"
        fields = (self.ino, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev, len(name), 0)
        self.out += b"070701" + b"".join(b"%08X" % f for f in fields) + name
        self.out += bytes(-len(self.out) % 4) + data
        self.out += bytes(-len(self.out) % 4)

    def new(self, path):
        if path in self.seen:
            return False
        self.seen.add(path)
        return True

    def dir(self, path):
        if path and self.new(path):
            self.dir(os.path.dirname(path))
            self.entry(path, 0o40755)

    def file(self, path, data, mode=0o644):
        if self.new(path):
            self.dir(os.path.dirname(path))
            self.entry(path, 0o100000 | mode, data)

    def link(self, path, target):
        if self.new(path):
            self.dir(os.path.dirname(path))
            self.entry(path, 0o120777, target.encode())

    def node(self, path, major, minor):
        self.dir(os.path.dirname(path))
        self.entry(path, 0o20600, rdev=(major, minor))

    def program(self, source, path=None):
        """An executable and every shared library it asks for."""
        self.file(path or f"bin/{Path(source).name}", Path(source).read_bytes(), 0o755)
        self.libraries(source)

    def libraries(self, source):
        # our own libraries lie beside what needs them
        env = {**os.environ, "LD_LIBRARY_PATH": str(Path(source).parent)}
        listing = subprocess.run(["ldd", source], capture_output=True, text=True, env=env).stdout
        for lib in re.findall(r"(/\S+\.so\S*)", listing):
            where = "lib64" if "/ld-linux" in lib else "lib/x86_64-linux-gnu"
            self.file(f"{where}/{Path(lib).name}", Path(lib).read_bytes(), 0o755)

    def close(self):
        self.entry("TRAILER!!!", 0)
        self.out += bytes(-len(self.out) % 512)
        return bytes(self.out)


def plain_module(path):
    """The module as an uncompressed ELF, whatever the distribution made of it."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        return lzma.decompress(data)
    if path.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True).stdout
    return gzip.decompress(data) if path.suffix == ".gz" else data


def stock_modules(kver, modules=MODULES):
    """{path under lib/modules/KVER: file} of these and all they need, which comes first;
    those the kernel lacks are left out."""
    root = kernel_root(kver)
    top = root / "lib/modules" / kver
    found = {}
    for module in modules:
        listing = subprocess.run([which("modprobe") or "modprobe", "-d", root, "-S", kver,
                                  "--show-depends", module],
                                 capture_output=True, text=True).stdout
        for line in listing.splitlines():
            if line.startswith("insmod "):
                path = Path(line.split()[1])
                path = path if path.exists() else root / str(path).lstrip("/")
                name = str(path.relative_to(top))
                found[re.sub(r"\.ko\.\w+$", ".ko", name)] = path
    return found


def base(kver):
    """Path of the cached base archive, and of the module directory that depmod indexes."""
    kernel_root(kver)
    need(CACHE / "fio", "slim fio")
    with open(CACHE / ".lock.images", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _base(kver)


def _base(kver):
    need("/bin/busybox", "busybox-static")
    programs = [need(which(t) or f"/usr/bin/{t}", "guest tool") for t in TOOLS]
    programs += [Path(p) for p in map(which, OPTIONAL_TOOLS) if p]
    fio = CACHE / "fio"
    iopulse = compiled(HERE / "guest/iopulse.c", "-static", "-pthread")
    knock = compiled(HERE / "guest/knock.c", "-static")
    modules = stock_modules(kver)
    # not where it lies: checkouts share a cache
    key = hashlib.sha1(Path(__file__).read_bytes())
    for f in [*programs, fio, iopulse, knock, Path("/bin/busybox"), *modules.values()]:
        st = f.stat()
        key.update(f"{f} {st.st_size} {st.st_mtime_ns}\n".encode())
    out = CACHE / "images" / f"base-{kver}-{key.hexdigest()[:12]}.cpio"
    moddir = out.with_suffix(".modules")
    if out.exists() and all((moddir / name).exists() for name in modules):
        return out, moddir

    tree = Tree()
    for d in ("bin sbin lib lib64 usr proc sys dev tmp run h mnt etc root "
              "var/lock var/lib/misc").split():
        tree.dir(d)
    for name in ("bin", "sbin", "lib"):
        tree.link(f"usr/{name}", f"../{name}")
    tree.node("dev/console", 5, 1)
    tree.node("dev/null", 1, 3)
    tree.file("bin/busybox", Path("/bin/busybox").read_bytes(), 0o755)
    for program in programs:
        tree.program(program)
    tree.program(fio, "bin/fio")
    tree.program(iopulse, "bin/iopulse")
    tree.program(knock, "bin/knock")
    for name in "modprobe insmod rmmod lsmod modinfo depmod".split():
        tree.link(f"sbin/{name}", "../bin/kmod")
    verbs = sorted(Path("/usr/lib/x86_64-linux-gnu/libibverbs").glob("lib[rs][xi][ew]-*.so"))
    for lib in verbs:
        tree.file(f"lib/x86_64-linux-gnu/libibverbs/{lib.name}", lib.read_bytes(), 0o755)
        tree.libraries(lib)
    for name in ("rxe", "siw"):
        tree.file(f"etc/libibverbs.d/{name}.driver", f"driver {name}\n".encode())
    # glibc opens it when a thread is cancelled
    libgcc = Path("/lib/x86_64-linux-gnu/libgcc_s.so.1")
    if libgcc.exists():
        tree.file("lib/x86_64-linux-gnu/libgcc_s.so.1", libgcc.read_bytes(), 0o755)
    for rule in UDEV_RULES:
        path = Path("/lib/udev/rules.d") / rule
        if path.exists():
            tree.file(f"lib/udev/rules.d/{rule}", path.read_bytes())
    tree.file("etc/passwd", b"root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:n:/:/bin/sh\n")
    tree.file("etc/group", b"root:x:0:\ndisk:x:6:\nnogroup:x:65534:\n")
    tree.file("etc/hosts", b"127.0.0.1 localhost\n")
    shutil.rmtree(moddir, ignore_errors=True)
    for name, path in modules.items():
        write_whole(moddir / name, plain_module(path))
        # for BPF alone; the first module of a boot that has it makes the kernel read all of its own
        subprocess.run(["objcopy", "--remove-section=.BTF", moddir / name], check=True)
        tree.file(f"lib/modules/{kver}/{name}", (moddir / name).read_bytes())
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        path = kernel_root(kver) / "lib/modules" / kver / name
        if path.exists():
            shutil.copy(path, moddir / name)
    for old in out.parent.glob(f"base-{kver}-*"):
        shutil.rmtree(old) if old.is_dir() and old != moddir else old.is_dir() or old.unlink()
    write_whole(out, tree.close())
    return out, moddir


def vermagic(ko):
    blob = plain_module(Path(ko))
    found = re.search(rb"vermagic=(\S+)", blob)
    return found.group(1).decode() if found else None


def build(kver, out, ko_dirs=(), programs=()):
    """Write the whole initramfs to `out`;
    return the names of the modules that were added to the stock ones.

    ko_dirs: directories searched for *.ko built for kver (others are left out);
    the first of a name wins.  programs: (host path, guest path) of further executables.
    """
    basefile, moddir = base(kver)
    tree, added = Tree(), {}
    for d in ko_dirs:
        for ko in sorted(Path(d).rglob("*.ko")):
            if ko.name not in added and vermagic(ko) == kver:
                added[ko.name] = ko
    with tempfile.TemporaryDirectory(prefix="ibnbd-rig.") as tmp:
        top = Path(tmp) / "lib/modules" / kver
        (top / "updates").mkdir(parents=True)
        for item in moddir.iterdir():
            (top / item.name).symlink_to(item)
        for name, ko in added.items():
            subprocess.run(["strip", "--strip-debug", "-o", top / "updates" / name, ko], check=True)
            tree.file(f"lib/modules/{kver}/updates/{name}", (top / "updates" / name).read_bytes())
        subprocess.run([which("depmod") or "depmod", "-b", tmp, kver], check=True)
        for index in sorted(top.glob("modules.*")):
            tree.file(f"lib/modules/{kver}/{index.name}", index.read_bytes())
    tree.file("init", (HERE / "guest/init").read_bytes(), 0o755)
    for source, path in programs:
        tree.program(source, path)
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with open(out, "wb") as f, open(basefile, "rb") as b:
        shutil.copyfileobj(b, f)
        f.write(tree.close())
    return sorted(n[:-3].replace("-", "_") for n in added)
