/* SPDX-License-Identifier: Apache-2.0 */
/**
 * bench.h - tables of nccl-tests (and of tools that print like them): read, judged, and beside the model.
 *
 *     bench_read.c   text: rows, also those that lines of a log broke in two
 *     bench_tables.c tables and rows as they grow, and their lists of ranks
 *     bench_file.h   files, also the JSON of nccl-tests (-J)
 *     bench_judge.c  findings of a table by itself
 *     bench_model.c  measured beside predicted, and the settings that would explain a shortfall
 *
 * Bounds:  KL_BENCH_ROWS rows and KL_BENCH_TABLES tables are kept.
 * Units:   bytes, microseconds, GB/s (1e9 bytes).
 * Errors:  ncclSystemError when memory is short; ncclInvalidUsage for texts without any row or failure of a run.
 * Threads: as a log.
 */
#ifndef KL_LOGS_BENCH_H
#define KL_LOGS_BENCH_H

#include "base/text.h"
#include "logs/findings.h"
#include "plan/cluster.h"

/** From this size on, bytes, links are filled: bandwidth counts more than latency. */
enum { KL_BENCH_FILLS = 16 << 20 };

enum { KL_BENCH_ROWS = 1 << 16, KL_BENCH_TABLES = 1024, KL_BENCH_NAME = 64, KL_BENCH_HYPOTHESES = 24 };

/** Out of place, and in place. */
enum kl_bench_half { KL_BENCH_OUT, KL_BENCH_IN, KL_BENCH_HALVES };

struct kl_bench_time {
    bool there;
    double us, algorithm, bus;
    int64_t wrong; /* -1: not checked */
};

struct kl_bench_row {
    struct kl_log_at at;
    int64_t size, count;
    int root; /* -1: none */
    char type[16], op[16];
    struct kl_bench_time time[KL_BENCH_HALVES];
    double predicted_us, predicted_bus; /* 0: no model */
};

/** The shape of a table by itself. */
struct kl_bench_shape {
    double floor_us;   /* of the smallest size, if that is at most 64 KiB; else 0 */
    double peak;       /* largest bus bandwidth, GB/s */
    int64_t peak_size; /* the size that has it */
    int64_t knee;      /* the smallest size with half of it */
};

/** A setting under which the model comes nearer to the measurement. */
struct kl_bench_hypothesis {
    const char *name;       /* "no_nvls" */
    const char *text;       /* its meaning, a sentence without its full stop */
    const char *experiment; /* the setting that would tell */
    double off;             /* how far the model with it is from the table: mean factor, 1 is perfect */
};

/** Times of sizes that fill links, beside the model's. */
enum kl_bench_beside {
    KL_BENCH_NOT_COMPARED, /* no model, no such size, or nothing that can do the operation */
    KL_BENCH_ALIKE,
    KL_BENCH_FASTER,
    KL_BENCH_SLOWER,
    KL_BENCH_SCATTERED /* some faster, some slower */
};

struct kl_bench_table {
    struct kl_log_at at;
    char name[KL_BENCH_NAME];  /* "all_reduce"; "" unknown */
    bool named_by_ratio;       /* it follows from bus and algorithm bandwidth */
    char title[KL_BENCH_NAME]; /* of its section; "" */
    int nranks, nhosts;        /* 0 unknown */
    char gpu[KL_BENCH_NAME], version[16];
    int first, n;  /* rows */
    int64_t wrong; /* that the tool counted behind the table */
    struct kl_bench_shape shape;
    bool modelled;
    enum kl_bench_beside beside;
    int compared;  /* sizes that were */
    double off;    /* how far the model is from the table: mean factor over sizes that fill links; 0 without */
    double slower; /* how many times slower than the model, in the mean; below 1: faster */
    struct kl_bench_hypothesis hypothesis[KL_BENCH_HYPOTHESES]; /* nearest first */
    int nhypotheses;
};

enum kl_bench_code {
    KL_BENCH_FAILED, /* the run ended with the line `text`, at `size` (0: before its first row), which means `more` */
    KL_BENCH_WRONG,  /* n results of size bytes are wrong */
    KL_BENCH_ALONE,  /* one rank: bus bandwidth is 0 by definition */
    KL_BENCH_SHORT,  /* x GB/s at size, y predicted */
    KL_BENCH_DIP,    /* x GB/s at size, between sizes of y and more */
    KL_BENCH_FALLS,  /* from size on x GB/s at most, y at n bytes */
    KL_BENCH_TIME_FALLS, /* x us at n bytes, but y us at size, which is larger */
    KL_BENCH_PLACES,     /* x out of place, y in place, at size */
    KL_BENCH_PCI,        /* x GB/s, as much as text carries */
    KL_BENCH_SLOW_START, /* x us at the smallest size */
    KL_BENCH_RISING,     /* still rising at the largest size */
    KL_BENCH_CODES
};

struct kl_bench_finding {
    enum kl_bench_code code;
    bool problem;
    int table; /* -1: a run without rows */
    int64_t size, n;
    double x, y;
    const char *text, *more;
    struct kl_log_at at;
};

struct kl_bench {
    struct kl_log log; /* of the same file: its release, GPUs and machine */
    KL_LOG_LIST(kl_bench_row, row);
    KL_LOG_LIST(kl_bench_table, table);
    KL_LOG_LIST(kl_bench_finding, finding); /* worst first */
    struct kl_log_findings trouble;         /* of the same file */
    char machine[512];                      /* "" without */
    char nccl[16];
    char why[256]; /* without a machine, or if it does not fit: why */
    bool pending;  /* while it is read: the last row goes on */
};

void kl_bench_init(struct kl_bench *bench);
void kl_bench_fini(struct kl_bench *bench);

/** Add a text of tables; files, and JSON: bench_file.h. */
ncclResult_t kl_bench_add_text(struct kl_bench *bench, const char *name, const char *text, size_t bytes);

/** All is read: names, shapes, findings, and with a machine (asked for, or of the log) the model's times. */
ncclResult_t kl_bench_finish(struct kl_bench *bench, const struct kl_cluster_request *request);

/** The better of both halves: GB/s; 0 without. */
double kl_bench_row_bus(const struct kl_bench_row *row);
double kl_bench_row_us(const struct kl_bench_row *row);

/** "dip"; a sentence without its full stop; clauses of a remedy (remedy.h), NULL: none. */
const char *kl_bench_finding_name(enum kl_bench_code code);
void kl_bench_finding_text(const struct kl_bench_finding *finding, struct kl_text *text);
const char *kl_bench_finding_remedy(enum kl_bench_code code);

#endif
