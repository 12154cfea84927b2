/* SPDX-License-Identifier: Apache-2.0 */
/**
 * assume.h - what was assumed of a machine because its file does not say it.
 *
 * Whoever completes a file notes each thing here, so that answers can list it: a user compares the list with a dump of the
 * machine (NCCL_TOPO_DUMP_FILE).
 *
 * Memory:  the names that an assumption points to are those of constant tables.
 */
#ifndef KL_TOPO_ASSUME_H
#define KL_TOPO_ASSUME_H

#include "topo/known.h"

enum { KL_ASSUMED_MAX = 32, KL_ASSUMED_TEXT = 256, KL_ASSUMED_SUMMARY = 512 };

enum kl_assumed_code {
    KL_ASSUMED_MACHINE,      /* machine; other: what it could be as well, with the same plan */
    KL_ASSUMED_GPUS,         /* n elements are GPUs of `product` */
    KL_ASSUMED_GPU_ORDER,    /* devices are numbered by ascending bus id */
    KL_ASSUMED_SWITCHED,     /* each GPU has n NVLinks to NVSwitches */
    KL_ASSUMED_WIRED,        /* each GPU has n NVLinks to others, which are paired as in `machine` */
    KL_ASSUMED_NO_BRIDGE,    /* the cards of `product` are not joined by a bridge */
    KL_ASSUMED_NOT_WIRED,    /* n GPUs of `product`, whose NVLinks nothing tells: none are assumed */
    KL_ASSUMED_NICS,         /* n cards with `more` ports of `gbps` */
    KL_ASSUMED_NIC_SPEED,    /* n nets have the speed of their card, `nic` */
    KL_ASSUMED_NICS_UNKNOWN, /* n cards of which nothing is known: 10 Gb/s */
    KL_ASSUMED_PCI_LINKS,    /* n PCI links without a speed have generation `more`, x16 */
    KL_ASSUMED_CPU,          /* n CPUs are those of `machine` */
    KL_ASSUMED_PRODUCT,      /* the GPUs that the file has, n of them, are of `product` */
    KL_ASSUMED_AMD,          /* n AMD GPUs, `gcn`: rules of sm 80 stand in */
    KL_ASSUMED_BUSIDS,       /* made up, as the source tells none */
    KL_ASSUMED_SM,           /* n GPUs have the compute capability `more`, as `product`, or NULL */
    KL_ASSUMED_USUAL_SPEED,  /* n nets have `gbps`, as is usual beside such GPUs */
    KL_ASSUMED_CPUS,         /* n CPUs of the default kind */
    KL_ASSUMED_ROOTS,        /* root buses belong to n CPUs by their numbers */
    KL_ASSUMED_CODES
};

/** What an assumption rests on. */
enum kl_assumed_from {
    KL_FROM_OPTION,  /* --machine, or KOLO_MACHINE */
    KL_FROM_IDS,     /* PCI vendor and device */
    KL_FROM_FORM,    /* what the file holds: how many GPUs and NICs, which CPUs */
    KL_FROM_NAME,    /* the file's name */
    KL_FROM_PRODUCT, /* the GPUs' names in the text */
    KL_FROM_MACHINE, /* the machine that it was taken for */
    KL_FROM_DEFAULT
};

struct kl_assumption {
    enum kl_assumed_code code;
    enum kl_assumed_from from;
    int n, more, gbps;
    const struct kl_known *machine, *other;
    const struct kl_gpu_product *product;
    const struct kl_nic_product *nic;
};

struct kl_assumed {
    struct kl_assumption at[KL_ASSUMED_MAX];
    int n;
    const char *read_as;              /* the kind of text, constant; NULL: a topology file */
    char summary[KL_ASSUMED_SUMMARY]; /* of such a text: GPUs and their NVLinks; "" without */
};

/** Note one; more than KL_ASSUMED_MAX do not occur: each code is noted once, but for products. `assumed` may be NULL. */
void kl_assume(struct kl_assumed *assumed, struct kl_assumption what);

const char *kl_assumed_name(enum kl_assumed_code code); /* "switched" */
const char *kl_assumed_from_name(enum kl_assumed_from from);
const char *kl_assumed_from_text(enum kl_assumed_from from);
/** "each GPU has 12 NVLinks to NVSwitches". */
const char *kl_assumed_text(const struct kl_assumption *what, char text[KL_ASSUMED_TEXT]);

#endif
