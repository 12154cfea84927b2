/* SPDX-License-Identifier: Apache-2.0 */
/** views.h - one drawing with different hosts, and all of it as JSON for the script of a page. */
#ifndef KOLO_TOOL_PICTURE_VIEWS_H
#define KOLO_TOOL_PICTURE_VIEWS_H

#include "tools/kolo/picture/shown_hosts.h"

#include <jansson.h>

enum { KL_VIEWS = 2 + 2 * KL_MAX_CHANNELS };

/** View 0 has the first hosts, 1 the last, others those that some channel begins and ends in. */
struct kl_views {
    struct kl_scene *scene[KL_VIEWS];
    struct kl_shown_hosts cast[KL_VIEWS];
    int n;
    int of_way[KL_GRAPHS][KL_MAX_CHANNELS]; /* by graph and way */
};

/** The views of a scene, which stays the caller's. ncclSystemError when memory is short; close it nevertheless. */
ncclResult_t kl_views_open(struct kl_scene *s, struct kl_views *views);
void kl_views_close(struct kl_views *views);

/** `first`: the number of the way that is shown first. NULL when memory is short. */
json_t *kl_views_json(const struct kl_views *views, int first);

#endif
