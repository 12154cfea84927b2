/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/model.h"

#include <math.h>

const char *const kl_copy_name[KL_COPIES] = {"staged", "kernel", "direct"};
const char *const kl_select_word_names[KL_SELECT_WORDS + 1] = {"FIXED",        "STAGED",   "KERNEL", "FLAT",
                                                               "HIERARCHICAL", "TEMPORAL", "NT",     NULL};

/*
 * Constants beside the profile, fitted on an EPYC (docs/decisions/0019-one-selector.md).
 *
 * NEAR_NS       of a line's time that prefetching hides
 * HIDDEN        of the rest, one part in so many is not hidden; with m ranks on a core as many as the square of m - 1, up to MOST_SEEN
 * TANGLED       times as much where a rank exchanges with many others at a time
 * TURN_NS       all ranks meet: times the square of the ranks on a core, as each is switched to for each other
 * HUGE          bytes of a buffer from which on its pages may be huge
 * KERNEL_CALL   bytes of a reduction that the kernel copies at a time
 * MERGED_NS     for each KiB of a rank's contribution that is written once more if the ranks of each core merge first
 * MERGE_WAITS   one line of so many that come from another core is waited for by the rank that merges
 */
enum {
    NEAR_NS = KL_SELECT_NEAR_NS,
    HIDDEN = 36,
    MOST_SEEN = 9,
    TURN_NS = 2000,
    HUGE = 2 << 20,
    KERNEL_CALL = 64 << 10,
    MERGED_NS = 130,
    MERGE_WAITS = 3,
    LINE = 64
};
/* A private cache keeps much of a buffer up to KEPT times its size; of the last level a core may count on SHARED times its private cache, all cores on 1/PART. */
enum { KEPT = 2, SHARED = 4, PART = 2 };
/* Copies take longer than measured alone: data come from another core's cache, and others use the same memory. */
static const double TOGETHER = 1.5, TANGLED = 2.5;

struct moved {
    double written, read; /* KiB per rank: copies to shared memory, and from it, that only staging makes */
    double kernel;        /* by the kernel */
    double calls;         /* of the kernel */
    double across;        /* that a rank takes from others */
};

static double kib(double bytes)
{
    return bytes / 1024;
}

static double blocks(double bytes)
{
    return 1 + bytes / KERNEL_CALL;
}

/* Staged, ranks of a ring write again the data that they have read; two ranks do not. */
static struct moved moved_in(const struct kl_select_facts *f, int func, double all)
{
    const double n = f->nranks, others = n - 1, part = all / n;

    switch (func) {
    case KL_FUNC_BROADCAST:
        return (struct moved){n > 2 ? kib(all) : 0, kib(all), kib(all) * others / n, others, kib(all)};
    case KL_FUNC_REDUCE:
        return (struct moved){kib(all) * others / n, 0, kib(part) * (others + 1), others * blocks(part), kib(all)};
    case KL_FUNC_ALL_GATHER:
        return (struct moved){kib(part) * others, kib(part) * others, kib(part) * others, others, kib(part) * others};
    case KL_FUNC_REDUCE_SCATTER:
        return (struct moved){kib(part) * others, 0, kib(part) * others, others * blocks(part), kib(part) * others};
    case KL_FUNC_ALL_REDUCE:
        return (struct moved){2 * kib(part) * others, 0, 2 * kib(part) * others, 2 * others * blocks(part),
                              2 * kib(part) * others};
    case KL_FUNC_ALL_TO_ALL:
        return (struct moved){kib(part) * others, kib(part) * others, kib(part) * others, others, kib(part) * others};
    case KL_SELECT_MANY:
        return (struct moved){kib(all), kib(all), kib(all), others, kib(all)};
    default:
        return (struct moved){kib(all), kib(all), kib(all), 1, kib(all)};
    }
}

static int ranks_per_core(const struct kl_select_facts *f)
{
    return f->ranks_per_core > 1 ? f->ranks_per_core : 1;
}

static bool is_message(int func)
{
    return func >= KL_SELECT_FEW;
}

static double beyond_near(const struct kl_select_facts *f)
{
    return f->profile.line_ns > NEAR_NS ? f->profile.line_ns - NEAR_NS : 0;
}

/* ns of a line that are waited for, where ranks exchange with each other. Broadcasts and rings read lines in order, which hides it. */
static double line_waits(const struct kl_select_facts *f, int func, size_t bytes)
{
    const int others = ranks_per_core(f) - 1, seen = others * others;
    const double each = beyond_near(f) * (seen < MOST_SEEN ? seen : MOST_SEEN) / HIDDEN;

    if (func == KL_SELECT_FEW) return each;
    if (func == KL_SELECT_MANY) return TANGLED * each;
    return func == KL_FUNC_ALL_TO_ALL && bytes / (size_t)f->nranks > KL_SELECT_SHM_PART ? TANGLED * each : 0;
}

/* Of data that stay in the last level of the caches, or come from memory and go there. */
static double copied_kib_ns(const struct kl_select_facts *f, int func, size_t bytes)
{
    const struct kl_profile *p = &f->profile;
    const bool stays = kl_select_touched(func, bytes, f->nranks) <= (size_t)p->last_kib * 1024 / PART;

    return stays || p->out_kib_ns < p->copy_kib_ns ? p->copy_kib_ns : p->out_kib_ns;
}

static double staged_ns(const struct kl_select_facts *f, const struct moved *m, int func, size_t bytes)
{
    const double lines = m->across * 1024 / LINE * line_waits(f, func, bytes);

    return ranks_per_core(f) * ((m->written + m->read) * copied_kib_ns(f, func, bytes) * TOGETHER + lines);
}

static double turns_ns(const struct kl_select_facts *f, int func)
{
    const double m = ranks_per_core(f);

    if (is_message(func)) return m > 1 ? m * m * TURN_NS : 0;
    return m > 1 ? 2 * m * m * TURN_NS : TURN_NS;
}

/* Are the pages huge of the buffers that the kernel reads? */
static bool is_huge(const struct kl_select_facts *f, int func, size_t bytes)
{
    const size_t part = func == KL_FUNC_ALL_GATHER ? bytes / (size_t)f->nranks : bytes;

    return f->profile.huge_pages && part >= (size_t)HUGE;
}

static double kernel_ns(const struct kl_select_facts *f, const struct moved *m, int func, size_t bytes)
{
    const struct kl_profile *p = &f->profile;
    const double kib_ns = is_huge(f, func, bytes) ? p->huge_kib_ns : p->cma_kib_ns;

    return ranks_per_core(f) * (m->calls * p->cma_ns + m->kernel * kib_ns * TOGETHER) + turns_ns(f, func);
}

static bool reduces(int func)
{
    return !is_message(func) && kl_func_info[func].reduces;
}

/* A reduction reads the kernel's copies again, from the scratch. */
static double reread_ns(const struct kl_select_facts *f, const struct moved *m, int func)
{
    return reduces(func) ? ranks_per_core(f) * m->kernel * f->profile.copy_kib_ns : 0;
}

float kl_select_cost(const struct kl_select_facts *f, int func, size_t bytes, enum kl_copy copy)
{
    const struct moved m = moved_in(f, func, (double)bytes);

    if (copy == KL_COPY_STAGED) return (float)(staged_ns(f, &m, func, bytes) / 1000);
    if (copy == KL_COPY_DIRECT) return 0;
    if (!f->kernel || !f->processes || !f->profile.cma_ns) return INFINITY;
    return (float)((kernel_ns(f, &m, func, bytes) + reread_ns(f, &m, func)) / 1000);
}

float kl_select_hierarchical_saves(const struct kl_select_facts *f, int func, size_t bytes)
{
    const double m = ranks_per_core(f), n = f->nranks, cores = n / m;
    const double lines = m * (double)bytes / n / LINE * (n - m - (cores - 1));

    if (func != KL_FUNC_ALL_REDUCE && func != KL_FUNC_REDUCE_SCATTER) return -INFINITY;
    return (float)((lines * beyond_near(f) / MERGE_WAITS - kib((double)bytes) * MERGED_NS) / 1000);
}

/* ---- stores ---- */

size_t kl_select_nt_from(const struct kl_select_facts *f)
{
    const struct kl_profile *p = &f->profile;
    const size_t cores = f->nranks < (int)p->cpus ? (size_t)f->nranks : p->cpus;
    const size_t own = (cores ? cores : 1) * p->own_kib * 1024, last = (size_t)p->last_kib * 1024;
    const size_t share = SHARED * own < last / PART ? SHARED * own : last / PART;

    return p->nt_kib_ns < p->out_kib_ns && KEPT * own < share ? KEPT * own : share;
}

/* Each byte that a rank sends, and each that it receives. */
size_t kl_select_touched(int func, size_t bytes, int nranks)
{
    const size_t n = (size_t)nranks;

    switch (func) {
    case KL_FUNC_BROADCAST:
    case KL_FUNC_REDUCE:
        return (n + 1) * bytes;
    case KL_FUNC_ALL_GATHER:
    case KL_FUNC_REDUCE_SCATTER:
        return bytes + n * bytes;
    default:
        return 2 * n * bytes;
    }
}
