/* SPDX-License-Identifier: Apache-2.0 */
/** machines.h - the machines that are known by name: their list, and using one for processes that are started. */
#ifndef KOLO_TOOL_MACHINES_H
#define KOLO_TOOL_MACHINES_H

#include "include/nccl.h"

#include <stdbool.h>
#include <stdio.h>

/** `kolo topo --machines`. */
ncclResult_t kl_machines_list(bool json, FILE *to);

/** Write each of them to DIR/NAME.xml, racks whole: `kolo topo --machines --record DIR`. DIR is made. */
ncclResult_t kl_machines_write(const char *dir);

/**
 * Set the machine for the processes of `kolo WHO --topo FILE --machine NAME` (KOLO_MACHINE); both may be NULL. An unusable file
 * is refused as by other commands, and assumptions are printed to stderr. False after an error message on stderr.
 */
bool kl_machines_use(const char *who, const char *topo, const char *machine);

#endif
