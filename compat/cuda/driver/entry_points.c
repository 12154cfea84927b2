/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/driver/entry_points.h"

#define ENTRY(name, version, symbol) extern int symbol(void);
#include "compat/cuda/driver/entry_points.inc"
#undef ENTRY

const struct kl_cu_entry kl_cu_entries[] = {
#define ENTRY(name, version, symbol) {#name, version, symbol},
#include "compat/cuda/driver/entry_points.inc"
#undef ENTRY
};

const size_t kl_cu_entry_count = sizeof kl_cu_entries / sizeof kl_cu_entries[0];
