"""Ranked text search: indexes texts, in memory or in one file, and ranks them by BM25.

    index = gpuir.index(["the quick brown fox", "the lazy dog", "a quick dog"])
    for hit in index.search("quick dog"):
        print(hit.score, hit.text)

An index may be used by any number of threads, and after a fork. Results live as long as they are wanted, whatever
becomes of the index.
"""

from ._index import Batch, Document, Facet, Hit, Index, Live, Mark, Options, Passage, index, live, open
from ._library import Error, QueryError, lib as _lib

__version__ = _lib.gpuir_version().decode()
__all__ = [
    "Batch",
    "Document",
    "Error",
    "Facet",
    "Hit",
    "Index",
    "Live",
    "Mark",
    "Options",
    "Passage",
    "QueryError",
    "index",
    "live",
    "open",
]
