/* SPDX-License-Identifier: Apache-2.0 */
/** trace_calls.h - facts of a call of a trace, for its traffic: size, name, and whether it is left out. Units: bytes. */
#ifndef KL_ANSWER_TRACE_CALLS_H
#define KL_ANSWER_TRACE_CALLS_H

#include "answer/traffic.h"

/** The larger of input and output, or the bytes that a call states; -1: unknown. */
int64_t kl_trace_bytes(const struct kl_record_call *call, ncclDataType_t *type);

/** Letters and digits of a name, in lower case: "all_to_allv" becomes "alltoallv". */
void kl_trace_plain_name(const char *name, char *plain, size_t size);

/** Count a call that is left out. */
void kl_trace_skip(struct kl_traffic_trace *trace, const char *name);

#endif
