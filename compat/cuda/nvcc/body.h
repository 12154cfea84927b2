/* SPDX-License-Identifier: Apache-2.0 */
/**
 * body.h - the body of a kernel with barriers: its statements, and its variables.
 *
 * The frame is everything that all threads of a block do alike: barriers, and the loops and branches around them. The other statements are
 * the frame's leaves. Neighbouring leaves are a region, which becomes a loop over the threads.
 *
 *     body_read      the statements                              body_classify   which variables live where
 */
#ifndef KL_NVCC_BODY_H
#define KL_NVCC_BODY_H

#include "compat/cuda/nvcc/plain.h"

#define NO_LOCAL SIZE_MAX

enum leaf_kind {
    LEAF_CODE,
    LEAF_DECLARATION, /* of variables that are in locals */
    LEAF_ASSIGNMENT,  /* `i /= 2;` */
    LEAF_EXIT,        /* `if (...) return;`, break or continue */
    LEAF_FRAME,       /* types, constants, __shared__ variables: the same for all threads */
    LEAF_HANDLE,      /* `auto block = this_thread_block();` */
    LEAF_BARRIER,
    LEAF_CHOICE,  /* `__kolo_or_fibres(...);` */
    LEAF_EXCHANGE /* `auto x = __shfl_sync(m, v, 0);`, within a group */
};

/** A statement; neighbours of one sequence have the same braces around them. */
struct leaf {
    uint32_t from, to;
    enum leaf_kind kind;
    uint32_t sequence;
    struct piece condition; /* of an exit */
    bool frame;             /* it is executed once for all threads */
    bool mixed;             /* a declaration with variables of the frame and others; a region begins with it */
    size_t group;           /* the statement of warps that it is part of, NO_GROUP */
};

#define NO_GROUP SIZE_MAX

/** A statement, or the whole body, with operations of warps and without barriers of the block: each warp executes it by itself. */
struct group {
    uint32_t from, to;
    uint32_t sequence;
};

/** Groups, and leaves beside them, that one loop over the warps of the block contains. */
struct segment {
    uint32_t from, to;
};

/** A condition of the frame, or part of a loop's header, of a group or of the block. */
struct header {
    uint32_t from, to;
    size_t group;
};

enum place {
    PLACE_REGION,   /* used in one region only */
    PLACE_FRAME,    /* one for all threads */
    PLACE_COMPUTED, /* each region computes it anew */
    PLACE_RENEWED,  /* each region assigns it first */
    PLACE_KEPT,     /* in an array between regions */
    PLACE_STRIDE    /* the counter of a stride: thread 0's, plus the thread's x */
};

/** A variable that is declared by a leaf, the header of a loop, or as a parameter. */
struct local {
    uint32_t name, scope_end;
    struct piece type, declarator, initial; /* initial is empty if there is none */
    size_t leaf;                            /* that declares it; NO_LOCAL: none */
    unsigned dimensions;
    bool parameter, constant; /* constant: constexpr, const */
    bool reference, deduced;  /* deduced: auto */
    bool uniform;             /* the same in all threads, wherever the frame is */
    bool alike;               /* the same in all threads of a warp */
    bool changed, escapes;    /* escapes: something may refer to it */
    bool computable;
    enum place place;
};

/**
 * `for (int i = A + threadIdx.x; i < n; i += s) ...` without a barrier: in the frame it is a loop of thread 0's counter, with a region inside
 * that takes each thread's element. The threads of a block read neighbouring elements at a time so, as on GPUs.
 */
struct stride {
    uint32_t from;  /* the word for */
    size_t counter; /* in locals */
    struct piece initial, bound, step;
    size_t leaf;  /* its body */
    size_t group; /* of a group: the counter of lane 0 */
    bool natural; /* it does not begin with a negative number */
};

/** Leaves [first, last]. */
struct region {
    size_t first, last;
    size_t segment; /* NO_GROUP: none */
    bool returns;
};

struct body {
    struct translation *t;
    const struct tokens *k;
    struct functions *functions;
    uint32_t open, close; /* its braces */
    struct leaf *leaves;
    size_t leaf_count;
    struct header *headers; /* conditions of the frame, and headers of its loops */
    size_t header_count;
    struct stride *strides;
    size_t stride_count;
    bool keeps_notes;   /* that functions have returned: statements like others, not of the frame */
    bool keeps_strides; /* they are ordinary statements: with them in the frame the kernel was no loops */
    struct piece *bare; /* statements of the frame that get braces */
    size_t bare_count;
    struct local *locals;
    size_t local_count;
    size_t *named; /* the variable that each token from `open` to `close` names; NULL while the body is read */
    struct region *regions;
    size_t region_count;
    struct piece *pointers; /* members of parameters that must be no arrays */
    size_t pointer_count;
    char *shared, *types, *constants, *handles; /* names, between spaces */
    uint32_t sequences;
    struct group *groups;
    size_t group_count, group; /* the one that is being read */
    struct segment *segments;
    size_t segment_count;
    size_t choice;  /* the leaf, NO_LOCAL: none */
    bool barriers;  /* it has some */
    uint32_t wrong; /* the token that keeps it from being loops */
    const char *why;
};

/** Read a kernel's body between braces. False: `why` not. */
bool body_read(struct body *b, uint32_t header, uint32_t parameters);
bool body_classify(struct body *b);
void body_drop(struct body *b);

/** Past the type at `i`, without the signs of declarators; `i`: there is none. */
uint32_t type_end(const struct tokens *k, uint32_t i, uint32_t end);

/** Does the statement [i, end) declare variables? */
bool declares(const struct tokens *k, uint32_t i, uint32_t end);

/** The variable that the token names, NO_LOCAL: none. */
size_t body_local(const struct body *b, uint32_t token);

/** Keep the reason why not; returns false. */
bool body_refuse(struct body *b, uint32_t token, const char *why);

/** Is the expression the same for all threads of the block, or of a warp? With `assigns` it may change variables of the frame. */
enum reach { OF_BLOCK, OF_WARP };
bool body_uniform(const struct body *b, uint32_t from, uint32_t to, bool assigns, enum reach reach);

/** Leaves that one loop over warps contains; and those that one over threads, or over lanes, does. */
void body_find_segments(struct body *b);
void body_find_regions(struct body *b);

/** May the variable hold an address? */
bool body_may_point(const struct body *b, const struct local *v);

/** The segment of the token, NO_GROUP: none. */
size_t body_segment(const struct body *b, uint32_t token);

/** Can the segment compute the variable before all that it contains? */
bool body_headable(const struct body *b, size_t l, size_t segment);

/** `threadIdx.x % 32` at `i`: past it, else 0. */
uint32_t lane_end(const struct tokens *k, uint32_t i);
bool token_is_32(const struct tokens *k, uint32_t i);

/** Words around a lane, or a number made of it, that leave it whole: before a sum, and behind bits of it (token_among). */
extern const char before_lane[], behind_lane[];

/** How often the thread's x is a term of a sum in which nothing else is a thread's own, 2 for anything else. The sum is of integers.
 * *natural becomes false if one of them may be negative. Call it with depth 0. */
unsigned body_count_x(const struct body *b, struct piece p, unsigned depth, bool *natural);

/** The parts of an exchange, `auto x = operation(mask, values ...)`. */
struct exchange {
    uint32_t result, operation;
    struct piece mask, value, other, width; /* empty if not there */
    bool alike;                             /* its result is the same in all lanes */
};
struct exchange exchange_of(const struct body *b, const struct leaf *l);

#endif
