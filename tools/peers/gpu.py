#!/usr/bin/env python3
"""gpu.py INDEX QUERIES WORK [OPTION...]: other ways to rank on a GPU beside gpuir: the same postings, contributions
and queries (one a line, answered by OR), on the same device, in one run.

All score every posting, with contributions computed beforehand, as 32-bit floats, and hand their hits to the host's
memory:

  scatter    one program of Triton for each query and term adds its list into a row of scores a query; torch.topk
  chunks     the same by ranges of 131,072 documents and a running top k: lists are cut at the ranges beforehand
  threshold  chunks; from the second range on only scores that reach the k-th best so far are selected among
             (these three are the published method of GPUSparse, arXiv 2606.26441, written anew from its description)
  index_add  PyTorch's index_add_ into rows of scores; torch.topk
  sparse     PyTorch's product of two sparse matrices, queries by terms and terms by documents; torch.topk
  cupy       a kernel of CuPy's RawKernel that adds lists into rows of scores; cupy.argpartition

A row of the table is a way with its batch: queries/s is the median of the rounds, which stop after --seconds; alone p50
is that of 50 queries one by one. The hits of the first --check queries are compared with gpuir's: the same scores, but
for what rounding to 24 bits costs, and the same documents where these are clearly above the k-th score.

  --k LIST        how many hits (10,1000)
  --call N        gpuir's queries a call (1000)
  --program FILE  tests/gpu/bench_peers.c, built; otherwise make builds it
  --only LIST     only these ways
  --seconds S     for each way and k (4)
  --check N       queries whose hits are compared (200)
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHUNK = 131072  # documents of a range
MARGIN = 8192  # scores of a range that may reach the threshold before all are looked at


def build():
    """Builds bench_peers with the CUDA backend and returns its path."""
    subprocess.run(["make", "-C", ROOT, "GPU=1", "build/tests/gpu/bench_peers"], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(ROOT, "build/tests/gpu/bench_peers")


class Work:
    """What bench_peers wrote, on the device."""

    def __init__(self, folder, torch):
        def of(name, kind):
            return np.fromfile(os.path.join(folder, name), kind)

        def send(array):
            return torch.from_numpy(array).cuda()
        self.folder, self.torch = folder, torch
        self.documents = int(of("documents.u32", np.uint32)[0])
        self.starts = of("starts.u64", np.int64)
        self.query_starts = of("query_starts.u32", np.uint32).astype(np.int64)
        self.terms = of("query_terms.u32", np.uint32).astype(np.int64)
        self.n = len(self.query_starts) - 1
        self.docids = send(of("docids.u32", np.int32))
        self.scores = send(of("scores.u32", np.int32)).float()
        self.device_starts = send(self.starts)

    def hits(self, k):
        return np.fromfile(os.path.join(self.folder, f"hits-{k}.u32"), np.uint32).reshape(self.n, k, 2)

    def some(self, first, end):
        """The terms of queries first..end-1, a row each, -1 behind the last."""
        n = np.diff(self.query_starts[first:end + 1])
        out = np.full((end - first, max(1, int(n.max()))), -1, np.int32)
        for i in range(end - first):
            at = self.query_starts[first + i]
            out[i, :n[i]] = self.terms[at:at + n[i]]
        return self.torch.from_numpy(out).cuda()


# ---- GPUSparse ---------------------------------------------------------------------------------------------------

def triton_kernels():
    import triton
    import triton.language as tl

    @triton.jit
    def add_lists(docids, scores, begin, end, terms, out, first, stride, most, BLOCK: tl.constexpr):
        """A query's list number program_id(1): its postings begin[term]..end[term]-1 into the query's row."""
        query = tl.program_id(0).to(tl.int64)
        term = tl.load(terms + query * most + tl.program_id(1))
        if term < 0:
            return
        at = tl.load(begin + term)
        stop = tl.load(end + term)
        lane = tl.arange(0, BLOCK)
        while at < stop:
            mask = at + lane < stop
            doc = tl.load(docids + at + lane, mask=mask, other=0)
            score = tl.load(scores + at + lane, mask=mask, other=0.0)
            tl.atomic_add(out + query * stride + (doc - first), score, mask=mask, sem="relaxed")
            at += BLOCK

    @triton.jit
    def keep(scores, floor, index, value, count, stride, length, room, BLOCK: tl.constexpr):
        """Collects the scores of a row that reach its floor."""
        query = tl.program_id(0).to(tl.int64)
        at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        score = tl.load(scores + query * stride + at, mask=at < length, other=-1.0)
        wanted = (at < length) & (score >= tl.load(floor + query))
        flag = wanted.to(tl.int32)
        n = tl.sum(flag, axis=0)
        if n == 0:
            return
        slot = tl.atomic_add(count + query, n) + tl.cumsum(flag, axis=0) - flag
        wanted = wanted & (slot < room)
        tl.store(index + query * room + slot, at, mask=wanted)
        tl.store(value + query * room + slot, score, mask=wanted)

    return triton, add_lists, keep


class Scatter:
    batches = (64, 256)

    def __init__(self, work):
        self.work = work
        self.triton, self.add_lists, self.keep = triton_kernels()

    def prepare(self, _):
        """Nothing to do."""

    def answer(self, terms, k):
        w, torch = self.work, self.work.torch
        rows = torch.zeros((terms.shape[0], w.documents), device="cuda")
        self.add_lists[tuple(terms.shape)](w.docids, w.scores, w.device_starts, w.device_starts[1:], terms, rows, 0,
                                    w.documents, terms.shape[1], BLOCK=1024)
        return torch.topk(rows, k, dim=1)


class Chunks(Scatter):
    batches = (256, 1000)
    threshold = False

    def prepare(self, _):
        """Finds where each range begins in each list."""
        w, torch = self.work, self.work.torch
        n = len(w.starts) - 1
        edges = torch.arange(0, w.documents + CHUNK, CHUNK, device="cuda").clamp(max=w.documents)
        of = torch.repeat_interleave(torch.arange(n, device="cuda"), w.device_starts.diff())
        keys = of * (w.documents + 1) + w.docids
        wanted = torch.arange(n, device="cuda")[None, :] * (w.documents + 1) + edges[:, None]
        self.bounds = torch.searchsorted(keys, wanted.flatten()).view(wanted.shape).contiguous()

    def select(self, rows, k, floor):
        """The k best of a range, of which only those that reach the floor count."""
        torch = self.work.torch
        room = max(MARGIN, k)
        n, length = rows.shape
        index = torch.zeros((n, room), dtype=torch.int32, device="cuda")
        value = torch.full((n, room), -1.0, device="cuda")
        count = torch.zeros(n, dtype=torch.int32, device="cuda")
        self.keep[(n, self.triton.cdiv(length, 1024))](rows, floor, index, value, count, rows.stride(0), length, room,
                                                       BLOCK=1024)
        best, at = torch.topk(value, k, dim=1)
        at = torch.gather(index, 1, at).long()
        full = torch.nonzero(count > room).flatten()
        if len(full):
            best[full], at[full] = torch.topk(rows[full], k, dim=1)
        return best, at

    def answer(self, terms, k):
        w, torch = self.work, self.work.torch
        rows = torch.empty((terms.shape[0], CHUNK), device="cuda")
        best = at = None
        for i in range(len(self.bounds) - 1):
            first = i * CHUNK
            part = rows[:, :min(CHUNK, w.documents - first)]
            part.zero_()
            self.add_lists[tuple(terms.shape)](w.docids, w.scores, self.bounds[i], self.bounds[i + 1], terms, rows,
                                               first, CHUNK, terms.shape[1], BLOCK=128)
            if best is None or not self.threshold:
                b, a = torch.topk(part, min(k, part.shape[1]), dim=1)
            else:
                b, a = self.select(part, min(k, part.shape[1]), best[:, -1].contiguous())
            a = a + first
            if best is not None:
                b, a = torch.cat([best, b], 1), torch.cat([at, a], 1)
                b, which = torch.topk(b, min(k, b.shape[1]), dim=1)
                a = torch.gather(a, 1, which)
            best, at = b, a
        return best, at


class Threshold(Chunks):
    threshold = True


# ---- PyTorch and CuPy --------------------------------------------------------------------------------------------

class IndexAdd:
    batches = (1, 64)

    def __init__(self, work):
        self.work = work

    def prepare(self, _):
        """Nothing to do."""

    def answer(self, terms, k):
        w, torch = self.work, self.work.torch
        query, column = torch.nonzero(terms >= 0, as_tuple=True)
        term = terms[query, column].long()
        n = w.device_starts[term + 1] - w.device_starts[term]
        which = torch.repeat_interleave(torch.arange(len(term), device="cuda"), n)
        at = torch.arange(len(which), device="cuda") - (n.cumsum(0) - n)[which] + w.device_starts[term][which]
        rows = torch.zeros((terms.shape[0], w.documents), device="cuda")
        rows.view(-1).index_add_(0, query[which] * w.documents + w.docids[at], w.scores[at])
        return torch.topk(rows, k, dim=1)


class Sparse(IndexAdd):
    batches = (16,)

    def prepare(self, _):
        w, torch = self.work, self.work.torch
        self.lists = torch.sparse_csr_tensor(w.device_starts.int(), w.docids, w.scores,
                                             size=(len(w.starts) - 1, w.documents))

    def answer(self, terms, k):
        w, torch = self.work, self.work.torch
        query, column = torch.nonzero(terms >= 0, as_tuple=True)
        term = terms[query, column].long()
        ones = torch.ones(len(term), device="cuda")
        asked = torch.sparse_coo_tensor(torch.stack([query, term]), ones, (terms.shape[0], len(w.starts) - 1))
        asked = asked.coalesce().to_sparse_csr()
        asked = torch.sparse_csr_tensor(asked.crow_indices().int(), asked.col_indices().int(), asked.values(),
                                        size=asked.shape)
        return torch.topk((asked @ self.lists).to_dense(), k, dim=1)


class CuPy:
    batches = (8,)
    source = r"""
extern "C" __global__ void add_lists(const int *docids, const float *scores, const long long *starts, const int *terms,
    float *out, long long documents, int most) {
  const int term = terms[blockIdx.x * most + blockIdx.y];
  if (term < 0) return;
  for (long long i = starts[term] + blockIdx.z * blockDim.x + threadIdx.x; i < starts[term + 1];
       i += gridDim.z * blockDim.x)
    atomicAdd(&out[blockIdx.x * documents + docids[i]], scores[i]);
}"""

    def __init__(self, work):
        import cupy
        self.work, self.cupy = work, cupy
        self.kernel = cupy.RawKernel(self.source, "add_lists")
        self.docids, self.scores = cupy.asarray(work.docids), cupy.asarray(work.scores)
        self.starts = cupy.asarray(work.device_starts)

    def prepare(self, _):
        """Nothing to do."""

    def answer(self, terms, k):
        cp, w = self.cupy, self.work
        rows = cp.zeros((terms.shape[0], w.documents), dtype=cp.float32)
        self.kernel((terms.shape[0], terms.shape[1], 64), (256,),
                    (self.docids, self.scores, self.starts, cp.asarray(terms), rows, np.int64(w.documents),
                     np.int32(terms.shape[1])))
        at = cp.argpartition(-rows, k, axis=1)[:, :k]
        best = cp.take_along_axis(rows, at, axis=1)
        order = cp.argsort(-best, axis=1)
        return cp.take_along_axis(best, order, axis=1), cp.take_along_axis(at, order, axis=1)


WAYS = {"scatter": Scatter, "chunks": Chunks, "threshold": Threshold, "index_add": IndexAdd, "sparse": Sparse,
        "cupy": CuPy}


# ---- measuring ---------------------------------------------------------------------------------------------------

def on_host(result):
    """Scores and documents in the host's memory."""
    best, at = result
    return (best.cpu().numpy(), at.cpu().numpy()) if hasattr(best, "cpu") else (best.get(), at.get())


def different(hits, best, at):
    """How many queries have other hits than gpuir's."""
    bad = 0
    for want, b, a in zip(hits, best, at):
        score = want[:, 1].astype(np.float64)
        n = int((score > 0).sum())
        b, a, score, docs = b[:n].astype(np.float64), a[:n].astype(np.int64), score[:n], want[:n, 0].astype(np.int64)
        if not n:
            continue
        slack = np.maximum(8, score * 1e-6)
        least = score[-1] + 2 * slack[-1] if n == len(want) else 0
        same = (np.abs(score - b) <= slack).all()
        same = same and set(docs[score > least]) <= set(a) and set(a[b > least]) <= set(docs)
        bad += not same
    return bad


def measure(way, name, work, k, batch, options):
    """Measures one way with one batch; returns the table's row."""
    batches = [(i, min(i + batch, work.n)) for i in range(0, work.n, batch)]
    terms = [work.some(*b) for b in batches]
    start = time.perf_counter()
    on_host(way.answer(terms[0], k))  # compiles
    best, at = on_host(way.answer(terms[0], k))
    checked, bad, i = 0, 0, 0
    while True:
        first, end = batches[i]
        wanted = min(end, options.check)
        bad += different(work.hits(k)[first:wanted], best[:wanted - first], at[:wanted - first])
        checked = wanted
        i += 1
        if i == len(batches) or batches[i][0] >= options.check or time.perf_counter() - start > options.seconds * 2:
            break
        best, at = on_host(way.answer(terms[i], k))
    rates, begin, i = [], time.perf_counter(), 0
    while len(rates) < 7 or (len(rates) < len(batches) and time.perf_counter() - begin < options.seconds):
        start = time.perf_counter()
        on_host(way.answer(terms[i % len(batches)], k))
        now = time.perf_counter()
        rates.append((batches[i % len(batches)][1] - batches[i % len(batches)][0]) / (now - start))
        i += 1
        if now - begin > options.seconds:
            break
    alone = []
    for i in range(min(50, work.n)):
        one = work.some(i, i + 1)
        if not i:
            on_host(way.answer(one, k))
        start = time.perf_counter()
        on_host(way.answer(one, k))
        alone.append((time.perf_counter() - start) * 1e6)
        if sum(alone) > options.seconds * 1e6:
            break
    return (name, k, batch, statistics.median(rates), len(rates), statistics.median(alone),
            "equal" if not bad else f"{bad} DIFFER", checked), bad


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=True)
    parser.add_argument("index")
    parser.add_argument("queries")
    parser.add_argument("work")
    parser.add_argument("--k", default="10,1000")
    parser.add_argument("--call", type=int, default=1000)
    parser.add_argument("--program")
    parser.add_argument("--only", default=",".join(WAYS))
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--check", type=int, default=200)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    program = options.program or build()
    ks = [int(k) for k in options.k.split(",")]
    mine = subprocess.run([program, options.index, options.queries, options.work, str(options.call), *map(str, ks)],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    import torch
    work = Work(options.work, torch)
    print(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
    print(f"# command: gpu.py {' '.join(sys.argv[4:])}")
    print("".join(line + "\n" for line in mine.splitlines() if line.startswith("#")), end="")
    print("way\tk\tbatch\tqueries/s\trounds\talone p50 us\thits\tcompared", flush=True)
    rows = [line.split("\t") for line in mine.splitlines() if not line.startswith("#")]
    for name in ("gpuir pruned", "gpuir exhaustive"):
        for k in ks:
            value = {row[2]: float(row[3]) for row in rows if row[0] == name and int(row[1]) == k}
            print(f"{name}\t{k}\t{options.call}\t{value['queries/s']:.6g}\t7\t{value['alone p50 us']:.6g}\t-\t-")
    wrong = 0
    for name in options.only.split(","):
        try:
            way = WAYS[name](work)
            way.prepare(None)
        except Exception as failure:  # pylint: disable=broad-except
            print(f"{name}\tfailed: {type(failure).__name__}: {str(failure).splitlines()[0][:150]}", flush=True)
            continue
        for k in ks:
            for batch in way.batches:
                try:
                    row, bad = measure(way, name, work, k, min(batch, work.n), options)
                    wrong += bad
                    print("\t".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in row), flush=True)
                except Exception as failure:  # pylint: disable=broad-except
                    print(f"{name}\t{k}\t{batch}\tfailed: {type(failure).__name__}: "
                          f"{str(failure).splitlines()[0][:150]}", flush=True)
        del way
        torch.cuda.empty_cache()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
