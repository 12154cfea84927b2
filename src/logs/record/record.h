/* SPDX-License-Identifier: Apache-2.0 */
/**
 * record.h - calls of ranks, from recorders: flight records of PyTorch and of Kolo, status of NCCL's RAS service, reports of NCCL's
 * Inspector, traces of Kineto and of Kolo. All are read into one model, and judged.
 *
 * A group is a communicator or process group, a member one rank of it, a call one entry of a member. Numbers count the collectives of
 * a group. Findings come culprit first; each is an enum with operands.
 *
 * Units:   microseconds on the clock of the file, bytes, elements. -1: unknown.
 * Memory:  texts belong to the record.
 * Errors:  ncclInvalidUsage for a text that is none of these formats; ncclSystemError for memory and files.
 * Threads: pure.
 */
#ifndef KL_LOGS_RECORD_RECORD_H
#define KL_LOGS_RECORD_RECORD_H

#include "base/text.h"
#include "include/nccl.h"
#include "logs/causes.h"
#include "topo/input.h"

#include <stdbool.h>
#include <stdint.h>

enum kl_call_state { KL_CALL_QUEUED, KL_CALL_STARTED, KL_CALL_ENDED, KL_CALL_FAILED, KL_CALL_STATES };
enum kl_call_kind { KL_CALL_COLLECTIVE, KL_CALL_SEND, KL_CALL_RECV, KL_CALL_BATCH };

struct kl_record_call {
    int member;
    enum kl_call_kind kind;
    enum kl_call_state state;
    int64_t number;                                      /* of the collective, or of the batch of messages */
    int part;                                            /* calls of a batch share a number */
    const char *name, *type, *op, *algorithm, *protocol; /* "" unknown */
    int64_t in, out, bytes;
    int root, peer; /* ranks as the group shows them */
    double begun_us, took_us;
    const char *where; /* of the program: "step, train.py:88"; "" unknown */
};

enum kl_member_state {
    KL_MEMBER_RUNS,
    KL_MEMBER_INIT,
    KL_MEMBER_ENDS,
    KL_MEMBER_ABORTED,
    KL_MEMBER_SILENT,
    KL_MEMBER_DEAD
};

struct kl_record_member {
    int group, rank, proc, file;
    enum kl_member_state state;
    int code;            /* ncclResult_t of a failure; 0 none */
    const char *failure; /* "" none */
    int waits_for;       /* rank; -1 none */
    int64_t called, ended,
        oldest;               /* numbers of collectives: the last called, the last ended, the first in the record */
    int open, last;           /* calls: the first that has not ended, the last; -1 none */
    int first_count, ncounts; /* calls by function, where only their numbers are told */
};

struct kl_record_count {
    const char *function;
    int64_t n;
};

struct kl_record_group {
    const char *id, *desc, *listed; /* listed: the ranks as the file lists them; "" unknown */
    int size;                       /* ranks; -1 unknown */
    int first_listed, nlisted;      /* ranks of the job that it has; nlisted 0: ranks count within the group, from 0 */
    int first, n;                   /* of `by_group`: its members, by rank */
};

/** A participant of all groups: a rank of the job, or a process with a device. */
struct kl_record_proc {
    const char *key, *host;
    int rank, pid;
    bool recorded; /* there is a record of it */
    int stall;     /* that it waits in, while judging; -1 none */
};

/** The meaning of a call's number: its place among the group's collectives, among its function's calls, or in the file only. */
enum kl_record_numbers { KL_NUMBERS_OF_GROUP, KL_NUMBERS_OF_FUNCTION, KL_NUMBERS_OF_FILE };

struct kl_record_file {
    const char *name, *version;
    enum kl_input_kind kind;
    enum kl_record_numbers numbers;
    int rank, ranks;                                /* of the job; -1 unknown */
    bool rank_guessed, starts_known;                /* starts_known: its calls show whether they have begun */
    double span_us, comm_us, hidden_us, compute_us; /* of a trace; span 0: none */
};

enum kl_call_field { KL_FIELD_SAME, KL_FIELD_NAME, KL_FIELD_OP, KL_FIELD_TYPE, KL_FIELD_SIZE, KL_FIELD_ROOT };

enum kl_record_code {
    KL_RECORD_GROUP_DIFFERS, /* ranks list the group as `text`, others as `other` */
    KL_RECORD_MISMATCH, /* ranks called `call`, others `other_call`; a: enum kl_call_field; count: 1 left a call out, 2 has one more */
    KL_RECORD_DEAD,       /* ranks are dead, by RAS */
    KL_RECORD_NEVER_CAME, /* ranks never called `call`, in which others wait; other_call: the last of the first rank */
    KL_RECORD_NO_PEER,    /* ranks wait in the message `call`, which others never answered */
    KL_RECORD_DEADLOCK,   /* ranks wait in `call` for others, which wait in `other_call` for ranks */
    KL_RECORD_NO_RECORD,  /* ranks left no record; others are in `call` */
    KL_RECORD_NOT_BEGUN,  /* ranks called `call`, but have not begun it; others have */
    KL_RECORD_INSIDE,     /* ranks are in `call`; others ended it */
    KL_RECORD_BEHIND,     /* ranks called `text` count times, others `most` times; a: 1 if they move */
    KL_RECORD_SILENT,     /* ranks do not answer RAS */
    KL_RECORD_STATES_DIFFER, /* ranks are in the state a (enum kl_member_state); others run */
    KL_RECORD_FAILED,        /* ranks failed with code a; text: the failure */
    KL_RECORD_FOLLOWS,       /* others wait in `call` for ranks, which wait elsewhere */
    KL_RECORD_STRAGGLER, /* ranks come last to count of most collectives; others wait x us, y of their time in them */
    KL_RECORD_EXPOSED,   /* x of the time of the file is communication that nothing hides, y is all of it */
    KL_RECORD_FEW,       /* records of count of most ranks */
    KL_RECORD_RANKS_GUESSED, /* no file names its rank: their order counts */
    KL_RECORD_CODES
};

struct kl_record_finding {
    enum kl_record_code code;
    enum kl_log_weight weight;
    int group;                /* -1 none */
    int call, other_call;     /* -1 none */
    int first, n;             /* of `list`: ranks */
    int first_other, nothers; /* of `list`: others */
    int a, file;              /* file: that shows it; -1 none */
    int64_t count, most;
    double x, y;
    const char *text, *other;
};

struct kl_record {
    struct kl_record_file *file;
    struct kl_record_group *group;
    struct kl_record_member *member;
    struct kl_record_call *call;
    struct kl_record_proc *proc;
    struct kl_record_count *count;
    struct kl_record_finding *finding; /* culprit first */
    int *list, *by_group;              /* ranks; members by group and rank */
    int nfile, ngroup, nmember, ncall, nproc, ncount, nfinding, nlist;
    int maxfile, maxgroup, maxmember, maxcall, maxproc, maxcount, maxfinding, maxlist;
    struct kl_record_names *names;
    struct kl_record_map *map;
};

void kl_record_init(struct kl_record *record);
void kl_record_fini(struct kl_record *record);

/** Is there a reader for this kind of text? */
bool kl_record_reads(enum kl_input_kind kind);

/** Add a text; its kind follows from its content. A file's rank may follow from `name`, which ends with it ("trace_3"). */
ncclResult_t kl_record_add(struct kl_record *record, const char *name, const char *text, size_t bytes);

/** After the last text: make the findings. */
ncclResult_t kl_record_judge(struct kl_record *record);

/**
 * The same service was asked before: ranks that were behind, and have called more since, move. Their findings become remarks.
 * Both are judged.
 */
void kl_record_compare(struct kl_record *record, const struct kl_record *before);

/** Does a finding stop the job or cost bandwidth? */
static inline bool kl_record_has_problem(const struct kl_record *record)
{
    return record->nfinding && record->finding[0].weight != KL_LOG_REMARK; /* worst first */
}

/** "never_came"; "queued"; "size". */
const char *kl_record_code_name(enum kl_record_code code);
const char *kl_call_state_name(enum kl_call_state state);
const char *kl_call_field_name(enum kl_call_field field);
const char *kl_member_state_name(enum kl_member_state state);

/** Sentences without a full stop: a finding, its remedy ("" none), the answer as a whole; and clauses: a call, a group. */
void kl_record_finding_text(const struct kl_record *record, const struct kl_record_finding *finding,
                            struct kl_text *text);
void kl_record_finding_remedy(const struct kl_record *record, const struct kl_record_finding *finding,
                              struct kl_text *text);
void kl_record_verdict(const struct kl_record *record, struct kl_text *text);
void kl_record_call_text(const struct kl_record *record, const struct kl_record_call *call, struct kl_text *text);
void kl_record_group_text(const struct kl_record *record, int group, struct kl_text *text);

#endif
