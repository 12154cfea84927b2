/* SPDX-License-Identifier: Apache-2.0 */
/**
 * diagnose.c - diagnosis functions for programs.
 */
#include "comm/comm.h"
#include "comm/watch/flight_file.h"
#include "include/kolo.h"

#define MOST_TIMEOUT_MS (365ull * 24 * 3600 * 1000)

static ncclResult_t write_flight(struct ncclComm *comm, const char *file)
{
    const char *pattern = file ? file : comm->config.flight_recorder;

    if (!*pattern)
        return KL_FAIL(ncclInvalidArgument,
                       "koloFlightRecorder: no file is named, neither in the call nor by KOLO_FLIGHT_RECORDER");
    return kl_flight_write(comm, pattern, "call");
}

ncclResult_t koloSetTimeout(ncclComm_t comm, unsigned long long milliseconds)
{
    struct ncclComm *c;

    KL_TRY(kl_handle_enter(comm, "koloSetTimeout", &c));
    ncclResult_t rc = milliseconds <= MOST_TIMEOUT_MS
                          ? ncclSuccess
                          : KL_FAIL(ncclInvalidArgument, "koloSetTimeout: %llu ms is more than %llu, a year",
                                    milliseconds, (unsigned long long)MOST_TIMEOUT_MS);
    if (!rc) c->timeout_ns = milliseconds * 1000000u;
    kl_handle_leave(c);
    return rc;
}

ncclResult_t koloFlightRecorder(ncclComm_t comm, const char *file)
{
    struct ncclComm *c;

    KL_TRY(kl_handle_enter(comm, "koloFlightRecorder", &c));
    ncclResult_t rc = write_flight(c, file);
    kl_handle_leave(c);
    return rc;
}
