/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trace_file.h - a trace as a file in Chrome's trace format, which Perfetto and chrome://tracing open.
 *
 * Tracks: calls, operations, waits, and the steps of each channel. Beside the events, "kolo" names the rank and its
 * clock's offset from rank 0's, so that `kolo trace merge` can put the traces of all ranks on one time axis.
 *
 * Threads: any.
 * Source:  the Trace Event Format (Google, 2016).
 */
#ifndef KL_COMM_WATCH_TRACE_FILE_H
#define KL_COMM_WATCH_TRACE_FILE_H

#include "include/nccl.h"

/** If there is a trace, write it to the file of KOLO_TRACE. A failure to do so is logged. */
void kl_trace_write(ncclComm_t comm);

#endif
