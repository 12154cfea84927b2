/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "tools/kolo/cluster_options.h"
#include "tools/kolo/explain/coll_print.h"

#include <inttypes.h>
#include <stdio.h>

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
    snprintf(text, KL_SIZE_TEXT, "%.26s %s", kl_grouped(bytes, number), units[unit]);
    return text;
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
