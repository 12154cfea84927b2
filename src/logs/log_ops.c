/* SPDX-License-Identifier: Apache-2.0 */
/** log_ops.c - calls of operations: lines of NCCL_DEBUG_SUBSYS=COLL and of PyTorch's watchdogs. */
#include "logs/log_make.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A decimal number behind a word, of any length; `absent` without. */
static int64_t long_after(const char *text, const char *word, int64_t absent)
{
    const char *at = kl_log_after(text, word);

    return at && (isdigit((unsigned char)*at) || (*at == '-' && isdigit((unsigned char)at[1]))) ? strtoll(at, NULL, 10)
                                                                                                : absent;
}

/* ---- NCCL ---- */

/* "AllReduce: opCount 1f sendbuff 0x1 recvbuff 0x2 count 4096 datatype 7 op 0 root 0 comm 0xa [nranks=2] stream 0x9" */
static bool read_coll(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *colon = strstr(line->text, ": opCount "), *comm = colon ? kl_log_after(colon, " comm 0x") : NULL;

    if (!colon || !comm || memchr(line->text, ' ', (size_t)(colon - line->text))) return false;
    struct kl_log_op *o = KL_LOG_NEW(log, op);

    if (!o) return true;
    *o = (struct kl_log_op){.at = line->at,
                            .from = KL_LOG_OP_COLL,
                            .origin = origin,
                            .rank = (int)kl_log_number(colon, " globalrank ", -1),
                            .nranks = (int)kl_log_number(comm, "[nranks=", -1),
                            .pointer = strtoull(comm, NULL, 16),
                            .group = "",
                            .sequence = (int64_t)strtoull(colon + strlen(": opCount "), NULL, 16),
                            .name = kl_log_keep(log, line->text, (size_t)(colon - line->text)),
                            .count = long_after(colon, " count ", -1),
                            .out = -1,
                            .type = (int)kl_log_number(colon, " datatype ", -1),
                            .op = (int)kl_log_number(colon, " op ", -1),
                            .root = (int)kl_log_number(colon, " root ", -1)};
    return true;
}

/* ---- PyTorch ---- */

/* "[PG ID 0 PG GUID 0(default_pg) Rank 0]", "[Rank 0]": rank and process group. */
static int rank_of(struct kl_log *log, const char *text, const char **group)
{
    const char *at = kl_log_after(text, "[Rank "), *guid = kl_log_after(text, "PG GUID "),
               *id = kl_log_after(text, "PG ID ");
    int rank;

    if (!at) at = kl_log_after(text, " Rank ");
    if (!guid) guid = id;
    *group = guid ? kl_log_keep(log, guid, strcspn(guid, " ]")) : "";
    return at && kl_log_int(&at, &rank) ? rank : -1;
}

/* "WorkNCCL(SeqNum=112, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000)" */
static void read_work(struct kl_log *log, int origin, const struct kl_log_line *line, const char *work)
{
    const char *name = kl_log_after(work, "OpType=");
    struct kl_log_op *o = name ? KL_LOG_NEW(log, op) : NULL;
    const char *group;

    if (!o) return;
    *o = (struct kl_log_op){.at = line->at,
                            .from = KL_LOG_OP_WATCHDOG,
                            .origin = origin,
                            .nranks = -1,
                            .sequence = long_after(work, "SeqNum=", -1),
                            .count = long_after(work, "NumelIn=", -1),
                            .out = long_after(work, "NumelOut=", -1),
                            .type = -1,
                            .op = -1,
                            .root = -1};
    o->rank = rank_of(log, line->text, &group);
    o->group = group;
    o->name = kl_log_keep(log, name, strcspn(name, ",) "));
}

/* "PG status: last enqueued work: 113, last completed work: 111", in older releases "last enqueued NCCL work" */
static void read_progress(struct kl_log *log, const struct kl_log_line *line)
{
    int64_t enqueued = long_after(line->text, "last enqueued work: ", -1), completed;

    if (enqueued < 0) enqueued = long_after(line->text, "last enqueued NCCL work: ", -1);
    completed = long_after(line->text, "last completed work: ", -1);
    if (completed < 0) completed = long_after(line->text, "last completed NCCL work: ", -1);
    if (enqueued < 0) return;
    struct kl_log_progress *p = KL_LOG_NEW(log, progress);
    const char *group;

    if (!p) return;
    *p = (struct kl_log_progress){.at = line->at, .enqueued = enqueued, .completed = completed};
    p->rank = rank_of(log, line->text, &group);
    p->group = group;
}

/* "Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=5, OpType=ALLREDUCE, ...), but Rank 1 is running ..." */
static void read_fingerprints(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    static const char running[] = " is running collective: CollectiveFingerPrint(";

    for (const char *at = strstr(line->text, running); at; at = strstr(at, running)) {
        const char *rank = at;
        int number;

        while (rank > line->text && isdigit((unsigned char)rank[-1])) rank--;
        at += sizeof running - 1;
        const char *name = kl_log_after(at, "OpType=");

        if (!name || !kl_log_int(&rank, &number)) return;
        struct kl_log_op *o = KL_LOG_NEW(log, op);

        if (!o) return;
        *o = (struct kl_log_op){.at = line->at,
                                .from = KL_LOG_OP_WATCHDOG,
                                .origin = origin,
                                .rank = number,
                                .nranks = -1,
                                .group = "",
                                .sequence = long_after(at, "SequenceNumber=", -1),
                                .name = kl_log_keep(log, name, strcspn(name, ",) ")),
                                .count = -1,
                                .out = -1,
                                .type = -1,
                                .op = -1,
                                .root = -1};
    }
}

/* Watchdogs tell of a timeout as well: another reader looks at their lines, too. */
bool kl_log_read_ops(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *work = strstr(line->text, "WorkNCCL(");

    if (line->level == KL_LOG_INFO && read_coll(log, origin, line)) return true;
    if (line->level != KL_LOG_PLAIN) return false;
    if (work && strstr(line->text, "timeout")) read_work(log, origin, line, work);
    if (strstr(line->text, "Detected mismatch between collectives")) read_fingerprints(log, origin, line);
    if (!strstr(line->text, "last enqueued ")) return false;
    read_progress(log, line);
    return !strstr(line->text, "timeout");
}
