/* share.h - several processes share the steps of a test program: each takes every nth */
#ifndef SHARE_H
#define SHARE_H

#include <stdio.h>

static unsigned my_share = 1, all_shares = 1;

/* Says whether the next step is this process's. */
static int is_mine(void) {
  static unsigned steps;
  return steps++ % all_shares == my_share - 1;
}

/* Takes a share such as "2/3": the second of each three steps. Returns 0 if the text is none. */
static int take_share(const char *text) {
  if (sscanf(text, "%u/%u", &my_share, &all_shares) == 2 && my_share && my_share <= all_shares) return 1;
  printf("Bail out! '%s' is not a share, such as 2/3\n", text);
  return 0;
}

#endif
