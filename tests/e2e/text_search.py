"""text_search.py GPUIR CHECK [N] - what the analyzer `text` finds, by the installed command, in the current folder.

    rows       what people write, and queries that find it or do not: in AND, OR, counts and negation, with positions
               and without
    excluded   words of several segments that exclude: of random documents those that hold all of the word's pairs,
               wherever these stand; of one segment and many, with deletions
    oracle N PROGRAM
               N random texts and N queries against the model of text.py: hits of AND and OR and their counts, with
               positions and without, and scores, which are the same in both modes; by threads and from a live index of
               several segments all is the same; PROGRAM is text_tokens
    scripts N  of N random strings of scripts without spaces each substring is found, and none falsely between quotes
    accents    accented words of each language of libstemmer, typed with and without: translations that are installed
    sample     a few such words of nine languages
"""
import gettext
import glob
import random
import re
import subprocess
import sys
import unicodedata as u
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from text import Fold, Model, decode  # noqa: E402

GPUIR = sys.argv[1]


def run(*arguments, text=None):
    return subprocess.run([GPUIR, *arguments], input=text, capture_output=True, text=True)


def must(*arguments, text=None):
    done = run(*arguments, text=text)
    if done.returncode:
        raise SystemExit(f"{arguments}: {done.stderr}")
    return done.stdout


def build(texts, *options):
    Path("docs.tsv").write_text("".join(f"{i}\t{t}\n" for i, t in enumerate(texts)))
    must("index", "-q", "--analyzer", "text", *options, "--tsv", "docs.tsv", "-o", "x.gpuir")


def answers(queries, *options, index="x.gpuir"):
    """The names of the hits of each query, which are numbers, behind a folder or not."""
    out = [set() for _ in queries]
    text = "".join(q + "\n" for q in queries)
    plain = ("--exact", "--stop-query", "none")
    lines = must("query", "--tsv", "-k", "1000000", *plain, "--no-ids", *options, index, text=text)
    for line in lines.splitlines():
        fields = line.split("\t")
        out[int(fields[0]) - 1].add(int(fields[4].split("/")[-1]))
    return out


# Of the table of examples: a text, queries that find it, queries that do not.
ROWS = [
    ("by O'Reilly", ["O'Reilly", "reilly", "oreilly", "o"], ["O'Brien"]),
    ("an o and a reilly apart", ["o", "reilly"], ["O'Reilly", "oreilly"]),
    ("I don't", ["dont", "don't", "don\u2019t"], ["do"]),
    ("type AR-7", ["AR-7", "ar7", "AR-7*", "ar"], ["AR-70", "7-AR"]),
    ("type AR-70", ["AR-7*", "AR-70"], ["AR-7"]),
    ("version 14.2.1.0", ["14.2", "2.1.0", "14.2.1.0"], ["14.1", "2.14"]),
    ("pi 3.14", ["3.14"], ["14.3"]),
    ("foo.bar()", ["bar", "foo.bar"], ["bar.foo"]),
    ("call getUserName", ["name", "getusername", "getUserName", "getUser*"], []),
    ("authorization_token", ["token", "authorization_tokens", "authorization"], ["token_authorization"]),
    ("on GitHub", ["github", "hub", "git"], []),
    ("one git", ["git"], ["GitHub"]),
    ("utf8 here", ["utf8"], ["UTF-8"]),
    ("UTF-8 there", ["utf8", "UTF-8"], []),
    ("b995f2b", ["b995f2b", "b995*"], ["b995"]),
    ("in C++ now", ["C++", "c"], ["C#"]),
    ("in C# now", ["C#", "c"], ["C++"]),
    ("a bare c", ["c"], ["C++", "C#"]),
    ("a .NET host", [".NET", "net"], []),
    ("a bare net", ["net"], [".NET"]),
    ("#tag it", ["tag", "#tag"], ["@tag"]),
    ("ask @you", ["you", "@you"], ["#you"]),
    ("joe@example.com", ["example.com", "joe@example", "joe"], ["com.example"]),
    ("https://www.example.org/a", ["example.org", "https://www.example.org"], ["org.example"]),
    ("an e-mail", ["email", "e-mail"], ["mail-e"]),
    ("the U.S.A. today", ["usa", "U.S."], ["S.U."]),
    ("caf\u00e9 noir", ["caf\u00e9", "cafe", "CAF\u00c9", "cafe\u0301"], ["caf"]),
    ("cafe blanc", ["caf\u00e9", "cafe"], []),
    ("r\u00e9sum\u00e9s", ["resumes", "r\u00e9sum\u00e9", "r\u00e9sum\u00e9s"], []),
    ("\u0130stanbul", ["istanbul", "ISTANBUL", "\u0131stanbul"], []),
    ("stra\u00dfe", ["strasse", "STRASSE"], []),
    ("\ufb01ne \uff21\uff22\uff23", ["fine", "abc"], []),
    ("soft\u00adhyphen", ["softhyphen"], []),
    ("\u5317\u4eac\u5e02", ["\u5317", "\u5317\u4eac", "\u4eac\u5e02"], ["\u4eac\u5317"]),
    ("\u5357\u4eac \u5317\u65b9", ["\u4eac", "\u5317"], ["\u5317\u4eac"]),
    ("\u6771\u4eac\u30bf\u30ef\u30fc", ["\u30bf\u30ef\u30fc", "\u4eac\u30bf", "\u6771\u4eac"], ["\u4eac\u6771"]),
    ("\uac80\uc0c9\uc744", ["\uac80\uc0c9", "\uc0c9\uc744"], ["\uc0c9\uac80"]),
    ("\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22", ["\u0e44\u0e17\u0e22", "\u0e20\u0e32\u0e29\u0e32"],
     ["\u0e22\u0e17"]),
    ("USB\u30e1\u30e2\u30ea", ["usb", "USB\u30e1\u30e2\u30ea", "\u30e1\u30e2"], []),
    ("a \U0001f389 party", ["\U0001f389"], ["\U0001f388"]),
]


def rows():
    compared = 0
    build([r[0] for r in ROWS], "--lang", "english")
    plain = None
    for positions in (0, 1):
        if positions:
            build([r[0] for r in ROWS], "--lang", "english", "--positions")
        queries = [(n, q, found) for n, r in enumerate(ROWS) for found in (1, 2) for q in r[found]]
        texts = [q for _, q, _ in queries]
        both = [answers(texts, "-m", mode) for mode in ("and", "or")]
        if plain and plain != both:
            return "positions change hits"
        plain = both
        for i, (n, q, found) in enumerate(queries):
            if (n in both[0][i]) != (found == 1):
                return f"AND: {q!r} {'does not find' if found == 1 else 'finds'} {ROWS[n][0]!r}"
            if found == 1 and n not in both[1][i]:
                return f"OR: {q!r} does not find {ROWS[n][0]!r}"
            if int(must("count", "x.gpuir", q)) != len(both[0][i]):
                return f"the count of {q!r}"
            compared += 1
        # what a query finds, it excludes; the word that all documents have is asked for
        everything = [f"{r[0]} everywhere" for r in ROWS]
        build(everything, "--lang", "english", *(["--positions"] if positions else []))
        kept = answers([f"everywhere -{q}" for q in texts])
        for i, (n, q, found) in enumerate(queries):
            if (n in kept[i]) != (found == 2):
                return f"-{q!r} {'keeps' if found == 1 else 'excludes'} {ROWS[n][0]!r}"
    return "" if compared > 150 else "too few"


def excluded():
    r = random.Random(4)
    segments = "abcde"
    word = lambda n: ".".join(r.choice(segments) + "x" for _ in range(n))
    texts = ["all " + " ".join(word(r.randint(1, 4)) for _ in range(r.randint(1, 8))) for _ in range(400)]
    pairs = lambda w: {(a, b) for a, b in zip(w.split("."), w.split(".")[1:])}
    held = [set().union(*(pairs(w) for w in t.split())) for t in texts]
    queries = [word(r.randint(2, 4)) for _ in range(150)]
    build(texts, "--lang", "none")
    Path("d").mkdir(exist_ok=True)
    for i, t in enumerate(texts):
        Path(f"d/{i}").write_text(t)
    must("index", "-q", "--analyzer", "text", "--lang", "none", "--no-names", "--live", "-o", "L")
    for part in range(4):
        must("add", "-q", "-o", "L", *(f"d/{i}" for i in range(part * 100, part * 100 + 100)))
    gone = set(range(0, 400, 7))
    must("delete", "-q", "L", *(f"d/{i}" for i in gone))
    for mode in ("and", "or"):
        found = answers([f"all -{q}" for q in queries], "-m", mode)
        live = answers([f"all -{q}" for q in queries], "-m", mode, index="L")
        for q, got, here in zip(queries, found, live):
            want = {i for i, h in enumerate(held) if not pairs(q) <= h}
            if got != want:
                return f"{mode}: -{q} leaves {sorted(got ^ want)} wrong"
            if here != want - gone:
                return f"{mode}, several segments: -{q} leaves {sorted(here ^ (want - gone))} wrong"
            if mode == "and" and int(must("count", "L", f"all -{q}")) != len(here):
                return f"the count of -{q}"
    return ""


PIECES = ["get", "UserName", "ab", "Abs", "running", "runs", "x1", "7", "caf\u00e9", "cafe", "\u5317", "\u4eac",
          "\u30bf", "\uac80", "\u0e44\u0e17", "don", "t", "O", "Reilly", "C++", "C#", ".NET", "#ab", "utf8",
          "\u00c9l\u00e8ve", "s"]


def compound(r, most):
    """A word: pieces with connectors, or with what parts words."""
    links = r.choices(["", ".", "-", "'", "_", "/", "::", ",", "@"], weights=[2, 4, 3, 2, 2, 1, 1, 1, 1], k=most)
    return "".join(link * (i > 0) + r.choice(PIECES) for i, link in enumerate(links[:r.randint(1, most)]))


class Question:
    """What a query asks for, excludes, and takes besides."""

    def __init__(self, model, text):
        self.required, self.optional, self.excluded = set(), set(), []
        for word in text.split():
            negated = word[0] == "-"
            tokens = model.tokens(decode(word[negated:].encode()), True)
            required = {t for a, t in tokens if a}
            if negated:
                self.excluded += [required] if required else []
            else:
                self.required |= required
                self.optional |= {t for a, t in tokens if not a}

    def matches(self, terms, mode):
        if any(e <= terms for e in self.excluded):
            return False
        return self.required <= terms if mode == "and" else bool((self.required | self.optional) & terms)


def build_live(texts, parts):
    """L: a live index of the texts, added in so many parts, which merges make fewer; beside every second one a document
    was added that is deleted."""
    must("index", "-q", "--live", "--tsv", "--lang", "english", "-o", "L")
    step = -(-len(texts) // parts)
    for s, at in enumerate(range(0, len(texts), step)):
        rows = [f"{i}\t{t}\n" for i, t in enumerate(texts[at:at + step], at)]
        rows[1:1] = ["gone\tO'Reilly getUserName caf\u00e9\n"] if s % 2 else []
        must("add", "-q", "--tsv", "-", "-o", "L", text="".join(rows))
        if s % 2:
            must("delete", "-q", "L", "gone")


def scored(queries, mode, index="x.gpuir", *options):
    out = [{} for _ in queries]
    lines = must("query", "--tsv", "-k", "1000000", "--exact", "--stop-query", "none", "--no-ids", *options, "-m", mode, index,
                 text="".join(q + "\n" for q in queries))
    for line in lines.splitlines():
        fields = line.split("\t")
        out[int(fields[0]) - 1][int(fields[4])] = fields[3]
    return out


def oracle(n, program):
    r = random.Random(9)
    model = Model(program)
    model.stemmer, model.no_fold, model.stops, model.dropped, model.possessive = "english", False, [], 0, True
    texts = [" ".join(compound(r, 3) for _ in range(r.randint(1, 6))) for _ in range(n)]
    terms = []
    for text in texts:
        tokens = model.tokens(decode(text.encode()), False)
        first = next((i for i, (a, _) in enumerate(tokens) if a), len(tokens))  # those before it have no place
        terms.append({t for _, t in tokens[first:]})
    queries, asked = [], []
    while len(queries) < n:
        query = " ".join(("-" if i and r.random() < 0.3 else "") + compound(r, 3) for i in range(r.randint(1, 4)))
        question = Question(model, query)
        if question.required and query[-1] not in "*~":
            queries.append(query)
            asked.append(question)
    before = None
    for positions in (0, 1):
        build(texts, "--lang", "english", *(["--positions"] if positions else []))
        found = {mode: scored(queries, mode) for mode in ("and", "or")}
        if before and before != found:
            return "positions change hits or scores"
        before = found
    build_live(texts, 60 if n > 1000 else 7)
    for mode in ("and", "or"):
        if scored(queries, mode, "x.gpuir", "--threads", "3") != found[mode]:
            return f"{mode}: threads change hits or scores"
        if scored(queries, mode, "L") != found[mode]:
            return f"{mode}: segments change hits or scores"
    for i, question in enumerate(asked):
        for mode in ("and", "or"):
            want = {d for d, t in enumerate(terms) if question.matches(t, mode)}
            if want != set(found[mode][i]):
                wrong = min(want ^ set(found[mode][i]))
                return f"{mode}: {queries[i]!r} and {texts[wrong]!r}: {'missed' if wrong in want else 'found'}"
            if i < 40 and int(must("count", "-m", mode, "x.gpuir", "--", *queries[i].split())) != len(want):
                return f"{mode}: the count of {queries[i]!r}"
        if any(found["or"][i][d] != score for d, score in found["and"][i].items()):
            return f"{queries[i]!r}: AND's scores are not OR's"
    return ""


def scripts(n):
    r = random.Random(3)
    kana = [chr(c) for c in [*range(0x3042, 0x3094), *range(0x30A2, 0x30F5), 0x30FC]]
    han = [chr(c) for c in range(0x4E00, 0x4E60)]
    hangul = [chr(c) for c in range(0xAC00, 0xAC50)]
    thai = [chr(c) for c in [*range(0xE01, 0xE2F), *range(0xE30, 0xE36), 0xE38, 0xE40, 0xE48, 0xE49]]
    of = [han, kana + han, hangul, thai]
    strings = ["".join(r.choice(of[i % 4]) for _ in range(r.randint(3, 24))) for i in range(n)]
    folded = [u.normalize("NFKC", s).casefold() for s in strings]
    queries = []
    for s in strings:
        length = r.randint(2, min(6, len(s)))
        at = r.randrange(len(s) - length + 1)
        queries.append(s[at:at + length])
    build(strings, "--lang", "none", "--positions")
    typed = [q if i % 3 else u.normalize("NFD", q) for i, q in enumerate(queries)]
    false = 0
    for quoted in (False, True):
        found = answers([f'"{q}"' if quoted else q for q in typed], "-m", "and")
        for q, got in zip(queries, found):
            want = {i for i, s in enumerate(folded) if u.normalize("NFKC", q).casefold() in s}
            if want - got:
                return f"{q} does not find {strings[min(want - got)]}"
            if quoted and got != want:
                return f'"{q}" finds {strings[min(got - want)]}'
            false += len(got - want)
    return "" if false <= n // 20 else f"{false} found falsely"


LANGUAGES = dict(pair.split(":") for pair in (
    "ar:arabic hy:armenian eu:basque ca:catalan da:danish nl:dutch fi:finnish fr:french de:german el:greek hi:hindi "
    "hu:hungarian id:indonesian ga:irish it:italian lt:lithuanian ne:nepali nb:norwegian pt:portuguese ro:romanian "
    "ru:russian sr:serbian es:spanish sv:swedish ta:tamil tr:turkish yi:yiddish").split())


def accented(code):
    words = set()
    for path in sorted(glob.glob(f"/usr/share/locale/{code}/LC_MESSAGES/*.mo")):
        try:
            texts = gettext.GNUTranslations(open(path, "rb"))._catalog.values()
        except (OSError, ValueError, IndexError):  # not what gettext expects
            continue
        for text in texts:
            for word in re.findall(r"\w+", u.normalize("NFC", text).lower()) if isinstance(text, str) else []:
                if not re.search(r"[\d_]", word) and len(word) > 2 and Fold.word(word) != word:
                    words.add(word)
    words = sorted(words)
    random.Random(1).shuffle(words)
    return words[:1000]


SAMPLE = {
    "french": "\u00e9l\u00e8ves for\u00eats gar\u00e7ons pr\u00e9f\u00e9r\u00e9es na\u00efvet\u00e9 \u0153uvres",
    "german": "\u00e4rgerlich gr\u00f6\u00dften h\u00e4user \u00fcberm\u00fctig stra\u00dfen fr\u00f6hliche",
    "spanish": "ni\u00f1os coraz\u00f3n ping\u00fcinos canciones r\u00e1pidamente \u00faltimas",
    "portuguese": "cora\u00e7\u00f5es informa\u00e7\u00e3o \u00e1guas av\u00f3s l\u00edngua tr\u00eas",
    "turkish": "\u0131\u015f\u0131klar\u0131 g\u00fczel \u00e7ocuklar a\u011fa\u00e7 \u00f6\u011frenci\u015fi",
    "russian": "\u0451\u043b\u043a\u0438 \u0432\u0441\u0451 \u0437\u0435\u043b\u0451\u043d\u044b\u0439",
    "greek": "\u03ba\u03b1\u03bb\u03b7\u03bc\u03ad\u03c1\u03b1 \u03ac\u03bd\u03b8\u03c1\u03c9\u03c0\u03bf\u03b9",
    "hungarian": "\u00e1rv\u00edzt\u0171r\u0151 t\u00fck\u00f6rf\u00far\u00f3g\u00e9p k\u00f6nyvek sz\u00e9ps\u00e9g",
    "arabic": "\u0643\u064e\u062a\u064e\u0628\u064e \u0645\u064f\u062f\u0631\u0651\u0650\u0633",
}


def missed(words, language):
    """Which words, each in a document, are not found, and how they were typed, if that is more than one of fifty."""
    build(words, "--lang", language)
    for what, typed in (("with", words), ("without", [Fold.word(w) for w in words])):
        lost = [w for i, (w, got) in enumerate(zip(words, answers(typed, "-m", "and"))) if i not in got]
        if len(lost) > len(words) // 50:
            return f"{language}, typed {what} accents: {lost[:5]} and {len(lost)} in all are not found"
    return ""


def sample():
    return next(filter(None, (missed(words.split(), language) for language, words in SAMPLE.items())), "")


def accents():
    languages = 0
    for code, language in LANGUAGES.items():
        words = accented(code)
        if len(words) < 100:
            continue
        if missed(words, language):
            return missed(words, language)
        languages += 1
    print(f"{languages} languages")
    return ""


if __name__ == "__main__":
    number = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    checks = {"rows": rows, "excluded": excluded, "accents": accents, "sample": sample,
              "scripts": lambda: scripts(number), "oracle": lambda: oracle(number, sys.argv[4])}
    wrong = checks[sys.argv[2]]()
    print(wrong or "as they should")
    sys.exit(1 if wrong else 0)
