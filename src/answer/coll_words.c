/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/coll.h"
#include "device/host/redop.h"

#include <stdio.h>

const char kl_coll_timeless[] = "it leaves out the latency inside a node, which NCCL's model knows over NVLink only";

double kl_coll_bus(const struct kl_coll_asked *a, int64_t bytes, float time)
{
    enum kl_coll_id id = kl_coll_id(a->coll);

    if (id == KL_BARRIER || time <= 0) return 0;
    return (double)bytes / (double)time / 1e3 * kl_coll_bus_factor(id, a->ranks);
}

double kl_coll_slower(float time, float best)
{
    return best > 0 ? ((double)time / (double)best - 1) * 100 : 0;
}

int64_t kl_coll_piece_bytes(const struct kl_coll_asked *a, int64_t bytes)
{
    size_t element = kl_type_bytes(a->type);

    return (int64_t)(kl_coll_shape(kl_coll_id(a->coll), (size_t)bytes, element, a->ranks, 0).count * element);
}

const char *kl_coll_time_text(double us, char text[KL_COLL_TIME_TEXT])
{
    const char *unit = us < 1e3 ? "us" : us < 1e6 ? "ms" : "s";

    snprintf(text, KL_COLL_TIME_TEXT, "%.4g %s", us < 1e3 ? us : us < 1e6 ? us / 1e3 : us / 1e6, unit);
    return text;
}
