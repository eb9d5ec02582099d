/* spellings.h - codecs as users spell them, and what the parameter comes to */
#ifndef TESTS_SPELLINGS_H
#define TESTS_SPELLINGS_H

typedef struct spelling {
  const char *spec, *name; /* name: of the codec, NULL for auto */
  uint64_t param;
} spelling;

static const spelling good[] = {
    {"bp128", "bp128", 0},
    {"qs", "qs", 0},
    {"qs:1", "qs", 1000},
    {"qs:0.25", "qs", 250},
    {"qs:.5", "qs", 500},
    {"qs:1.5", "qs", 1500},
    {"qs:2.125", "qs", 2125},
    {"qs:4", "qs", 4000},
    {"qs:4.000", "qs", 4000},
    {"pfd-list:0", "pfd-list", 1},
    {"pfd-list:4", "pfd-list", 5},
    {"parapfor:64", "parapfor", 64},
    {"parapfor:256,0", "parapfor", 256 + 1024},
    {"parapfor:128,0.1", "parapfor", 128 + 1024 * 101},
    {"parapfor:,min", "parapfor", 1024 * 1002},
    {"lrc:256,1", "lrc", 256 + 1024 * 1001},
    {"lrc:,0.25", "lrc", 1024 * 251},
    {"lrcseg:128,min", "lrcseg", 128 + 1024 * 1002},
    {"seglrc:64", "seglrc", 64},
    {"hslrc:32", "hslrc", 32},
    {"hslrc:256,.005", "hslrc", 256 + 1024 * 6},
    {"auto", NULL, 0},
    {"auto:0", NULL, 0},
    {"auto:0.125", NULL, 125},
    {"auto:1", NULL, 1000},
};

#endif
