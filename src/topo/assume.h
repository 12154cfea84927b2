/* SPDX-License-Identifier: Apache-2.0 */
/**
 * assume.h - the assumptions about a machine that its topology file does not state.
 *
 * The code that completes a file notes each assumption here, and the tools list them: a user compares the list with a dump
 * of the machine (NCCL_TOPO_DUMP_FILE).
 *
 * Memory:  the pointers of an assumption lead to entries of constant tables.
 */
#ifndef KL_TOPO_ASSUME_H
#define KL_TOPO_ASSUME_H

#include "topo/known.h"

enum { KL_ASSUMED_MAX = 32, KL_ASSUMED_TEXT = 256, KL_ASSUMED_SUMMARY = 512 };

enum kl_assumed_code {
    KL_ASSUMED_MACHINE,      /* machine; other: another machine that fits as well, with the same plan */
    KL_ASSUMED_GPUS,         /* n elements are GPUs of `product` */
    KL_ASSUMED_GPU_ORDER,    /* devices are numbered by ascending bus id */
    KL_ASSUMED_SWITCHED,     /* each GPU has n NVLinks to NVSwitches */
    KL_ASSUMED_WIRED,        /* each GPU has n NVLinks to others, which are paired as in `machine` */
    KL_ASSUMED_NO_BRIDGE,    /* the cards of `product` are not joined by a bridge */
    KL_ASSUMED_NOT_WIRED,    /* n GPUs of `product` without any information on NVLinks: none are assumed */
    KL_ASSUMED_NICS,         /* n cards with `more` ports of `gbps` */
    KL_ASSUMED_NIC_SPEED,    /* n nets have the speed of their card, `nic` */
    KL_ASSUMED_NICS_UNKNOWN, /* n cards of unknown speed: 10 Gb/s */
    KL_ASSUMED_PCI_LINKS,    /* n PCI links without a speed have generation `more`, x16 */
    KL_ASSUMED_CPU,          /* n CPUs are of the model of `machine` */
    KL_ASSUMED_PRODUCT,      /* the GPUs that the file has, n of them, are of `product` */
    KL_ASSUMED_AMD,          /* n AMD GPUs, `gcn`: rules of sm 80 stand in */
    KL_ASSUMED_BUSIDS,       /* bus ids are made up, because the source has none */
    KL_ASSUMED_SM,           /* n GPUs have the compute capability `more`, as `product`, or NULL */
    KL_ASSUMED_USUAL_SPEED,  /* n nets have `gbps`, as is usual beside such GPUs */
    KL_ASSUMED_CPUS,         /* n CPUs of the default kind */
    KL_ASSUMED_ROOTS,        /* root buses belong to n CPUs by their numbers */
    KL_ASSUMED_CODES
};

/** The evidence for an assumption. */
enum kl_assumed_from {
    KL_FROM_OPTION,   /* --machine, or KOLO_MACHINE */
    KL_FROM_IDS,      /* PCI vendor and device */
    KL_FROM_CONTENTS, /* the file's contents: number of GPUs and NICs, CPU models */
    KL_FROM_NAME,     /* the file's name */
    KL_FROM_PRODUCT,  /* the GPUs' names in the text */
    KL_FROM_MACHINE,  /* the machine that it was taken for */
    KL_FROM_DEFAULT
};

struct kl_assumption {
    enum kl_assumed_code code;
    enum kl_assumed_from from;
    int n, more, gbps;
    const struct kl_known_machine *machine, *other;
    const struct kl_gpu_product *product;
    const struct kl_nic_product *nic;
};

struct kl_assumed {
    struct kl_assumption at[KL_ASSUMED_MAX];
    int n;
    const char *read_as;              /* the kind of text, constant; NULL: a topology file */
    char summary[KL_ASSUMED_SUMMARY]; /* of such a text: GPUs and their NVLinks; "" without */
};

/** Note an assumption; at most KL_ASSUMED_MAX occur, as only products repeat a code. `assumed` may be NULL. */
void kl_assume(struct kl_assumed *assumed, struct kl_assumption what);

const char *kl_assumed_name(enum kl_assumed_code code); /* "switched" */
const char *kl_assumed_from_name(enum kl_assumed_from from);
const char *kl_assumed_from_text(enum kl_assumed_from from);
/** "each GPU has 12 NVLinks to NVSwitches". */
const char *kl_assumed_text(const struct kl_assumption *what, char text[KL_ASSUMED_TEXT]);

#endif
