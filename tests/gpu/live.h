/* live.h - snapshots of a live index by the CPU and by a device; include after phrases.h */
#ifndef TESTS_GPU_LIVE_H
#define TESTS_GPU_LIVE_H

/* A live index whose documents are named by numbers. */
typedef struct live_folder {
  char path[80];
  gpuir_live *live;
  synth_rng r;
  unsigned documents; /* added so far */
} live_folder;

static void live_stop(const gpuir_error *err) {
  printf("Bail out! %s\n", err->msg);
  exit(1);
}

static void live_start(live_folder *f, const char *in) {
  const synth_rng start = {4242};
  gpuir_live_desc desc;
  gpuir_error err;
  memset(f, 0, sizeof *f);
  memset(&desc, 0, sizeof desc);
  (void)snprintf(f->path, sizeof f->path, "%s/live", in);
  f->r = start;
  desc.settings.path = f->path;
  desc.settings.positions = 1;
  desc.create = 1;
  if (gpuir_live_open(&desc, &f->live, &err)) live_stop(&err);
}

/* Adds documents, as a segment of their own, and deletes some of all: `percent` of those there are. Opens what is there
 * then; `share`: the snapshot before. */
static gpuir_index *live_step(live_folder *f, unsigned documents, unsigned percent, gpuir_index *share) {
  static char text[1 << 18];
  gpuir_open_desc od;
  gpuir_index *ix;
  gpuir_error err;
  uint64_t gone;
  char name[16];
  unsigned i, n = documents;
  int status = GPUIR_OK;
  for (i = 0; i < documents && !status; i++, f->documents++) {
    gpuir_doc_desc doc;
    memset(&doc, 0, sizeof doc);
    doc.name = name;
    doc.name_len = (size_t)snprintf(name, sizeof name, "%u", f->documents);
    status = gpuir_live_add(f->live, &doc, text, phrase_text(f->documents, &f->r, text, sizeof text), &err);
  }
  for (i = 0, n = f->documents; i < n && !status; i++) {
    if (synth_below(&f->r, 100) >= percent) continue;
    (void)snprintf(name, sizeof name, "%u", i);
    status = gpuir_live_delete(f->live, GPUIR_BY_NAME, name, strlen(name), &gone, &err);
  }
  if (!status) status = gpuir_live_commit(f->live, &err);
  memset(&od, 0, sizeof od);
  od.share = share;
  if (!status) status = gpuir_open(f->path, &od, &ix, &err);
  if (status) live_stop(&err);
  return ix;
}

static void live_end(live_folder *f) {
  gpuir_live_close(f->live);
  (void)folder_remove(f->path);
}

/* Compares a snapshot's hits and counts by a device with the CPU's. Returns the number of differences. */
static unsigned live_compare(gpuir_index *ix, gpuir_cuda *cuda, unsigned nq, unsigned seed) {
  gpuir_searcher_desc desc;
  gpuir_searcher *cpu, *gpu;
  gpuir_error err;
  unsigned bad = 0;
  int evaluator;
  for (evaluator = 0; evaluator < 2; evaluator++) {
    synth_rng r = {seed + 7u};
    gpuir_query *q[256];
    unsigned i;
    memset(&desc, 0, sizeof desc);
    if (gpuir_searcher_create(ix, NULL, &cpu, NULL)) exit(1);
    desc.evaluator = evaluator;
    desc.threads = 3;
    if (gpuir_searcher_create(ix, &desc, &gpu, NULL)) exit(1);
    if (gpuir_cuda_attach(gpu, cuda, 0, &err)) {
      printf("# attach: %s\n", err.msg);
      bad++;
    } else {
      bad += phrase_compare(ix, cpu, gpu, nq / 2, seed + (unsigned)evaluator);
      for (i = 0; i < nq; i++) q[i] = random_query(ix, PHRASE_WORDS, &r, 1);
      bad += compare(cpu, gpu, q, nq, 10, TOGETHER) + compare(cpu, gpu, q, nq, 2000, IN_FLIGHT);
      bad += compare_counts(cpu, gpu, q, nq, TOGETHER);
      for (i = 0; i < nq; i++) gpuir_query_destroy(q[i]);
    }
    gpuir_searcher_destroy(gpu);
    gpuir_searcher_destroy(cpu);
  }
  return bad;
}

static gpuir_cuda *live_on_device(gpuir_index *ix, const gpuir_cuda *share) {
  gpuir_cuda_desc desc;
  gpuir_cuda *cuda;
  gpuir_error err;
  memset(&desc, 0, sizeof desc);
  desc.share = share;
  if (gpuir_cuda_open(ix, &desc, &cuda, &err)) live_stop(&err);
  return cuda;
}

/* Snapshots one after another: each has a segment more, and more deletions, and takes over what the one before has on
 * the device, which is closed before it is asked. The last steps delete all of the documents but a few. */
static void check_live(const char *in, unsigned documents, unsigned nq) {
  static const struct {
    unsigned part, percent; /* of the documents, in a 16th; deleted */
  } steps[] = {{16, 0}, {8, 0}, {4, 0}, {2, 3}, {1, 20}, {0, 0}, {0, 90}, {1, 0}};
  live_folder f;
  gpuir_index *ix = NULL;
  gpuir_cuda *cuda = NULL;
  unsigned i, bad = 0;
  char what[96];
  live_start(&f, in);
  for (i = 0; i < sizeof steps / sizeof steps[0]; i++) {
    gpuir_index *next = live_step(&f, documents / 16 * steps[i].part, steps[i].percent, i % 2 ? ix : NULL);
    gpuir_index_info x;
    gpuir_cuda *more;
    (void)gpuir_index_get_info(next, &x);
    if (x.segments == 1 && x.docids == x.documents) { /* it is an ordinary index */
      gpuir_close(next);
      continue;
    }
    more = live_on_device(next, cuda);
    gpuir_cuda_close(cuda);
    gpuir_close(ix);
    ix = next;
    cuda = more;
    bad = live_compare(ix, cuda, nq, i);
    (void)snprintf(what, sizeof what, "a snapshot of %u segments, %u of %u documents: hits and counts equal the CPU's",
        (unsigned)x.segments, (unsigned)x.documents, (unsigned)x.docids);
    report(!bad, what);
  }
  gpuir_cuda_close(cuda);
  gpuir_close(ix);
  live_end(&f);
}

#endif
