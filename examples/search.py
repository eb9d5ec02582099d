#!/usr/bin/env python3
"""search.py INDEX QUERY [K]: ranks from Python, with nothing but ctypes and the shared library.

The library is looked for as GPUIR_LIBRARY, then as build/libgpuir.so of this project, then where the system has it.
"""

import ctypes
import os
import sys
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p


class Error(Structure):
    _fields_ = [("code", c_int), ("offset", c_uint64), ("msg", c_char * 160)]


class Hit(Structure):
    _fields_ = [("docid", c_uint32), ("score", c_uint32)]


class Doc(Structure):
    _fields_ = [
        ("name_len", c_size_t), ("name_piece", c_void_p * 2), ("name_piece_len", c_size_t * 2),
        ("source", c_void_p), ("source_len", c_size_t),
        ("first_line", c_uint32), ("last_line", c_uint32),
        ("source_offset", c_uint64), ("source_bytes", c_uint64), ("hash", c_uint64),
        ("text", c_void_p), ("text_len", c_size_t),
        ("length", c_uint32),
    ]  # fmt: skip


def load():
    built = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "libgpuir.so")
    path = os.environ.get("GPUIR_LIBRARY") or (built if os.path.exists(built) else "libgpuir.so.0.2")
    lib = ctypes.CDLL(path)
    lib.gpuir_open.argtypes = [c_char_p, c_void_p, POINTER(c_void_p), POINTER(Error)]
    lib.gpuir_query_parse.argtypes = [c_void_p, c_void_p, c_char_p, c_size_t, POINTER(c_void_p), POINTER(Error)]
    lib.gpuir_searcher_create.argtypes = [c_void_p, c_void_p, POINTER(c_void_p), POINTER(Error)]
    lib.gpuir_search.argtypes = [c_void_p, c_void_p, POINTER(Hit), c_size_t, POINTER(c_size_t)]
    lib.gpuir_doc_get.argtypes = [c_void_p, c_uint32, POINTER(Doc)]
    lib.gpuir_doc_name.argtypes = [POINTER(Doc), c_char_p, c_size_t]
    lib.gpuir_doc_name.restype = c_size_t
    for name in ("gpuir_close", "gpuir_query_destroy", "gpuir_searcher_destroy"):
        getattr(lib, name).argtypes = [c_void_p]
        getattr(lib, name).restype = None
    lib.gpuir_strerror.restype = c_char_p
    return lib


class Index:
    """An open index, to be used in a with statement."""

    def __init__(self, path):
        self.lib = load()
        self.index = c_void_p()
        self.searcher = c_void_p()
        err = Error()
        self._check(self.lib.gpuir_open(os.fsencode(path), None, byref(self.index), byref(err)), err)
        self._check(self.lib.gpuir_searcher_create(self.index, None, byref(self.searcher), byref(err)), err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.lib.gpuir_searcher_destroy(self.searcher)
        self.lib.gpuir_close(self.index)

    def _check(self, status, err=None):
        if status:
            raise RuntimeError((err.msg if err and err.msg else self.lib.gpuir_strerror(status)).decode())

    def search(self, text, k=10):
        """The k best documents that hold every word, as (docID, score, name)."""
        text = text.encode()
        query, err, hits, n = c_void_p(), Error(), (Hit * k)(), c_size_t()
        self._check(self.lib.gpuir_query_parse(self.index, None, text, len(text), byref(query), byref(err)), err)
        try:
            self._check(self.lib.gpuir_search(self.searcher, query, hits, k, byref(n)))
        finally:
            self.lib.gpuir_query_destroy(query)
        for hit in hits[: n.value]:
            doc = Doc()
            self._check(self.lib.gpuir_doc_get(self.index, hit.docid, byref(doc)))
            name = ctypes.create_string_buffer(doc.name_len + 1)
            self.lib.gpuir_doc_name(byref(doc), name, len(name))
            yield hit.docid, hit.score / 2**20, name.raw[:-1].decode(errors="replace")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: search.py INDEX QUERY [K]")
    try:
        with Index(sys.argv[1]) as index:
            for docid, score, name in index.search(sys.argv[2], int(sys.argv[3]) if len(sys.argv) == 4 else 10):
                print(f"{docid}\t{score:.4f}\t{name}")
    except (RuntimeError, OSError) as error:
        sys.exit(f"search.py: {error}")


if __name__ == "__main__":
    main()
