/* SPDX-License-Identifier: Apache-2.0 */
/** rdma_text.h - the RDMA ports of a machine as text (topo/rdma_ports.h). */
#ifndef KOLO_TOOL_RDMA_TEXT_H
#define KOLO_TOOL_RDMA_TEXT_H

#include <stdio.h>

/** Nothing where there are none. `sysfs`: NULL for this machine, which has a limit of locked memory, too. */
void kl_rdma_text(const char *sysfs, FILE *to);

#endif
