/* SPDX-License-Identifier: Apache-2.0 */
/**
 * edit.h - changes to a machine and its settings, as the command line writes them.
 *
 *     --with NCCL_X=Y              as if this were set: it counts before the environment and all files
 *     --without GPU/2              leave a GPU or a NET out
 *     --without-link GPU/0-GPU/1   remove the NVLinks (or C2C) between two GPUs, a GPU and the NVSwitch (NVS) or its CPU;
 *                                  GPU/0-GPU/1:1 removes one of several
 *
 * Names are as `kolo topo` prints them, short or long, for the machine before any change, so the order of changes does
 * not matter. As with --gpus, the remaining GPUs are renumbered.
 *
 * Errors:  ncclInvalidArgument for options that cannot be parsed; ncclInvalidUsage for values that a setting refuses and
 *          for things that do not exist. One line, which lists the existing ones.
 */
#ifndef KL_PLAN_EDIT_H
#define KL_PLAN_EDIT_H

#include "base/setting.h"
#include "include/nccl.h"

struct kl_cluster;
struct kl_param_registry;

/** The arguments of one option, in order. */
struct kl_edit_list {
    const char *const *text;
    int n;
};

struct kl_edits {
    struct kl_edit_list with, without, without_link;
    const struct kl_param_registry *params; /* all settings that `with` may name */
};

/** Is the machine changed, or only settings? */
static inline bool kl_edits_change_machine(const struct kl_edits *edits)
{
    return edits->without.n || edits->without_link.n;
}

/** The settings of --with, checked. One piece of memory: free(*over). */
ncclResult_t kl_edit_settings(const struct kl_edits *edits, struct kl_setting **over);

/** Apply --without and --without-link to the cluster's file, which must be loaded, and its devices. */
ncclResult_t kl_edit_machine(const struct kl_edits *edits, struct kl_cluster *cluster);

#endif
