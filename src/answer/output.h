/* SPDX-License-Identifier: Apache-2.0 */
/**
 * output.h - writing answers to a stream, and the failure of it.
 *
 * Single writes are not checked: a stream remembers that one failed. kl_output_end asks once, at the end.
 *
 * Errors: reported with KL_FAIL.
 */
#ifndef KL_ANSWER_OUTPUT_H
#define KL_ANSWER_OUTPUT_H

#include "include/nccl.h"
#include "topo/xml.h"

#include <jansson.h>
#include <stdio.h>

/** Write the buffered rest. ncclSystemError if any of the output, now or earlier, could not be written. */
ncclResult_t kl_output_end(FILE *to);

/** Print a document and let go of it; NULL stands for one that memory was short for. */
ncclResult_t kl_output_json(json_t *document, FILE *to);
ncclResult_t kl_output_xml(const struct kl_xml *document, FILE *to);

/** A text out of a file with any bytes: invalid UTF-8 becomes "?". NULL becomes null. */
json_t *kl_output_text(const char *text);

/** Print an answer and let go of it: an object, whose first key becomes "schema" (schema.h). `format`: flags of json_dumpf. */
enum { KL_OUTPUT_FORMAT = JSON_INDENT(1) | JSON_REAL_PRECISION(9) };
ncclResult_t kl_output_answer(const char *schema, json_t *answer, size_t format, FILE *to);

#endif
