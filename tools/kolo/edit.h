/* SPDX-License-Identifier: Apache-2.0 */
/**
 * edit.h - changes to a machine and its settings, as the command line asks for them.
 *
 *     --with NCCL_X=Y              as if this were set: it counts before the environment and all files
 *     --without GPU/2              leave a GPU or a NET out
 *     --without-link GPU/0-GPU/1   remove the NVLinks (or C2C) between two GPUs, a GPU and the NVSwitch (NVS) or its CPU;
 *                                  GPU/0-GPU/1:1 removes one of several
 *
 * Names are those that `kolo topo` prints, short or long, of the machine before any change, so the order of changes does
 * not matter. As with --gpus, the GPUs that are left are numbered anew.
 *
 * Errors:  ncclInvalidArgument for what is not understood at all (exit 2); ncclInvalidUsage for values that a setting
 *          refuses and for things that are not there. One line, which says what there is instead.
 */
#ifndef KOLO_TOOL_EDIT_H
#define KOLO_TOOL_EDIT_H

#include "base/setting.h"
#include "include/nccl.h"
#include "tools/kolo/options.h"

struct kl_offline;

struct kl_edit_args {
    struct kl_opt_list with, without, without_link;
};

/** Rows of an option table: `field` is the struct kl_edit_args in the struct T that the table fills. */
#define KL_EDIT_OPTIONS(T, field)                                                                                      \
    KL_EDIT_OPTION(T, field.with, "with", "NAME=VALUE", "as if this variable were set; any number of times"),          \
        KL_EDIT_OPTION(T, field.without, "without", "NODE", "leave out GPU/2, or NET/3; any number of times"),         \
        KL_EDIT_OPTION(                                                                                                \
            T, field.without_link, "without-link", "A-B[:N]",                                                          \
            "remove the NVLinks from GPU/0-GPU/1, or N of them; GPU/3-NVS is to the switch; any number of times")

#define KL_EDIT_OPTION(T, field, name, arg, doc)                                                                       \
    {                                                                                                                  \
        0, name, KL_OPT_LIST, offsetof(T, field), 0, 0, arg, doc                                                       \
    }

/** Does it change the machine, or only settings? */
static inline bool kl_edit_changes_machine(const struct kl_edit_args *edit)
{
    return edit->without.n || edit->without_link.n;
}

/** The settings that --with gives, checked. One piece of memory: free(*over). */
ncclResult_t kl_edit_settings(const struct kl_opt_list *with, struct kl_setting **over);

/** Apply --without and --without-link to the cluster's file, which must be there, and its devices. */
ncclResult_t kl_edit_machine(const struct kl_edit_args *edit, struct kl_offline *cluster);

#endif
