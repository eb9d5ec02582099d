/* values.h - what names say of the index's fields: predicates of a where, and values as names of folders.
 *
 *   query/@ext=c,h/<q>  query/@mtime=2024-01../<q>  query/@-dir=vendor/<q>  by/author/Smith%2C+John/query/<q>
 *
 * A value is quote_plus. `,` and `..` are syntax where they stand as such, and bytes of the value as %2C and %2E. Which
 * fields there are, and whether a value is one of them, is what the library says of the where.
 */
#ifndef GPUIRFS_VALUES_H
#define GPUIRFS_VALUES_H

#include "common.h"

#define WHERE_LIMIT 1023 /* bytes of what all folders of a path ask for together */
/* What the folders of a path ask for, one string a part: a where, a column of facet/, and @sort=, @collapse= and
 * @show=. */
enum { ASKED_WHERE, ASKED_FACET, ASKED_SORT, ASKED_COLLAPSE, ASKED_SHOW, ASKED_PARTS };
#define ASKED_SIZE (WHERE_LIMIT + 4 * NAME_LIMIT + ASKED_PARTS) /* bytes of all, with their NULs */
#define WHERE_FOLDERS 16 /* that ask for something, on one path */
#define PREDICATE_SIZE (5 * NAME_LIMIT + 8)

/* Makes the predicate `column=items` of a name, which are its items, in text[PREDICATE_SIZE], as a where has it, with a
 * NUL; column[0..column_len) may begin with '-'. Both have NAME_LIMIT bytes at most. EINVAL for a bad escape, a NUL, or
 * a quote that is not closed. */
int values_predicate(const char *column, size_t column_len, const char *name, size_t len, char *text);
/* Joins two wheres, of which either may be "", into one that both must pass. E2BIG where it has over WHERE_LIMIT
 * bytes. */
int values_join(const char *a, const char *b, char out[WHERE_LIMIT + 1]);
/* Writes the name of the folder in by/<column>/ that stands for a value. Returns its length, or 0 where it has over
 * NAME_LIMIT bytes. */
size_t values_name(char out[NAME_LIMIT + 1], const char *text, size_t len);

#endif
