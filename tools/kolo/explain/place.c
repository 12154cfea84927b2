/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/assumed.h"
#include "base/text.h"
#include "tools/kolo/explain/explain.h"

#include <stdlib.h>

/* With the setting that named the file: users may not know of it. */
static void add_place(const struct kl_cluster *c, struct kl_text *t)
{
    struct kl_setting setting;
    char origin[KL_ORIGIN_TEXT];

    kl_text_add(t, "%s", c->name);
    if (kl_origin_find(c, &setting)) kl_text_add(t, " (NCCL_TOPO_FILE, %s)", kl_setting_origin(&setting, origin));
    kl_text_add(t, ", ");
    kl_cluster_size(c, t);
}

void kl_explain_place(const struct kl_cluster *cluster, const char *note, FILE *to)
{
    char line[1024];
    struct kl_text text = kl_text_in(line, sizeof line);

    add_place(cluster, &text);
    fprintf(to, "  %s%s\n", line, note);
}

struct kl_named_text *kl_explain_texts(const struct kl_opt_list *given, const struct kl_explain_request *q)
{
    struct kl_named_text *file = calloc((size_t)(given->n + q->nwords) + 1, sizeof *file);

    for (int i = 0; file && i < given->n; i++) file[i].name = given->text[i];
    for (int i = 0; file && i < q->nwords; i++) file[given->n + i].name = q->word[i];
    return file;
}
