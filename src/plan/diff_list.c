/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

struct kl_fact *kl_facts_add(struct kl_facts *facts, enum kl_fact_kind kind, enum kl_fact_change change)
{
    if (facts->nfacts == facts->max_facts) {
        int max = facts->max_facts ? 2 * facts->max_facts : 16;
        struct kl_fact *grown = realloc(facts->fact, (size_t)max * sizeof *grown);

        if (!grown) return NULL;
        facts->fact = grown;
        facts->max_facts = max;
    }
    facts->fact[facts->nfacts] = (struct kl_fact){
        .kind = kind, .change = change, .ends = {KL_LINK_END_NONE, KL_LINK_END_NONE}, .setting = -1, .nmerged = 1};
    return &facts->fact[facts->nfacts++];
}

ncclResult_t kl_facts_add_op(struct kl_facts *facts, int fact, int a, int b, const char *key)
{
    if (facts->nops == facts->max_ops) {
        int max = facts->max_ops ? 2 * facts->max_ops : 32;
        struct kl_doc_op *grown = realloc(facts->op, (size_t)max * sizeof *grown);

        if (!grown) return KL_NOMEM("differences");
        facts->op = grown;
        facts->max_ops = max;
    }
    facts->op[facts->nops] = (struct kl_doc_op){.fact = fact, .a = a, .b = b};
    snprintf(facts->op[facts->nops].key, sizeof facts->op->key, "%.31s", key);
    facts->nops++;
    return ncclSuccess;
}

void kl_facts_drop(struct kl_facts *facts, int from, int to)
{
    int n = 0;

    for (int i = 0; i < facts->nops; i++) {
        struct kl_doc_op op = facts->op[i];

        if (op.fact == from) op.fact = to;
        if (op.fact < 0) continue;
        if (op.fact > from) op.fact--;
        facts->op[n++] = op;
    }
    facts->nops = n;
    if (to >= 0) facts->fact[to].nmerged += facts->fact[from].nmerged;
    memmove(&facts->fact[from], &facts->fact[from + 1], (size_t)(facts->nfacts - from - 1) * sizeof *facts->fact);
    facts->nfacts--;
}

/* ---- alike ---- */

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

bool kl_fact_alike(const struct kl_fact *x, const struct kl_fact *y)
{
    bool moved = x->change == KL_CHANGE_MOVED || x->change == KL_CHANGE_ARRIVED;

    if (x->kind != y->kind) return false;
    if (moved) return y->change == KL_CHANGE_MOVED || y->change == KL_CHANGE_ARRIVED;
    if (x->change != y->change) return false;
    switch (x->change) {
    case KL_CHANGE_LINKS:
        return x->links[0] == y->links[0] && x->links[1] == y->links[1] && x->gbps == y->gbps &&
               (x->ways == 1) == (y->ways == 1);
    case KL_CHANGE_ATTRIBUTE:
        return x->c2c == y->c2c && same_text(x->key, y->key) && same_text(x->a, y->a) && same_text(x->b, y->b);
    case KL_CHANGE_GONE:
    case KL_CHANGE_NEW:
        return x->c2c == y->c2c && (x->nparts > 1) == (y->nparts > 1);
    default:
        return false;
    }
}

/* ---- applying them ---- */

static ncclResult_t apply_op(const struct kl_doc_op *op, const struct kl_xml *from, struct kl_xml *to)
{
    int copy;

    if (!*op->key && op->b < 0) {
        kl_xml_remove(to, op->a);
        return ncclSuccess;
    }
    if (!*op->key) return kl_xml_copy(to, op->a, from, op->b, &copy);
    const char *value = kl_xml_attr(from, op->b, op->key);
    if (value) return kl_xml_set(to, op->a, op->key, value);
    kl_xml_unset(to, op->a, op->key);
    return ncclSuccess;
}

ncclResult_t kl_facts_apply(const struct kl_facts *facts, const struct kl_diff_side *a, const struct kl_diff_side *b,
                            const bool *use, struct kl_xml **document)
{
    struct kl_xml *xml = NULL;

    KL_TRY(kl_xml_clone(a->document, &xml));
    for (int i = 0; i < facts->nops; i++) {
        ncclResult_t rc = use[facts->op[i].fact] ? apply_op(&facts->op[i], b->document, xml) : ncclSuccess;

        if (!rc) continue;
        kl_xml_free(xml);
        return rc;
    }
    *document = xml;
    return ncclSuccess;
}
