#!/usr/bin/env python3
"""sections.py FILE: the sections of an index file: number, flags, length and hash, a line each."""

import struct
import sys

with open(sys.argv[1], "rb") as file:
    head = file.read(64)
    for _ in range(struct.unpack_from("<I", head, 12)[0]):
        number, flags, _, length, digest = struct.unpack("<IIQQQ", file.read(32))
        print(f"{number}\t{flags}\t{length}\t{digest:016x}")
