/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fault.h - probable faults of a machine: parts that differ from others of their kind; and repairs of the document.
 *
 * A part is compared with the others of its kind in the same document, and the two ends of a link with each other. Only GPUs on
 * boards with NVLinks (SXM) are also compared with their product, by PCI device id, because there all of them may lack the
 * same links. A machine that is odd on purpose may be reported too: compare the plans of the document and of the repaired
 * one (kl_fault_mend) to see whether a fault costs bandwidth.
 *
 * Names:   GPU/<rank> (its `dev` where there is no rank) and NET/<dev>, as the tools print them.
 * Bounds:  documents of more than KL_FAULT_ELEMENTS elements are not looked at: they have no faults.
 * Errors:  ncclSystemError when memory is short.
 */
#ifndef KL_TOPO_FAULT_H
#define KL_TOPO_FAULT_H

#include "topo/xml.h"

enum { KL_FAULT_ELEMENTS = 20000, KL_FAULT_TEXT = 384 };

enum kl_fault_code {
    KL_FAULT_UNEQUAL_ENDS, /* the two GPUs of a link see different numbers of NVLinks */
    KL_FAULT_FEW_NVLINKS,  /* fewer NVLinks than most GPUs of the kind have */
    KL_FAULT_NARROW_PCI,   /* a GPU or NIC with a slower PCI link than most of its kind */
    KL_FAULT_SHARED_PORT,  /* NICs of different cards that count as one port */
    KL_FAULT_SLOW_NET,     /* a NIC that is slower than most of its kind */
    KL_FAULT_NO_NVLINK,    /* GPUs on a board that has NVLinks, and none in the file */
    KL_FAULT_MANY_NVLINKS, /* more than such GPUs have */
    KL_FAULT_HOST_HASH,    /* GPUs of several hosts that count as one, because the hosts' hashes are no numbers */
    KL_FAULTS
};

struct kl_fault {
    int code;
    char text[KL_FAULT_TEXT]; /* a sentence without its full stop: "GPU/5 has no NVLink, while ..." */
};

struct kl_faults {
    struct kl_fault *fault; /* in the order of the codes */
    int n, max;
};

/** Look at a document as kl_machine_document makes it. Free with kl_faults_fini. */
ncclResult_t kl_faults_find(const struct kl_xml *xml, int nccl, struct kl_faults *faults);
void kl_faults_fini(struct kl_faults *faults);

/** Change a document so that it has no fault of this kind. Values that cannot be guessed stay; `mended`: something changed. */
ncclResult_t kl_fault_mend(struct kl_xml *xml, enum kl_fault_code code, int nccl, bool *mended);

const char *kl_fault_name(int code);   /* "few_nvlinks" */
const char *kl_fault_mended(int code); /* "with as many NVLinks as the others": a name for the repaired machine */
const char *kl_fault_remedy(int code); /* a sentence: where to look */

#endif
