/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/scene.h"

#include "base/error.h"

static const int64_t bytes = (int64_t)256 << 20; /* large enough for bandwidth to count, and nothing else */

ncclResult_t kl_scene_times(struct kl_scene *s)
{
    for (int i = 0; i < s->ngraphs; i++) {
        int quiet = kl_error_quiet(1);
        ncclResult_t rc = kl_timeline_create(s->view->plan, s->graph[i].id, bytes, &s->graph[i].times);

        kl_error_quiet(quiet);
        if (rc == ncclSystemError) return rc; /* others: there is none, and none is drawn */
    }
    return ncclSuccess;
}
