"""The shared library of this package: gpuir_python.c, with which gpuir.h is compiled. ctypes lets go of the
interpreter's lock during each call."""

import ctypes
import os
from ctypes import POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64
from ctypes import c_void_p
from typing import Optional


class ErrorDetail(Structure):
    _fields_ = [("code", c_int), ("offset", c_uint64), ("msg", c_char * 160)]


class Settings(Structure):
    _fields_ = [
        ("path", c_char_p),
        ("analyzer", c_char_p),
        ("stem", c_char_p),
        ("stop", c_char_p),
        ("codec", c_char_p),
        ("description", c_char_p),
        ("k1", c_double),
        ("b", c_double),
        ("memory", c_uint64),
        ("threads", c_uint),
        ("custom", c_int),
        ("store", c_int),
        ("positions", c_int),
        ("cancel", POINTER(c_int)),
        ("fields", c_void_p),
    ]


class DocumentDetail(Structure):
    _fields_ = [
        ("source", c_void_p),
        ("text_len", c_size_t),
        ("source_len", c_size_t),
        ("name_len", c_size_t),
        ("first_line", c_uint32),
        ("last_line", c_uint32),
        ("length", c_uint32),
        ("stored", c_uint32),
    ]


class Choice(Structure):
    _fields_ = [("where", c_char_p), ("sort", c_char_p), ("collapse", c_char_p)]


class FacetDetail(Structure):
    _fields_ = [("value", c_void_p), ("len", c_size_t), ("low", c_int64), ("high", c_int64), ("count", c_uint64)]


class PassageDetail(Structure):
    _fields_ = [
        ("offset", c_uint64),
        ("bytes", c_uint64),
        ("first_mark", c_uint64),
        ("marks", c_uint64),
        ("first_line", c_uint32),
        ("last_line", c_uint32),
        ("score", c_uint32),
    ]


OK, NOMEM, IO, QUERY, TERMS, DEADLINE, CANCELLED, NOT_FOUND = 0, -2, -3, -8, -9, -10, -11, -15

NUMBER, DATE = 3, 4  # columns
FIELD_ROOM, VALUE_ROOM = 320, 4096  # bytes

folder = os.path.dirname(os.path.abspath(__file__))
lib = ctypes.CDLL(os.path.join(folder, "libgpuir.so"))

_any = c_void_p
_error = c_void_p  # byref(ErrorDetail()): without a type to check, a call costs less
for _name, _arguments in {
    "gpuir_open": [c_char_p, _any, _any, _error],
    "gpuir_python_write": [_any, _error],
    "gpuir_live_delete": [_any, c_int, c_char_p, c_size_t, _any, _error],
    "gpuir_live_refresh": [_any, _any, _error],
    "gpuir_live_commit": [_any, _error],
    "gpuir_live_merge": [_any, c_int, _any, _error],
    "gpuir_python_build": [_any, _any, _error],
    "gpuir_python_live": [_any, c_int, _any, _error],
    "gpuir_python_schema_create": [_any, c_char_p, c_size_t, _any, _error],
    "gpuir_python_add": [_any, _any, c_char_p, c_size_t, c_char_p, c_size_t, _any, c_char_p, c_size_t, _error],
    "gpuir_python_field": [_any, c_size_t, c_char_p, _any, _any],
    "gpuir_python_value": [_any, c_uint32, c_uint, c_size_t, c_char_p, _any],
    "gpuir_python_searcher_create": [_any, c_uint, _any, _any, _error],
    "gpuir_python_searcher_error": [_any, _error],
    "gpuir_python_search": [_any, c_int, c_char_p, c_size_t, _any, c_size_t, _any, c_uint64],
    "gpuir_python_count": [_any, c_int, c_char_p, c_size_t, _any, c_uint64],
    "gpuir_python_facets": [_any, c_int, c_char_p, c_size_t, _any, c_char_p, c_size_t, _any, c_uint64],
    "gpuir_python_facet_get": [_any, c_size_t, c_size_t, _any],
    "gpuir_python_batch": [_any, c_int, c_char_p, c_size_t, c_size_t, c_size_t, _any, _any, _any, _any],
    "gpuir_python_document_get": [_any, c_uint32, _any],
    "gpuir_python_name": [_any, c_uint32, _any, c_size_t],
    "gpuir_python_text": [_any, c_uint32, c_uint64, _any, c_size_t],
    "gpuir_python_info": [_any, _any, _any, _any],
    "gpuir_python_passages": [
        _any,
        c_int,
        c_char_p,
        c_size_t,
        c_uint32,
        c_size_t,
        _any,
        _any,
        c_size_t,
        _any,
        _any,
        c_size_t,
        _error,
    ],
}.items():
    getattr(lib, _name).argtypes = _arguments
for _name in ("gpuir_python_search", "gpuir_python_count", "gpuir_python_facets"):
    getattr(lib, _name).restype = c_int64
for _name in ("gpuir_close", "gpuir_python_close", "gpuir_live_close", "gpuir_python_searcher_destroy",
              "gpuir_python_schema_destroy", "gpuir_facets_destroy"):
    getattr(lib, _name).argtypes = [_any]
    getattr(lib, _name).restype = None
lib.gpuir_strerror.argtypes = [c_int]
lib.gpuir_strerror.restype = c_char_p
lib.gpuir_version.restype = c_char_p


class Error(Exception):
    """What gpuir says of a call that failed. `code` is its status, `offset` where in a file or query that is, or 0."""

    def __init__(self, message: str, code: int = 0, offset: int = 0):
        super().__init__(message)
        self.code = code
        self.offset = offset


class QueryError(Error, ValueError):
    """A query that cannot be parsed."""


def failure(status: int, detail: Optional[ErrorDetail] = None, what: str = "") -> Error:
    """Makes the exception of a status."""
    said = detail.msg if detail is not None and detail.code and detail.msg else lib.gpuir_strerror(status)
    message = said.decode("utf-8", "replace")
    kind = QueryError if status in (QUERY, TERMS) else Error
    return kind(f"{what}: {message}" if what else message, status, detail.offset if detail is not None else 0)


def check(status: int, detail: Optional[ErrorDetail] = None, what: str = "") -> None:
    if status:
        raise failure(status, detail, what)


def text_at(address: Optional[int], length: int) -> str:
    return ctypes.string_at(address, length).decode("utf-8", "replace") if address else ""
