/* SPDX-License-Identifier: Apache-2.0 */
/**
 * warn.h - what looks wrong with a machine, said to people.
 *
 * Nothing of this stops anything: such facts are legal, but a machine that has them is usually slower than it could be.
 */
#ifndef KL_TOPO_WARN_H
#define KL_TOPO_WARN_H

#include "topo/facts.h"
#include "topo/xml.h"

/** Gets one sentence per fact, with its remedy. */
typedef void kl_topo_warning(void *ctx, const char *text);

/**
 * Look at a document: NUMA nodes and PCI links that are not known, NETs without speed, the same NET at several places,
 * what differs from its like (topo/fault.h), and devices that hang on the CPU directly in a virtual machine. `cpu` says
 * whether it is one; NULL when the document describes another machine.
 */
void kl_topo_warn(const struct kl_xml *xml, int nccl, const struct kl_cpu_facts *cpu, kl_topo_warning *warn, void *ctx);

#endif
