/* SPDX-License-Identifier: Apache-2.0 */
/** parts.h - GPUs, cards and NETs of a document in arrays, with the values to compare them by: for anomaly.c and anomaly_repair.c. */
#ifndef KL_TOPO_PARTS_H
#define KL_TOPO_PARTS_H

#include "topo/xml.h"

/** A GPU. */
struct kl_gpu_part {
    int elem, pci;     /* elements */
    const char *host;  /* "" if there is only one */
    uint64_t looks;    /* hash of the fields that define its kind */
    int links;         /* NVLinks, counted from the end that sees more */
    bool switched;     /* some lead to something that is no GPU of the document */
    int kind;          /* index of the first GPU of the same kind */
    int wanted, peers; /* links of most of the kind, and the number of these GPUs; peers 0: none are missing */
};

/** A GPU's or a card's PCI link. */
struct kl_slot_part {
    int pci, kind;
    uint64_t looks;
    float bw, wanted; /* wanted 0: nothing is lacking */
    int peers;
};

/** A NET. */
struct kl_net_part {
    int elem, pci; /* pci: KL_XML_NONE for virtual NICs */
    const char *host;
    uint64_t asic, looks;
    int port, dev, speed, kind; /* kind -1: not known */
    int shares;                 /* the first NET of another card that looks like the same port, itself included; -1 */
    int wanted, peers;          /* speed */
};

/** An nvlink element. */
struct kl_nvlink_part {
    int target; /* the GPU that it leads to; -1 if it is none of the document */
    bool first; /* of the elements of its GPU that lead there */
    int links;  /* first: of all of them */
};

struct kl_parts {
    struct kl_gpu_part *gpu;
    struct kl_slot_part *slot;
    struct kl_net_part *net;
    int ngpus, nslots, nnets;
    int nelems;                    /* elements when the parts were gathered */
    struct kl_nvlink_part *nvlink; /* by element */
};

/** Free with kl_parts_fini, also after a failure. The document must outlive the parts. */
ncclResult_t kl_parts_gather(const struct kl_xml *xml, int nccl, struct kl_parts *parts);
void kl_parts_fini(struct kl_parts *parts);

/** The count of an nvlink element; so much that a document's sum fits an int, whatever stands there. */
int kl_parts_count(const struct kl_xml *xml, int nvlink);

/** NVLinks that GPU `from` saw to GPU `to` when the parts were gathered. */
int kl_parts_links(const struct kl_xml *xml, const struct kl_parts *parts, int from, int to);

struct kl_gpu_product;
/**
 * The product of GPUs on a board none of which has a NVLink, or, with `more`, that have more than the product; *n: how many they
 * are. NULL if there are not two of them.
 */
const struct kl_gpu_product *kl_parts_board(const struct kl_xml *xml, const struct kl_parts *parts, bool more, int *n);

/** Are these different hosts to a reader, but one to NCCL, which reads their hashes as numbers? */
bool kl_parts_hash_lost(const char *host_a, const char *host_b);

#endif
