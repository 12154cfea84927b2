/* SPDX-License-Identifier: Apache-2.0 */
/** topo_path_json.h - `kolo topo --path A B --json`. */
#ifndef KOLO_TOOL_TOPO_PATH_JSON_H
#define KOLO_TOOL_TOPO_PATH_JSON_H

#include "topo/topo.h"

#include <jansson.h>

/** The path from one node to another, link by link, and its consequences. Both are GPUs, NETs, CPUs or the NVSwitch. */
json_t *kl_topo_path_json(const struct kl_topo *t, int from, int to);

#endif
