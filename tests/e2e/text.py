#!/usr/bin/env python3
"""text.py PROGRAM N [SEED] - holds the tokens that the analyzer `text` makes of N random texts and query words against
this model, which knows only what [31-text] says; PROGRAM is build/tests/e2e/text_tokens. Prints how many were compared.

Python's Unicode tables are older or newer than utf8proc's: characters that Python does not know are left out. Stems are
asked of PROGRAM's analyzer `unicode`, which has a test of its own."""
import random
import subprocess
import sys
import unicodedata as u

STOPS = ["the", "of", "a", "don", "t", "naïve"]  # as in text_tokens.c
CONNECTORS = ".:_'-/@"
TYPOGRAPHIC = {"’": "'", "‐": "-", "·": "·"}
UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY IDEO", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HANGUL", "THAI",
            "LAO", "KHMER", "MYANMAR", "HALFWIDTH HANGUL")
LETTERS = {"ı": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "æ": "ae", "œ": "oe"}


def ignorable(c):
    o = ord(c)
    return (o in (0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFEFF, 0xFFA0) or 0x180B <= o <= 0x180F
            or 0x200B <= o <= 0x200F or 0x202A <= o <= 0x202E or 0x2060 <= o <= 0x206F or 0xFE00 <= o <= 0xFE0F
            or 0xFFF0 <= o <= 0xFFF8 or 0xE0000 <= o <= 0xE0FFF)


def casefold(s):
    s = u.normalize("NFKC", u.normalize("NFD", s).casefold())
    s = u.normalize("NFKC", u.normalize("NFD", s).casefold())
    return u.normalize("NFKC", "".join(c for c in s if not ignorable(c)))


def connector(c):
    """The ASCII form of a connector; '' for all others."""
    k = u.normalize("NFKC", c)
    return k if len(k) == 1 and k in CONNECTORS else TYPOGRAPHIC.get(k, "")


def emoji(c):
    o = ord(c)
    return (0x2600 <= o <= 0x27BF or 0x1F1E6 <= o <= 0x1F1FF or 0x1F300 <= o <= 0x1F64F or 0x1F680 <= o <= 0x1F6FF
            or 0x1F7E0 <= o <= 0x1F7EB or 0x1F900 <= o <= 0x1FAFF)


def kind(c):
    """letter, point (of a script without spaces), mark, connector, emoji, or nothing."""
    category = u.category(c)
    if category[0] in "LNM" or (category == "Cf" and ignorable(c) and c != "\u200b"):
        if category != "Cf" and (u.name(c, "").startswith(UNSPACED) or c in "々〇〻" or "〡" <= c <= "〩" or "〸" <= c <= "〺" or c in "ーｰ"):
            return "point"
        return "letter" if category[0] in "LN" else "mark"
    return "connector" if connector(c) else "emoji" if emoji(c) else ""


def joins(c):
    """Whether a character may become one with what stands before it."""
    o = ord(c)
    return (u.category(c)[0] == "M" or (u.category(c) == "Cf" and ignorable(c) and c != "\u200b") or 0x1160 <= o <= 0x11FF
            or 0x3131 <= o <= 0x318E or 0xD7B0 <= o <= 0xD7FF or 0xFF9E <= o <= 0xFFDC)


def case(c):
    category = u.category(c)
    return {"Lu": "U", "Lt": "U", "Ll": "l"}.get(category, "d" if category[0] == "N" else "o")


class Fold:
    """What folding makes of a word."""

    @staticmethod
    def base(c):
        return c.isalpha() and ("LATIN" in u.name(c, "") or "GREEK" in u.name(c, "") or "CYRILLIC" in u.name(c, ""))

    @staticmethod
    def dropped(c, base):
        o = ord(c)
        if 0x64B <= o <= 0x65F or o in (0x670, 0x640):
            return True
        if u.name(c, "").startswith(("HEBREW POINT", "HEBREW ACCENT", "HEBREW MARK")) and u.category(c) == "Mn":
            return True
        return bool(base) and u.category(c)[0] == "M" and Fold.base(base) and not (o == 0x306 and base == "и")

    @staticmethod
    def word(w):
        kept, base = "", ""
        for c in u.normalize("NFD", w):
            if Fold.dropped(c, base):
                continue
            if u.category(c)[0] != "M":
                base = c
            kept += LETTERS.get(c, c)
        return u.normalize("NFC", kept) or w


class Segment:
    """at, end: where the text has it; chars: (folded character, case, at)."""

    def __init__(self, chars, letters, end):
        self.chars, self.letters, self.end = chars, letters, end
        self.at = chars[0][2]
        self.text = "".join(c for c, _, _ in chars)


class Model:
    def __init__(self, program):
        self.p = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.stems = {}

    def ask(self, mode, spec, data):
        self.p.stdin.write(f"{mode} {spec}\t".encode() + data.hex().encode() + b"\n")
        self.p.stdin.flush()
        return [t.decode() for t in self.p.stdout.readline().split()]

    def stem(self, w):
        if not self.stemmer:
            return w
        key = (self.stemmer, w)
        if key not in self.stems:
            got = self.ask("t", f"unicode stem={self.stemmer}", w.encode())
            one = len(got) == 3 and got[0].startswith("1:")
            assert one or kind(w[0]) == "mark", (w, got)  # with no letter before it `unicode` drops a mark
            self.stems[key] = bytes.fromhex(got[0][2:]).decode() if one else w
        return self.stems[key]

    def fold(self, w):
        return w if self.no_fold else Fold.word(w)

    def term(self, w):
        return self.fold(self.stem(w))

    # -- from text to words

    def words(self, text):
        """Yields words: lists of (segment, connector before it)."""
        word, link, state, i = [], "", 0, 0  # state 1: behind a segment, 2: and a connector
        letters = []

        def close(end):
            nonlocal letters, state, word, link
            if not letters:
                return []
            s, letters = Segment(letters, True, None if letters[-1][2] == end else end), []
            if len(s.text.encode()) > 255:
                self.dropped += 1
                return finish()
            if self.possessive and s.text == "s" and word and state == 2 and link == "'":
                state = 1
                return []
            return add(s)

        def add(s):
            nonlocal state, link
            if s.letters and len(self.term(s.text).encode()) > 255:
                self.dropped += 1
                return finish()
            word.append((s, link if state == 2 else ""))
            state = 1
            return []

        def finish():
            nonlocal word, state
            done, word, state = ([word] if word else []), [], 0
            return done

        while i < len(text):
            c = text[i]
            k = "" if c is None else kind(c)
            if k in ("letter", "point"):
                j = i + 1
                while j < len(text) and text[j] is not None and joins(text[j]):
                    j += 1
                for f in casefold("".join(text[i:j])):
                    fk = kind(f)
                    if fk == "letter" or (fk == "mark" and letters):
                        letters.append((f, "m" if fk == "mark" else case(c), i))
                    elif fk == "connector":
                        yield from close(i)
                        if state == 1:
                            state, link = 2, connector(f)
                        else:
                            yield from finish()
                    elif fk == "point" or (fk == "mark" and state == 1):
                        yield from close(i)
                        yield from add(Segment([(f, "o", i)], False, j))
                    else:
                        yield from close(i)
                        yield from finish()
                i = j
                continue
            yield from close(i)
            if k == "connector":
                if state == 1:
                    state, link = 2, connector(c)
                else:
                    yield from finish()
                i += 1
            elif k == "emoji":
                yield from finish()
                i, s = self.emoji(text, i)
                if len(s.text.encode()) > 255:
                    self.dropped += 1
                else:
                    yield [(s, "")]
            else:
                yield from finish()
                i += 1
        yield from close(len(text))
        yield from finish()

    @staticmethod
    def emoji(text, i):
        at, made = i, ""
        flag = lambda c: 0x1F1E6 <= ord(c) <= 0x1F1FF
        while i < len(text) and text[i] is not None:
            c = text[i]
            if c == "\u200d":
                if i + 1 == len(text) or text[i + 1] is None or not emoji(text[i + 1]):
                    break
            elif made and not (c == "\ufe0f" or made[-1] == "\u200d" or "\U0001f3fb" <= c <= "\U0001f3ff"
                               or (flag(c) and len(made) == 1 and flag(made))):
                break
            if c != "\ufe0f":
                made += c
            i += 1
        return i, Segment([(c, "o", at) for c in made], False, i)

    # -- from words to tokens

    def parts(self, s):
        """(part, its characters) of each part of a segment."""
        letters = [[c, k] for c, k, _ in s.chars if k != "m"]
        spans, at = [], -1
        for c, k, _ in s.chars:  # marks go with their letter
            if k != "m":
                at += 1
                spans.append("")
            spans[at] += c
        begins = [0]
        for i in range(1, len(letters)):
            before, now = letters[i - 1][1], letters[i][1]
            after = letters[i + 1][1] if i + 1 < len(letters) else ""
            if (before == "d") != (now == "d") or (now == "U" and (before == "l" or (before == "U" and after == "l"))):
                begins.append(i)
        ends = begins[1:] + [len(letters)]
        parts = [("".join(spans[a:b]), b - a) for a, b in zip(begins, ends)]
        if len(parts) in (0, 1) or len(parts) > 8 or 2 * sum(n == 1 for _, n in parts) > len(parts):
            return []
        return parts

    def signs(self, text, s, first):
        before = behind = ""
        a = s.at
        if first and a and text[a - 1] is not None and text[a - 1] in ".#@" and text[a] is not None and u.category(text[a])[0] == "L":
            p = text[a - 2] if a > 1 else None
            if p is None or not (p == ")" or kind(p) in ("letter", "point", "mark")):
                before = text[a - 1]
        e = s.end  # None: the cluster of its last letter goes on
        rest = [] if e is None else text[e:e + 3]
        n = 1 if rest[:1] == ["#"] else 2 if rest[:2] == ["+", "+"] else 0
        if n and text[e - 1] is not None and u.category(text[e - 1])[0] == "L":
            if not (len(rest) > n and rest[n] is not None and u.category(rest[n])[0] == "L"):
                behind = "#" if n == 1 else "++"
        return before, behind

    def pair(self, a, b):
        token = b"\xffp" + a.encode() + b"\xff" + b.encode()
        return token if len(token) <= 255 else b"\xffP"  # with a hash

    def tokens(self, text, query):
        out = []
        place = 0

        def emit(token, advance):
            nonlocal place
            token = token if isinstance(token, bytes) else token.encode()
            if not query:
                if place == 15:
                    advance = 1
                place = 1 if advance else place + (place > 0)
            out.append((advance, token))

        for word in self.words(text):
            before = None
            for n, (s, _) in enumerate(word):
                term = self.term(s.text) if s.letters else s.text
                variant = term
                if s.letters and not self.no_fold and Fold.word(s.text) != s.text and len(Fold.word(s.text).encode()) < 256:
                    variant = self.term(Fold.word(s.text))
                    if len(variant.encode()) > 255:
                        variant = term
                if (not query or len(word) == 1) and s.text not in self.stops:
                    self.segment(text, s, term, variant, n == 0, query, emit)
                if before:
                    emit(self.pair(before[0], term), int(query))
                    if not query and (before[0] != before[1] or term != variant):
                        emit(self.pair(before[1], variant), 0)
                before = (term, variant)
            self.joined(word, emit)
        return out

    def segment(self, text, s, term, variant, first, query, emit):
        if not query:
            emit(term, 1)
        signed = 0
        if s.letters:
            before, behind = self.signs(text, s, first)
            if before and len((before + term).encode()) < 256:
                emit(before + term, int(query))
                signed = 1
            if behind and len((term + behind).encode()) < 256:
                emit(term + behind, int(query))
                signed = 1
        if query and not signed:
            emit(term, 1)
        if s.letters:
            parts = self.parts(s)
            if not query or len(parts) >= 3 or s.chars[0][1] == "l":
                for part, n in parts:
                    if n > 1 and part not in self.stops:
                        emit(self.term(part), 0)
            if variant != term:
                emit(variant, 0)
            stem = self.stem(s.text)
            if term != stem and len(stem.encode()) <= 253:
                emit(b"\xffx" + stem.encode(), 0)

    def joined(self, word, emit):
        if len(word) < 2 or not all(s.letters for s, _ in word):
            return
        together = "".join(s.text for s, _ in word)
        links = [link for _, link in word[1:]]
        plain = len(word) <= 3 and all(link in ("'", "-") for link in links)
        single = all(link == "." for link in links) and all(
            sum(k != "m" for _, k, _ in s.chars) == 1 and s.chars[0][1] != "d" for s, _ in word)
        if (plain or single) and len(together.encode()) <= 24 and together not in self.stops:
            emit(self.term(together), 0)

    def check(self, data, query, stemmer, no_fold, stop):
        self.stemmer, self.no_fold, self.stops, self.dropped = stemmer, no_fold, STOPS if stop else [], 0
        self.possessive = stemmer == "english"
        spec = "text" + (f" stem={stemmer}" if stemmer else "") + (" nofold" if no_fold else "") + (" stop=custom" if stop else "")
        want = self.tokens(decode(data), query)
        got = self.ask("q" if query else "t", spec, data)
        if got[-1] != "0":
            return f"status {got[-1]}"
        if not query and got[-2] != f"dropped:{self.dropped}":
            return f"{got[-2]}, not {self.dropped}"
        tokens = [(int(t[0]), bytes.fromhex(t[2:])) for t in got[:-1] if t[1] == ":"]
        tokens = [(a, b"\xffP" if t[:2] == b"\xffP" and len(t) == 18 else t) for a, t in tokens]
        return "" if tokens == want else f"{spec}: {show(tokens)}\n not {show(want)}"


def show(tokens):
    return " ".join(("" if a else "+") + t.replace(b"\xff", b"|").decode() for a, t in tokens)


def decode(data):
    """Characters; None for each byte that is not UTF-8."""
    out, i = [], 0
    while i < len(data):
        for n in (1, 2, 3, 4):
            try:
                out.append(data[i:i + n].decode())
                i += n
                break
            except UnicodeDecodeError:
                pass
        else:
            out.append(None)
            i += 1
    return out


RANGES = [(0xC0, 0x24F), (0x250, 0x2AF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F), (0x591, 0x5F4), (0x610, 0x6FF),
          (0x900, 0x97F), (0xE01, 0xE5B), (0xE81, 0xEDF), (0x1000, 0x109F), (0x1100, 0x11FF), (0x1780, 0x17D3),
          (0x1E00, 0x1EFF), (0x1F00, 0x1FFF), (0x2010, 0x2027), (0x2150, 0x218B), (0x3005, 0x3007), (0x3041, 0x30FF),
          (0x3131, 0x318E), (0x4E00, 0x4F00), (0xAC00, 0xAD00), (0xFB00, 0xFB4F), (0xFF01, 0xFFDC), (0x1F1E6, 0x1F1FF),
          (0x1F300, 0x1F6FF), (0x2600, 0x27BF), (0xB7, 0xBE)]
WORDS = ["getUserName", "HTTPSConnection", "O'Reilly's", "don't", "e-mail", "U.S.A.", "AR-7", "14.2.1.0", "C++", "C#",
         ".NET", "#tag", "@you", "joe@example.com", "résumés", "İstanbul", "straße", "b995f2b", "USBメモリ", "naïve", "the-of",
         "The", "don", "ŀ", "½x", "œuvre", "Ærø", "connections", "élèves", "running", "utf8", "XMLHttpRequest2", "x" * 254,
         "aé" * 90, "ǰ" * 130, "👩\u200d🚀", "👍🏽", "🇩🇪🇫🇷", "❤\ufe0f", "soft\u00adhyphen", "가나다", "ก่", "ﾊﾟ"]


def known(c):
    # Not unassigned ones, nor Hangul's tone marks, whose script Unicode and names tell apart, nor iota subscripts, which
    # utf8proc folds before it orders the marks behind them
    return u.category(c) not in ("Cn", "Cs") and ord(c) not in (0x302E, 0x302F) and "\u0345" not in u.normalize("NFKD", c)


def random_char(r):
    while True:
        first, last = r.choice(RANGES)
        c = chr(r.randint(first, last))
        if known(c):
            return c


def random_text(r):
    out = b""
    for _ in range(r.randint(1, r.choice((2, 6, 14)))):
        what = r.random()
        if what < 0.3:
            out += r.choice(WORDS).encode()
        elif what < 0.5:
            out += "".join(r.choice("aAbBcsS19") for _ in range(r.randint(1, 6))).encode()
        elif what < 0.7:
            out += "".join(random_char(r) for _ in range(r.randint(1, 3))).encode()
        elif what < 0.9:
            out += r.choice([*"._'-/:@", "’", "‐", "+", "++", "#", ")", ",", "'s", "．"]).encode()
        elif what < 0.92:
            out += bytes([r.randint(128, 255)])
        else:
            out += b" "
    return out


def main():
    model, n = Model(sys.argv[1]), int(sys.argv[2])
    r = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    for i in range(n):
        data, query = random_text(r), r.random() < 0.3
        stemmer = r.choice(("", "english", "english", "french", "turkish", "german"))
        wrong = model.check(data, query, stemmer, r.random() < 0.15, r.random() < 0.2)
        if wrong:
            print(f"{i}: {'query' if query else 'text'} {data!r} ({''.join(c or '?' for c in decode(data))}): {wrong}")
            return 1
    print(f"{n} compared")
    return 0


if __name__ == "__main__":
    sys.exit(main())
