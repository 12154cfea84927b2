/* SPDX-License-Identifier: Apache-2.0 */
/**
 * warn.h - warnings to users about a machine.
 *
 * The facts are legal and stop nothing, but a machine that has them is usually slower than it could be.
 */
#ifndef KL_TOPO_WARN_H
#define KL_TOPO_WARN_H

#include "topo/facts.h"
#include "topo/xml.h"

/** Gets one sentence per fact, with its remedy. */
typedef void kl_topo_warning(void *ctx, const char *text);

/**
 * Look at a document: unknown NUMA nodes and PCI links, NETs without speed, the same NET at several places, probable faults
 * (topo/fault.h), and in a virtual machine devices that hang on the CPU directly. `cpu` says whether this is a virtual
 * machine; NULL if the document describes another one.
 */
void kl_topo_warn(const struct kl_xml *xml, int nccl, const struct kl_cpu_facts *cpu, kl_topo_warning *warn, void *ctx);

#endif
