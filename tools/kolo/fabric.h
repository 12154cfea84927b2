/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fabric.h - which emulated hosts form one NVLink domain: those that a topology file holds together, told apart by host_hash.
 *
 * Of a file of F hosts, hosts 0 to F - 1 are one domain, the next F another. Each host has its part of the file's GPUs.
 */
#ifndef KOLO_TOOL_FABRIC_H
#define KOLO_TOOL_FABRIC_H

#include <stdbool.h>
#include <stddef.h>

/**
 * *hosts receives the number of hosts of a domain; 1: each host is by itself, or a setting (KOLO_MNNVL) decides. -1 with the
 * reason in `why`: the file's hosts do not fit `nhosts`, or hosts of a domain could not share memory (`netns`). Errors of the
 * file itself are left to the ranks. `topo_file` may be NULL.
 */
int kl_fabric_find(const char *topo_file, int nhosts, bool netns, int *hosts, char *why, size_t why_size);

#endif
