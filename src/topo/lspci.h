/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lspci.h - machines from the tree of `lspci -tv` (or -tvv, -tvnn): which GPUs and NICs hang on which switches.
 *
 * Products follow from names or from ids in brackets ([10de:2330]); placement.h completes them with NVLinks and speeds. The tree does
 * not say which CPU a root bus belongs to: with several, those below 80 belong to one, the others to a second. Functions that are no
 * GPU, NIC or bridge are left out.
 *
 * Errors:  ncclInvalidUsage for a tree without a GPU that its text names.
 * Threads: pure.
 */
#ifndef KL_TOPO_LSPCI_H
#define KL_TOPO_LSPCI_H

#include "topo/assume.h"
#include "topo/xml.h"

/** The machine as a document whose GPUs are <pci> elements, to be completed; `file` names it. */
ncclResult_t kl_lspci_read(const char *file, const char *text, size_t bytes, struct kl_assumed *assumed,
                           struct kl_xml **xml);

#endif
