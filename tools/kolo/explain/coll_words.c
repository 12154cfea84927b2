/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "device/host/redop.h"
#include "tools/kolo/cluster_options.h"
#include "tools/kolo/explain/coll_print.h"

#include <inttypes.h>
#include <stdio.h>

const char kl_coll_timeless[] = "it leaves out the latency inside a node, which NCCL's model knows over NVLink only";

/* ---- numbers ---- */

char *kl_grouped(int64_t number, char text[KL_SIZE_TEXT])
{
    char digits[KL_SIZE_TEXT];
    int n = snprintf(digits, sizeof digits, "%" PRId64, number), used = 0;

    for (int i = 0; i < n; i++) {
        text[used++] = digits[i];
        if ((n - i) % 3 == 1 && i + 1 < n) text[used++] = ',';
    }
    text[used] = 0;
    return text;
}

char *kl_size_text(int64_t bytes, char text[KL_SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    char number[KL_SIZE_TEXT];
    int unit = 0;

    for (; bytes % 1024 == 0 && unit < 3; bytes /= 1024) unit++;
    snprintf(text, KL_SIZE_TEXT, "%.20s %s", kl_grouped(bytes, number), units[unit]);
    return text;
}

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

/* ---- the question ---- */

bool kl_coll_for_host(const struct kl_coll_asked *a)
{
    return a->cluster->constants == &kl_tuning_host;
}

static bool is_barrier(const struct kl_coll_asked *a)
{
    return kl_coll_id(a->coll) == KL_BARRIER;
}

bool kl_coll_is_selected(const struct kl_coll_asked *a)
{
    return kl_coll_for_host(a) && a->cluster->hosts == 1 && a->ranks > 1 && a->func >= 0 && a->first == a->last &&
           !is_barrier(a);
}

void kl_coll_headline(const struct kl_coll_asked *a, FILE *to)
{
    char first[KL_SIZE_TEXT], last[KL_SIZE_TEXT];
    char words[128];
    struct kl_text hosts = kl_text_in(words, sizeof words);

    kl_cluster_hosts(a->cluster, &hosts);
    fprintf(to, "%s", a->title);
    if (!is_barrier(a)) fprintf(to, " of %s", kl_size_text(a->first, first));
    if (a->first < a->last) fprintf(to, " to %s", kl_size_text(a->last, last));
    fprintf(to, " over %d rank%s", a->ranks, kl_plural(a->ranks));
    if (a->cluster->hosts > 1) fprintf(to, " on %s", words);
    if (a->nodes != a->cluster->hosts) fprintf(to, " (%d node%s)", a->nodes, kl_plural(a->nodes));
}

const char *kl_coll_time_text(double us, char text[KL_COLL_TIME_TEXT])
{
    const char *unit = us < 1e3 ? "us" : us < 1e6 ? "ms" : "s";

    snprintf(text, KL_COLL_TIME_TEXT, "%.4g %s", us < 1e3 ? us : us < 1e6 ? us / 1e3 : us / 1e6, unit);
    return text;
}
