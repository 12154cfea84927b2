/* SPDX-License-Identifier: Apache-2.0 */
/** codes.h - short stable names of events in a search, for programs; the texts for people are in graph.h. */
#ifndef KL_GRAPH_CODES_H
#define KL_GRAPH_CODES_H

const char *kl_attempt_end_code(int end);       /* "exhausted" */
const char *kl_relaxation_code(int relaxation); /* "type_intra" */
const char *kl_search_end_code(int end);        /* "saturated" */
const char *kl_doubling_code(int doubling);     /* "done" */

#endif
