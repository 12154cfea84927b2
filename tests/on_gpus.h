/* SPDX-License-Identifier: Apache-2.0 */
/** on_gpus.h - between on_gpus.c and on_gpus_cases.c. */
#ifndef KOLO_TEST_ON_GPUS_H
#define KOLO_TEST_ON_GPUS_H

/**
 * Make static memory and the stack of the calling thread, which is main's, memory of CUDA: on the stand-in, where all can be
 * registered. To be called before buffers there are used.
 */
void on_gpus_begin(void);

#endif
