"""BM25Okapi with the interface of the package rank-bm25, ranked by gpuir.

The formula is that of rank-bm25: for each word of the query idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length /
average length)), but for idf, which is gpuir's: ln((2N + 2) / (2df + 1)). It is never negative, so there is no epsilon.
Scores are whole multiples of 2^-20: for queries of up to a hundred words
the tests find them within 10^-5 of that formula in real numbers. numpy must be there, as for rank-bm25.
"""

from typing import TYPE_CHECKING, Any, Callable, Dict, Hashable, Iterable, List, Optional, Sequence

from ._index import Batch, Index, index

if TYPE_CHECKING:
    import numpy
    import numpy.typing

_MOST = 64  # distinct words of a query of gpuir


class BM25Okapi:
    """Ranks a corpus: documents that are lists of words or, with a tokenizer, texts."""

    def __init__(
        self,
        corpus: Iterable[Any],
        tokenizer: Optional[Callable[[Any], Iterable[Hashable]]] = None,
        k1: float = 1.5,
        b: float = 0.75,
    ):
        self.tokenizer = tokenizer
        self.k1 = k1
        self.b = b
        self._words: Dict[Hashable, str] = {}

        def numbered() -> Iterable[str]:
            for document in corpus:
                words = document if tokenizer is None else tokenizer(document)
                # A word is any value, of any length: the index has its number in place of it.
                yield " ".join([self._words.setdefault(word, f"w{len(self._words)}") for word in words])

        self._index: Index = index(numbered(), analyzer="ascii", k1=k1, b=b, store=False)
        self.corpus_size = len(self._index)

    def _queries(self, query: Iterable[Hashable]) -> List[str]:
        """The query in gpuir's words; one of more words than gpuir takes at once in parts, whose scores add up."""
        counts: Dict[str, int] = {}
        for word in query:
            known = self._words.get(word)
            if known is not None:
                counts[known] = counts.get(known, 0) + 1
        words = list(counts)
        parts = [words[i : i + _MOST] for i in range(0, len(words), _MOST)]
        return [" ".join([word for word in part for _ in range(counts[word])]) for part in parts]

    def get_scores(self, query: Iterable[Hashable]) -> "numpy.typing.NDArray[numpy.float64]":
        """The scores of all documents, in the order of the corpus."""
        import numpy

        scores = numpy.zeros(self.corpus_size)
        for part in self._queries(query):
            found: Batch = self._index.batch([part], k=max(self.corpus_size, 1))
            n = int(found.counts[0])
            scores[found.docids[0, :n]] += found.scores[0, :n]
        return scores

    def get_batch_scores(self, query: Iterable[Hashable], doc_ids: Sequence[int]) -> List[float]:
        """The scores of some documents."""
        scores = self.get_scores(query)
        return [float(scores[i]) for i in doc_ids]

    def get_top_n(self, query: Iterable[Hashable], documents: Sequence[Any], n: int = 5) -> List[Any]:
        """The n best of the documents that the corpus was made of, best first, the earlier one of two as good."""
        if self.corpus_size != len(documents):
            raise ValueError("the documents given don't match the index corpus")
        parts = self._queries(query)
        if len(parts) > 1:
            import numpy

            return [documents[int(i)] for i in numpy.argsort(-self.get_scores(query), kind="stable")[:n]]
        best = [hit.docid for hit in self._index.search(parts[0], n)] if parts else []
        if len(best) < n:  # those without any word of the query follow
            found = set(best)
            best += [i for i in range(self.corpus_size) if i not in found][: n - len(best)]
        return [documents[i] for i in best]
