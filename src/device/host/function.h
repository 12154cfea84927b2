/* SPDX-License-Identifier: Apache-2.0 */
/**
 * function.h - functions of the program as work of a stream. They may take long, and block.
 *
 * Progress functions never block, because a thread that runs a stream serves others, too. So a runner that finds a
 * function at the head of a stream offers it: to a thread that waits for this stream, or, if none takes it, to a
 * worker. Each function has its own worker, so functions of different streams may wait for each other. A worker stays
 * with its stream as long as that moves, so that consecutive functions cost one hand-over.
 *
 *      NEW -> OFFERED -> TAKEN, by a waiting thread or a worker -> ENDED -> the head moves on
 *
 * Memory order: OFFERED is stored with release by the stream's runner, taken with acquire and release; ENDED is stored
 *               by a sequentially consistent operation after the function, and read with acquire before the head moves.
 * Threads:      progress by the stream's runner.
 */
#ifndef KL_DEVICE_HOST_FUNCTION_H
#define KL_DEVICE_HOST_FUNCTION_H

#include "device/host/stream.h"

/** The work record that calls `fn(arg)`. */
struct kl_work kl_function_work(kl_function fn, void *arg);

#endif
