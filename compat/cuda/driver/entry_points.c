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

#define OWN(name, own) extern int name(void), own(void);
#include "compat/cuda/driver/per_thread.inc"
#undef OWN

const struct kl_cu_own_entry kl_cu_own_entries[] = {
#define OWN(name, own) {name, own},
#include "compat/cuda/driver/per_thread.inc"
#undef OWN
};

const size_t kl_cu_own_count = sizeof kl_cu_own_entries / sizeof kl_cu_own_entries[0];
