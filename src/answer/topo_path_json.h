/* SPDX-License-Identifier: Apache-2.0 */
/** topo_path_json.h - the path from one node to another, as JSON. */
#ifndef KL_ANSWER_TOPO_PATH_JSON_H
#define KL_ANSWER_TOPO_PATH_JSON_H

#include "include/nccl.h"
#include "topo/topo.h"

#include <stdio.h>

/** Write the path, link by link, and its consequences. Both ends are GPUs, NETs, CPUs or the NVSwitch. */
ncclResult_t kl_topo_path_json(const struct kl_topo *t, int from, int to, FILE *stream);

#endif
