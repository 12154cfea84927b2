/* SPDX-License-Identifier: Apache-2.0 */
/** inner.h - questions about an operation: the operation is named behind the question, as in `order allreduce 64M`, and options hold numbers. */
#ifndef KOLO_TOOL_EXPLAIN_INNER_H
#define KOLO_TOOL_EXPLAIN_INNER_H

#include "answer/coll.h"
#include "tools/kolo/explain/explain.h"

/** The operation behind the question; it points into the request. */
ncclResult_t kl_inner_operation(const struct kl_explain_request *request, struct kl_coll_question *op);

/** The numbers of an option, separated by commas: at most `most`. `text` NULL: none. */
ncclResult_t kl_inner_list(const char *option, const char *text, int64_t *list, int most, int *n);

/** The number of an option, 0 where it is not given. */
ncclResult_t kl_inner_number(const char *option, const char *text, int *value);

#endif
