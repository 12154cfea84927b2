/* SPDX-License-Identifier: Apache-2.0 */
/**
 * diagnose.c - what a program may want to know when something goes wrong.
 */
#include "comm/comm.h"
#include "comm/watch/flight_file.h"
#include "include/kolo.h"

static ncclResult_t write_flight(struct ncclComm *comm, const char *file)
{
    const char *pattern = file ? file : comm->config.flight_recorder;

    if (!*pattern)
        return KL_FAIL(ncclInvalidArgument,
                       "koloFlightRecorder: no file is named, neither in the call nor by KOLO_FLIGHT_RECORDER");
    return kl_flight_write(comm, pattern, "call");
}

ncclResult_t koloFlightRecorder(ncclComm_t comm, const char *file)
{
    struct ncclComm *c;

    KL_TRY(kl_handle_enter(comm, "koloFlightRecorder", &c));
    ncclResult_t rc = write_flight(c, file);
    kl_handle_leave(c);
    return rc;
}
