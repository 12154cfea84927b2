/* SPDX-License-Identifier: Apache-2.0 */
#include "net/plugin/call.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

void kl_plugin_call_init(struct kl_plugin_call *c, void (*run)(struct kl_plugin_call *),
                         void (*ended)(struct kl_plugin_call *))
{
    *c = (struct kl_plugin_call){.run = run, .ended = ended};
    kl_store_relaxed(&c->users, 1);
}

/* The array, and the handles behind it. */
bool kl_plugin_call_add_handles(struct kl_plugin_call *c, const struct kl_net_handle *handles, size_t stride, int n)
{
    const size_t count = (size_t)n;

    c->handles = malloc(count * (sizeof *c->handles + sizeof *handles));
    if (!c->handles) return false;
    struct kl_net_handle *copy = (struct kl_net_handle *)(void *)(c->handles + count);
    for (size_t i = 0; i < count; i++) {
        memcpy(&copy[i], (const char *)handles + i * stride, sizeof *copy);
        c->handles[i] = &copy[i];
    }
    return true;
}

static void *make_call(void *arg)
{
    struct kl_plugin_call *c = arg;

    c->run(c);
    kl_store_release(&c->done, 1); /* pairs with kl_plugin_call_is_done */
    kl_plugin_call_drop(c);
    return NULL;
}

bool kl_plugin_call_start(struct kl_plugin_call *c)
{
    pthread_t thread;

    kl_store_relaxed(&c->users, 2);
    if (pthread_create(&thread, NULL, make_call, c)) {
        kl_store_relaxed(&c->users, 1);
        return false;
    }
    pthread_detach(thread);
    return true;
}

bool kl_plugin_call_is_done(const struct kl_plugin_call *c)
{
    return kl_load_acquire(&c->done);
}

void kl_plugin_call_drop(struct kl_plugin_call *c)
{
    if (!c || kl_fetch_sub_acq_rel(&c->users, 1) > 1) return;
    if (c->ended) c->ended(c);
    free(c->handles);
    free(c);
}
