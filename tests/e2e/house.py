#!/usr/bin/env python3
"""house.py ROOT CHECK - the layout of gpuir.h and of the CUDA units: prints what is wrong, and exits with 1 if anything is.

banners, ladder and uses look at the rooms of gpuir.h and at those of gpuir_cuda.cu.

    contents   each tag of the contents has one banner, its entry points are defined in that part, its test exists
    banners    each part says what it uses, where to start and what tests it; parts stand in order
    sizes      a room over 60 KB says why in its banner, under "Size"
    functions  no function has over 70 lines
    ladder     no private function is declared ahead of its definition, and no room uses a later one
    uses       what a banner says under "Uses" is what the room uses; what stands under "Start at" is defined there; a
               constant of a CUDA room is used there
    selftest   the checks above find what they look for
"""
import os
import re
import sys
import tempfile

MOST_FUNCTION = 70
MOST_ROOM = 60 * 1024
TAG = r"(?:cuda-)?\d\d-[a-z0-9-]+"  # of a room: [61-or] of gpuir.h, [cuda-07-or] of gpuir_cuda.cu
NAME = r"(?:gpuir|g[ctl])_\w+"
MACRO = r"(?:GPUIR|G[CTL])_\w+"
# Names that a room announces and a later one defines.
ANNOUNCED = {
    "gpuir__bp128_view",  # [18-codecs] has an open list's state in one union
    "gpuir__line",  # the same
    "gpuir_builder",  # an inversion's workers know the builder that they work for
    "gpuir__prepared",  # an operand carries what a method prepared
}
GROUND = ("16-base", "17-vectors", "cuda-01-shared", "cuda-02-primitives")  # all use them: no banner has to say so
UNITS = ("gpuir.h", "gpuir_cuda.cu", "tools/lab/gpuir_lab.cu")


def without_comments(text):
    """The text with comments blanked out; lines stay where they are."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)


def contents(text):
    """(tag, entry points) of each implementation part in the contents."""
    text = text[: text.find("\n * [api-configuration]  ")]
    found = re.findall(r"^ \*     \[(\d\d[a-z]?-[a-z0-9-]+)\] (.*)$", text, re.M)
    return [(tag, re.findall(r"gpuir_\w+", rest)) for tag, rest in found]


def banners(text):
    """{tag: (first line, line behind the last, text of the banner, text of the part)}; a tag twice is None."""
    starts = [(m.group(1), m.start()) for m in re.finditer(rf"^/\* =+\n \* \[({TAG})\]  ", text, re.M)]
    end = text.index("#endif /* GPUIR_IMPLEMENTATION */") if "#endif /* GPUIR_IMPLEMENTATION */" in text else len(text)
    parts = {}
    for i, (tag, at) in enumerate(starts):
        to = starts[i + 1][1] if i + 1 < len(starts) else end
        part = text[at:to]
        line = text.count("\n", 0, at) + 1
        parts[tag] = None if tag in parts else (line, line + part.count("\n"), part[: part.index("*/")], part)
    return parts


def check_contents(root, text):
    parts, wrong = banners(text), []
    listed = contents(text)
    if not listed:
        wrong.append("gpuir.h: no contents")
    for tag, entries in listed:
        if parts.get(tag) is None:
            wrong.append(f"[{tag}] has not exactly one banner")
            continue
        code = without_comments(parts[tag][3])
        for entry in entries:
            if not re.search(rf"^(?! ).*\b{entry}(\(|\[|;| \{{|\) \{{)", code, re.M):
                wrong.append(f"[{tag}]: {entry} is not defined there")
        if not entries:
            wrong.append(f"[{tag}]: no entry point")
        test = f"tests/unit/{tag.replace('-', '_')}.c"
        if not os.path.exists(os.path.join(root, test)):
            wrong.append(f"[{tag}]: {test} is missing")
    wrong += [f"[{tag}] is not in the contents" for tag in parts if tag not in dict(listed)]
    for tag in sorted(set(re.findall(r"\[(api-[a-z0-9-]+)\]", text))):
        if len(re.findall(rf"^ \* \[{tag}\]  ", text, re.M)) != 1:
            wrong.append(f"[{tag}] has not exactly one heading")
    return wrong


def tests_named(tag, banner):
    """Files that the banner has to name under "Tests", or what it names there: the CUDA rooms share their tests."""
    found = re.search(r"^ \* Tests(.*)", banner, re.M | re.S)
    return re.findall(r"tests/\w+/\w+\.c\b", found.group(1) if found else "") or [f"tests/unit/{tag.replace('-', '_')}.c"]


def check_banners(root, text):
    parts, wrong = banners(text), []
    for tag, part in parts.items():
        for word in ("Start at", "Tests"):
            if part and not re.search(rf"^ \* {word}  ", part[2], re.M):
                wrong.append(f"[{tag}]: the banner lacks '{word}'")
        test = f"tests/unit/{tag.replace('-', '_')}.c"
        if part and test not in part[2] and not tag.startswith("cuda-"):
            wrong.append(f"[{tag}]: the banner does not name {test}")
        wrong += [f"[{tag}]: {name} is missing" for name in tests_named(tag, part[2] if part else "")
                  if tag.startswith("cuda-") and not os.path.exists(os.path.join(root, name))]
    numbers = [int(re.sub(r"^cuda-", "", tag).split("-")[0]) for tag in parts]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        wrong.append(f"parts stand in the order {numbers}")
    return wrong


def functions(text):
    """(line, name, lines) of each function."""
    lines, found, start = without_comments(text).split("\n"), [], None
    macro = False
    for i, line in enumerate(lines):
        in_macro, macro = macro, line.endswith("\\") and (macro or line.startswith("#"))
        if in_macro or macro or line.startswith("#") or not line.strip():
            continue
        if start is None and re.match(r"[A-Za-z_]", line):
            start = i
        if start is None:
            continue
        head = " ".join(lines[start : i + 1])
        if line.startswith("}"):
            head = re.sub(r"GPUIR__(?:DE|EN)CODES\((\w+)\)", r"\1()", head)  # heads of codecs' functions
            name = re.search(r"([A-Za-z_]\w*)\s*\(", re.sub(r"__attribute__\(\(.*?\)\)|__launch_bounds__\(.*?\)", "", head))
            if "{" in head and name and not re.match(r"(typedef|struct|enum|union)\b|[^({]*=", head):
                found.append((start + 1, name.group(1), i - start + 1))
            start = None
        elif line.rstrip().endswith(";") and "{" not in head:
            start = None
        elif re.fullmatch(r'extern "C" \{', line.strip()):
            start = None
        elif line.rstrip().endswith("}") and line[0] not in " \t" and head.count("{") == head.count("}"):
            start = None
    return found


def check_functions(root, _):
    wrong = []
    for unit in UNITS:
        with open(os.path.join(root, unit), encoding="utf-8") as f:
            found = functions(f.read())
        if len(found) < 30:
            wrong.append(f"{unit}: only {len(found)} functions were found")
        wrong += [f"{unit}:{line}: {name} has {n} lines" for line, name, n in found
                  if n > MOST_FUNCTION]
    return wrong


def defined(code):
    """The names that a room's code defines."""
    code = re.sub(r"__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*", "", code)  # a kernel's name stands behind it
    names = set(re.findall(rf"#\s*define ({MACRO})", code)) | set(re.findall(rf"\}}\s*({NAME});", code))
    names |= set(re.findall(rf"struct (?:alignas\(\d+\) )?({NAME}) (?:: \w+ )?\{{", code))
    names |= set(re.findall(r"^typedef [^;{]*?\b(gpuir__\w+|g[ctl]_\w+)[;\[]", code, re.M))
    names |= set(re.findall(r"^typedef [^;{]*?\(\*(gpuir__\w+|g[ctl]_\w+)\)", code, re.M))
    for constants in re.findall(r"^enum[^{]*\{(.*?)\}", code, re.M | re.S):
        names |= set(re.findall(r"\b(GPUIR__\w+|G[CTL]_\w+)\b", constants))
    for line in re.findall(r"^(?![ #}])(?!typedef)[^\n]*", code, re.M):
        for pattern in (rf"\b({NAME})\s*[(\[]", r"GPUIR__(?:DE|EN)CODES\((\w+)\)", r"static const [\w ]+?\**\b(gpuir__\w+)"):
            names |= set(re.findall(pattern, line)[:1])
    return names


def rooms(text):
    """{tag: (banner, code without comments and words)} of the implementation's rooms, in order."""
    bare = lambda part: re.sub(r'"(?:[^"\\\n]|\\.)*"', '""', without_comments(part))
    return {tag: (part[2], bare(part[3])) for tag, part in banners(text).items() if part}


def measured(text):
    """{tag: {tag of another room: names of it}}, by the names that stand in the code."""
    owner, uses = {}, {}
    for tag, (_, code) in rooms(text).items():
        for name in defined(code):
            owner.setdefault(name, tag)
    for tag, (_, code) in rooms(text).items():
        uses[tag] = {}
        for name in sorted(set(re.findall(rf"\b(?:{NAME}|{MACRO})", code))):
            if owner.get(name, tag) != tag:
                uses[tag].setdefault(owner[name], []).append(name)
    return uses


def said(banner, tags):
    """The rooms that a banner names under "Uses"; "[a] to [b]" names those between them too."""
    found = re.search(r"^ \* Uses(.*?)^ \* (?:Start at|Tests)", banner, re.M | re.S)
    listed = found.group(1) if found else ""
    names = set(re.findall(rf"\[({TAG})\]", listed))
    for a, b in re.findall(rf"\[({TAG})\] to\s[\s*]*\[({TAG})\]", listed):
        names |= set(tags[tags.index(a) : tags.index(b) + 1]) if a in tags and b in tags else set()
    return names


def check_uses(_, text):
    wrong, uses = [], measured(text)
    tags = list(uses)
    for tag, (banner, code) in rooms(text).items():
        used = {other for other in uses[tag] if tags.index(other) < tags.index(tag)} - set(GROUND)
        names = said(banner, tags) - set(GROUND)
        wrong += [f"[{tag}] uses [{other}] ({uses[tag][other][0]}), and its banner does not say so"
                  for other in sorted(used - names)]
        wrong += [f"[{tag}]: the banner says that it uses [{other}], and it does not" for other in sorted(names - used)]
        wrong += [f"[{tag}] defines {name}, which only other rooms use"
                  for name in re.findall(r"#define (G[CTL]_\w+)", code)
                  if tag != "cuda-01-shared" and not re.search(rf"(?<!#define )\b{name}\b", code)]
        found = re.search(r"^ \* Start at(.*?)^ \* Tests", banner, re.M | re.S)
        wrong += [f"[{tag}]: start at {name}, which is not defined there"
                  for name in re.findall(NAME, found.group(1) if found else "") if name not in defined(code)]
    return wrong


def check_ladder(_, text):
    code, uses = without_comments(text), measured(text)
    tags = list(uses)
    ahead = [
        f"{m.group(1)} is declared ahead"
        for m in re.finditer(r"^static\s[^;{}=()]*?\b(\w+)\([^;{}]*\);", code, re.M)
        if "(*" not in m.group(0)
    ]
    return ahead + [f"[{tag}] uses {name} of [{other}], which stands behind it"
                    for tag in tags for other in uses[tag] if tags.index(other) > tags.index(tag)
                    for name in uses[tag][other] if name not in ANNOUNCED]


def check_sizes(root, _):
    wrong = []
    for folder in ("tools/header", "tools/cuda"):
        for name in sorted(os.listdir(os.path.join(root, folder))):
            with open(os.path.join(root, folder, name), encoding="utf-8") as f:
                room = f.read()
            if len(room.encode()) > MOST_ROOM and not re.search(r"^ \* Size  ", room, re.M):
                wrong.append(f"{folder}/{name}: {len(room.encode())} bytes, and the banner does not say why under 'Size'")
    return wrong


def cuda_selftest(root):
    """Breaks gpuir_cuda.cu in ways that the checks must find."""
    with open(os.path.join(root, "gpuir_cuda.cu"), encoding="utf-8") as f:
        text = f.read()
    wrong = []
    for check, find, put in (
        (check_uses, " * Start at  gc_final", " * Start at  gc_finale"),
        (check_uses, " * Start at  gc_final", " * Uses      [cuda-04-codecs].\n * Start at  gc_final"),
        (check_uses, "#define GC_RANKED ", "#define GC_UNUSED 1\n#define GC_RANKED "),
        (check_ladder, "static __device__ __forceinline__ uint32_t gc_lane(",
         "#define GC_EARLY gc_final\nstatic __device__ uint32_t gc_lane("),
        (check_banners, " * Tests     tests/gpu/test_cuda.c\n", ""),
        (check_banners, " * Tests     tests/gpu/test_cuda.c\n", " * Tests     tests/gpu/test_none.c\n"),
    ):
        if find not in text or len(check(root, text.replace(find, put, 1))) <= len(check(root, text)):
            wrong.append(f"gpuir_cuda.cu: {put!r} is not found")
    with tempfile.TemporaryDirectory() as tree:
        for folder in ("tools/header", "tools/cuda"):
            os.makedirs(os.path.join(tree, folder))
        for banner, found in (("", True), (" * Size      for a reason\n", False)):
            with open(os.path.join(tree, "tools/cuda/01-long.cuh"), "w", encoding="utf-8") as f:
                f.write("/*\n" + banner + " */\n" + "/* */\n" * (MOST_ROOM // 6))
            if bool(check_sizes(tree, "")) != found:
                wrong.append(f"sizes: a long room {'without' if found else 'with'} a reason")
    return wrong


def selftest(root, text):
    """Breaks gpuir.h in ways that each check must find."""
    def insert(code):
        at = text.index("\n#endif /* GPUIR_IMPLEMENTATION */")
        return text[:at] + "\n" + code + text[at:]

    body = "  f();\n" * 70
    wrong = []
    if not check_contents(root, text.replace(" * [58-and]  ", " * [21-xor]  ")):
        wrong.append("contents: a banner that is renamed is not found")
    if not check_contents(root, text.replace("static int gpuir__eval_and(", "static int gpuir__eval_both(")):
        wrong.append("contents: an entry point that is renamed is not found")
    if not check_contents(os.path.join(root, "none"), text):
        wrong.append("contents: a test that is missing is not found")
    if not check_banners(root, text.replace(" * Tests     tests/unit/58_and.c\n", "")):
        wrong.append("banners: one without its test is not found")
    for head in ("static int f(void) {\n", "GPUIR__INLINE int f(int a,\n        int b) {\n"):
        if not [n for _, name, n in functions(head + body + "}\n") if name == "f" and n > MOST_FUNCTION]:
            wrong.append("functions: a long one is not found")
    if len(check_ladder(root, insert("static int f(int a,\n             int b);\n"))) <= len(check_ladder(root, text)):
        wrong.append("ladder: a declaration is not found")
    early = text.replace("static int gpuir__fail(", "#define GPUIR__EARLY gpuir__eval_or\nstatic int gpuir__fail(", 1)
    if early == text or not [w for w in check_ladder(root, early) if "gpuir__eval_or" in w]:
        wrong.append("ladder: a use of a later room is not found")
    for find, put in ((" * Start at  gpuir__eval_and", " * Start at  gpuir__eval_both"), ("[54-lookup], [56-engine]", "[56-engine]"),
                      (" * Start at  gpuir__eval_or", " * Uses      [73-pool].\n * Start at  gpuir__eval_or")):
        if find not in text or len(check_uses(root, text.replace(find, put))) <= len(check_uses(root, text)):
            wrong.append(f"uses: {put!r} is not found")
    return wrong + cuda_selftest(root)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, check = sys.argv[1:]
    checks = {"contents": check_contents, "banners": check_banners, "sizes": check_sizes, "functions": check_functions,
              "ladder": check_ladder, "uses": check_uses, "selftest": selftest}
    wrong = []
    for unit in ("gpuir.h", "gpuir_cuda.cu") if check in ("banners", "ladder", "uses") else ("gpuir.h",):
        with open(os.path.join(root, unit), encoding="utf-8") as f:
            wrong += checks[check](root, f.read())
    for what in wrong:
        print(what)
    sys.exit(1 if wrong else 0)


main()
