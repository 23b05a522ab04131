# SPDX-License-Identifier: GPL-2.0-only
"""What is measured: perftest between the hosts; on a disk fio's I/Os per second and latencies, data
that is read back, and what a lost link costs.  Each returns rows, which the report prints."""
import json, re, shlex

PERCENTILES = ("50", "90", "99", "99.9")
PERFTEST = {    # program: what its last line has
    "ib_write_bw": "Gb/s", "ib_read_bw": "Gb/s", "ib_send_bw": "Gb/s",
    "ib_write_lat": "us", "ib_read_lat": "us", "ib_send_lat": "us",
}
VERIFY = ("--name=verify --direct=1 --rw=randwrite --bsrange=4k-128k --iodepth=16 --verify=crc32c "
          "--verify_fatal=1 --do_verify=1 --serialize_overlap=1 --randrepeat=0")


def perftest(server, client, src, dst, o):
    """Rows of one program each: name, size, value, unit; or why there is none."""
    rows = []
    for program, unit in PERFTEST.items():
        if server.run(f"lacks {program}")[1] or client.run(f"lacks {program}")[1]:
            rows.append({"test": program, "note": "not installed on both hosts"})
            continue
        for size in (o.perftest_sizes if unit == "Gb/s" else o.perftest_sizes[:1]):
            words = (f"-F -s {size} -n {o.perftest_count} -p {o.port + 1}"
                     + " --report_gbits" * (unit == "Gb/s"))
            limit = f"timeout {o.seconds + 30} {program}"
            listener = server.spawn(f"{limit} $(verbs_of {dst}) {words}")
            rc, out = client.run(f"sleep 1; {limit} $(verbs_of {src}) {words} {dst}",
                                 o.seconds + 60)
            listener.kill()
            numbers = [line.split() for line in out.splitlines()
                       if re.match(rf"\s*{size}\s+\d", line)]
            if rc or not numbers:
                rows.append({"test": program, "size": size, "note": out[-200:] or f"status {rc}"})
                print(f"{program}: {rows[-1]['note']}")
                continue
            # bandwidth: average; latency: typical, then the 99th percentile
            values = numbers[-1]
            row = {"test": program, "size": size, "unit": unit,
                   "value": float(values[3 if unit == "Gb/s" else 4])}
            if unit == "us" and len(values) > 7:
                row["p99"] = float(values[7])
            rows.append(row)
            print(f"{program} {size}: {row['value']} {unit}")
    return rows


def fio(host, words, seconds):
    """Run fio; what it says of all its jobs together."""
    rc, out = host.run(f"fio --output-format=json {words}", seconds)
    try:
        return rc, json.loads(out[out.index("{"):out.rindex("}") + 1])["jobs"][0]
    except (ValueError, KeyError, IndexError):
        return rc or 1, {"said": out[-800:]}


def points(o):
    """(direction, KiB, jobs, depth) of each measurement: jobs at the smallest size, sizes at one
    number of jobs, and one I/O at a time."""
    small, jobs = o.sizes[0], o.jobs[-1] if len(o.jobs) < 4 else o.jobs[3]
    found = []
    for rw in ("read", "write"):
        found.append((rw, small, 1, 1))
        pairs = ([(s, j) for s in o.sizes for j in o.jobs] if o.matrix else
                 [(small, j) for j in o.jobs] + [(s, jobs) for s in o.sizes if s != small])
        found += [(rw, s, j, o.depth) for s, j in pairs]
    return found


def speed(host, dev, point, o, size=""):
    """A row: rates, latencies in microseconds, processor time."""
    rw, kib, jobs, depth = point
    words = (f"--name=j --filename={shlex.quote(dev)} --direct=1 --ioengine={o.engine} "
             f"--rw=rand{rw} --bs={kib}k --iodepth={depth} --numjobs={jobs} --thread "
             f"--group_reporting --time_based --runtime={round(1000 * o.seconds)}ms "
             f"--ramp_time={round(1000 * o.ramp)}ms "
             f"--norandommap --randrepeat=0 --lat_percentiles=1 --clat_percentiles=0 "
             f"--percentile_list={':'.join(PERCENTILES)} {size}")
    rc, job = fio(host, words, o.seconds + o.ramp + 120)
    row = {"rw": rw, "kib": kib, "jobs": jobs, "depth": depth}
    if rc or job.get("error"):
        return {**row, "note": job.get("said") or f"fio: error {job.get('error') or rc}"}
    d = job[rw]
    row |= {"iops": round(d["iops"]), "mib_s": round(d["bw_bytes"] / 1048576, 1),
            "mean": round(d["lat_ns"]["mean"] / 1000, 1)}
    at = {float(k): v for k, v in d["lat_ns"].get("percentile", {}).items()}
    row |= {f"p{p}": round(at[float(p)] / 1000, 1) for p in PERCENTILES if float(p) in at}
    return row | {"cpu": round(job["usr_cpu"] + job["sys_cpu"], 1)}


def verify(host, dev, o):
    """Data is written and read back; why not, or ""."""
    rc, job = fio(host, f"{VERIFY} --ioengine={o.engine} --filename={shlex.quote(dev)} "
                  f"--size={o.verify_mib}m", 600)
    return "" if not rc and not job.get("error") else job.get("said") or f"fio: status {rc}"


def link_lost(client, dev, srcs, o):
    """Links of the client go down for a while, under I/O whose data is read back."""
    links = [client.sh(f"link_check {src}").split()[-1] for src in srcs]
    rate = max(1, o.verify_mib // (4 * o.away)) if o.away else 1
    work = client.spawn(f"fio --output-format=json {VERIFY} --ioengine={o.engine} "
                        f"--filename={shlex.quote(dev)} --size={o.verify_mib}m "
                        f"--rate=,{rate}m")
    client.run("sleep 1")
    jobs = [client.spawn(f"link_away {link} {o.away}") for link in links]
    said = []
    for job, link in zip(jobs, links):
        rc, out = job.wait(o.away + 60)
        if rc:
            said.append(f"{link}: {out}")
    rc, out = work.wait(o.away + 600)
    row = {"links": " ".join(links), "away": o.away, "note": "; ".join(said)}
    try:
        job = json.loads(out[out.index("{"):out.rindex("}") + 1])["jobs"][0]
        row |= {"errors": job["error"], "stall_s": round(job["write"]["lat_ns"]["max"] / 1e9, 2)}
    except (ValueError, KeyError, IndexError):
        row |= {"errors": rc or 1, "note": out[-400:]}
    return row
