/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trace_nodes.h - shared by the readers of execution traces (chakra.c, execution.c): their files, groups and calls.
 *
 * A trace is of one rank: the number in its file's name, where the trace has none. A group without a list of ranks has unknown ranks,
 * unless it has no name: then it is the job.
 */
#ifndef KL_LOGS_RECORD_TRACE_NODES_H
#define KL_LOGS_RECORD_TRACE_NODES_H

#include "logs/record/make.h"

/** The name of the node that lists groups. */
#define KL_TRACE_GROUPS "process_group:init"

enum { KL_TRACE_RANKS = 1 << 20 };

struct kl_trace_nodes {
    struct kl_record *r;
    int file;
    json_t *groups; /* by name: as the trace describes them */
};

/** The file's facts; rank -1: unknown. The caller frees `groups` (json_decref) at the end. */
void kl_trace_nodes_begin(struct kl_trace_nodes *trace, int64_t rank);

/** Fail with ncclInvalidUsage if there are no calls: the trace has no node of these names. */
ncclResult_t kl_trace_nodes_end(struct kl_trace_nodes *trace, const char *names);

/** Descriptions of groups, a JSON text: [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1], "group_size": 2}]. */
ncclResult_t kl_trace_nodes_groups(struct kl_trace_nodes *trace, const char *text);

/** A new call of the file's rank in a group, "" the job. */
ncclResult_t kl_trace_nodes_call(struct kl_trace_nodes *trace, const char *group, int *call);

/** A collective gets the next number of its member. */
void kl_trace_nodes_number(struct kl_trace_nodes *trace, struct kl_record_call *call);

/** A call's name says which attribute is missing: "all_reduce without comm_size". */
void kl_trace_nodes_lacks(struct kl_trace_nodes *trace, struct kl_record_call *call, const char *attribute);

#endif
