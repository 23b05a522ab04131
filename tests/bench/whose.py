# SPDX-License-Identifier: GPL-2.0-only
"""Whose memory a hot line is, for lines.py: a structure and fields, where they can be known.

Three sources.  The kernel's tracepoints tell what modules allocated while a target was set up
(trace(), allocations()).  A module of ours, whose/whose.c, tells where an address lies: in a
module, in the per-CPU variables, in the kernel's image, in an object of a slab cache.  gdb, if it
is installed, tells the members of our structures from the modules' debug information.
"""
import bisect, functools, re, shutil, subprocess
import bench

PAGE = 4096
TRACE = """
T=/sys/kernel/tracing
echo 0 > $T/options/hash-ptr
echo 16384 > $T/buffer_size_kb
for e in kmalloc kmalloc_node; do
	[ -e $T/events/kmem/$e ] || continue
	echo 'stacktrace if bytes_req >= 2048' > $T/events/kmem/$e/trigger
	echo 1 > $T/events/kmem/$e/enable
done
echo 'order > 0' > $T/events/kmem/mm_page_alloc/filter
echo 'stacktrace if order > 0' > $T/events/kmem/mm_page_alloc/trigger
echo 1 > $T/events/kmem/mm_page_alloc/enable
"""
# what no module has allocated is of no use, but for the stacks
UNTRACE = """
T=/sys/kernel/tracing
for e in $T/events/kmem/*/enable; do echo 0 > $e; done
grep -E 'call_site=.*\\[|mm_page_alloc|bytes_req=[0-9]{4}|^ => ' $T/trace > /h/allocations || true
echo 0 > $T/trace
echo 1 > $T/buffer_size_kb
"""
# where our modules allocate: module, type, and how many of it there are (None: what the size says)
CLT, SRV, DEV = "ibtrs/ibtrs-client.ko", "ibtrs/ibtrs-server.ko", "ibnbd/ibnbd-client.ko"
TYPES = {
    "ibtrs_clt_slots_init": [(CLT, "struct ibtrs_clt_req", 512)],
    "ibtrs_clt_path_create": [(CLT, "struct ibtrs_clt_path", 1),
                              (CLT, "struct ibtrs_clt_conn", None)],
    "ibtrs_clt_open": [(CLT, "struct ibtrs_clt", 1)],
    "ibtrs_srv_path_alloc": [(SRV, "struct ibtrs_srv_path", 1),
                             (SRV, "struct ibtrs_srv_conn", None)],
    "ibtrs_srv_session_create": [(SRV, "struct ibtrs_srv_session", 1)],
    "ibtrs_srv_session_add_path": [(SRV, "struct ibtrs_srv_slot", 512)],
    "ibtrs_srv_op_alloc": [(SRV, "struct ibtrs_srv_opx", 512)],
    "ibnbd_clt_queue_alloc_ops": [(DEV, "struct ibnbd_clt_op", 480)],
    "ibnbd_clt_session_get": [(DEV, "struct ibnbd_clt_session", 1)],
    "ibnbd_clt_dev_alloc": [(DEV, "struct ibnbd_clt_dev", 1)],
}
# an array of no structure
OTHERS = {"ibtrs_clt_slots_init": ": homes, a bit for each free slot"}


def every_symbol(kallsyms):
    """Sorted (address, name), data and per-CPU variables, too."""
    found = []
    for line in kallsyms.splitlines():
        words = line.split()
        found.append((int(words[0], 16), words[2] + (f" [{words[3].strip('[]')}]"
                                                     if len(words) > 3 else "")))
    return sorted(found)


def symbol(symbols, at, limit=1 << 20):
    """name+offset of the last symbol at or below, if it is near."""
    i = bisect.bisect_right(symbols, (at, "\x7f")) - 1
    if i < 0 or at - symbols[i][0] > limit:
        return None
    return f"{symbols[i][1]}+{at - symbols[i][0]:#x}"


def allocations(text, modules):
    """[(first, end, size that was asked for, allocated where)], the newest last; addresses are
    those of the direct map, or negative: -1 - physical ones.  modules: names of functions of
    modules."""
    found, last = [], None
    for line in text.splitlines():
        if m := re.search(r"call_site=(\S+)(?: \[\w+\])? ptr=(?:0x)?([0-9a-f]+) "
                          r"bytes_req=(\d+) bytes_alloc=(\d+)", line):
            at = int(m[2], 16)
            last = [at, at + int(m[4]), int(m[3]), m[1]]
        elif m := re.search(r"mm_page_alloc: .*pfn=(?:0x)?([0-9a-f]+) order=(\d+)", line):
            at = int(m[1], 16) * PAGE
            last = [at, at + (PAGE << int(m[2])), PAGE << int(m[2]), None]
        elif (m := re.match(r" => (\w\S*)", line)) and last:
            if m[1].split("+")[0] in modules:
                last[3], last = m[1], None
            continue
        else:
            last = None
            continue
        found.append(last)
    return [tuple(f) for f in found if f[3]]


def ask(machine, lines):
    """{physical address: what the module says}"""
    if not lines:
        return {}
    machine.run("modprobe ibnbd-whose; echo " + ",".join(f"{at:x}" for at in lines)
                + " > /sys/module/ibnbd_whose/parameters/ask", 120)
    return {int(m[1], 16): (int(m[2], 16), m[3]) for m in
            re.finditer(r"whose ([0-9a-f]+) ([0-9a-f]+):(.*)", machine.kernel_log())}


@functools.cache
def members(ko, type_):
    """[(offset, size, name)] of the outer members, and the size of the whole."""
    if not shutil.which("gdb"):
        return [], 0
    text = subprocess.run(["gdb", "-nx", "-batch", "-ex", f"ptype /o {type_}",
                           "-ex", f"print sizeof({type_})", bench.REPO / ko],
                          capture_output=True, text=True).stdout
    found, outer = [], None
    for line in text.splitlines():
        m = re.match(r"/\* +(\d+)(?:: *\d+)? +\| +(\d+) \*/ {4}(?! )(.*)", line)
        if m and m[3].endswith("{"):
            outer = int(m[1]), int(m[2])
        elif m and (name := re.search(r"(\w+)\)?(?:\[.*?\])*(?:\(.*\))?(?: : \d+)?;$", m[3])):
            found.append((int(m[1]), int(m[2]), name[1]))
        elif outer and (m := re.match(r" {31}\} ?(\w*)", line)):
            found.append((*outer, m[1] or "a union"))
            outer = None
    size = re.search(r"^\$1 = (\d+)", text, re.M)
    return found, int(size[1]) if size else 0


def fields(function, size, offset):
    """Of what that function allocated: members that have a part of the line at the offset."""
    for ko, type_, count in TYPES.get(function, ()):
        rows, each = members(ko, type_)
        n = count or each and size // each
        # a driver's part may follow each op
        more = PAGE if "op" in type_ else 1
        if not each or size % n or not each <= size // n < each + more:
            continue
        i, at = divmod(offset, size // n)
        names = [name for first, length, name in rows if first < at + 64 and first + length > at]
        return (f": {type_}" + f"[{i}]" * (n > 1)
                + (" ." + ", .".join(names[:4]) if names else f"+{at}"))
    return OTHERS.get(function, "")


def describe(phys, virt, said, symbols, allocs):
    """One line of text for an address."""
    # the areas of CPUs are nearer to each other than the limit of the module
    if cpus := re.findall(r"CPU (\d+) at ([0-9a-f]+);", said):
        at, cpu = min((int(at, 16), cpu) for cpu, at in cpus)
        name = symbol(symbols, at)
        if name and not name.startswith("__per_cpu_end"):
            return f"per-CPU {name} of CPU {cpu}"
    if m := re.search(r"module ([0-9a-f]+);", said):
        return f"static {symbol(symbols, int(m[1], 16))}"
    for first, end, size, where in reversed(allocs):
        if first <= virt < end or first <= phys < end:
            at = (virt if virt < end and first <= virt else phys) - first
            function = where.split("+")[0]
            return f"{size} bytes of {where}, at {at}" + fields(function, size, at)
    if m := re.search(r"slab (\S+) .*?pointer offset (\d+)(?: size (\d+))?", said):
        return f"slab {m[1]}, at {m[2]} of {m[3] or '?'}"
    if (m := re.search(r"kernel ([0-9a-f]+);", said)) and (
            name := symbol(symbols, int(m[1], 16))):
        if not name.startswith("_end"):
            return f"static {name}"
    return re.sub(r"(CPU|module|kernel) [^;]*;", "", said).strip() or "a page"


def whose(machine, lines, kallsyms, functions):
    """{physical address: text}; functions: names of functions of modules."""
    symbols = every_symbol(kallsyms)
    allocs = allocations(machine.get("allocations"), functions)
    return {phys: describe(phys, virt, said, symbols, allocs)
            for phys, (virt, said) in ask(machine, lines).items()}
