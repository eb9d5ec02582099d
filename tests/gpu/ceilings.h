/* ceilings.h - measured ceilings of the device */
#ifndef TESTS_GPU_CEILINGS_H
#define TESTS_GPU_CEILINGS_H

typedef struct ceilings {
  double copy; /* device memory: bytes read and written a second */
  double issue; /* warp instructions a second */
  double adds; /* additions to words of shared memory a second */
  double clears; /* shared memory, cleared and looked at: bytes written and read a second */
} ceilings;

#ifdef __cplusplus
extern "C"
#endif
    int
    ceilings_measure(ceilings *c); /* 0, or -1 */

#endif
