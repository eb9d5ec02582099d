#!/usr/bin/env python3
"""Tests of the Python package, for python.bats: python_api.py GPUIR, where it is installed. GPUIR is the command that
other builds of the project have."""

import datetime
import decimal
import gc
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import gpuir

try:
    import numpy
except ImportError:
    numpy = None

COMMAND = sys.argv.pop() if len(sys.argv) > 1 and "gpuir" in sys.argv[-1] else "gpuir"
TEXTS = ["the quick brown fox", "the lazy dog", "a quick dog", "", "dog dog wolf é 犬"]


def large(n=60000):
    r = random.Random(1)
    words = [f"{c}{i}" for c in "vw" for i in range(400)]
    return gpuir.index((" ".join(r.choices(words, k=20)) for _ in range(n)), store=False)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)


class Answers(Folder):
    def test_index_in_memory_and_in_a_file_answer_alike(self):
        memory = gpuir.index(TEXTS, ids=["a", "b", "c", "d", "é"])
        file = gpuir.index(iter(TEXTS), "x.gpuir", ids=[b"a", "b", "c", "d", "é"])
        again = gpuir.open(b"x.gpuir")
        self.assertEqual(os.listdir("."), ["x.gpuir"])
        for query in ("quick dog", "dog -wolf", "qu*", "犬", b"fox"):
            for mode in ("or", "and", "andor"):
                hits = [
                    [(h.docid, h.score, h.id, h.text) for h in i.search(query, 3, mode)] for i in (memory, file, again)
                ]
                self.assertEqual(hits[0], hits[1])
                self.assertEqual(hits[0], hits[2])
                if mode != "andor":
                    self.assertEqual(memory.count(query, mode), len(memory.search(query, 10, mode)))
        said = subprocess.run(
            [COMMAND, "query", "--mode", "or", "--tsv", "x.gpuir", "quick", "dog"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        mine = [f"{i + 1}\t{h.docid}\t{h.score:.7f}\t{h.id}" for i, h in enumerate(memory.search("quick dog"))]
        self.assertEqual(said.splitlines(), mine)

    def test_documents(self):
        index = gpuir.index(TEXTS)
        self.assertEqual(len(index), 5)
        self.assertEqual([d.text for d in index], TEXTS)
        self.assertEqual([d.id for d in index], list(range(5)))
        self.assertEqual((index[4].length, index[4].source, index[4].lines), (5, None, None))
        self.assertIn(index.analyzer, ("text", "basic"))  # the command's default, or what there is without utf8proc
        for docid in (5, -1, 2**40):
            self.assertRaises(IndexError, lambda: index[docid])
        self.assertIsNone(gpuir.index(TEXTS, store=False)[0].text)
        self.assertEqual(len(gpuir.index([])), 0)
        self.assertEqual(gpuir.index([]).search("a"), [])

    def test_passages(self):
        text = "\n".join(f"line {i} is dull" for i in range(100)) + "\nhere is a wölf, indeed"
        index = gpuir.index(["nothing", text])
        (found,) = index.passages("wölf", tokens=20)
        self.assertEqual(found.hit.docid, 1)
        self.assertEqual([found.text[m.start : m.end] for m in found.marks], ["wölf"])
        self.assertEqual((found.last_line, found.text in text), (101, True))
        self.assertLessEqual(len(found.text.encode()), 80)
        with self.assertRaisesRegex(gpuir.Error, "its text is not in the index"):
            gpuir.index(TEXTS, store=False).passages("dog")

    def test_phrases_stems_and_parameters(self):
        index = gpuir.index(
            ["wolves hunt", "hunt wolves", "the wolf"], stem="english", stop="english", positions=True, k1=1.2, b=0
        )
        self.assertEqual([h.docid for h in index.search('"hunting wolves"')], [1])
        self.assertEqual([h.docid for h in index.search("hunted", 10)], [0, 1])
        self.assertEqual(len(gpuir.index(TEXTS, analyzer="basic").search("qick~")), 2)
        with self.assertRaisesRegex(TypeError, "no option 'steem'; there are analyzer, stem"):
            gpuir.index(TEXTS, steem="english")

    def test_fields(self):
        noon = datetime.datetime(2024, 1, 2, 13, 0, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
        values = [
            {"by": ["Smith, J", "é"], "year": 1990, "price": decimal.Decimal("1.5"), "day": noon},
            {"by": "é", "price": 2, "day": datetime.date(1969, 12, 31)},
            {"price": 1e-2, "in": "a/b"},
            {},
            {"by": (), "year": -3},
        ]
        fields = {"by": "key", "year": "number", "price": "number:2", "day": "date", "in": "path"}
        utc = datetime.timezone.utc
        want = [
            {
                "by": ["Smith, J", "é"],
                "year": 1990,
                "price": decimal.Decimal("1.50"),
                "day": datetime.datetime(2024, 1, 2, 12, tzinfo=utc),
            },
            {"by": ["é"], "price": decimal.Decimal(2), "day": datetime.datetime(1969, 12, 31, tzinfo=utc)},
            {"price": decimal.Decimal("0.01"), "in": ["a/b"]},
            {},
            {"year": -3},
        ]
        with gpuir.live("l", fields=fields) as live:
            for i, (text, value) in enumerate(zip(TEXTS, values)):
                live.add(text, str(i), value)
        with gpuir.live("l") as live:  # whose fields are those of the folder
            live.add("late dog", values={"year": 2024})
            with self.assertRaisesRegex(gpuir.Error, "field 'yaer': the index has no such field"):
                live.add("dog", values={"yaer": 1})
        indexes = [gpuir.index(TEXTS, fields=fields, values=values), gpuir.open("l")]
        self.assertEqual([d.fields for d in indexes[1]], [*want, {"year": 2024}])
        self.assertEqual([d.fields for d in indexes[0]], want)
        for index in indexes:
            self.assertEqual(index.fields, fields)
            self.assertEqual([h.docid for h in index.search("dog", where="by=é")], [1])
            self.assertEqual(index.search("quick", where="year=1990..")[0].fields, want[0])
            self.assertEqual([h.docid for h in index.search("", where="in=a")], [2])
            self.assertEqual((index.count("dog", where="by=.."), index.count("", where="by=..")), (1, 2))
            self.assertEqual({p.hit.docid for p in index.passages("quick dog", where="year=..")} - {5}, {0, 4})
            if numpy:
                self.assertEqual(index.batch(["dog", "fox"], 3, where="by=é").counts.tolist(), [1, 1])
            with self.assertRaisesRegex(gpuir.Error, "there is no field 'yaer'"):
                index.search("dog", where="yaer=1")
        for wrong, what in (
            ({"year": "old"}, "field 'year': it cannot hold old"),
            ({"year": 1.5}, "it cannot hold 1.5"),
            ({"by": "a\0b"}, "no NUL"),
        ):
            with self.assertRaisesRegex((gpuir.Error, ValueError), what):
                gpuir.index(["a"], fields=fields, values=[wrong])
        for given, what in (([], "fewer values"), ([{}, {}], "more values")):
            with self.assertRaisesRegex(ValueError, what):
                gpuir.index(["a"], fields=fields, values=given)
        with self.assertRaisesRegex(ValueError, "values need fields"):
            gpuir.index(["a"], values=[{}])
        for one in ("number:x", "key\0"):
            self.assertRaises((gpuir.Error, ValueError), lambda one=one: gpuir.index(["a"], fields={"by": one}))
        with self.assertRaisesRegex(gpuir.Error, "more fields than"):
            gpuir.index(["a"], fields={f"f{i}": "key" for i in range(65)})

    def test_sort_collapse_and_facets(self):
        r = random.Random(5)
        values = []
        for _ in range(400):
            value = {"by": r.sample(["é", "b", "c c", "D"], r.randrange(3))}
            value["in"] = r.choice(["a/x", "a/y", "b", "a/x/z"])
            if r.random() < 0.8:
                value["year"] = r.randrange(1990, 1996)
                value["price"] = decimal.Decimal(r.randrange(-50, 50)) / 4
                value["day"] = datetime.date(2024, r.randrange(1, 4), r.randrange(1, 28))
            values.append(value)
        texts = [" ".join(r.choices(["dog", "wolf", "fox", "cat"], k=r.randrange(1, 9))) for _ in values]
        fields = {"by": "key", "in": "path", "year": "number", "price": "number:2", "day": "date"}
        gpuir.index(texts, "x.gpuir", fields=fields, values=values)
        index = gpuir.open("x.gpuir")
        all_fields = [document.fields for document in index]

        def first(docid, field):
            value = all_fields[docid].get(field)
            return value[0].encode() if isinstance(value, list) else value

        for query, where in (("dog wolf", None), ("", None), ("fox -dog", "year=1992..1994"), ("", "by=é")):
            by_score = index.search(query, 400, where=where or "in=..")
            for sort in (None, "", "by", "-by", "in", "year", "-year", "-price", "day"):
                hits = sorted(by_score, key=lambda h: h.docid) if sort else by_score
                if sort:
                    name = sort.lstrip("-")
                    having = [h for h in hits if first(h.docid, name) is not None]
                    having.sort(key=lambda h: first(h.docid, name), reverse=sort[0] == "-")  # which keeps docIDs rising
                    hits = having + [h for h in hits if first(h.docid, name) is None]
                for collapse in (None, "year", "by", "in"):
                    want, seen = [], set()
                    for hit in hits:
                        value = first(hit.docid, collapse) if collapse else None
                        if value is None or value not in seen:
                            want.append((hit.docid, hit.score))
                        seen.add(value)
                    for k in (3, 400):
                        if not query and where is None and sort is None and collapse is None:
                            continue  # a query without words, and nothing else
                        got = index.search(query, k, "or", where, sort, collapse)
                        self.assertEqual([(h.docid, h.score) for h in got], want[:k], (query, where, sort, collapse))
                        if numpy:
                            batch = index.batch([query], k, where=where, sort=sort or "", collapse=collapse)
                            self.assertEqual(list(batch.docids[0][: batch.counts[0]]), [d for d, _ in want[:k]])
            docids = [hit.docid for hit in by_score]
            asked = ["by", "by:2", "in:a", "year", "price:-1.5,0,2", "day:month"]
            found = index.facets(query, asked, where=where)
            self.assertEqual(list(found), asked)
            counts = {}
            for docid in docids:
                for value in all_fields[docid].get("by", []):
                    counts[value] = counts.get(value, 0) + 1
            by_count = sorted(counts.items(), key=lambda x: (-x[1], x[0].encode()))
            want = [gpuir.Facet(value, None, None, n) for value, n in by_count]
            self.assertEqual((found["by"], found["by:2"]), (want, want[:2]))
            for name, low in (("year", lambda v: v), ("day:month", lambda v: v.replace(day=1))):
                counts = {}
                for docid in docids:
                    value = all_fields[docid].get(name.split(":")[0])
                    if value is not None:
                        counts[low(value)] = counts.get(low(value), 0) + 1
                self.assertEqual([(f.low, f.matches) for f in found[name]], sorted(counts.items()))
            prices = [all_fields[docid]["price"] for docid in docids if "price" in all_fields[docid]]
            ranges = [(None, "-1.51"), ("-1.5", "-0.01"), ("0", "1.99"), ("2", None)]
            ranges = [tuple(None if x is None else decimal.Decimal(x) for x in pair) for pair in ranges]
            want = [
                gpuir.Facet(None, a, b, sum((a is None or a <= p) and (b is None or p <= b) for p in prices))
                for a, b in ranges
            ]
            self.assertEqual(found["price:-1.5,0,2"], want)
            inside = [first(docid, "in") for docid in docids]
            below = {"a/x": sum(p in (b"a/x", b"a/x/z") for p in inside), "a/y": inside.count(b"a/y")}
            self.assertEqual({f.value: f.matches for f in found["in:a"]}, {n: c for n, c in below.items() if c})
        self.assertEqual(index.facets("zzz", ["by"]), {"by": []})
        self.assertEqual(index.facets("dog", []), {})
        for call in (
            lambda: index.search("dog", sort="yaer"),
            lambda: index.search("dog", collapse="yaer"),
            lambda: index.facets("dog", ["yaer"]),
            lambda: index.facets("dog", ["by:x"]),
        ):
            with self.assertRaises(gpuir.Error) as caught:
                call()
            self.assertRegex(str(caught.exception), "yaer|comes how many values")
        for call in (lambda: index.search("dog", sort="a\0"), lambda: index.facets("dog", ["a\0"])):
            with self.assertRaisesRegex(ValueError, "no NUL"):
                call()
        with self.assertRaises(gpuir.Error):
            index.facets("dog", ["by"] * 65)

    @unittest.skipUnless(numpy, "no numpy")
    def test_batch(self):
        index = large(2000)
        queries = [f"w{i} v{i * 7 % 400}" for i in range(300)] + ["zzz", b"v1 v2", "w1\nw2"]
        for threads in (1, 3):
            batch = index.batch(queries, 5, threads=threads)
            self.assertEqual((batch.docids.shape, batch.scores.shape, batch.counts.shape), ((303, 5), (303, 5), (303,)))
            for i, query in enumerate(queries):
                hits = index.search(query, 5)
                self.assertEqual(batch.counts[i], len(hits))
                self.assertEqual(list(batch.docids[i][: len(hits)]), [h.docid for h in hits])
                self.assertEqual(list(batch.scores[i][: len(hits)]), [h.score for h in hits])
        self.assertEqual(index.batch([], 5).counts.shape, (0,))
        with self.assertRaisesRegex(gpuir.QueryError, "^query 1: "):
            index.batch(["w1", "-w2"])


class Errors(Folder):
    def test_messages_are_those_of_the_library(self):
        index = gpuir.index(TEXTS)
        with self.assertRaisesRegex(gpuir.QueryError, "only says what is not to be there") as caught:
            index.search("-dog")
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.code, -8)
        with self.assertRaisesRegex(gpuir.Error, "positions"):
            index.search('"quick dog"')
        with self.assertRaisesRegex(gpuir.Error, "missing.gpuir: .*No such file"):
            gpuir.open("missing.gpuir")
        with open("bad.gpuir", "w", encoding="utf-8") as f:
            f.write("no index" * 100)
        with self.assertRaisesRegex(gpuir.Error, "not a gpuir index"):
            gpuir.open("bad.gpuir")
        with self.assertRaisesRegex(gpuir.Error, "stem"):
            gpuir.index(TEXTS, stem="klingon")
        for wrong in ({"k1": -1}, {"b": 2}, {"k1": float("nan")}):
            self.assertRaises(gpuir.Error, lambda wrong=wrong: gpuir.index(TEXTS, **wrong))
        with self.assertRaises(ValueError):
            index.search("dog", mode="xor")
        self.assertEqual(len(index.search("dog", 2**62)), 3)
        for k in (-1,):
            self.assertRaises((ValueError, OverflowError, MemoryError), index.search, "dog", k)
        self.assertEqual(index.search("dog", 0), [])
        for ids, what in ((["a"], "fewer ids"), ("abcdef", "more ids")):
            with self.assertRaisesRegex(ValueError, what):
                gpuir.index(TEXTS, "y.gpuir", ids=ids)
        self.assertEqual(sorted(os.listdir(".")), ["bad.gpuir"])

    def test_an_exception_of_the_texts_leaves_nothing(self):
        def texts():
            yield "a"
            raise KeyError("mine")

        self.assertRaises(KeyError, gpuir.index, texts(), "y.gpuir")
        self.assertEqual(os.listdir("."), [])

    def test_closed(self):
        index = gpuir.index(TEXTS)
        hit = index.search("fox")[0]
        with index:
            pass
        with self.assertRaisesRegex(gpuir.Error, "the index is closed"):
            index.search("fox")
        self.assertEqual(hit.text, TEXTS[0])


class Lives(Folder):
    def test_live(self):
        with gpuir.live("l") as live:
            live.add("one wolf", id="1")
            live.add("two wolves", id="2")
            snapshot = live.snapshot()
            self.assertEqual(live.delete("1"), 1)
            self.assertEqual((len(snapshot), len(live.snapshot())), (2, 1))
            with self.assertRaisesRegex(gpuir.Error, "."):
                gpuir.live("l")
        self.assertEqual([d.id for d in gpuir.open("l")], ["2"])
        self.assertEqual([d.id for d in snapshot], ["1", "2"])
        with self.assertRaises(KeyError), gpuir.live("l") as live:
            live.add("lost", id="3")
            raise KeyError
        self.assertEqual(len(gpuir.open("l")), 1)
        with gpuir.live("l") as live:
            live.add("three", id="3")
            live.commit()
            live.merge(all=True)
        self.assertEqual(len(gpuir.open("l")), 2)
        with self.assertRaisesRegex(gpuir.Error, "l: the live index is closed"):
            live.add("x")
        with self.assertRaises(gpuir.Error):
            gpuir.live("missing", create=False)

    def test_results_outlive_everything_in_any_order(self):
        r = random.Random(3)
        for _ in range(200):
            index = gpuir.index(TEXTS)
            hits = index.search("dog")
            things = {"index": index, "hits": hits, "document": index[0], "iterator": iter(index)}
            next(things["iterator"])
            things["cycle"] = [things["index"]]
            things["cycle"].append(things["cycle"])
            del index, hits
            for name in r.sample(list(things), len(things)):
                if name == "hits":
                    self.assertEqual(things["hits"][0].text, TEXTS[4])
                elif name == "document":
                    self.assertEqual(things["document"].text, TEXTS[0])
                elif name == "iterator":
                    self.assertEqual(next(things["iterator"]).text, TEXTS[1])
                del things[name]
                if r.random() < 0.2:
                    gc.collect()
        gc.collect()

    def test_what_is_gone_is_closed(self):
        def descriptors():
            gc.collect()
            return len(os.listdir("/proc/self/fd"))

        before = descriptors()
        for _ in range(50):
            gpuir.index(TEXTS).search("dog")
        self.assertEqual(descriptors(), before)

    def test_exit_with_everything_alive(self):
        code = (
            "import gpuir, threading, time\n"
            "i = gpuir.index(['a b'] * 1000)\nh = i.search('a')\nl = gpuir.live('x')\nl.add('a')\n"
            "def f():\n  while True: i.search('a')\n"
            "threading.Thread(target=f, daemon=True).start()\ntime.sleep(0.1)\nc = [i]; c.append(c)\n"
        )
        for _ in range(3):
            subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


class Threads(Folder):
    def test_threads_have_searchers_of_their_own(self):
        index = large(3000)
        want = {f"w{i}": [(h.docid, h.score) for h in index.search(f"w{i} v{i}")] for i in range(40)}
        wrong = []

        def ask(seed):
            r = random.Random(seed)
            for _ in range(200):
                i = r.randrange(40)
                if [(h.docid, h.score) for h in index.search(f"w{i} v{i}")] != want[f"w{i}"]:
                    wrong.append(i)

        threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_other_threads_run_during_a_search(self):
        # Nobody is told to let go of the interpreter's lock: whoever runs beside a search got it from the search.
        before = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, before)
        index, query = large(20000), "v* w* " + " ".join(f"-x{i}" for i in range(20))
        ran, beside = 0, 0

        def ask():
            nonlocal beside
            index.search(query, 1)
            for _ in range(50):
                seen = ran
                index.search(query, 1000)
                beside = ran - seen
                if beside:
                    break

        thread = threading.Thread(target=ask)
        sys.setswitchinterval(1000)
        thread.start()
        while thread.is_alive():
            ran += 1
            time.sleep(0)
        self.assertGreater(beside, 0)

    def test_fork(self):
        with gpuir.live("l") as live:
            live.add("a dog")
            snapshot = live.snapshot()
            gpuir.index(TEXTS, "x.gpuir")
            indexes = [gpuir.index(TEXTS), gpuir.open("x.gpuir")]
            hit = indexes[0].search("fox")[0]
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    assert [len(i.search("dog")) for i in indexes] == [3, 3]
                    assert hit.text == TEXTS[0] and len(indexes[0].search("dog")) == 3
                    for use in (lambda: snapshot.search("dog"), lambda: live.add("x"), lambda: live.commit()):
                        try:
                            use()
                        except gpuir.Error as e:
                            assert "forked" in str(e)
                        else:
                            raise AssertionError
                    del indexes, hit
                    gc.collect()
                    code = 0
                finally:
                    os._exit(code)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertEqual([len(i.search("dog")) for i in indexes], [3, 3])
        self.assertEqual(len(gpuir.open("l")), 1)

    def interrupted(self, call):
        """For how long a call went on after Ctrl-C, which comes a moment after it began."""
        at = []

        def send():
            time.sleep(0.15)
            at.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        sender = threading.Thread(target=send)
        sender.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                call()
                time.sleep(5)
        finally:
            sender.join()
        return time.monotonic() - at[0]

    def test_a_signal_handler_may_search_while_a_search_runs(self):
        index = large(20000)
        query = "v* w* " + " ".join(f"-x{i}" for i in range(20))
        want, seen = [h.docid for h in index.search("v1 w1", 20)], []
        before = signal.signal(signal.SIGALRM, lambda *_: seen.append([h.docid for h in index.search("v1 w1", 20)]))
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
        try:
            answers = {tuple(h.docid for h in index.search(query, 50)) for _ in range(20)}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertEqual(len(answers), 1)
        self.assertTrue(seen and all(s == want for s in seen))

    def test_exceptions_of_signal_handlers_at_any_moment(self):
        class Stop(Exception):
            pass

        left, stopped = 0, 0  # exceptions that may still come; those that came

        def handler(*_):
            nonlocal left, stopped
            if left:
                left -= 1
                stopped += 1
                raise Stop

        def absorb(depth, call, wait, most):  # as many exceptions as levels: one may come while another is caught
            nonlocal left
            try:
                if depth:
                    absorb(depth - 1, call, wait, most)
                else:
                    left = most
                    signal.setitimer(signal.ITIMER_REAL, wait, 0.0003)
                    call()
                left = 0
            except Stop:
                pass

        index, r = large(20000), random.Random(4)
        query = "v* w* " + " ".join(f"-x{i}" for i in range(20))
        want = [(h.docid, h.score) for h in index.search("v1 w1", 20)]
        calls = [lambda: [index.search(query, 1000) for _ in range(100)]] * 3
        calls.append(lambda: gpuir.index(("v1 w1 " * 50 for _ in range(20000)), "x.gpuir", threads=1))
        calls.append(lambda: [index.facets(query, []) for _ in range(100)])
        if numpy:
            calls.append(lambda: index.batch([query] * 100, 1000))
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, handler))
        self.addCleanup(signal.setitimer, signal.ITIMER_REAL, 0)
        for _ in range(120):
            most = r.choice([1, 1, 1, 3])
            absorb(4, r.choice(calls), r.uniform(0.001, 0.08), most)
            # What was interrupted is not used again while it runs.
            self.assertEqual([(h.docid, h.score) for h in index.search("v1 w1", 20)], want)
            if most == 1:
                self.assertLessEqual(set(os.listdir(".")), {"x.gpuir"})
        self.assertGreater(stopped, 60)

    def test_ctrl_c_stops_what_takes_long(self):
        index = large()
        query = "v* w* " + " ".join(f"-x{i}" for i in range(20))
        index.search(query, 1)  # what is made once
        calls = [lambda: [index.search(query, 1000) for _ in range(1000)]]
        if numpy:
            calls.append(lambda: index.batch([query] * 500, 1000))
        for call in calls:
            self.assertLess(self.interrupted(call), 2.5)  # all of it would take far longer
            self.assertEqual(len(index.search("v1", 3)), 3)  # and the next one is not cancelled


@unittest.skipUnless(numpy, "no numpy")
class RankBM25(unittest.TestCase):
    def formula(self, corpus, query, k1, b):
        n, average = len(corpus), sum(map(len, corpus)) / len(corpus)
        scores = numpy.zeros(n)
        for word in query:
            df = sum(word in d for d in corpus)
            idf = math.log((2 * n + 2) / (2 * df + 1))
            for i, d in enumerate(corpus):
                tf = d.count(word)
                if tf:
                    scores[i] += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(d) / average))
        return scores

    def test_scores_are_those_of_the_formula(self):
        from gpuir.rank_bm25 import BM25Okapi

        r = random.Random(1)
        word = lambda: (
            r.choice(["", "é", "w" * 300, ("a", 1), *"abcdefgh"])
            if r.random() < 0.3
            else f"w{int(r.expovariate(0.02))}"
        )
        for n in (1, 7, 120):
            corpus = [[word() for _ in range(r.randrange(1, 60))] for _ in range(n)]
            for k1, b in ((1.5, 0.75), (1.2, 0.0)):
                model = BM25Okapi(corpus, k1=k1, b=b)
                for _ in range(12):
                    query = [word() for _ in range(r.choice([0, 1, 2, 5, 10, 100]))]
                    want, got = self.formula(corpus, query, k1, b), model.get_scores(query)
                    self.assertLess(numpy.abs(want - got).max(), 1e-5)
                    top = model.get_top_n(query, list(range(n)), 5)
                    self.assertEqual(top, list(numpy.argsort(-got, kind="stable")[:5]))
                    self.assertEqual(model.get_batch_scores(query, [n - 1, 0]), [got[n - 1], got[0]])
        model = BM25Okapi(["Hello there", "good BYE"], tokenizer=lambda text: text.lower().split())
        self.assertEqual(model.get_top_n(["bye"], ["x", "y"], 1), ["y"])
        self.assertRaises(ValueError, model.get_top_n, ["bye"], ["x"])


if __name__ == "__main__":
    unittest.main()
