# SPDX-License-Identifier: GPL-2.0-only
"""The report: a directory with report.md, a CSV of each table, plots, and what the hosts said of
themselves; and all of it as one file to send."""
import csv, re, subprocess, sys, tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import gnuplot                                      # noqa: E402
from measure import PERCENTILES                     # noqa: E402

SPEED = ["stack", "disk", "rw", "kib", "jobs", "depth", "iops", "mib_s", "mean",
         *(f"p{p}" for p in PERCENTILES), "cpu", "note"]


def write_csv(path, rows, columns):
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, columns, extrasaction="ignore")
        w.writeheader()
        w.writerows(rows)


def table(rows, columns):
    def cell(v):
        return str(v if v is not None else "-").replace("|", "/").replace("\n", " ")
    return ["| " + " | ".join(map(str, columns)) + " |", "|" + "---|" * len(columns),
            *("| " + " | ".join(cell(r.get(c)) for c in columns) + " |" for r in rows), ""]


def grid(rows, down, across, value):
    """Rows by `down`, columns by `across`."""
    names = list(dict.fromkeys(r[across] for r in rows))
    lines = {}
    for r in rows:
        lines.setdefault(r[down], {down: r[down]})[r[across]] = r.get(value)
    return table(lines.values(), [down, *names])


class Report:
    """Takes rows as they come, and writes what is there, however the run ended."""
    def __init__(self, out):
        self.out = Path(out)
        (self.out / "hosts").mkdir(parents=True)
        self.words, self.facts, self.head = "", {}, []
        self.speed, self.perftest, self.verified, self.links = [], [], [], []
        self.restored, self.trouble = "nothing was changed", []

    def host(self, name, facts, details):
        self.facts[name] = dict(line.split(": ", 1) for line in facts.splitlines() if ": " in line)
        (self.out / f"hosts/{name}.txt").write_text(f"{facts}\n\n{details}\n")

    def failed(self):
        return [*self.trouble, *(f"{v['stack']} on {v['disk']}: {v['result']}"
                                 for v in self.verified if v["result"] != "ok"),
                *(f"ibnbd, {r['links']} away: {r['errors'] or r['note']}" for r in self.links
                  if r["stack"] == "ibnbd" and (r["errors"] or r["note"])),
                *(f"ibnbd: {r['rw']} of {r['kib']} KiB on {r['disk']}: {r['note']}"
                  for r in self.speed if r.get("note") and r["stack"] == "ibnbd")]

    def write(self):
        bad = self.failed()
        text = ["# ibnbd on hardware", "",
                f"`{self.words}`", "", *self.head, "",
                f"Result: **{'failed' if bad else 'passed'}**.", f"Restored: {self.restored}.", ""]
        text += [f"* {b}" for b in bad] + [""] * bool(bad)
        text += ["## Hosts", ""]
        names = list(dict.fromkeys(k for f in self.facts.values() for k in f))
        text += table([{"": n, **{h: f.get(n) for h, f in self.facts.items()}} for n in names],
                      ["", *self.facts])
        text += ["More of each: hosts/.", ""]
        if self.perftest:
            text += ["## The network alone (perftest)", "",
                     *table(self.perftest, ["test", "size", "value", "unit", "p99", "note"])]
        text += ["## Data written and read back", "",
                 *table(self.verified, ["stack", "disk", "result"])]
        if self.links:
            text += ["## Links taken away under I/O", "",
                     *table(self.links, ["stack", "links", "away", "stall_s", "errors", "note"])]
        text += self._speed()
        (self.out / "report.md").write_text("\n".join(text) + "\n")
        write_csv(self.out / "speed.csv", self.speed, SPEED)
        write_csv(self.out / "perftest.csv", self.perftest,
                  ["test", "size", "value", "unit", "p99", "note"])
        write_csv(self.out / "verify.csv", self.verified, ["stack", "disk", "result"])
        write_csv(self.out / "links.csv", self.links,
                  ["stack", "links", "away", "stall_s", "errors", "note"])
        packed = self.out.with_name(self.out.name + ".tar.gz")
        with tarfile.open(packed, "w:gz") as tar:
            tar.add(self.out, self.out.name)
        return packed

    def _speed(self):
        """Tables, and a plot of each."""
        text = []
        for disk in dict.fromkeys(r["disk"] for r in self.speed):
            for rw in ("read", "write"):
                some = [r for r in self.speed if (r["disk"], r["rw"]) == (disk, rw)]
                if not some:
                    continue
                small, deep = min(r["kib"] for r in some), max(r["depth"] for r in some)
                one = [r for r in some if r["depth"] == 1 and r["jobs"] == 1 and r["kib"] == small]
                jobs = [r for r in some if r["kib"] == small and r["depth"] == deep]
                at = [j for j in {r["jobs"] for r in some}
                      if len({r["kib"] for r in some if r["jobs"] == j}) > 1]
                sizes = [r for r in some if r["jobs"] == max(at, default=0) and r["depth"] == deep]
                text += [f"## {disk}: random {rw}s", "",
                         f"{small} KiB, one at a time, microseconds:", "",
                         *table(one, ["stack", "iops", "mean",
                                      *(f"p{p}" for p in PERCENTILES), "note"]),
                         f"{small} KiB, {deep} in flight of each job, I/Os per second by jobs:", "",
                         *grid(jobs, "stack", "jobs", "iops"),
                         "The 99th percentile of these, microseconds:", "",
                         *grid(jobs, "stack", "jobs", "p99")]
                self._plot(f"{disk}-{rw}-jobs", jobs, "jobs", "iops", text)
                if sizes:
                    text += [f"{max(at)} jobs, MiB per second by KiB:", "",
                             *grid(sizes, "stack", "kib", "mib_s"),
                             "The 99th percentile of these, microseconds:", "",
                             *grid(sizes, "stack", "kib", "p99")]
                    self._plot(f"{disk}-{rw}-sizes", sizes, "kib", "mib_s", text)
        return text

    def _plot(self, name, rows, across, value, text):
        name, series = re.sub(r"\W+", "-", name).strip("-"), {}
        for r in rows:
            if r.get(value) is not None:
                series.setdefault(r["stack"], []).append((r[across], r[value]))
        if not series:
            return
        why = gnuplot.lines(self.out / f"{name}.svg", series,
                            {"kib": "KiB of an I/O", "jobs": "fio jobs"}[across],
                            {"iops": "I/Os per second", "mib_s": "MiB per second"}[value])
        text += [f"![{name}]({name}.svg)" if not why else f"No plot: {why}.", ""]


def commit():
    here = Path(__file__).resolve().parent
    try:
        return subprocess.run(["git", "-C", here, "describe", "--always", "--dirty"],
                              capture_output=True, text=True).stdout.strip() or "unknown"
    except FileNotFoundError:
        return "unknown"
