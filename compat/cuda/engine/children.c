/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/children.h"

#include <stdlib.h>

void kl_children_add(struct kl_children *list, struct kl_child *child)
{
    child->next = NULL;
    if (list->first)
        list->last->next = child;
    else
        list->first = child;
    list->last = child;
}

struct kl_child *kl_children_take(struct kl_children *list)
{
    struct kl_child *child = list->first;

    if (child) list->first = child->next;
    return child;
}

void kl_children_put_first(struct kl_children *list, struct kl_children *more)
{
    if (!more->first) return;
    more->last->next = list->first;
    if (!list->first) list->last = more->last;
    list->first = more->first;
    more->first = NULL;
}

void kl_children_drop(struct kl_children *list)
{
    for (struct kl_child *child; (child = kl_children_take(list));) free(child);
}
