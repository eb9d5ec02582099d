#!/usr/bin/env python3
"""ncu_table.py [LOG]: what a profiler counted of each kernel, for a unit of its work.

Reads what this prints, from a file or standard input:

    ncu --clock-control none --csv --print-units base --metrics smsp__inst_executed.sum,dram__bytes_read.sum,\\
dram__bytes_write.sum,gpu__time_duration.sum -k regex:gcl?_ build/tests/gpu/bench_lab profile

and the same of bench_cuda cpu=0 rounds=1 alone=0 ceilings=0 with one mode and one way. Units: of the program's lines "# per KERNEL N UNIT", the one with the longest beginning of
the kernel's name; otherwise the postings of the batch that bench_cuda tells, or of its index for gc_expand. Prints for
each kernel, on average of its launches, warp instructions for 128 units, bytes of device memory read and written for
one, and microseconds a launch.
"""
import csv
import re
import sys


def kernel_name(text):
    return re.sub(r"^void ", "", text.split("(")[0]).replace(" ", "")


def main():
    lines = (open(sys.argv[1]) if len(sys.argv) > 1 else sys.stdin).read().splitlines()
    units, rows, batch, index = {}, [], 0.0, 0.0
    for line in lines:
        m = re.match(r"# per (\S+) (\d+) (\S+)", line)
        if m:
            units[m[1]] = (float(m[2]), m[3])
        m = re.match(r"# index: .* (\d+) postings", line)
        if m:
            index = float(m[1])
        m = re.match(r"# \w+: (\d+) queries, ([\d.]+) M postings each", line)
        if m and not batch:
            batch = float(m[1]) * float(m[2]) * 1e6
        if line.startswith('"'):
            rows.append(line)
    if index:
        units["gc_"] = (batch, "postings")
        units["gc_expand"] = (index, "postings")
    kernels = {}
    for row in csv.DictReader(rows):
        launches = kernels.setdefault(kernel_name(row["Kernel Name"]), {})
        launches.setdefault(row["ID"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    for line in lines:  # where and by what it was counted
        if re.match(r"# (version|machine|driver|command|index|device): ", line):
            print(line)
    print("kernel\tlaunches\tunit\tinstructions/128\tread/unit\twritten/unit\tus/launch")
    for name, launches in kernels.items():
        known = [u for u in units if name.startswith(u)]
        n, unit = units[max(known, key=len)] if known else (128.0, "launches")
        mean = lambda metric: sum(x[metric] for x in launches.values()) / len(launches)
        print("%s\t%d\t%s\t%.4g\t%.3g\t%.3g\t%.1f" % (
            name, len(launches), unit, mean("smsp__inst_executed.sum") / n * 128,
            mean("dram__bytes_read.sum") / n, mean("dram__bytes_write.sum") / n,
            mean("gpu__time_duration.sum") / 1e3))


main()
