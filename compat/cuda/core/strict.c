/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/strict.h"

#include "compat/cuda/core/device.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { NAP_NS = 50000, GRIDS_IN_A_ROW = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* Under lock. */
static struct {
    struct kl_cuda_turn *first[KL_CUDA_QUEUES_MOST];
    unsigned threads; /* of the blocks that run */
    int grids;        /* that run */
    int row;          /* grids since the device is this process's */
    bool asks;        /* a thread asks for the device */
    int mine;         /* the socket whose name says that it is, plus 1; 0: it is not */
} devices[KL_CUDA_DEVICES];

static __thread struct kl_cuda_turn *current;

static const char *mode(void)
{
    static _Atomic(const char *) known;
    const char *text = known;

    if (text) return text;
    text = getenv("KOLO_CUDA_STRICT");
    known = text = text ? text : "0";
    return text;
}

bool kl_cuda_strict(void)
{
    return *mode() && strcmp(mode(), "0") != 0;
}

/* ---- queues ---- */

/* CUDA's driver reads it at first use, too. */
static unsigned queues(void)
{
    static _Atomic unsigned known;
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const unsigned before = atomic_load_explicit(&known, memory_order_relaxed);

    if (before) return before;
    const long wanted = text ? strtol(text, NULL, 10) : KL_CUDA_QUEUES;
    const long most = wanted > KL_CUDA_QUEUES_MOST ? KL_CUDA_QUEUES_MOST : wanted;
    const unsigned n = wanted < 1 ? KL_CUDA_QUEUES : (unsigned)most;
    atomic_store_explicit(&known, n, memory_order_relaxed); /* each thread finds the same */
    return n;
}

void kl_cuda_turn_take(struct kl_cuda_turn *turn, int device, unsigned long long queue)
{
    pthread_mutex_lock(&lock);
    turn->device = device;
    turn->queue = (int)(queue % queues());
    struct kl_cuda_turn **link = &devices[device].first[turn->queue];
    while (*link) link = &(*link)->next;
    turn->next = NULL;
    turn->link = link;
    *link = turn;
    pthread_mutex_unlock(&lock);
}

void kl_cuda_turn_wait(struct kl_cuda_turn *turn)
{
    if (!kl_cuda_strict()) return;
    pthread_mutex_lock(&lock);
    const bool taken = turn->link;
    while (taken && devices[turn->device].first[turn->queue] != turn) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (taken) current = turn;
}

void kl_cuda_turn_pass(struct kl_cuda_turn *turn)
{
    if (current == turn) current = NULL;
    pthread_mutex_lock(&lock);
    if (turn->link) {
        *turn->link = turn->next;
        if (turn->next) turn->next->link = turn->link;
        turn->link = NULL;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

void kl_cuda_turn_begun(void)
{
    if (current) kl_cuda_turn_pass(current);
}

/* ---- processes ---- */

/* A name that one process can have, and that ends with it. -1: another has it. */
static int claim(int device)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    const struct kl_cuda_device *d;
    char uuid[41];

    if (kl_cuda_device(device, &d)) return -1;
    kl_cuda_uuid_text(d->uuid, uuid);
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "kolo-cuda-strict-%u-%s", (unsigned)getuid(), uuid);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (!bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)))
        return fd;
    close(fd);
    return -1;
}

/* Under lock, which it gives up between attempts. */
static void own(int device)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};

    devices[device].asks = true;
    while (!devices[device].mine) {
        devices[device].mine = claim(device) + 1;
        if (devices[device].mine) break;
        pthread_mutex_unlock(&lock);
        nanosleep(&nap, NULL);
        pthread_mutex_lock(&lock);
    }
    devices[device].asks = false;
    devices[device].row = 0;
    pthread_cond_broadcast(&changed);
}

/* After some kernels the device is given back first, so that other processes have it, too. */
void kl_cuda_strict_enter(int device)
{
    if (!kl_cuda_strict() || !strcmp(mode(), "mps")) return;
    pthread_mutex_lock(&lock);
    while (devices[device].asks || (devices[device].mine && devices[device].row == GRIDS_IN_A_ROW))
        pthread_cond_wait(&changed, &lock);
    if (!devices[device].mine) own(device);
    devices[device].row++;
    devices[device].grids++;
    pthread_mutex_unlock(&lock);
}

void kl_cuda_strict_leave(int device)
{
    if (!kl_cuda_strict() || !strcmp(mode(), "mps")) return;
    pthread_mutex_lock(&lock);
    if (!--devices[device].grids) {
        close(devices[device].mine - 1);
        devices[device].mine = 0;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- blocks ---- */

void kl_cuda_strict_enter_block(int device, unsigned threads, unsigned room)
{
    pthread_mutex_lock(&lock);
    while (devices[device].threads && devices[device].threads + threads > room) pthread_cond_wait(&changed, &lock);
    devices[device].threads += threads;
    pthread_mutex_unlock(&lock);
}

void kl_cuda_strict_leave_block(int device, unsigned threads)
{
    pthread_mutex_lock(&lock);
    devices[device].threads -= threads;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
