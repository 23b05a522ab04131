# SPDX-License-Identifier: GPL-2.0-only
"""The list of flaky cases: those that failed and passed when they were run once more, alone.

One such case in a run is forgiven, and its name is kept in a file over runs.  Two in one run, or
the same case for the second time in the list, are a failure: the cause is to be found.  Its line is
deleted from the file then.
"""
import datetime, subprocess
from pathlib import Path
import image


def habit(path, names):
    """Enter the flaky cases of a run into the list.
    Returns why they cannot be forgiven, or None."""
    path = Path(path)
    known = path.read_text().splitlines() if path.exists() else []
    commit = subprocess.run(["git", "-C", image.REPO, "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True).stdout.strip() or "?"
    if names:
        with open(path, "a") as f:
            f.writelines(f"{datetime.date.today()} {commit} {n}\n" for n in names)
    for line in known:
        print(f"flaky before: {line}")
    twice = [n for n in names if n in (line.split()[-1] for line in known)]
    if twice:
        return (f"flaky for the second time: {', '.join(twice)}; find the cause, "
                f"then delete the lines from {path}")
    if len(names) > 1:
        return f"{len(names)} flaky cases in one run: {', '.join(names)}"
    return None
