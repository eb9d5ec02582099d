/* 07_lab_lines.c - deviations from regression lines */
#define GPUIR_STATIC
#define GPUIR_IMPLEMENTATION
#include "gpuir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lists.h"

static const char *const part_codecs[] = {"lrc", "lrcseg", "seglrc", "hslrc"};

static uint32_t lane_value(const gpuir__stream *s, uint32_t i, int *gap) {
  *gap = 0;
  return s->codec->get(s, i); /* a lane computes what element access does */
}

#include "codec_properties.h"

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      CODEC_PROPERTIES,
      cmocka_unit_test(test_parameters),
  };
  if (argc > 1 && atoi(argv[1]) > 1) rounds = atoi(argv[1]);
  return cmocka_run_group_tests_name("07_lab_lines", tests, NULL, NULL);
}
