/* SPDX-License-Identifier: Apache-2.0 */
#include "os/chaos.h"

#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

enum { UNKNOWN, OFF, ON };
enum { MOST_DELAY_US = 3000 };

/* Each kind strikes once in so many opportunities, on average. Chosen such that a job of a few ranks meets about one of
 * the fatal ones. */
static const struct {
    const char *name;
    unsigned once_in;
} kinds[KL_CHAOS_KINDS] = {
    /* the call succeeds nevertheless */
    [KL_CHAOS_DELAY] = {"delay", 12},
    [KL_CHAOS_SHORT] = {"short", 3},
    /* the call fails */
    [KL_CHAOS_DESCRIPTORS] = {"descriptors", 60},
    [KL_CHAOS_MEMORY] = {"memory", 60},
    /* a connection or a process ends */
    [KL_CHAOS_DROP] = {"drop", 500},
    [KL_CHAOS_KILL] = {"kill", 600},
    [KL_CHAOS_STOP] = {"stop", 900},
};

static const struct kl_param rows[] = {
    KL_PARAM_STRING(
        struct kl_chaos_config, chaos, "KOLO_CHAOS", KL_OWN, "",
        "faults to inject: a seed, or SEED:KIND[@N],... of delay, short, descriptors, memory, drop, kill, stop"),
};
const struct kl_param_set kl_chaos_param_set = KL_PARAM_SET("chaos", struct kl_chaos_config, rows);

_Atomic uint32_t kl_chaos_state;
static uint64_t seed;   /* includes the rank; written before the state */
static unsigned wanted; /* bit mask of kinds; written before the state */
/* the opportunity at which it strikes, from 1; 0: by the seed; written before the state */
static uint64_t only[KL_CHAOS_KINDS];
static _Atomic uint64_t chances[KL_CHAOS_KINDS];

/* ---- parsing KOLO_CHAOS ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u; /* splitmix64 */
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* False: not a number from 1 on. */
static bool read_turn(const char *text, uint64_t *turn)
{
    char *end;

    *turn = strtoull(text, &end, 10);
    return *turn && !*end;
}

static bool want(char *name)
{
    char *at = strchr(name, '@');

    if (at) *at = '\0';
    for (int k = 0; k < KL_CHAOS_KINDS; k++) {
        if (strcmp(kinds[k].name, name)) continue;
        wanted |= 1u << k;
        return !at || read_turn(at + 1, &only[k]);
    }
    return false;
}

static bool parse(char *text)
{
    char *end, *rest = NULL;
    const char *rank = getenv("KOLO_RANK");
    uint64_t number = strtoull(text, &end, 10);

    if (end == text || (*end && *end != ':')) return false;
    seed = mix(mix(number + 1) + (rank ? strtoull(rank, NULL, 10) : 0));
    wanted = *end ? 0 : (1u << KL_CHAOS_KINDS) - 1;
    if (!*end) return true;
    for (char *name = strtok_r(end + 1, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
        if (!want(name)) return false;
    return true;
}

static const char *list_names(char *buffer, size_t bytes)
{
    struct kl_text text = kl_text_over(buffer, bytes);

    for (int k = 0; k < KL_CHAOS_KINDS; k++) kl_text_add(&text, "%s%s", k ? ", " : "", kinds[k].name);
    return buffer;
}

static uint32_t decide(void)
{
    struct kl_chaos_config config;

    kl_param_load_from(&kl_chaos_param_set, &config, kl_settings_process());
    if (!*config.chaos) return OFF;
    char said[sizeof config.chaos];
    memcpy(said, config.chaos, sizeof said);
    if (getauxval(AT_SECURE)) {
        KL_INFO(KL_LOG_ALL, "KOLO_CHAOS is ignored: this program runs with the rights of another user");
        return OFF;
    }
    if (!parse(config.chaos)) {
        char names[128];
        KL_WARN("KOLO_CHAOS=%s is ignored: it is neither a number, nor one with a colon and a list of %s", said,
                list_names(names, sizeof names));
        return OFF;
    }
    KL_INFO(KL_LOG_ALL, "KOLO_CHAOS=%s: faults are injected on purpose", said);
    return ON;
}

static void read_once(void)
{
    kl_store_release(&kl_chaos_state, decide());
}

bool kl_chaos_first_use(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (kl_load_acquire(&kl_chaos_state) == UNKNOWN) pthread_once(&once, read_once);
    return kl_load_acquire(&kl_chaos_state) == ON;
}

void kl_chaos_spare(void)
{
    (void)kl_chaos_first_use();
    kl_store_release(&kl_chaos_state, OFF);
}

/* ---- decisions ---- */

static uint64_t number_of(enum kl_chaos_kind kind, uint64_t turn)
{
    return mix(seed + ((uint64_t)kind << 56) + turn * 0x9e3779b97f4a7c15u);
}

static uint64_t draw(enum kl_chaos_kind kind)
{
    return number_of(kind, kl_fetch_add_relaxed(&chances[kind], 1));
}

static bool takes_chance(enum kl_chaos_kind kind)
{
    uint64_t turn = kl_fetch_add_relaxed(&chances[kind], 1);

    return only[kind] ? turn + 1 == only[kind] : !(number_of(kind, turn) % kinds[kind].once_in);
}

static bool strikes(enum kl_chaos_kind kind)
{
    if (!(wanted >> kind & 1) || !takes_chance(kind)) return false;
    if (kind > KL_CHAOS_SHORT) KL_INFO(KL_LOG_ALL, "KOLO_CHAOS: %s strikes", kinds[kind].name);
    return true;
}

static void maybe_end(void)
{
    if (strikes(KL_CHAOS_KILL)) raise(SIGKILL);
    if (strikes(KL_CHAOS_STOP)) kill(getpid(), SIGSTOP);
}

static void maybe_delay(void)
{
    if (!strikes(KL_CHAOS_DELAY)) return;
    struct timespec t = {.tv_nsec = (long)(draw(KL_CHAOS_DELAY) % MOST_DELAY_US) * 1000};
    nanosleep(&t, NULL);
}

bool kl_chaos_refuse(void)
{
    maybe_end();
    maybe_delay();
    if (!strikes(KL_CHAOS_DESCRIPTORS)) return false;
    errno = draw(KL_CHAOS_DESCRIPTORS) & 1 ? EMFILE : ENFILE;
    return true;
}

bool kl_chaos_fail_allocation(void)
{
    if (!strikes(KL_CHAOS_MEMORY)) return false;
    errno = ENOMEM;
    return true;
}

size_t kl_chaos_before_io(int fd, size_t bytes)
{
    maybe_end();
    maybe_delay();
    if (strikes(KL_CHAOS_DROP)) shutdown(fd, SHUT_RDWR);
    if (bytes < 2 || !strikes(KL_CHAOS_SHORT)) return bytes;
    return 1 + draw(KL_CHAOS_SHORT) % (bytes - 1);
}

void kl_chaos_before_io_of(int fd, struct iovec *part, size_t *parts)
{
    size_t first = *parts ? part[0].iov_len : 0, bytes = kl_chaos_before_io(fd, first);

    if (bytes == first) return;
    part[0].iov_len = bytes;
    *parts = 1;
}
