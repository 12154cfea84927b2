/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuning_file.h - the file of times that `kolo tune` measured on this machine.
 *
 * The file is the one that KOLO_TUNING names, or tuning-MACHINE in kolo/ of $XDG_CACHE_HOME, or of ~/.cache; MACHINE is a hash of the
 * CPU's model and the number of CPUs. "none" means no file. It is written beside and renamed into place, so that readers never
 * see a part of it.
 *
 * Errors:  ncclSystemError, ncclInvalidUsage; reading at init is silent: an invalid file counts as missing.
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

/** Can the file be written? Creates its folders. For callers with long work to do before the write. */
ncclResult_t kl_tuning_file_check(const char *path);
ncclResult_t kl_tuning_file_write(const char *path, const struct kl_tuning_measured *m);

/** The process's measured times, read at the first call with its setting; NULL: none. They stay until the process ends. */
const struct kl_tuning_measured *kl_tuning_file_known(const char *setting);

#endif
