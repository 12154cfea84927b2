/* SPDX-License-Identifier: Apache-2.0 */
/** names.h - an enum's value in words, out of a table; values that have none are "unknown". */
#ifndef KL_GRAPH_NAMES_H
#define KL_GRAPH_NAMES_H

#define KL_NAME_IN(names, i) kl_name_in((names), (int)(sizeof(names) / sizeof((names)[0])), (i))

static inline const char *kl_name_in(const char *const *names, int n, int i)
{
    return i >= 0 && i < n && names[i] ? names[i] : "unknown";
}

#endif
