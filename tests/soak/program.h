/* SPDX-License-Identifier: Apache-2.0 */
/**
 * program.h - a random program: steps that all ranks of a job do in the same order, drawn from a seed.
 *
 * It cannot deadlock: all ranks issue their operations in the order of the program, and messages outside of a group go
 * one after the other. The choice of streams, the way of waiting, and the place of buffers are the rank's own
 * (perform.c).
 *
 * Communicators are numbered as they appear; 0 has all ranks. A program ends without any.
 */
#ifndef KOLO_SOAK_PROGRAM_H
#define KOLO_SOAK_PROGRAM_H

#include "include/kolo.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SOAK_RANKS = 6,
    SOAK_COMMS = 12,
    SOAK_STEPS = 16,
    SOAK_GROUP = 5,    /* operations of one step */
    SOAK_MESSAGES = 8, /* of one operation */
    SOAK_SETTINGS = 16
};

enum soak_kind {
    SOAK_ALL_REDUCE,
    SOAK_REDUCE,
    SOAK_BROADCAST,
    SOAK_BCAST,
    SOAK_ALL_GATHER,
    SOAK_REDUCE_SCATTER,
    SOAK_ALL_TO_ALL,
    SOAK_GATHER,
    SOAK_SCATTER,
    SOAK_ALL_GATHER_V,
    SOAK_REDUCE_SCATTER_V,
    SOAK_ALL_TO_ALL_V,
    SOAK_BARRIER,
    SOAK_MESSAGE,
    SOAK_KINDS
};

/** The operators of nccl.h first. */
enum soak_reduction {
    SOAK_SUM,
    SOAK_PROD,
    SOAK_MAX,
    SOAK_MIN,
    SOAK_AVG,
    SOAK_PREMUL,
    SOAK_BIT_AND,
    SOAK_BIT_OR,
    SOAK_BIT_XOR,
    SOAK_LOGICAL_AND,
    SOAK_LOGICAL_OR,
    SOAK_LOGICAL_XOR,
    SOAK_REDUCTIONS
};

/** Ranks are numbers in the operation's communicator. */
struct soak_message {
    int from, to;
    size_t count;
};

struct soak_operation {
    enum soak_kind kind;
    enum soak_reduction reduction;
    ncclDataType_t type;
    int comm, root;
    size_t count;            /* elements: of a rank's part where there are parts; at most, where parts differ */
    bool in_place, together; /* together: messages are a group */
    uint64_t key;            /* its data follow from it */
    int messages;
    struct soak_message message[SOAK_MESSAGES];
};

enum soak_act { SOAK_OPERATE, SOAK_SPLIT, SOAK_SHRINK, SOAK_LEAVE, SOAK_ABORT };

struct soak_step {
    enum soak_act act;
    int comm;        /* split, shrink, leave, abort */
    int operations;  /* operate; abort: the operations in progress then */
    int depth;       /* of the group around them; 0: none */
    bool wait;       /* for everything so far, and compare */
    bool by_another; /* abort: from another thread */
    bool finalize;   /* leave: first */
    struct soak_operation operation[SOAK_GROUP];
    int colour[SOAK_RANKS], key[SOAK_RANKS]; /* split, by rank of the communicator; -1: without */
    int child[SOAK_RANKS];                   /* the communicator that the rank is in afterwards; -1: none */
    int excluded[SOAK_RANKS], nexcluded;     /* shrink */
    uint32_t aborters;                       /* abort: ranks, as bits */
};

struct soak_comm {
    int n, member[SOAK_RANKS]; /* ranks of the job in the communicator's order */
};

struct soak_program {
    uint64_t seed;
    int n, processes, threads, hosts; /* n = processes * threads */
    bool blocking;
    int nsettings, ncomms, nsteps;
    char setting[SOAK_SETTINGS][64]; /* "NAME=value" */
    bool hard;                       /* faults that make operations fail are injected */
    struct soak_comm comm[SOAK_COMMS];
    struct soak_step step[SOAK_STEPS];
};

void soak_program_draw(struct soak_program *p, uint64_t seed);

/** Faults are injected while it runs (KOLO_CHAOS): delays and short reads and writes, or `hard` ones of another kind as well. */
void soak_program_disturb(struct soak_program *p, bool hard);

/** For people. */
void soak_program_print(const struct soak_program *p, FILE *to);

/** Name and value of a step's operation in a few words. */
void soak_operation_text(const struct soak_operation *o, char *text, size_t size);

/** The communicator's rank of rank `rank` of the job; -1: it is not in it. */
int soak_comm_rank(const struct soak_comm *c, int rank);

/** KOLO_DEVICES=cuda: programs have one host, and P2P. */
bool soak_is_on_gpus(void);

bool soak_reduces(enum soak_kind kind);

#endif
