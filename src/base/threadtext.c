/* SPDX-License-Identifier: Apache-2.0 */
#include "base/threadtext.h"

#include <pthread.h>
#include <stdlib.h>

struct texts {
    char text[KL_THREAD_TEXTS][KL_THREAD_TEXT];
};

static pthread_key_t key;
static int key_failed;

static void make_key(void)
{
    key_failed = pthread_key_create(&key, free);
}

char *kl_thread_text(enum kl_thread_text which)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_key);
    if (key_failed) return NULL;
    struct texts *t = pthread_getspecific(key);
    if (!t) {
        t = calloc(1, sizeof *t);
        if (!t || pthread_setspecific(key, t)) {
            free(t);
            return NULL;
        }
    }
    return t->text[which];
}
