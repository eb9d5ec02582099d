/* stamp.h - makes a shard of an index: a copy of its file that has its place in a collection.
 *
 * A shard is an ordinary index file with two sections more: the place of its documents in the collection, and in how
 * many of the collection's documents each of its terms is. gpuir.h reads them wherever a query's weights come from:
 * gpuir__segment_df, and gpuir_index.collection and .average_length. They are known only when all parts are built, so
 * the file is copied, section by section, and they are put behind. This uses private parts of gpuir.h ([37-layout],
 * [42-snapshot]) and is included behind an implementation of the header, by stamp.c and by the shards' tests.
 */
#ifndef GPUIR_MPI_STAMP_H
#define GPUIR_MPI_STAMP_H

/* Checks that an index may be a part of such a collection. */
static int stamp_check(const gpuir__segment *seg, const gpuir_shard_info *info, const uint32_t *dfs, gpuir_error *err) {
  gpuir__walk w;
  if (info->documents > GPUIR__MAX_DOCUMENTS || info->documents < seg->stat.documents ||
      info->first > info->documents - seg->stat.documents || info->tokens < seg->stat.tokens ||
      info->shard >= info->shards)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "the index's documents do not fit the collection");
  for (gpuir__walk_start(&w, seg); gpuir__walk_next(&w);)
    if (dfs[w.id] < w.record.df || dfs[w.id] > info->documents)
      return gpuir__fail(err, GPUIR_E_ARGUMENT, 0,
          "\"%.*s\" is in fewer documents of the collection than of the index, or in "
          "more than it has",
          w.len < 32 ? (int)w.len : 32, (const char *)w.term);
  return GPUIR_OK;
}

/* Lists the sections of the copy: those of the file, in its order, and the collection's. Returns how many there are;
 * *size becomes that of the file. */
static unsigned stamp_plan(const gpuir__segment *seg, const gpuir__shard *shard, const uint32_t *dfs,
    gpuir__section *table, const void **from, uint64_t *size) {
  unsigned n = 0, i;
  uint64_t at;
  for (i = 0; i < GPUIR__SECTION_ROWS; i++) {
    const gpuir__section_row *row = &gpuir__section_rows[i];
    const gpuir__section *s = seg->section[row->id];
    if (row->presence == GPUIR__P_SHARD) {
      table[n].flags = GPUIR__REQUIRED;
      table[n].length = row->id == GPUIR__S_SHARD ? sizeof *shard : 4 * seg->stat.terms;
      from[n] = row->id == GPUIR__S_SHARD ? (const void *)shard : dfs;
      table[n].hash = XXH3_64bits(from[n], (size_t)table[n].length);
    } else if (s) {
      table[n] = *s;
      from[n] = seg->map + s->offset;
    } else {
      continue;
    }
    table[n++].id = row->id;
  }
  at = sizeof(gpuir__header) + n * sizeof *table;
  for (i = 0; i < n; i++) {
    table[i].offset = at = (at + GPUIR__ALIGN - 1) & ~(uint64_t)(GPUIR__ALIGN - 1);
    at += table[i].length + GPUIR__ALIGN;
  }
  *size = at;
  return n;
}

/* Writes the copy. */
static int stamp_copy(gpuir__writer *w, const gpuir__segment *seg, const gpuir__shard *shard, const uint32_t *dfs,
    gpuir_error *err) {
  gpuir__section table[GPUIR__S_COUNT];
  const void *from[GPUIR__S_COUNT];
  uint64_t size;
  unsigned n, i;
  int status = GPUIR_OK;
  n = stamp_plan(seg, shard, dfs, table, from, &size);
  if (gpuir__allocate(w->fd, size)) return gpuir__fail_errno(err, w->tmp, "cannot allocate the index file");
  for (i = 0; i < n && !status; i++)
    if (table[i].length) status = gpuir__writer_put(w, from[i], (size_t)table[i].length, table[i].offset, err);
  return status ? status : gpuir__writer_head(w, table, n, size, err);
}

/* Writes, as a builder writes an index, a copy of an index that is one file, with its place in a collection. dfs[id]:
 * how many of the collection's documents hold term `id`. What `index` itself knows of a collection is left out. Errors:
 * ARGUMENT (also for numbers that cannot be), NOMEM, IO, BUSY; UNSUPPORTED for several segments, or deletions. */
static int stamp_write(const gpuir_index *ix, const char *path, const gpuir_shard_info *info, const uint32_t *dfs,
    gpuir_error *err) {
  const gpuir__segment *seg = ix ? gpuir__only(ix) : NULL;
  gpuir__writer *w = NULL;
  gpuir__shard shard;
  int status;
  if (!ix || !path || !*path || !info || !dfs)
    return gpuir__fail(err, GPUIR_E_ARGUMENT, 0, "a shard needs an index, a path, a place and counts: one is NULL");
  if (!seg) return gpuir__fail_unmerged(ix, err);
  status = stamp_check(seg, info, dfs, err);
  if (status) return status;
  memset(&shard, 0, sizeof shard);
  shard.documents = info->documents;
  shard.tokens = info->tokens;
  shard.first = info->first;
  shard.number = info->shard;
  shard.shards = info->shards;
  memcpy(shard.identity, info->identity, sizeof shard.identity);
  status = gpuir__writer_create(&ix->a, path, GPUIR__AHEAD, -1, &w, err);
  if (status || !w) return status;
  w->ahead.buf = (uint8_t *)gpuir__alloc(&w->a, GPUIR__AHEAD);
  status = w->ahead.buf ? stamp_copy(w, seg, &shard, dfs, err) : gpuir__fail_nomem(err);
  gpuir__free(&w->a, w->ahead.buf, GPUIR__AHEAD);
  gpuir__writer_destroy(w);
  return status;
}

#endif
