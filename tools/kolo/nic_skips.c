/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/nic_skips.h"

enum { NAMES_SHOWN = 8 };

static bool first_like(const struct kl_net_skip *skip, int i)
{
    for (int k = 0; k < i; k++)
        if (kl_net_skip_same(&skip[k], &skip[i])) return false;
    return true;
}

/* "veth0, veth1 and 30 more": all that have the reason of the i-th. */
static void print_names(const struct kl_net_skip *skip, int n, int i, FILE *to)
{
    int shown = 0, more = 0;

    for (int k = i; k < n; k++) {
        if (!kl_net_skip_same(&skip[k], &skip[i])) continue;
        if (shown == NAMES_SHOWN) {
            more++;
            continue;
        }
        fprintf(to, shown++ ? ", %s" : "%s", skip[k].name);
    }
    if (more) fprintf(to, " and %d more", more);
}

void kl_nic_skips_text(const struct kl_net_skip *skip, int n, FILE *to)
{
    char text[KL_NET_SKIP_TEXT];

    if (n) fprintf(to, "\nNetwork devices of this machine that are not used:\n");
    for (int i = 0; i < n; i++) {
        if (!first_like(skip, i)) continue;
        fputs("  ", to);
        print_names(skip, n, i, to);
        fprintf(to, ": %s\n", kl_net_skip_text(&skip[i], text));
    }
}
