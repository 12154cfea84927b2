/* SPDX-License-Identifier: Apache-2.0 */
/**
 * output.h - the output of a command, and detection of lost output.
 *
 * Single writes are not checked: a stream remembers a failure. main() checks once, after a successful command.
 *
 * Errors: reported with KL_FAIL.
 */
#ifndef KOLO_TOOL_OUTPUT_H
#define KOLO_TOOL_OUTPUT_H

#include "include/nccl.h"
#include "topo/xml.h"

#include <jansson.h>
#include <stdio.h>

/** Flush. ncclSystemError if any of the output, now or earlier, could not be written. */
ncclResult_t kl_output_end(FILE *to);

/** Print a document and release it; NULL means that memory was short. */
ncclResult_t kl_output_json(json_t *document, FILE *to);
ncclResult_t kl_output_xml(const struct kl_xml *document, FILE *to);

#endif
