"""gpuir in PyTerrier: an index as an artifact, which is indexed into and retrieved from.

    index = GpuirIndex("cacm.gpuir-index")
    index.indexer(stem="english").index([{"docno": "1", "text": "a dog"}, ...])
    bm25 = index.bm25(num_results=100)
    pt.Experiment([bm25], topics, qrels, [nDCG @ 10])
"""

import os
import re
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Union

import pandas
import pyterrier as pt

import gpuir

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["GpuirIndex", "GpuirIndexer", "GpuirRetriever"]

# What would be an operator: topics are plain text. Within words a hyphen stays.
_OPERATORS = re.compile(r'["*~]|(?:^|(?<=\s))-+')


class GpuirIndex(pt.Artifact):
    """A folder with an index, which one thread or many retrieve from."""

    ARTIFACT_TYPE = "sparse_index"
    ARTIFACT_FORMAT = "gpuir"
    ARTIFACT_PACKAGE_HINT = "gpuir[pyterrier]"

    def __init__(self, path: Union[str, "os.PathLike[str]"]):
        super().__init__(os.fspath(path))
        self._index: Optional[gpuir.Index] = None
        self._docnos: List[str] = []

    @property
    def file(self) -> str:
        return os.path.join(str(self.path), "index.gpuir")

    def index(self) -> gpuir.Index:
        """The index, opened."""
        if self._index is None:
            self._index = gpuir.open(self.file)
            self._docnos = [str(document.id) for document in self._index]
        return self._index

    def docnos(self) -> List[str]:
        """What documents are called, by docID."""
        self.index()
        return self._docnos

    def forget(self) -> None:
        """The next call opens the index again."""
        self._index = None

    def __len__(self) -> int:
        return len(self.index())

    def indexer(self, text_field: str = "text", **options: "Unpack[gpuir.Options]") -> "GpuirIndexer":
        """What builds the index, of one field's texts. For the options see gpuir.Options."""
        return GpuirIndexer(self, text_field, options)

    def retriever(self, num_results: int = 1000, mode: str = "or", where: Optional[str] = None) -> "GpuirRetriever":
        """What ranks by BM25, with the index's k1 and b. For mode ("or", "and", "andor") and where see
        gpuir.Index.search."""
        return GpuirRetriever(self, num_results, mode, where)

    bm25 = retriever


class GpuirIndexer(pt.Indexer):
    def __init__(self, index: GpuirIndex, text_field: str, options: gpuir.Options):
        self.artifact, self.text_field, self.options = index, text_field, options

    def index_inputs(self) -> List[List[str]]:
        return [["docno", self.text_field]]

    def index(self, iter: Iterable[Dict[str, Any]], **_: Any) -> GpuirIndex:
        """Indexes documents, of which each has a docno and the text."""
        docnos: List[str] = []

        def texts() -> Iterator[str]:
            for document in iter:
                docnos.append(str(document["docno"]))
                yield str(document[self.text_field])

        os.makedirs(str(self.artifact.path), exist_ok=True)
        # A text is asked for before its name is.
        gpuir.index(texts(), self.artifact.file, ids=_Following(docnos), **self.options)
        with open(os.path.join(str(self.artifact.path), "pt_meta.json"), "w", encoding="utf-8") as f:
            f.write('{"type": "sparse_index", "format": "gpuir", "package_hint": "gpuir[pyterrier]"}\n')
        self.artifact.forget()
        return self.artifact


class _Following:
    """Gives what a list has got meanwhile, and takes it out."""

    def __init__(self, items: List[str]):
        self.items = items

    def __iter__(self) -> "_Following":
        return self

    def __next__(self) -> str:
        if not self.items:
            raise StopIteration
        return self.items.pop(0)


class GpuirRetriever(pt.Transformer):
    def __init__(self, index: GpuirIndex, num_results: int, mode: str, where: Optional[str]):
        self.artifact, self.num_results, self.mode, self.where = index, num_results, mode, where

    def transform(self, inp: "pandas.DataFrame") -> "pandas.DataFrame":
        """Of topics (qid, query) the ranked documents: docid, docno, score, and rank from 0, beside the topic's
        columns."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        index, docnos = self.artifact.index(), self.artifact.docnos()
        rows: List[int] = []
        hits: List[gpuir.Hit] = []
        ranks: List[int] = []
        for row, query in enumerate(inp["query"]):
            plain = _OPERATORS.sub(" ", query)
            found = index.search(plain, self.num_results, self.mode, self.where) if plain.strip() else []
            rows += [row] * len(found)
            ranks += range(len(found))
            hits += found
        out = inp.iloc[rows].reset_index(drop=True)
        return out.assign(
            docid=[hit.docid for hit in hits],
            docno=[docnos[hit.docid] for hit in hits],
            score=[hit.score for hit in hits],
            rank=ranks,
        )

    def fuse_rank_cutoff(self, k: int) -> Optional["GpuirRetriever"]:
        """`retriever % k` asks for k documents."""
        return GpuirRetriever(self.artifact, k, self.mode, self.where) if k < self.num_results else None
