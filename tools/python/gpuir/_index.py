"""Indexes, what they answer, and live indexes."""

import _thread
import ctypes
import datetime
import decimal
import os
import shutil
import tempfile
import threading
from ctypes import byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Tuple,
    Type,
    TypedDict,
    Union,
)

from . import _library
from ._library import Choice, DocumentDetail, Error, ErrorDetail, FacetDetail, PassageDetail, Settings
from ._library import check, failure, lib, text_at

if TYPE_CHECKING:
    import numpy
    import numpy.typing
    from typing_extensions import Unpack

Text = Union[str, bytes]
Scalar = Union[str, int, float, decimal.Decimal, datetime.date]
Values = Mapping[str, Union[Scalar, Iterable[Scalar]]]  # by field; several of a key or a path
Number = Union[int, decimal.Decimal, datetime.datetime]
FieldValue = Union[List[str], Number]


class Options(TypedDict, total=False):
    """How an index is made. What is not given has the default."""

    analyzer: str  # "ascii", "basic", "unicode" or "text", the default where the library has utf8proc; else "basic"
    stem: Optional[str]  # such as "english" or "porter"; None: words are not stemmed
    stop: Optional[str]  # "english": its stop words are left out
    codec: Optional[str]
    k1: Optional[float]  # of BM25: 0.9
    b: Optional[float]  # of BM25: 0.4
    store: bool  # keeps the texts: True
    positions: bool  # lets queries have phrases: False
    memory: int  # bytes that building may take; 0: some
    threads: int  # 0: all processors
    fields: Mapping[str, str]  # what documents have beside their text: key, path, number, number:DECIMALS or date


_MODES = {"and": 0, "or": 1, "andor": 2}
_ONE = 1048576.0  # what a score of 1.0 is
_AT_ONCE = 20_000_000  # nanoseconds for which the main thread waits before it lets Ctrl-C in
_PASSAGES, _MARKS = 64, 4096
_LEAST, _GREATEST = -(2**63), 2**63 - 1  # of numbers and dates


def _bytes(text: Text) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def _choice(where: Optional[str], sort: Optional[str] = None, collapse: Optional[str] = None) -> Any:
    """What the library is told of them; None where it is nothing."""
    if where is None and sort is None and collapse is None:
        return None
    for given in (where, sort, collapse):
        if given is not None and "\0" in given:
            raise ValueError("a where, a sort and a collapse have no NUL")
    return byref(Choice(*[None if given is None else _bytes(given) for given in (where, sort, collapse)]))


def _written(value: Union[Scalar, bytes]) -> bytes:
    """A value as the library reads it."""
    if isinstance(value, datetime.datetime):
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
        value = value.isoformat(timespec="seconds")
    elif isinstance(value, datetime.date):
        value = value.isoformat()
    elif isinstance(value, (float, decimal.Decimal)):
        value = format(decimal.Decimal(str(value)), "f")  # 1e-07 has no other spelling that the library reads
    raw = _bytes(value if isinstance(value, (str, bytes)) else str(value))
    if b"\0" in raw:
        raise ValueError("a value has no NUL")
    return raw


def _pairs(values: Values) -> Tuple[bytes, int]:
    """Fields' names and values, each with a NUL behind it, and how many pairs they are."""
    pairs = []
    for name, value in values.items():
        some = [value] if isinstance(value, (str, bytes, int, float, decimal.Decimal, datetime.date)) else value
        pairs += [_written(name) + b"\0" + _written(one) + b"\0" for one in some]
    return b"".join(pairs), len(pairs)


class _Schema:
    """The fields of an index that is written: as they were declared, or those of an open index."""

    def __init__(self, fields: Mapping[str, str], native: "Optional[_Native]" = None):
        self.pointer, self.native, detail = c_void_p(), native, ErrorDetail()
        text = b"".join([_written(f"{name}={use}") + b"\0" for name, use in fields.items()])
        index = native.pointer if native else None
        check(lib.gpuir_python_schema_create(index, text, len(fields), byref(self.pointer), byref(detail)), detail)

    def __del__(self, _destroy: Any = lib.gpuir_python_schema_destroy) -> None:
        if self.pointer:
            _destroy(self.pointer)


def _mode(mode: str) -> int:
    try:
        return _MODES[mode]
    except KeyError:
        raise ValueError(f"mode is and, or, or andor, not {mode!r}") from None


def _apart(call: Callable[[], int], cancel: c_int) -> int:
    """Makes a call in a thread of its own, so that the main thread runs signal handlers meanwhile: Python runs them
    between two instructions of that thread, and a call in C is one. An exception of a handler cancels the call, and is
    raised once it has ended. A second one may come at any instruction here, and then the call may still run: what it
    uses, it must have references to, and nobody else may use it again after an exception."""
    todo, done = [call], _thread.allocate_lock()
    result: List[int] = []
    ended: List[None] = []
    done.acquire()

    def run() -> None:
        try:
            mine = todo.pop()
        except IndexError:  # an exception came before this thread did
            return
        try:
            result.append(mine())
        finally:
            ended.append(None)
            done.release()

    try:
        _thread.start_new_thread(run, ())
        done.acquire()
    except BaseException:
        cancel.value = 1
        try:
            todo.pop()
        except IndexError:
            while not ended:
                try:
                    done.acquire(True, 0.01)
                except BaseException:
                    pass
        raise
    return result[0]


class _Process:
    """This process: its number, and its main thread. A fork changes them, and nothing is asked of the system before."""

    pid = os.getpid()
    main = threading.main_thread().ident


def _forked() -> None:
    _Process.pid = os.getpid()
    _Process.main = threading.get_ident()


os.register_at_fork(after_in_child=_forked)
_ident = threading.get_ident
_new = object.__new__
_search = lib.gpuir_python_search


def _is_main() -> bool:
    return _ident() == _Process.main


class _Native:
    """An open index of the library. It is closed when neither Python objects nor searchers need it any more: in what
    order the collector of garbage finds them is not known."""

    def __init__(self, pointer: c_void_p, again: Optional[Callable[[], "_Native"]], owned: Tuple[int, ...] = ()):
        self.pointer: Optional[c_void_p] = pointer
        self.again = again  # opens it in a process that was forked; None: nobody can
        self.owned = owned  # descriptors that are closed with it
        self.pid = _Process.pid
        # Who uses it, and who may close it. The collector may run anywhere, so there is no lock: to append to a list
        # and to pop are one step each.
        self.users: List[None] = [None]
        self.closer = [pointer]
        self.forked: Optional[_Native] = None

    def here(self) -> "_Native":
        """The index in this process. After a fork it is opened anew: another thread may have held a lock of the old
        one, which no thread of this process will release."""
        if self.pid == _Process.pid:
            return self
        if self.forked is None or self.forked.pid != _Process.pid:
            if self.again is None:
                raise Error("this index belongs to the process that made it, from which this one was forked")
            self.forked = self.again()
        return self.forked

    def retain(self) -> None:
        self.users.append(None)

    def release(self, _close: Any = lib.gpuir_close, _process: Any = _Process, _os_close: Any = os.close) -> None:
        if self.pid != _process.pid:
            return  # what belongs to another process is left alone
        self.users.pop()
        if self.users:
            return
        try:
            pointer = self.closer.pop()
        except IndexError:
            return  # another thread closes it
        self.pointer = None
        _close(pointer)
        for fd in self.owned:
            _os_close(fd)

    def __del__(self) -> None:
        self.release()


class _Searcher:
    """A searcher of one thread."""

    def __init__(self, native: _Native, threads: int):
        self.pointer: Optional[int] = None
        self.cancel = c_int(0)
        self.native = native
        native.retain()
        self.room: Dict[int, Any] = {}  # for hits, by k
        pointer, detail = c_void_p(), ErrorDetail()
        status = lib.gpuir_python_searcher_create(
            native.pointer, threads, byref(self.cancel), byref(pointer), byref(detail)
        )
        if status:
            native.release()
            raise failure(status, detail)
        self.pointer = pointer.value

    def failure(self, status: int, what: str = "") -> Error:
        """What the last call failed with."""
        detail = ErrorDetail()
        lib.gpuir_python_searcher_error(self.pointer, byref(detail))
        return failure(status, detail, what)

    def __del__(self, _destroy: Any = lib.gpuir_python_searcher_destroy, _process: Any = _Process) -> None:
        if self.pointer is not None and self.native.pid == _process.pid:
            _destroy(self.pointer)
            self.native.release()


def _fields_of(native: _Native) -> List[Tuple[str, int, int]]:
    """The fields of an index: name, column, decimals."""
    fields: List[Tuple[str, int, int]] = []
    name = ctypes.create_string_buffer(_library.FIELD_ROOM)
    column, decimals = c_int(), c_uint()
    while not lib.gpuir_python_field(native.pointer, len(fields), name, byref(column), byref(decimals)):
        fields.append((name.value.decode(), column.value, decimals.value))
    return fields


def _facets_of(found: c_void_p, which: int, column: int, decimals: int) -> "List[Facet]":
    """What a column's facets are in Python."""

    def number(value: int) -> Optional[Number]:
        if value in (_LEAST, _GREATEST):
            return None
        return _number(value, decimals) if column == _library.NUMBER else _date(value)

    facets: List[Facet] = []
    one = FacetDetail()
    while not lib.gpuir_python_facet_get(found, which, len(facets), byref(one)):
        text = text_at(one.value, one.len) if one.value else None
        low, high = (number(one.low), number(one.high)) if text is None else (None, None)
        facets.append(Facet(text, low, high, one.count))
    return facets


def _number(value: int, decimals: int) -> Union[int, decimal.Decimal]:
    return decimal.Decimal(value).scaleb(-decimals) if decimals else value


def _date(seconds: int) -> Union[int, datetime.datetime]:
    try:
        return datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    except OverflowError:
        return seconds


def _stored(native: _Native, docid: int, start: int, length: int) -> bytes:
    text = ctypes.create_string_buffer(length + 1)
    check(lib.gpuir_python_text(native.pointer, docid, start, text, length), None, f"document {docid}")
    return text.raw[:length]


class Document:
    """A document of an index. Its name, text and place are read when they are asked for."""

    __slots__ = ("_native", "docid")

    def __init__(self, native: _Native, docid: int):
        self._native = native
        self.docid = docid

    def _detail(self) -> Tuple[_Native, DocumentDetail]:
        native, detail = self._native.here(), DocumentDetail()
        check(lib.gpuir_python_document_get(native.pointer, self.docid, byref(detail)), None, f"document {self.docid}")
        return native, detail

    @property
    def id(self) -> Union[str, int]:
        """The name that the document was added with; without one its number."""
        native, detail = self._detail()
        if not detail.name_len:
            return self.docid
        name = ctypes.create_string_buffer(detail.name_len + 1)
        check(lib.gpuir_python_name(native.pointer, self.docid, name, len(name)))
        return name.raw[:-1].decode("utf-8", "replace")

    @property
    def text(self) -> Optional[str]:
        """The text; None where the index does not store it."""
        native, detail = self._detail()
        if not detail.stored:
            return None
        return _stored(native, self.docid, 0, detail.text_len).decode("utf-8", "replace")

    @property
    def source(self) -> Optional[str]:
        """The path of the file that it came from, as the index has it."""
        detail = self._detail()[1]
        return text_at(detail.source, detail.source_len) if detail.source_len else None

    @property
    def lines(self) -> Optional[Tuple[int, int]]:
        """The first and last line in the source; None: all of it."""
        detail = self._detail()[1]
        return (detail.first_line, detail.last_line) if detail.first_line else None

    @property
    def length(self) -> int:
        """How many tokens it has."""
        return int(self._detail()[1].length)

    @property
    def fields(self) -> Dict[str, FieldValue]:
        """What it has in the index's fields: of a key or a path a list, of a number an int or a Decimal, of a date a
        datetime in UTC, or seconds since 1970 where that cannot have it."""
        native, self_id = self._detail()[0], self.docid
        room, number = ctypes.create_string_buffer(_library.VALUE_ROOM), c_int64()
        found: Dict[str, FieldValue] = {}
        for field, (name, column, decimals) in enumerate(_fields_of(native)):
            texts: List[str] = []
            i = 0
            while True:
                status = lib.gpuir_python_value(native.pointer, self_id, field, i, room, byref(number))
                if status == _library.NOT_FOUND:
                    break
                check(status)
                if column in (_library.NUMBER, _library.DATE):
                    found[name] = _number(number.value, decimals) if column == _library.NUMBER else _date(number.value)
                else:
                    texts.append(room.value.decode("utf-8", "replace"))
                i += 1
            if texts:
                found[name] = texts
        return found

    def __repr__(self) -> str:
        return f"Document(docid={self.docid})"


class Hit(Document):
    """A document that a query has found."""

    __slots__ = ("score",)

    def __init__(self, native: _Native, docid: int, score: float):
        self._native = native
        self.docid = docid
        self.score = score

    def __repr__(self) -> str:
        return f"Hit(docid={self.docid}, score={self.score:.7f})"


class Batch(NamedTuple):
    """The answers to n queries: row i is that of query i, of which the first counts[i] entries mean something."""

    docids: "numpy.typing.NDArray[numpy.uint32]"  # [n, k]
    scores: "numpy.typing.NDArray[numpy.float64]"  # [n, k]; 0 behind the last hit
    counts: "numpy.typing.NDArray[numpy.uint32]"  # [n]


class Facet(NamedTuple):
    """How many of a query's matches have what in a field."""

    value: Optional[str]  # of a key or a path; of a number or a date None
    low: Optional[Number]  # of a number or a date: from here; None: from the least on
    high: Optional[Number]  # to here, which is included; None: to the greatest
    matches: int


class Mark(NamedTuple):
    """A word of the query in a passage: text[start:end]."""

    start: int
    end: int


class Passage(NamedTuple):
    """A part of a document's text that answers a query."""

    hit: Hit
    text: str
    first_line: int
    last_line: int
    score: float
    marks: List[Mark]


class Index:
    """An open index. `len` counts its documents, iteration and index[docid] give them."""

    def __init__(self, native: _Native):
        self._native: Optional[_Native] = native
        self._local = threading.local()

    def _searcher(self, native: _Native) -> _Searcher:
        """This thread's searcher."""
        found: Optional[_Searcher] = getattr(self._local, "searcher", None)
        if found is None or found.native is not native:
            found = self._local.searcher = _Searcher(native, 1)
        return found

    def _apart(self, searcher: _Searcher, call: Callable[[], int]) -> int:
        """Makes a call of this thread's searcher apart. What a signal handler asks meanwhile gets another one, and so
        does what follows an exception of one."""
        mine = getattr(self._local, "searcher", None)
        self._local.searcher = None
        status = _apart(call, searcher.cancel)
        self._local.searcher = mine
        return status

    def _here(self) -> _Native:
        if self._native is None:
            raise Error("the index is closed")
        return self._native.here()

    def search(
        self,
        query: Text,
        k: int = 10,
        mode: str = "or",
        where: Optional[str] = None,
        sort: Optional[str] = None,
        collapse: Optional[str] = None,
    ) -> List[Hit]:
        """The k best documents for a query, best first. mode: "or" (any word), "and" (all), "andor" (all; any where
        fewer than k documents have all). -word excludes, word* is a prefix, "a phrase" needs an index with positions.
        where: which documents may be hits, by their fields, such as 'author=Smith year=1990..'. sort: a field by whose
        first value hits come in place of their score, rising, or falling as in '-year'. collapse: a field of whose
        first values each has one hit only, the best. With any of these three a query without a word asks for all
        documents that may be hits."""
        if k > 4096:  # no memory for more hits than there are documents
            k = min(k, len(self))
        native = self._native
        if native is None or native.pid != _Process.pid:
            native = self._here()
        try:
            searcher: _Searcher = self._local.searcher
            if searcher.native is not native:
                searcher = self._searcher(native)
        except AttributeError:
            searcher = self._searcher(native)
        text = query if isinstance(query, bytes) else query.encode("utf-8", "surrogatepass")
        # A signal handler may search meanwhile: it finds no room, and makes its own.
        hits = searcher.room.pop(k, None) or (c_uint32 * (2 * k))()
        how = _MODES.get(mode)
        choice = None if where is None and sort is None and collapse is None else _choice(where, sort, collapse)
        n = _search(
            searcher.pointer,
            _mode(mode) if how is None else how,
            text,
            len(text),
            hits,
            k,
            choice,
            _AT_ONCE if _ident() == _Process.main else 0,
        )
        if n < 0:
            n = self._again(searcher, _search, n, _mode(mode), text, len(text), hits, k, choice)
        answer: List[Hit] = []
        add = answer.append
        for docid, score in zip(hits[: 2 * n : 2], hits[1 : 2 * n : 2]):
            hit = _new(Hit)  # without a call of __init__, which would cost more than all else here
            hit._native = native
            hit.docid = docid
            hit.score = score / _ONE
            add(hit)
        searcher.room = {k: hits}
        return answer

    def _again(self, searcher: _Searcher, function: Any, status: int, *arguments: Any) -> int:
        """Makes a call again that took too long for the main thread: apart, so that Ctrl-C can stop it."""
        if status == _library.DEADLINE:
            status = self._apart(searcher, lambda: int(function(searcher.pointer, *arguments, 0)))
        if status < 0:
            raise searcher.failure(status)
        return status

    def count(self, query: Text, mode: str = "or", where: Optional[str] = None) -> int:
        """How many documents match; of "andor" those that have all words."""
        text, how, choice = _bytes(query), _mode(mode), _choice(where)
        searcher, function = self._searcher(self._here()), lib.gpuir_python_count
        n = int(function(searcher.pointer, how, text, len(text), choice, _AT_ONCE if _is_main() else 0))
        return n if n >= 0 else self._again(searcher, function, n, how, text, len(text), choice)

    def facets(
        self, query: Text, columns: Iterable[str], mode: str = "or", where: Optional[str] = None
    ) -> Dict[str, List[Facet]]:
        """What all documents that match have in fields, counted exactly; of "andor" those that have all words. A column
        is a field: "author" tells each value, "author:20" the 20 most frequent, "dir:src" what lies in the folder src,
        "size:0,1000" three ranges, "day:month" each month (or year, or day). Values of keys and paths come the most
        frequent first, numbers and dates in order."""
        names = list(columns)
        if any("\0" in name for name in names):
            raise ValueError("a column has no NUL")
        fields = {name: (column, decimals) for name, column, decimals in _fields_of(self._here())}
        text, how, choice, found = _bytes(query), _mode(mode), _choice(where) or byref(Choice()), c_void_p()
        asked = b"".join([_bytes(name) + b"\0" for name in names])
        arguments = (how, text, len(text), choice, asked, len(names), byref(found))
        searcher, function = self._searcher(self._here()), lib.gpuir_python_facets
        try:
            status = int(function(searcher.pointer, *arguments, _AT_ONCE if _is_main() else 0))
            if status:
                self._again(searcher, function, status, *arguments)
            return {name: _facets_of(found, i, *fields[name.split(":")[0]]) for i, name in enumerate(names)}
        finally:
            lib.gpuir_facets_destroy(found)

    def batch(
        self,
        queries: Iterable[Text],
        k: int = 10,
        mode: str = "or",
        threads: int = 1,
        where: Optional[str] = None,
        sort: Optional[str] = None,
        collapse: Optional[str] = None,
    ) -> Batch:
        """Ranks many queries at once, on so many threads, into arrays of numpy, which must be there. For mode, where,
        sort and collapse see `search`."""
        import numpy

        native = self._here()
        lines = [q if isinstance(q, bytes) else q.encode("utf-8", "surrogatepass") for q in queries]
        text = b"\n".join(lines)
        if text.count(b"\n") != max(len(lines) - 1, 0):  # within a query it is a blank
            text = b"\n".join([line.replace(b"\n", b" ") for line in lines])
        hits = numpy.zeros((len(lines), k, 2), numpy.uint32)
        counts = numpy.zeros(len(lines), numpy.uint32)
        searcher = self._searcher(native) if threads == 1 else _Searcher(native, threads)
        bad, how, choice = c_size_t(), _mode(mode), _choice(where, sort, collapse)

        def call() -> int:
            return int(
                lib.gpuir_python_batch(
                    searcher.pointer,
                    how,
                    text,
                    len(text),
                    len(lines),
                    k,
                    choice,
                    hits.ctypes.data,
                    counts.ctypes.data,
                    byref(bad),
                )
            )

        status = self._apart(searcher, call) if _is_main() else call()
        if status:
            raise searcher.failure(status, f"query {bad.value}" if bad.value < len(lines) else "")
        return Batch(hits[:, :, 0], hits[:, :, 1] / _ONE, counts)

    def passages(
        self, query: Text, k: int = 5, mode: str = "or", tokens: int = 800, where: Optional[str] = None
    ) -> List[Passage]:
        """The passages of the k best documents that answer the query, within a budget of tokens, four bytes each, for
        all of them; 0: none. The index must store its texts."""
        found: List[Passage] = []
        hits = self.search(query, k, mode, where)
        left = tokens
        for i, hit in enumerate(hits):
            share = max(left // (len(hits) - i), 1) if tokens else 0
            mine = self._passages_of(hit, _bytes(query), _mode(mode), share)
            left -= sum(len(p.text.encode()) + 3 for p in mine) // 4
            found += mine
            if tokens and left <= 0:
                break
        return found

    def _passages_of(self, hit: Hit, query: bytes, mode: int, tokens: int) -> List[Passage]:
        native, detail, n = self._here(), ErrorDetail(), c_size_t()
        passages, marks = (PassageDetail * _PASSAGES)(), (c_uint64 * (2 * _MARKS))()
        document = DocumentDetail()
        check(lib.gpuir_python_document_get(native.pointer, hit.docid, byref(document)))
        if not document.stored:
            raise Error(f"document {hit.docid}: its text is not in the index", _library.NOT_FOUND)
        check(
            lib.gpuir_python_passages(
                native.pointer,
                mode,
                query,
                len(query),
                hit.docid,
                tokens,
                None,
                passages,
                _PASSAGES,
                byref(n),
                marks,
                _MARKS,
                byref(detail),
            ),
            detail,
        )
        found = []
        for p in passages[: n.value]:
            raw = _stored(native, hit.docid, p.offset, p.bytes)
            spans = [(marks[2 * m], marks[2 * m + 1]) for m in range(p.first_mark, p.first_mark + p.marks)]
            # A word may stand for several terms of the analyzer "text", each of which marks it.
            at = [(start - p.offset, start - p.offset + length) for start, length in dict.fromkeys(spans)]
            places = [
                Mark(len(raw[:a].decode("utf-8", "replace")), len(raw[:b].decode("utf-8", "replace"))) for a, b in at
            ]
            found.append(
                Passage(hit, raw.decode("utf-8", "replace"), p.first_line, p.last_line, p.score / 65536.0, places)
            )
        return found

    def _info(self) -> Tuple[int, int, str]:
        documents, docids, analyzer = c_uint64(), c_uint64(), c_char_p()
        check(lib.gpuir_python_info(self._here().pointer, byref(documents), byref(docids), byref(analyzer)))
        return documents.value, docids.value, (analyzer.value or b"").decode()

    @property
    def analyzer(self) -> str:
        """How words are made of texts."""
        return self._info()[2]

    @property
    def fields(self) -> Dict[str, str]:
        """What documents have beside their text: what each field is used for, by its name."""
        uses = {1: "key", 2: "path", _library.NUMBER: "number", _library.DATE: "date"}
        return {name: uses[c] + (f":{d}" if d else "") for name, c, d in _fields_of(self._here())}

    def __len__(self) -> int:
        return self._info()[0]

    def __getitem__(self, docid: int) -> Document:
        document = Document(self._here(), docid)
        try:
            if not 0 <= docid <= 0xFFFFFFFF:
                raise Error("")
            document._detail()
        except Error:
            raise IndexError(f"there is no document {docid}") from None
        return document

    def __iter__(self) -> Iterator[Document]:
        native, end = self._here(), self._info()[1]
        detail = DocumentDetail()
        for docid in range(end):  # deleted ones are left out
            if not lib.gpuir_python_document_get(native.pointer, docid, byref(detail)):
                yield Document(native, docid)

    def close(self) -> None:
        """Lets go of the index. Hits that there are can still be read."""
        self._native = None
        self._local = threading.local()

    def __enter__(self) -> "Index":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_native(path: bytes, again: Optional[Callable[[], _Native]], owned: Tuple[int, ...] = ()) -> _Native:
    pointer, detail = c_void_p(), ErrorDetail()
    check(lib.gpuir_open(path, None, byref(pointer), byref(detail)), detail, os.fsdecode(path))
    return _Native(pointer, again, owned)


def open(path: Union[str, bytes, "os.PathLike[str]"]) -> Index:
    """Opens an index file, or the folder of a live index as it is now."""
    whole = os.path.abspath(os.fsencode(path))

    def again() -> _Native:
        return _open_native(whole, again)

    return Index(_open_native(os.fsencode(path), again))


def _open_unlinked(path: str) -> Index:
    """Opens a file that has no name from now on. Its descriptor lets a process that was forked open it."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def again() -> _Native:
        return _open_native(b"/proc/self/fd/%d" % fd, again)

    try:
        return Index(_open_native(os.fsencode(path), again, (fd,)))
    except BaseException:
        os.close(fd)
        raise


def _settings(path: str, options: Options) -> Tuple[Settings, Optional[_Schema]]:
    """What the library is told, and the fields, which must live as long."""
    unknown = sorted(set(options) - set(Options.__annotations__))
    if unknown:
        raise TypeError(f"there is no option {unknown[0]!r}; there are {', '.join(Options.__annotations__)}")

    def encoded(text: Optional[str]) -> Optional[bytes]:
        return None if text is None else text.encode()

    k1, b = options.get("k1"), options.get("b")
    fields = options.get("fields")
    schema = _Schema(fields) if fields else None
    settings = Settings(
        path=os.fsencode(path),
        analyzer=encoded(options.get("analyzer")),
        stem=encoded(options.get("stem")),
        stop=encoded(options.get("stop")),
        codec=encoded(options.get("codec")),
        k1=0.9 if k1 is None else k1,
        b=0.4 if b is None else b,
        memory=options.get("memory", 0),
        threads=options.get("threads", 0),
        custom=int(k1 is not None or b is not None),
        store=int(options.get("store", True)),
        positions=int(options.get("positions", False)),
        fields=schema.pointer if schema else None,
    )
    return settings, schema


def _room() -> Optional[str]:
    """Where an index in memory is built: in memory, if there is room, or where temporary files are."""
    try:
        space = os.statvfs("/dev/shm")
        return (
            "/dev/shm"
            if space.f_bavail * space.f_frsize >= 1 << 30 and os.access("/dev/shm", os.W_OK | os.X_OK)
            else None
        )
    except OSError:
        return None


_END = object()


def _beside(others: Optional[Iterator[Any]], what: str) -> Any:
    """What goes with the next text; None where nothing does."""
    if others is None:
        return None
    other = next(others, _END)
    if other is _END:
        raise ValueError(f"there are fewer {what} than texts")
    return other


class _Builder:
    """A builder, with what it looks at while it works. In C one step takes it and ends it: an exception of a signal
    handler may come between any two steps of Python."""

    def __init__(self, path: str, options: Options):
        self.pointer, self.detail, self.cancel = c_void_p(), ErrorDetail(), c_int(0)
        self.settings, self.schema = _settings(path, options)
        self.settings.cancel = ctypes.pointer(self.cancel)
        check(lib.gpuir_python_build(byref(self.settings), byref(self.pointer), byref(self.detail)), self.detail)

    def write(self) -> int:
        return int(lib.gpuir_python_write(byref(self.pointer), byref(self.detail)))

    def close(self, _close: Any = lib.gpuir_python_close) -> None:
        """Ends it, unless it still writes: then it ends when it has."""
        _close(byref(self.pointer))

    def __del__(self) -> None:
        self.close()


def _build(
    path: str,
    texts: Iterable[Text],
    ids: Optional[Iterable[Text]],
    values: Optional[Iterable[Values]],
    options: Options,
) -> None:
    builder = _Builder(path, options)
    detail, schema, pointer = builder.detail, builder.schema, builder.pointer
    add, error, fields = lib.gpuir_python_add, byref(detail), schema.pointer if schema else None
    pairs: Tuple[Optional[bytes], int] = (None, 0)
    names, rest = None if ids is None else iter(ids), None if values is None else iter(values)
    try:
        if values is not None and schema is None:
            raise ValueError("values need fields")
        for text in texts:
            raw, name, value = _bytes(text), _beside(names, "ids"), _beside(rest, "values")
            called = None if name is None else _bytes(name)
            if value is not None:
                pairs = _pairs(value)
            status = add(pointer, None, called, len(called or b""), raw, len(raw), fields, *pairs, error)
            if status:
                raise failure(status, detail)
        for others, what in ((names, "ids"), (rest, "values")):
            if others is not None and next(others, _END) is not _END:
                raise ValueError(f"there are more {what} than texts")
        check(_apart(builder.write, builder.cancel) if _is_main() else builder.write(), detail)
    finally:
        builder.close()


def index(
    texts: Iterable[Text],
    path: Union[str, "os.PathLike[str]", None] = None,
    *,
    ids: Optional[Iterable[Text]] = None,
    values: Optional[Iterable[Values]] = None,
    **options: "Unpack[Options]",
) -> Index:
    """Indexes texts, in the file `path` or, without one, in memory. ids: what documents are called. values: what each
    has in the fields that the options name, as in fields={"year": "number"}, values=[{"year": 1990}]. For the options
    see Options."""
    if path is not None:
        _build(os.fspath(path), texts, ids, values, options)
        return open(path)
    folder = tempfile.mkdtemp(prefix="gpuir-", dir=_room())
    try:
        file = os.path.join(folder, "index")
        _build(file, texts, ids, values, options)
        return _open_unlinked(file)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Live:
    """An index that changes, in a folder, which one writer at a time has open. As a context manager it commits at the
    end, or where an exception ends it, leaves the last commit."""

    def __init__(self, pointer: c_void_p, path: str):
        self._pointer: Optional[c_void_p] = pointer
        self._pid = _Process.pid
        self._schema: Optional[_Schema] = None
        self.path = path

    def _here(self) -> c_void_p:
        if self._pid != _Process.pid:
            raise Error(f"{self.path}: the writer belongs to the process from which this one was forked")
        if self._pointer is None:
            raise Error(f"{self.path}: the live index is closed")
        return self._pointer

    def add(self, text: Text, id: Optional[Text] = None, values: Optional[Values] = None) -> None:
        """Adds a document, which the next snapshot or commit shows. values: what it has in the index's fields."""
        raw, name, detail, schema = _bytes(text), None if id is None else _bytes(id), ErrorDetail(), None
        pairs: Tuple[Optional[bytes], int] = (None, 0)
        if values:
            pairs = _pairs(values)
            if self._schema is None:
                native = self.snapshot()._here()
                self._schema = _Schema({}, native)
            schema = self._schema.pointer
        add, here = lib.gpuir_python_add, self._here()
        check(add(None, here, name, len(name or b""), raw, len(raw), schema, *pairs, byref(detail)), detail)

    def delete(self, id: Text) -> int:
        """Deletes all documents of this name. Returns how many they are."""
        name, n, detail = _bytes(id), c_uint64(), ErrorDetail()
        check(lib.gpuir_live_delete(self._here(), 0, name, len(name), byref(n), byref(detail)), detail)
        return n.value

    def commit(self) -> None:
        """Makes all that was added and deleted durable."""
        detail = ErrorDetail()
        check(lib.gpuir_live_commit(self._here(), byref(detail)), detail)

    def merge(self, all: bool = False) -> bool:
        """Merges some files, if that is worth while, or all of them. Returns whether another step is worth while."""
        more, detail = c_int(), ErrorDetail()
        check(lib.gpuir_live_merge(self._here(), int(all), byref(more), byref(detail)), detail)
        return bool(more.value)

    def snapshot(self) -> Index:
        """The index with all that was added and deleted so far."""
        pointer, detail = c_void_p(), ErrorDetail()
        check(lib.gpuir_live_refresh(self._here(), byref(pointer), byref(detail)), detail)
        return Index(_Native(pointer, None))

    def close(self, _close: Any = lib.gpuir_live_close, _process: Any = _Process) -> None:
        """Lets go of the folder; what was not committed is lost."""
        if self._pointer is not None and self._pid == _process.pid:
            _close(self._pointer)
        self._pointer = None

    def __enter__(self) -> "Live":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], *_: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.close()

    def __del__(self) -> None:
        self.close()


def live(
    path: Union[str, "os.PathLike[str]"], *, create: bool = True, **options: "Unpack[Options]"
) -> Live:
    """Opens the live index in the folder `path` for writing, and makes it, as `index` does, if there is none."""
    settings, schema = _settings(os.fspath(path), options)
    pointer, detail = c_void_p(), ErrorDetail()
    check(lib.gpuir_python_live(byref(settings), int(create), byref(pointer), byref(detail)), detail)
    del schema  # the library has its own copy by now
    return Live(pointer, os.fspath(path))
