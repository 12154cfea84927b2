/* SPDX-License-Identifier: Apache-2.0 */
/**
 * flight_file.h - the flight record of a communicator as a JSON document: its state, and its last operations.
 *
 * It reads only data that live as long as the communicator and may be read at any time, so any thread may write it in
 * the middle of a failure.
 *
 * Threads: any that is inside of the communicator (comm/handle.h), or the bootstrap's callback.
 */
#ifndef KL_COMM_WATCH_FLIGHT_FILE_H
#define KL_COMM_WATCH_FLIGHT_FILE_H

#include "include/nccl.h"

#include <stdio.h>

/** Write it to a file: `pattern` as in file.h. `why` is the occasion: "failure", "signal", "call". */
ncclResult_t kl_flight_write(ncclComm_t comm, const char *pattern, const char *why);

/** The communicator is failing: write the record to the file of KOLO_FLIGHT_RECORDER, once. A failure to do so is
 * logged. */
void kl_flight_on_failure(ncclComm_t comm, ncclResult_t code, const char *text);

/** Write the records of all communicators of the process, to the file of KOLO_FLIGHT_RECORDER. */
void kl_flight_on_signal(void);

#endif
