/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/variables.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/include/kolo_cuda/abi.h"
#include "src/base/atomic.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 256, SUCCESS = 0, NO_MEMORY = 2, NO_SYMBOL = 13, NO_DEVICE = 101 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_engine_variable *all;
static _Atomic unsigned version = 1;                 /* incremented for each new variable */
static _Atomic unsigned prepared[KL_ENGINE_DEVICES]; /* the version of the variables on a device */

void __koloRegisterVariable(struct kl_engine_variable *variable)
{
    (void)pthread_mutex_lock(&lock);
    variable->image[0] = variable->shadow;
    variable->next = all;
    all = variable;
    (void)kl_fetch_add_acq_rel(&version, 1);
    (void)pthread_mutex_unlock(&lock);
}

/* Does another translation unit name the variable? */
static struct kl_engine_variable *other_name(const struct kl_engine_variable *v)
{
    struct kl_engine_variable *other = all;

    while (other && (other == v || other->shadow != v->shadow)) other = other->next;
    return other;
}

void __koloUnregisterVariable(struct kl_engine_variable *variable)
{
    struct kl_engine_variable **at = &all;

    (void)pthread_mutex_lock(&lock);
    while (*at && *at != variable) at = &(*at)->next;
    if (*at) *at = variable->next;
    if (variable->space != KL_ENGINE_MANAGED && !other_name(variable))
        for (int d = 1; d <= KL_ENGINE_DEVICES; d++) free(variable->image[d]);
    (void)pthread_mutex_unlock(&lock);
}

/* The definition of a variable, which knows its size; NULL: there is none. */
static struct kl_engine_variable *defined(const void *shadow)
{
    struct kl_engine_variable *v = all;

    while (v && (v->shadow != shadow || !v->bytes)) v = v->next;
    return v;
}

static void *new_image(const struct kl_engine_variable *v)
{
    void *p = aligned_alloc(ALIGNMENT, (v->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);

    if (p) memcpy(p, v->shadow, v->bytes);
    return p;
}

/* The image of one device, in all names of the variable. */
static int make_image(struct kl_engine_variable *v, int device)
{
    void *image = v->image[1 + device];

    for (struct kl_engine_variable *other = all; other && !image; other = other->next)
        if (other->shadow == v->shadow) image = other->image[1 + device];
    if (!image) image = v->space == KL_ENGINE_MANAGED ? v->shadow : new_image(v);
    for (struct kl_engine_variable *other = all; other; other = other->next)
        if (other->shadow == v->shadow) __atomic_store_n(&other->image[1 + device], image, __ATOMIC_RELEASE);
    return image ? SUCCESS : NO_MEMORY;
}

int kl_variables_prepare(int device)
{
    unsigned now = kl_load_acquire(&version);
    int rc = SUCCESS;

    if (kl_load_acquire(&prepared[device]) == now) return SUCCESS;
    (void)pthread_mutex_lock(&lock);
    for (struct kl_engine_variable *v = all; v && !rc; v = v->next)
        if (v->bytes) rc = make_image(v, device);
    if (!rc) kl_store_release(&prepared[device], now);
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

int kl_engine_find_variable(const void *shadow, int device, void **address, size_t *bytes, enum kl_engine_space *space)
{
    struct kl_engine_variable *v;
    int rc = NO_SYMBOL;

    if (device < 0 || device >= KL_ENGINE_DEVICES) return NO_DEVICE;
    (void)pthread_mutex_lock(&lock);
    v = defined(shadow);
    if (v) rc = make_image(v, device);
    if (!rc) {
        if (address) *address = v->image[1 + device];
        if (bytes) *bytes = v->bytes;
        if (space) *space = v->space;
    }
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

void *__koloFindImage(struct kl_engine_variable *variable)
{
    int rc;

    (void)pthread_mutex_lock(&lock);
    rc = make_image(variable, __koloImage - 1);
    (void)pthread_mutex_unlock(&lock);
    if (rc) __koloTrap("no memory for a variable of the device");
    return variable->image[__koloImage];
}

void kl_engine_reset_variables(int device)
{
    if (device < 0 || device >= KL_ENGINE_DEVICES) return;
    (void)pthread_mutex_lock(&lock);
    for (struct kl_engine_variable *v = all; v; v = v->next)
        if (v->bytes && v->space != KL_ENGINE_MANAGED && v->image[1 + device])
            memcpy(v->image[1 + device], v->shadow, v->bytes);
    (void)pthread_mutex_unlock(&lock);
}
