/* SPDX-License-Identifier: Apache-2.0 */
/**
 * select.h - the table that says how operations on one host are done: how data are copied, whether ranks of a core reduce first, how results are stored.
 *
 *     {function, size class, buffer class} -> row
 *
 * Made from the machine's profile when a communicator is made, by the model (model.h), the same at all ranks. Constant until it is replaced as a whole, at a
 * collective whose number all ranks agree on (agreement.h); the rows of messages, which need no agreement, each rank replaces for itself.
 *
 * Threads: one at a time.
 */
#ifndef KL_COLL_SELECT_SELECT_H
#define KL_COLL_SELECT_SELECT_H

#include "coll/select/model.h"

/* Sizes: powers of two from KL_SELECT_LEAST on; less has the first row, and is staged. */
enum { KL_SELECT_SIZES = 16, KL_SELECT_LEAST = 16 << 10 };
enum { KL_SELECT_COLLECTIVE = 32 << 10 }; /* collectives of fewer bytes are always staged */

/** Whether every buffer of the operation can be mapped by all other ranks. */
enum kl_buffers { KL_BUFFERS_ORDINARY, KL_BUFFERS_EXPORTED, KL_BUFFER_CLASSES };

enum kl_select_reason {
    KL_SELECTED_SMALL,     /* below KL_SELECT_LEAST, or KL_SELECT_COLLECTIVE */
    KL_SELECTED_FASTER,    /* the model says so */
    KL_SELECTED_EXPORTED,  /* the buffers can be mapped */
    KL_SELECTED_PROCESS,   /* all ranks live in one process */
    KL_SELECTED_NO_KERNEL, /* KOLO_KERNEL_COPIES=NEVER at some rank, or the kernel refuses */
    KL_SELECTED_FORCED,    /* KOLO_SELECT, or KOLO_KERNEL_COPIES=ALWAYS */
    KL_SELECT_REASONS
};
extern const char *const kl_select_reason_text[KL_SELECT_REASONS];
extern const char *const kl_select_reason_name[KL_SELECT_REASONS]; /* for programs */

struct kl_select_row {
    uint8_t copy; /* enum kl_copy */
    bool hierarchical;
    bool nt;            /* results use non-temporal stores; of collectives those that are not staged */
    uint8_t reason;     /* of the way to copy, enum kl_select_reason */
    float us, other_us; /* as the model estimates it, and the other way; 0: it is not estimated */
};

struct kl_select {
    struct kl_select_facts facts;
    uint32_t line_ns[2]; /* the rows of collectives, and of messages, are for */
    struct kl_select_row row[KL_SELECT_FUNCS][KL_SELECT_SIZES][KL_BUFFER_CLASSES];
};

/** How an operation was done, in a byte, for records. 0: not known. */
static inline uint8_t kl_select_way(enum kl_copy copy, bool hierarchical, bool nt)
{
    return (uint8_t)((unsigned)copy + 1u + (hierarchical ? 4u : 0u) + (nt ? 8u : 0u));
}

/** Added to it: a tuner has chosen the algorithm (graph/tuner.h). */
enum { KL_SELECT_BY_TUNER = 16 };

/** "kernel, nt stores"; NULL for 0. */
const char *kl_select_way_text(uint8_t way);

/** The row for `bytes`. Pure. */
struct kl_select_row kl_select_decide(const struct kl_select_facts *facts, int func, size_t bytes,
                                      enum kl_buffers buffers);

/** "kernel, nt stores: faster, as the model estimates it (126 us; staged 141 us)". */
void kl_select_row_text(const struct kl_select_row *row, struct kl_text *text);

/** Fill in all rows; or those of collectives, or of messages, for another time of a line. */
void kl_select_make(struct kl_select *select, const struct kl_select_facts *facts);
void kl_select_remake(struct kl_select *select, uint32_t line_ns, bool messages);

static inline int kl_select_size(size_t bytes)
{
    const size_t classes = bytes / KL_SELECT_LEAST;
    const int size = classes ? 63 - __builtin_clzll(classes) : 0;

    return size < KL_SELECT_SIZES ? size : KL_SELECT_SIZES - 1;
}

static inline const struct kl_select_row *kl_select_row(const struct kl_select *s, int func, size_t bytes,
                                                        enum kl_buffers buffers)
{
    return &s->row[func][kl_select_size(bytes)][buffers];
}

#endif
