/* SPDX-License-Identifier: Apache-2.0 */
/**
 * profile.h - the primitives of a machine by which operations within a host are chosen (coll/select/select.h).
 *
 * The leader of a host measures them once (coll/select/measure.h), or they come from KOLO_PROFILE, or from a table of known processors. They travel
 * in the record of its rank, so that all ranks derive the same.
 *
 * Units:   nanoseconds, KiB. 0: not known; kl_profile_complete fills it in.
 * Errors:  parsing returns ncclInvalidArgument, and the sentence names the word.
 * Threads: any.
 */
#ifndef KL_GRAPH_PROFILE_H
#define KL_GRAPH_PROFILE_H

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum kl_profile_source { KL_PROFILE_KNOWN, KL_PROFILE_MEASURED, KL_PROFILE_GIVEN };

/** Wire format. */
struct kl_profile {
    uint32_t line_ns;     /* a cache line, from one core to another */
    uint32_t cma_ns;      /* a call in which the kernel copies between processes, */
    uint32_t cma_kib_ns;  /* and each KiB of it, in pages of 4 KiB, */
    uint32_t huge_kib_ns; /* or in huge pages */
    uint32_t copy_kib_ns; /* a KiB that is copied within a core's own cache, */
    uint32_t out_kib_ns;  /* beyond it, with ordinary stores, */
    uint32_t nt_kib_ns;   /* and with non-temporal stores */
    uint32_t own_kib;     /* the cache that a core has for itself, */
    uint32_t last_kib;    /* and the last level */
    uint32_t cpus;        /* of the machine */
    uint32_t huge_pages;  /* does Kolo ask for huge pages under large buffers, and may it? 0 or 1 */
    uint32_t source;      /* enum kl_profile_source */
};

/** The profile of a vendor's processors (enum kl_cpu_vendor). */
struct kl_profile kl_profile_known(int cpu_vendor);

/** Fields that are 0 become those of `known`. */
void kl_profile_complete(struct kl_profile *profile, const struct kl_profile *known);

/** Set fields of `profile` as in "line=147,cma=1500", with the names of kl_profile_text. "" sets none. */
ncclResult_t kl_profile_parse(struct kl_profile *profile, const char *text);

/** "line=33 cma=1500 ... (measured)". */
void kl_profile_text(const struct kl_profile *profile, struct kl_text *text);

#endif
