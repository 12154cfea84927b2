/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fault.h - probable faults of a machine: parts that differ from others of their kind; and repairs of the document.
 *
 * A part is compared with the others of its kind in the same document, and the two ends of a link with each other. Only GPUs on
 * boards with NVLinks (SXM) are also compared with their product, by PCI device id, because there all of them may lack the
 * same links. A machine that is odd on purpose may be reported too: compare the plans of the document and of the repaired
 * one (kl_anomaly_repair) to see whether a fault costs bandwidth.
 *
 * Names:   GPU/<rank> (its `dev` where there is no rank) and NET/<dev>, as the tools print them.
 * Bounds:  documents of more than KL_ANOMALY_ELEMENTS elements are not looked at: they have no faults.
 * Errors:  ncclSystemError when memory is short.
 */
#ifndef KL_TOPO_ANOMALY_H
#define KL_TOPO_ANOMALY_H

#include "topo/xml.h"

enum { KL_ANOMALY_ELEMENTS = 20000, KL_ANOMALY_TEXT = 384 };

enum kl_anomaly_code {
    KL_ANOMALY_UNEQUAL_ENDS, /* the two GPUs of a link see different numbers of NVLinks */
    KL_ANOMALY_FEW_NVLINKS,  /* fewer NVLinks than most GPUs of the kind have */
    KL_ANOMALY_NARROW_PCI,   /* a GPU or NIC with a slower PCI link than most of its kind */
    KL_ANOMALY_SHARED_PORT,  /* NICs of different cards that count as one port */
    KL_ANOMALY_SLOW_NET,     /* a NIC that is slower than most of its kind */
    KL_ANOMALY_NO_NVLINK,    /* GPUs on a board that has NVLinks, and none in the file */
    KL_ANOMALY_MANY_NVLINKS, /* more than such GPUs have */
    KL_ANOMALY_HOST_HASH,    /* GPUs of several hosts that count as one, because the hosts' hashes are no numbers */
    KL_ANOMALIES
};

struct kl_anomaly {
    int code;
    char text[KL_ANOMALY_TEXT]; /* a sentence without its full stop: "GPU/5 has no NVLink, while ..." */
};

struct kl_anomalies {
    struct kl_anomaly *fault; /* in the order of the codes */
    int n, max;
};

/** Look at a document as kl_machine_document makes it. Free with kl_anomalies_fini. */
ncclResult_t kl_anomalies_find(const struct kl_xml *xml, int nccl, struct kl_anomalies *faults);
void kl_anomalies_fini(struct kl_anomalies *faults);

/** Change a document so that it has no fault of this kind. Values that cannot be guessed stay; `mended`: something changed. */
ncclResult_t kl_anomaly_repair(struct kl_xml *xml, enum kl_anomaly_code code, int nccl, bool *mended);

const char *kl_anomaly_name(int code);     /* "few_nvlinks" */
const char *kl_anomaly_repaired(int code); /* "with as many NVLinks as the others": a name for the repaired machine */
const char *kl_anomaly_remedy(int code);   /* a sentence: where to look */

#endif
