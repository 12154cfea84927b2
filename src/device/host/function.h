/* SPDX-License-Identifier: Apache-2.0 */
/**
 * function.h - functions of the program as work of a stream. They may take long, and block.
 *
 * Progress functions never block, and whoever runs a stream has others to look after. So who finds a function at the head of a
 * stream does not run it, but offers it: to a thread that waits for this stream, which has nothing better to do, or, if nobody
 * waits or comes, to a worker. One worker for each, so functions of different streams may wait for each other. A worker stays with
 * its stream as long as that moves: one kernel after the other costs one hand-over.
 *
 *      NEW -> OFFERED -> TAKEN, by who waits or by a worker -> ENDED -> the head moves on
 *
 * Memory order: OFFERED is stored with release by who runs the stream, taken with acquire and release; ENDED is stored by a
 *               sequentially consistent operation after the function, read with acquire by who moves the head.
 * Threads:      progress by who runs the stream.
 */
#ifndef KL_DEVICE_HOST_FUNCTION_H
#define KL_DEVICE_HOST_FUNCTION_H

#include "device/host/stream.h"

/** The work that calls `fn(arg)`. */
struct kl_work kl_function_work(kl_function fn, void *arg);

#endif
