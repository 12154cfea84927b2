/* SPDX-License-Identifier: Apache-2.0 */
/**
 * print.h - a topology as lines of text, in the form of NCCL's log.
 *
 *     === System : maxBw 24.0 totalBw 24.0 ===
 *     CPU/0-0 (1/1/2)
 *     + PCI[24.0] - PCI/0-10000 (0)
 *                   + PCI[24.0] - GPU/0-11000 (0)
 *     ==========================================
 *     GPU/0-11000 :GPU/0-11000 (0/5000.0/LOC) CPU/0-0 (2/24.0/PHB)
 *
 * Behind a name stand: GPU rank; CPU arch/vendor/model; PCI device word; NET coll/asic/port/GB/s. A path shows
 * hops/GB/s/type.
 * Source: the topology specification, 18.
 */
#ifndef KL_TOPO_PRINT_H
#define KL_TOPO_PRINT_H

#include "topo/topo.h"

#include <stdio.h>

/** Headline, trees and, when there are paths, the tables of paths. */
void kl_topo_print(const struct kl_topo *t, FILE *to);

/** The same into the log: INFO, GRAPH, a call per line. Costs nothing when nobody reads it. */
void kl_topo_log(const struct kl_topo *t);

/** One path, link by link: "--PCI(24)->PCI/0-10000--PCI(24)->GPU/0-11000". */
void kl_path_print(const struct kl_topo *t, const struct kl_path *p, FILE *to);

#endif
