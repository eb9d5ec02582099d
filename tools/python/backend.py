"""Builds the wheel and the source distribution of gpuir, by PEP 517, with a C compiler and nothing but Python.

What is compiled is one shared library (gpuir_python.c) and the command. gpuir.h and the command's sources are those of
the project around this folder or, in a source distribution, of its folder csrc, which has those of xxHash, utf8proc
and Snowball, too. Elsewhere the system's headers and static libraries of these are taken; what is missing is left out,
and said to be.

Environment: CC, CFLAGS, LDFLAGS; GPUIR_PLATFORM: the wheel's platform tag, for a compiler that builds for another one;
GPUIR_PROGRAM: a command that is built already, to be taken.
"""

import base64
import hashlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = (
    os.path.join(HERE, "csrc") if os.path.isdir(os.path.join(HERE, "csrc")) else os.path.dirname(os.path.dirname(HERE))
)
THIRD = os.path.join(SOURCES if SOURCES.startswith(HERE) else HERE, "third")  # xxHash, utf8proc, Snowball
ROOMS = ["cli", "common", "exchange", "reorder", "lab"]  # of the command
PACKAGE = sorted(
    f"{package}/{f}"
    for package in ("gpuir", "pyterrier_gpuir")
    for f in os.listdir(os.path.join(HERE, package))
    if f.endswith((".py", ".typed"))
)
ENTRY_POINTS = """[console_scripts]
gpuir = gpuir.__main__:main
[pyterrier.artifact]
sparse_index.gpuir = pyterrier_gpuir:GpuirIndex
"""
LICENCES = {"xxhash": "libxxhash-dev", "utf8proc": "libutf8proc-dev", "stemmer": "libstemmer-dev"}


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as f:
        return f.read()


def version():
    header = read(SOURCES, "gpuir.h")
    return ".".join(
        re.search(rf"#define GPUIR_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH")
    )


def metadata():
    return "\n".join(
        [
            "Metadata-Version: 2.1",
            "Name: gpuir",
            f"Version: {version()}",
            "Summary: Ranked text search (BM25) in memory or in one file",
            "License: MIT",
            "Requires-Python: >=3.8",
            "Provides-Extra: numpy",
            'Requires-Dist: numpy; extra == "numpy"',
            "Provides-Extra: pyterrier",
            'Requires-Dist: pyterrier>=1.1; extra == "pyterrier"',
            "Classifier: Typing :: Typed",
            "Description-Content-Type: text/markdown",
            "",
            read(HERE, "README.md"),
        ]
    )


# ---- compiling ------------------------------------------------------------------------------------------------------


def compiler():
    return shlex.split(os.environ.get("CC", "cc"))


def flags(name, default=""):
    return shlex.split(os.environ.get(name, default))


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit("gpuir: " + shlex.join(command) + "\n" + done.stdout.decode(errors="replace"))


def has(code, *options):
    """Whether a program of this C code can be compiled and linked."""
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "a.c")
        with open(source, "w", encoding="utf-8") as f:
            f.write(code)
        command = [*compiler(), source, *options, "-o", os.path.join(folder, "a")]
        return (
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0
        )


class Parts:
    """What is compiled and linked beside gpuir's own sources."""

    def __init__(self):
        self.defines, self.includes, self.sources, self.libraries = [], ["-I" + SOURCES], [], []
        if os.path.isdir(THIRD):
            self.take_bundled(THIRD)
        else:
            self.take_system()
        if has("#include <zlib.h>\nint main(void) { return zlibVersion() == 0; }", "-lz"):
            self.defines.append("-DGPUIR_WITH_ZLIB=1")
            self.zlib = ["-lz"]
        else:
            self.zlib = []

    def take_bundled(self, bundled):
        self.defines += ["-DGPUIR_WITH_UTF8PROC=1", "-DGPUIR_WITH_STEMMER=1", "-DUTF8PROC_STATIC"]
        stemmer = os.path.join(bundled, "stemmer")
        self.includes += [
            "-I" + os.path.join(bundled, "xxhash"),
            "-I" + os.path.join(bundled, "utf8proc"),
            "-I" + os.path.join(stemmer, "include"),
        ]
        self.sources.append(os.path.join(bundled, "utf8proc", "utf8proc.c"))
        self.sources += [os.path.join(stemmer, f) for f in read(stemmer, "sources.txt").split()]

    def take_system(self):
        if not has("#include <xxhash.h>\nint main(void) { return 0; }"):
            sys.exit("gpuir: no header of xxHash (libxxhash-dev) was found")
        # In a shared library they must be position-independent, and no library of the system is to be needed later.
        for name, call in (("utf8proc", "utf8proc_version() == 0"), ("stemmer", "sb_stemmer_list() == 0")):
            header = {"utf8proc": "utf8proc.h", "stemmer": "libstemmer.h"}[name]
            code = f"#include <{header}>\nint f(void);\nint f(void) {{ return {call}; }}"
            if has(code, "-shared", "-fPIC", f"-l:lib{name}.a", "-Wl,-z,defs"):
                self.defines.append(f"-DGPUIR_WITH_{name.upper()}=1")
                self.libraries.append(f"-l:lib{name}.a")
            else:
                print(f"gpuir: note: no static lib{name} was found: built without what needs it", file=sys.stderr)


def compile_to(folder, sources, options):
    """Compiles sources, as many at once as there are processors. Returns their objects."""
    objects = [os.path.join(folder, f"{os.path.basename(options[-1])}{i}.o") for i in range(len(sources))]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda pair: run([*options[:-1], "-c", pair[0], "-o", pair[1]]), zip(sources, objects)))
    return objects


def compile_all(out):
    """Writes libgpuir.so and bin/gpuir into a folder."""
    parts = Parts()
    common = [*compiler(), "-std=c99", *flags("CFLAGS", "-O3"), "-fPIC", *parts.defines, *parts.includes]
    last = ["-s", *flags("LDFLAGS"), "-lm", "-pthread"]
    os.makedirs(os.path.join(out, "bin"))
    program = os.path.join(out, "bin", "gpuir")
    with tempfile.TemporaryDirectory() as folder:
        third = compile_to(folder, parts.sources, [*common, "third"])
        library = compile_to(folder, [os.path.join(HERE, "gpuir_python.c")], [*common, "library"])
        symbols = os.path.join(folder, "symbols")
        with open(symbols, "w", encoding="utf-8") as f:
            f.write("{ global: gpuir_*; local: *; };\n")
        run(
            [
                *compiler(),
                "-shared",
                *library,
                *third,
                *parts.libraries,
                "-Wl,-soname,libgpuir.so",
                f"-Wl,--version-script={symbols}",
                "-Wl,-z,defs",
                *last,
                "-o",
                os.path.join(out, "libgpuir.so"),
            ]
        )
        if os.environ.get("GPUIR_PROGRAM"):
            shutil.copy(os.environ["GPUIR_PROGRAM"], program)
            return
        objects = []
        for room in ROOMS:
            at = os.path.join(SOURCES, "tools", room)
            extra = [] if room == "common" else ["-DGPUIR_EXPERIMENTAL"]
            sources = [os.path.join(at, f) for f in sorted(os.listdir(at)) if f.endswith(".c")]
            objects += compile_to(folder, sources, [*common, *extra, room])
        # The laboratory has a copy of the library's private functions, which need the third parties, too.
        run(
            [
                *compiler(),
                *objects,
                *third,
                "-L" + out,
                "-lgpuir",
                *parts.libraries,
                "-Wl,-rpath,$ORIGIN/..",
                *parts.zlib,
                "-ldl",
                *last,
                "-o",
                program,
            ]
        )


# ---- the wheel ------------------------------------------------------------------------------------------------------


def platform_tag():
    return os.environ.get("GPUIR_PLATFORM", sysconfig.get_platform().replace("-", "_").replace(".", "_"))


def licences():
    """(name, text) of what a distribution has to carry."""
    found = [("LICENSE", read(SOURCES, "LICENSE"))]
    for name, package in LICENCES.items():
        for path in (os.path.join(THIRD, name, "LICENCE"), f"/usr/share/doc/{package}/copyright"):
            if os.path.exists(path):
                found.append((f"LICENCE.{name}", read(path)))
                break
    return found


class Wheel:
    def __init__(self, path):
        self.zip, self.record = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), []

    def add(self, name, data, mode=0o644):
        data = data if isinstance(data, bytes) else data.encode()
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same input gives the same bytes
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def close(self, info):
        name = f"{info}/RECORD"
        self.zip.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), "\n".join([*self.record, f"{name},,", ""]))
        self.zip.close()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    tag = f"py3-none-{platform_tag()}"
    name = f"gpuir-{version()}-{tag}.whl"
    info = f"gpuir-{version()}.dist-info"
    with tempfile.TemporaryDirectory() as out:
        compile_all(out)
        wheel = Wheel(os.path.join(wheel_directory, name))
        for f in PACKAGE:
            wheel.add(f, read(HERE, f))
        for f in ("libgpuir.so", "bin/gpuir"):
            with open(os.path.join(out, f), "rb") as binary:
                wheel.add(f"gpuir/{f}", binary.read(), 0o755)
    wheel.add(f"{info}/METADATA", metadata())
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: gpuir\nRoot-Is-Purelib: false\nTag: {tag}\n")
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS)
    for licence, text in licences():
        wheel.add(f"{info}/licenses/{licence}", text)
    wheel.close(info)
    return name


# ---- the source distribution ----------------------------------------------------------------------------------------


def source_files():
    """(name in the distribution, path) of all that a wheel is built from."""
    if not os.path.isdir(THIRD):
        sys.exit("gpuir: the sources of xxHash, utf8proc and Snowball are missing: tools/python/third.sh fetches them")
    for f in ("pyproject.toml", "backend.py", "gpuir_python.c", "README.md"):
        yield f, os.path.join(HERE, f)
    for f in PACKAGE:
        yield f, os.path.join(HERE, f)
    for f in ("gpuir.h", "LICENSE"):
        yield f"csrc/{f}", os.path.join(SOURCES, f)
    for room in ROOMS:
        folder = os.path.join(SOURCES, "tools", room)
        for f in sorted(os.listdir(folder)):
            if f.endswith((".c", ".h")):
                yield f"csrc/tools/{room}/{f}", os.path.join(folder, f)
    for folder, _, files in sorted(os.walk(THIRD)):
        for f in sorted(files):
            path = os.path.join(folder, f)
            yield f"csrc/third/{os.path.relpath(path, THIRD)}", path


def build_sdist(sdist_directory, config_settings=None):
    base = f"gpuir-{version()}"
    path = os.path.join(sdist_directory, base + ".tar.gz")
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:

        def add(name, data):
            info = tarfile.TarInfo(f"{base}/{name}")
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))

        add("PKG-INFO", metadata().encode())
        for name, source in source_files():
            with open(source, "rb") as f:
                add(name, f.read())
    return os.path.basename(path)


if __name__ == "__main__":  # backend.py wheel|sdist FOLDER, for make, which needs no pip
    os.makedirs(sys.argv[2], exist_ok=True)
    print({"wheel": build_wheel, "sdist": build_sdist}[sys.argv[1]](sys.argv[2]))
