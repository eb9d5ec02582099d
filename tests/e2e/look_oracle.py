#!/usr/bin/env python3
"""The formula of the second look, written again from its description in [api-look], in other words than the header's.

look(query, hits, defines) ranks hits, [(docid, name, score)] as a search gives them, by the names of their documents
and what these define: defines(word) is the set of docids that define it. Returns [(docid, score, score of the search)].
"""
import re

HITS = 200
WORDS = 64
WEIGHTS = {"together": 50, "asked": 120, "named": 50, "defines": 100}
LOWERED = {"tests": 30, "aside": 30, "others": 30}

STOP = set("""
a about above after again all also am an and any are as at be been before being below between both but by can could did
do does doing down during each few for from further get gets had has have having he her here hers him his how i if in
into is it its itself just me more most my no nor not of off on once only or other our out over own same she should so
some such than that the their them then there these they this those through to too under until up use used uses using
very via was we were what when where which while who whom why will with within without work works would you your
""".split())
SOURCES = set("""
adb ads agda asm astro awk bas bash bat bats c c++ cbl cc cjs cl clj cljc cljs cob coffee cpp cr cs csx cts cu cuh cxx d
dart ebnf el elm erl ex exs f f03 f08 f77 f90 f95 fish for fs fsi fsx g4 gd glsl go gradle groovy h h++ hh hlsl hpp hrl
hs hx hxx idr inc inl ino ipp java jl js jsx kt kts l lean lhs lisp lsp lua m metal mjs ml mli mm move mts nim nix nut
pas php phtml pl pm pp proto ps1 psm1 purs py pyi pyw pyx r raku rb rkt rs s sass sc scala scm scss sh sml sol sql ss sv
svelte swift tcl tf ts tsx v vala vb vhd vhdl vim vue wat wgsl y zig zsh
""".split())
TEST_FOLDERS = set("""
__mocks__ __tests__ e2e fixture fixtures mock mocks spec specs test testdata testing tests testsuite unittest unittests
""".split())
ASIDE_FOLDERS = set("""
3rdparty _examples _vendor bench benchmark benchmarks debian demo demos deps doc docs docs_src documentation example
examples external generated i18n locale locales node_modules sample samples site-packages third-party third_party
thirdparty tutorial tutorials vendor vendored website
""".split())


def words(text):
    """Words of letters and digits: an inner capital begins one, and so does a change between letters and digits."""
    text = text.encode("utf-8", "surrogateescape")
    found = re.findall(rb"[A-Z]+(?![a-z\x80-\xff])|[A-Z]?[a-z\x80-\xff]+|[0-9]+", text)
    return [w.lower() for w in found]


def alike(a, b):
    short, long = sorted((a, b), key=len)
    if long.startswith(short) and (len(short) >= 3 or a == b):
        return True
    same = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), len(short))
    return same >= 4 and 5 * same >= 3 * len(short) and len(long) - same <= 5


def asked_of(query):
    """The words that are asked for, as they are typed; those of phrases, too."""
    typed = []
    for negated, phrase, word in re.findall(r'(-?)(?:"([^"]*)"|(\S+))', query):
        if not negated:
            typed += [word.rstrip("*~")] if word else phrase.split()
    return [t for t in typed if t]


def path_of(name):
    """The name of a document without the lines at its end."""
    return re.sub(r":\d+(-\d+)?$", "", name, flags=re.A)


def parts(path):
    folder, _, base = path.rpartition("/")
    return [f for f in folder.split("/") if f], base


def suffix(base):
    return base.rpartition(".")[2].lower() if "." in base[1:] else ""


def rest_of(base):
    """A name without its ending."""
    return base.rpartition(".")[0] if "." in base[1:] else base


def is_test(folders, base):
    if any(f.lower() in TEST_FOLDERS for f in folders) or suffix(base) in ("bats", "t"):
        return True
    of = [w.decode("utf-8", "replace") for w in words(rest_of(base))]
    return bool(of) and (of[0] in ("test", "tests", "conftest") or of[-1] in ("test", "tests", "spec", "specs"))


def is_aside(folders, base):
    return any(f.lower() in ASIDE_FOLDERS for f in folders) or \
        rest_of(base).endswith((".min", ".pb", ".d", ".generated", "_generated", "_pb2", "_pb2_grpc"))


def is_other(base):
    """No program code: a suffix that is none of code, or no suffix and a capital."""
    if "." in base[1:]:
        return suffix(base) not in SOURCES
    return base[:1].isupper() and base[:1].isascii()


def is_source(name):
    base = parts(path_of(name))[1]
    return suffix(base) in SOURCES


def symbols(query):
    """Names that the query asks for: its only word, and words that are written as names are."""
    typed = asked_of(query)
    found = []
    for t in typed:
        t = re.sub(r"\(\)$", "", t)
        if not re.fullmatch(r"[A-Za-z_$][\w$]*((::|->|[.#])[A-Za-z_$][\w$]*)*", t, flags=re.A):
            continue
        if len(typed) == 1 or re.search(r"[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Za-z0-9]_[A-Za-z0-9]|::", t):
            found.append(re.split(r"::|->|[.#]", t)[-1])
    return list(dict.fromkeys(found))[:8]


def look(query, hits, defines=lambda name: set()):
    head, rest = hits[:HITS], hits[HITS:]
    if not head or not head[0][2]:
        return [(d, s, s) for d, _, s in hits]
    every = []
    for t in asked_of(query):
        every += [w for w in dict.fromkeys(words(t)) if w not in every]
    every = every[:WORDS]
    asked = [w for w in every if w.decode("utf-8", "replace") not in STOP] or every
    plain = {w.decode("utf-8", "replace") for w in every}
    defining = [defines(s) for s in symbols(query)]
    files = {}
    for docid, name, score in head:
        files.setdefault(path_of(name), []).append((docid, score))
    best = head[0][2]
    most = max(sum(s for _, s in f) for f in files.values())
    out = []
    for path, found in files.items():
        folders, base = parts(path)
        stem = words(base.split(".")[0])[:WORDS]
        near = stem + (words(folders[-1])[:WORDS] if folders else [])
        value = WEIGHTS["together"] * ((sum(s for _, s in found) << 16) // most)
        if asked:
            value += (WEIGHTS["asked"] * sum(any(alike(w, n) for n in near) for w in asked) << 16) // len(asked)
        if stem:
            value += (WEIGHTS["named"] * sum(any(alike(w, n) for w in asked) for n in stem) << 16) // len(stem)
        if any(docid in d for d in defining for docid, _ in found):
            value += WEIGHTS["defines"] << 16
        score = found[0][1] + (best * value) // (100 << 16)
        if is_test(folders, base) and not plain & TEST_FOLDERS:
            score = score * LOWERED["tests"] // 100
        if is_aside(folders, base) and not plain & ASIDE_FOLDERS:
            score = score * LOWERED["aside"] // 100
        if is_other(base):
            score = score * LOWERED["others"] // 100
        out.append((min(score, 2**32 - 1), found))
    out.sort(key=lambda f: -f[0])
    answer = [(f[0][0], score, f[0][1]) for score, f in out]
    last = answer[-1][1]
    more = [(min(last, score * s // max(f[0][1], 1)), d, s) for score, f in out for d, s in f[1:]]
    more.sort(key=lambda m: -m[0])
    answer += [(d, score, s) for score, d, s in more]
    last = answer[-1][1]
    for docid, _, s in rest:
        last = min(last, s)
        answer.append((docid, last, s))
    return answer
