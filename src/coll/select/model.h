/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model.h - how long the engine takes for an operation on one host, by each way of copying, from the machine's profile.
 *
 * Pure: the same facts give the same answers at all ranks, now and in `kolo explain`. The model only has to put the ways in order: it counts copies, calls of the
 * kernel and lines, and knows nothing of other programs.
 *
 *     staged    through shared memory: written once, and read, where a reduction reads it anyway
 *     kernel    the kernel copies between processes; ranks meet before and after a collective, and a sender waits for its receiver
 *     direct    ranks read and write each other's buffers, which all can map
 *
 * Units: bytes as kl_func_bytes has them; of messages, all that a rank sends in one launch. Microseconds.
 */
#ifndef KL_COLL_SELECT_MODEL_H
#define KL_COLL_SELECT_MODEL_H

#include "coll/schedule/func.h"
#include "graph/profile.h"

#include <stddef.h>

/* ns of a line from a core that is near: it makes no difference below. And bytes of an all-to-all for each rank up to which it is one operation (flat.h). */
enum { KL_SELECT_NEAR_NS = 60, KL_SELECT_SHM_PART = 8 << 10 };

enum kl_copy { KL_COPY_STAGED, KL_COPY_KERNEL, KL_COPY_DIRECT, KL_COPIES };
extern const char *const kl_copy_name[KL_COPIES];

/** Whose table has a row: the functions, and messages, few or many in a launch. */
enum { KL_SELECT_FEW = KL_FUNC_ALL_TO_ALL + 1, KL_SELECT_MANY, KL_SELECT_FUNCS };

/** KOLO_SELECT: one bit per word. */
enum kl_select_word {
    KL_SELECT_FIXED,        /* the table stays as it was made */
    KL_SELECT_STAGED,       /* copy */
    KL_SELECT_KERNEL,       /* copy, where kernel copies are possible and direct is not */
    KL_SELECT_FLAT,         /* not hierarchical */
    KL_SELECT_HIERARCHICAL, /* wherever cores have several ranks each */
    KL_SELECT_TEMPORAL,     /* stores */
    KL_SELECT_NT,           /* stores */
    KL_SELECT_WORDS
};
extern const char *const kl_select_word_names[KL_SELECT_WORDS + 1];

/** Facts that all ranks have alike. */
struct kl_select_facts {
    struct kl_profile profile;
    int nranks;         /* of the communicator */
    int ranks_per_core; /* rounded up */
    bool processes;     /* the ranks live in several */
    bool cores;         /* it is known which ranks share a core, and all cores have as many */
    bool kernel;        /* all ranks let the kernel copy, */
    bool kernel_always; /* and the first one says that it shall */
    bool direct;        /* all ranks let others map their buffers */
    uint32_t words;     /* KOLO_SELECT, bits */
};

static inline bool kl_select_says(const struct kl_select_facts *f, enum kl_select_word word)
{
    return f->words >> word & 1;
}

/** Microseconds; infinite: not possible. Direct is not estimated: it moves no byte twice. */
float kl_select_cost(const struct kl_select_facts *facts, int func, size_t bytes, enum kl_copy copy);

/** Microseconds that a reduction over shared memory saves if the ranks of each core merge first; negative: it loses. */
float kl_select_hierarchical_saves(const struct kl_select_facts *facts, int func, size_t bytes);

/** Bytes that all ranks read and write together, from which on results are written with non-temporal stores. */
size_t kl_select_nt_from(const struct kl_select_facts *facts);

/** Bytes that all ranks read and write together in an operation. */
size_t kl_select_touched(int func, size_t bytes, int nranks);

#endif
