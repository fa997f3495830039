#!/usr/bin/env python3
"""P-states of a collection of real machines' ACPI tables, and whether ACPICA's acpiexec agrees.

usage: tests/acpi_collection.py COLLECTION [--eft target/release/eft] [--fill 0] [--fill 0xff] [--jobs 3] [--bound 60]

COLLECTION holds dumps as acpidump writes them (text), anywhere below it, or is a git repository with such files in its
newest commit. Wants acpixtract and acpiexec (Debian: acpica-tools). Firmware is its makers', so no dump is kept here;
https://github.com/linuxhw/ACPI has hundreds.

acpiexec fills whatever the tables read of the hardware with one byte. States that eft does not mark must be the same
for every byte; of those that it marks, one of its lists must fit. Exits 1 if any unmarked state differs.

On some machines acpiexec waits for hardware that never answers: a call of it is ended after --bound seconds, and such a
machine has no verdict.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PDC = " (01 00 00 00 01 00 00 00 FB 01 00 00)"
MHZ_MAX = 0xFFFFFFFF // 1000


def dumps(collection):
    """Name of each dump, and how its bytes are had."""
    git = ["git", "-C", str(collection)]
    listed = subprocess.run([*git, "ls-tree", "-r", "-z", "--name-only", "HEAD"], capture_output=True)
    if listed.returncode == 0:
        for name in listed.stdout.decode().split("\0"):
            if name.endswith(".bin"):
                # A partial clone lists files that it does not have: those give nothing.
                yield name, lambda name=name: subprocess.run([*git, "show", f"HEAD:{name}"], capture_output=True).stdout
        return
    for path in sorted(collection.rglob("*")):
        if path.is_file() and is_dump(path):
            yield str(path.relative_to(collection)), path.read_bytes


def is_dump(path):
    with path.open("rb") as file:
        return re.match(rb"\S{4} @ 0x", file.read(9)) is not None


class Endless(Exception):
    """acpiexec was not done within its bound."""


def is_intact(table):
    return len(table) > 36 and int.from_bytes(table[4:8], "little") == len(table) and sum(table) % 256 == 0


def acpiexec(tables, fill, commands, bound):
    command = ["acpiexec", "-di", "-fv", fill, "-b", ";".join(commands), *map(str, tables)]
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=bound).stdout
    except subprocess.TimeoutExpired as over:
        raise Endless from over


def named(tables, fill, name, bound):
    return sorted(set(re.findall(r"(\\[\w.]+\." + name + r")\s", acpiexec(tables, fill, ["find " + name], bound))))


def oracle(tables, fill, bound):
    """States by processor, as acpiexec has them after _PDC; fastest first."""
    objects = named(tables, fill, "_PSS", bound)
    if not objects:
        return {}
    commands = [f"evaluate {name}{PDC}" for name in named(tables, fill, "_PDC", bound)]
    commands += [f"evaluate {name}" for name in objects]
    found = {}
    for part in acpiexec(tables, fill, commands, bound).split("Evaluating ")[1:]:
        path = part.split(None, 1)[0]
        if not path.endswith("._PSS") or "returned object" not in part:
            continue
        numbers = [int(n, 16) for n in re.findall(r"\[Integer\] = ([0-9A-Fa-f]+)", part.split("returned object")[1])]
        rows = [tuple(numbers[i : i + 6]) for i in range(0, len(numbers) - len(numbers) % 6, 6)]
        rows = [row for row in rows if 1 <= row[0] <= MHZ_MAX]
        if rows:
            found[plain(path[: -len("._PSS")])] = sorted(rows, key=lambda row: -row[0])
    return found


def plain(path):
    return ".".join(segment.rstrip("_") or "_" for segment in path.lstrip("\\").split("."))


def rows_of(states):
    keys = ("frequency_mhz", "power_mw", "transition_latency_us", "bus_master_latency_us", "control", "status")
    return [tuple(state[key] for key in keys) for state in states]


def fits(ours, theirs):
    """As far as it is known, in any order among states of one frequency."""
    left = list(theirs)
    for row in ours:
        match = next((t for t in left if all(o is None or o == n for o, n in zip(row, t))), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def verdict(processor, theirs):
    if not processor["states"]:
        return "not found by eft"
    if processor["states_depend_on"] is None:
        return "equal" if fits(rows_of(processor["states"]), theirs) else "UNMARKED AND DIFFERENT"
    lists = [processor["states"], *processor["other_states"]]
    return "marked, one list fits" if any(fits(rows_of(s), theirs) for s in lists) else "marked, no list fits"


def judge(eft, fills, bound, name, read):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "dump").write_bytes(read())
        subprocess.run(["acpixtract", "-a", "dump"], cwd=folder, capture_output=True)
        (folder / "dump").unlink()
        tables = [path for path in sorted(folder.glob("*.dat")) if is_intact(path.read_bytes())]
        if not any(b"_PSS" in path.read_bytes() for path in tables):
            return None
        run = subprocess.run([eft, "cpu", "acpi", "--json", "--tables", folder], capture_output=True, text=True, timeout=120)
        if run.returncode:
            return {"name": name, "error": run.stderr.strip(), "states": False, "verdicts": {}, "endless": []}
        processors = json.loads(run.stdout)["processors"]
        blocks = [path for path in tables if path.read_bytes()[:4] == b"DSDT"]
        blocks += [path for path in tables if path.read_bytes()[:4] == b"SSDT"]
        verdicts, endless = {}, []
        for fill in fills:
            try:
                theirs = oracle(blocks, fill, bound)
            except Endless:
                endless.append(fill)
                continue
            ours = {plain(processor["path"]): processor for processor in processors}
            verdicts[fill] = collections.Counter(verdict(ours[path], rows) for path, rows in theirs.items() if path in ours)
        with_states = [processor for processor in processors if processor["states"]]
        return {
            "name": name,
            "states": bool(with_states),
            "marked": bool(with_states) and all(processor["states_depend_on"] for processor in with_states),
            "verdicts": verdicts,
            "endless": endless,
        }


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("collection", type=pathlib.Path)
    arguments.add_argument("--eft", default="target/release/eft")
    arguments.add_argument("--fill", action="append")
    arguments.add_argument("--jobs", type=int, default=3)
    arguments.add_argument("--bound", type=float, default=60, help="seconds that a call of acpiexec may take")
    arguments.add_argument("--every", type=int, default=1, help="judge one dump in so many")
    given = arguments.parse_args()
    fills = given.fill or ["0", "0xff"]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        chosen = list(dumps(given.collection))[:: given.every]
        tasks = [pool.submit(judge, given.eft, fills, given.bound, name, read) for name, read in chosen]
        machines = []
        for done, task in enumerate(concurrent.futures.as_completed(tasks), 1):
            machines += [machine for machine in [task.result()] if machine]
            if sys.stderr.isatty() or done % 50 == 0:
                print(f"\r{done} of {len(tasks)}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        machines.sort(key=lambda machine: machine["name"])
    if not machines:
        sys.exit("no dump there whose tables hold _PSS")
    found = [machine for machine in machines if machine["states"]]
    print(f"{len(machines)} machines with _PSS in their tables: states for {len(found)},")
    print(f"  all of them depending on what cannot be read for {sum(machine['marked'] for machine in found)}")
    for machine in machines:
        if "error" in machine:
            print(f"{machine['name']}: {machine['error']}")
    is_wrong = False
    for fill in fills:
        total = sum((machine["verdicts"].get(fill, collections.Counter()) for machine in machines), collections.Counter())
        judged = [machine for machine in machines if machine["verdicts"].get(fill)]
        agree = [machine for machine in judged if set(machine["verdicts"][fill]) <= {"equal", "marked, one list fits"}]
        print(f"hardware filled with {fill}: acpiexec evaluates {len(judged)} machines, eft agrees on {len(agree)}")
        endless = sum(fill in machine["endless"] for machine in machines)
        if endless:
            print(f"  {endless} machines without a verdict: acpiexec was not done in {given.bound:g} s")
        for kind, count in total.most_common():
            print(f"  {count} processors: {kind}")
        for machine in judged:
            odd = set(machine["verdicts"][fill]) - {"equal", "marked, one list fits"}
            if odd:
                print(f"  {machine['name']}: {', '.join(sorted(odd))}")
            is_wrong |= "UNMARKED AND DIFFERENT" in odd
    sys.exit(1 if is_wrong else 0)


if __name__ == "__main__":
    main()
