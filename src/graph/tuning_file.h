/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuning_file.h - where the times that `kolo tune` measured on this machine are kept.
 *
 * The file is the one that KOLO_TUNING names, or tuning-MACHINE in kolo/ of $XDG_CACHE_HOME, or of ~/.cache; MACHINE is a hash of the
 * CPU's model and the number of CPUs. "none" names none. It is written beside and moved into place, so that readers find all of it.
 *
 * Errors:  ncclSystemError, ncclInvalidUsage; reading at init is silent: what is not sound is not there.
 * Threads: any.
 * Source:  the XDG base directory specification.
 */
#ifndef KL_GRAPH_TUNING_FILE_H
#define KL_GRAPH_TUNING_FILE_H

#include "graph/tuning_measured.h"

enum { KL_TUNING_PATH = 1024 };

/** `setting`: KOLO_TUNING. ncclInvalidUsage if there is no place: "none", or no home. */
ncclResult_t kl_tuning_file_path(const char *setting, char path[KL_TUNING_PATH]);

ncclResult_t kl_tuning_file_read(const char *path, struct kl_tuning_measured *m);

/** Can it be written? For those who have long work before them; makes its folders. */
ncclResult_t kl_tuning_file_check(const char *path);
ncclResult_t kl_tuning_file_write(const char *path, const struct kl_tuning_measured *m);

/** What the process knows: read at the first call, whose setting counts. NULL: nothing. It stays. */
const struct kl_tuning_measured *kl_tuning_file_known(const char *setting);

#endif
