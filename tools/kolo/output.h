/* SPDX-License-Identifier: Apache-2.0 */
/**
 * output.h - what a command prints, and how it is noticed that it got lost.
 *
 * Single writes are not checked: a stream remembers that one failed. main() asks once, when a command has done well.
 *
 * Errors: reported with KL_FAIL.
 */
#ifndef KOLO_TOOL_OUTPUT_H
#define KOLO_TOOL_OUTPUT_H

#include "include/nccl.h"
#include "topo/xml.h"

#include <jansson.h>
#include <stdio.h>

/** Write what is still buffered. ncclSystemError if any of the output, now or earlier, could not be written. */
ncclResult_t kl_output_end(FILE *to);

/** Print a document and let go of it; NULL stands for one that memory was short for. */
ncclResult_t kl_output_json(json_t *document, FILE *to);
ncclResult_t kl_output_xml(const struct kl_xml *document, FILE *to);

#endif
