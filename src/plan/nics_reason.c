/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "plan/nics.h"

const char *kl_nic_idle_code(const struct kl_nic_idle *idle)
{
    static const char *const codes[KL_NIC_IDLE_WHYS] = {
        [KL_NIC_ONE_HOST] = "one_host",     [KL_NIC_UNREACHED] = "unreached", [KL_NIC_SLOWER] = "slower",
        [KL_NIC_FARTHER] = "farther",       [KL_NIC_SPREAD] = "not_needed",   [KL_NIC_SAME_PORT] = "same_port",
        [KL_NIC_NO_CHANNEL] = "no_channel",
    };

    return codes[idle->why];
}

static const char *fallback(bool fell_back)
{
    return fell_back ? " (none, so the order of the devices)" : "";
}

static void add_searches(const struct kl_nics *n, struct kl_text *to)
{
    if (n->ring_found == n->tree_found)
        kl_text_add(to, "the searches for rings and trees found %d channel%s%s", n->ring_found,
                    kl_plural(n->ring_found), fallback(n->ring_fell_back));
    else
        kl_text_add(to, "the search for rings found %d channels%s and that for trees %d%s; all use the fewer",
                    n->ring_found, fallback(n->ring_fell_back), n->tree_found, fallback(n->tree_fell_back));
    kl_text_add(to, " (kolo explain search)");
}

static void add_better(const struct kl_nic_idle *x, struct kl_text *to)
{
    kl_text_add(to, "%s: even GPU/%d, which reaches it best (%s, %g GB/s), has NET/%d (%s, %g GB/s)",
                x->why == KL_NIC_SLOWER ? "slower than others" : "no GPU is near it", x->rank,
                kl_path_type_name[x->here_type], (double)x->here_bw, x->there, kl_path_type_name[x->there_type],
                (double)x->there_bw);
}

static void add_same_port(const struct kl_nic_idle *x, struct kl_text *to)
{
    if (x->first >= 0)
        kl_text_add(to, "same guid and port as NET/%d: they count as one port, whose bandwidth is spent", x->first);
    else
        kl_text_add(to, "same guid and port as %d others: they count as one port, whose bandwidth is spent", x->others);
}

const char *kl_nic_idle_text(const struct kl_nics *n, const struct kl_nic_idle *idle, char text[KL_NIC_TEXT])
{
    struct kl_text t = kl_text_in(text, KL_NIC_TEXT);

    switch (idle->why) {
    case KL_NIC_ONE_HOST:
        kl_text_add(&t, "nothing leaves the host");
        break;
    case KL_NIC_UNREACHED:
        kl_text_add(&t, "no GPU reaches it");
        break;
    case KL_NIC_SLOWER:
    case KL_NIC_FARTHER:
        add_better(idle, &t);
        break;
    case KL_NIC_SPREAD:
        kl_text_add(&t, "GPUs near it use others that are as near: device numbers decide");
        break;
    case KL_NIC_SAME_PORT:
        add_same_port(idle, &t);
        break;
    default:
        add_searches(n, &t);
    }
    return text;
}
