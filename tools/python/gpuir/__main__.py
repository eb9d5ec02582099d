"""The command gpuir, which comes with this package: python -m gpuir ..."""

import os
import sys

from ._library import folder


def main() -> None:
    program = os.path.join(folder, "bin", "gpuir")
    if sys.argv[1:2] == ["mount"]:
        sys.exit("gpuir: the mount is another program, gpuirfs, which comes with the project's `make install`")
    os.execv(program, ["gpuir", *sys.argv[1:]])


if __name__ == "__main__":
    main()
