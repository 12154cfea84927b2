/* SPDX-License-Identifier: Apache-2.0 */
/** net_life.c - checks 1 to 5, 11, 15, 16: tables, properties, connections, and remains. */
#include "tools/kolo/plugin/check.h"
#include "tools/kolo/plugin/trial.h"

#include "base/clock.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CANARY = 0x5a,
    ROOM = 512,
    POLLS = 2000,
    MANY = 16,
    ROUNDS = 25,
    RANKS = 4,
    CONNECTS = 1000000,
    CONNECT_MS = 5000, /* in calls */
    ENDING_MS = 10000
};

/* ---- 1: symbols ---- */

static const struct {
    const char *kind, *prefix;
    int oldest, newest;
} symbols[] = {
    {"net", "ncclNetPlugin_v", 6, 12},    {"collnet", "ncclCollNetPlugin_v", 6, 12},
    {"tuner", "ncclTunerPlugin_v", 2, 6}, {"profiler", "ncclProfiler_v", 1, 7},
    {"env", "ncclEnvPlugin_v", 1, 2},     {"rma", "ncclRmaPlugin_v", 13, 15},
    {"gin", "ncclGinPlugin_v", 11, 14},
};

static bool has_any(void *library, char *list, size_t room)
{
    size_t used = 0;

    *list = 0;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        for (int v = symbols[i].newest; v >= symbols[i].oldest; v--) {
            char name[64];
            snprintf(name, sizeof name, "%s%d", symbols[i].prefix, v);
            if (dlsym(library, name) && used < room)
                used += (size_t)snprintf(list + used, room - used, "%s%s v%d", used ? ", " : "", symbols[i].kind, v);
        }
    return used;
}

/* Is the address in memory of this process that can be executed? */
static bool is_executable(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    bool found = false;

    while (maps && !found && fgets(line, sizeof line, maps)) {
        char *at; /* "first-last mode ..." */
        const uintptr_t first = strtoull(line, &at, 16), last = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
        found = (uintptr_t)address >= first && (uintptr_t)address < last && !strncmp(at, " ", 1) && strlen(at) > 3 &&
                at[3] == 'x';
    }
    if (maps) fclose(maps);
    return found;
}

/* A function of a table is code of a library: its own, or one that it is linked with. */
static bool points_to_code(kl_plugin_fn *fn)
{
    Dl_info info;
    void *address;

    memcpy(&address, &fn, sizeof address);
    return dladdr(address, &info) && is_executable(address);
}

/* The last function of a version's table, counted from the name. */
static int last_function(int version)
{
    return version < 7 ? 16 : version < 9 ? 18 : version < 11 ? 19 : 21;
}

static void check_net_table(const char *file, struct kl_check_result *r)
{
    struct kl_net_library l;

    if (!kl_net_library_open(&l, file)) {
        kl_check_fails(r, "the net table has no printable name or lacks a function; NCCL_DEBUG=INFO says which");
        return;
    }
    const int functions = last_function(l.adapter->version);
    for (int i = 1; i <= functions; i++) {
        kl_plugin_fn *fn;
        memcpy(&fn, (const char *)l.table + (size_t)i * sizeof fn, sizeof fn);
        if (fn && !points_to_code(fn))
            kl_check_fails(r, "byte %zu of the net table: the function is no code", (size_t)i * sizeof fn);
    }
    kl_net_library_close(&l);
}

/* Of the file itself: the search under other names has overwritten it. */
static const char *why_not_opened(const char *file)
{
    (void)dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *why = dlerror();

    return why ? why : "it can be opened, but is no name of a plugin";
}

void kl_check_symbols(const char *file, struct kl_check_result *r)
{
    char taken[KL_PLUGIN_FILE], list[KL_CHECK_FIGURE];
    void *library = kl_plugin_open("net", file, taken);

    if (!library) {
        kl_check_fails(r, "%s cannot be opened: %s", file, why_not_opened(file));
        return;
    }
    if (!has_any(library, list, sizeof list)) {
        kl_check_fails(r, "%s exports no plugin of any kind and version", taken);
        return;
    }
    if (strstr(list, "net v") == list) check_net_table(file, r);
    kl_check_notes(r, "%s", list);
    kl_plugin_close(library);
}

/* ---- 2: cycles ---- */

/* A host may look at a plugin, and take another one. */
static bool give_back_unused(const char *file, struct kl_check_result *r)
{
    struct kl_trial_pair p;
    struct kl_trial b;

    if (!kl_trial_open(&b, file, r)) return false;
    kl_trial_close(&b);
    if (!kl_trial_open(&b, file, r) || !kl_trial_listen(&b, &p)) return false;
    kl_trial_unpair(&b, &p);
    kl_trial_close(&b);
    return true;
}

/* The first of two ends, and the second one goes on. */
static bool end_the_first(const char *file, struct kl_check_result *r)
{
    struct kl_trial first, second;
    struct kl_trial_pair p;

    if (!kl_trial_open(&first, file, r) || !kl_trial_open(&second, file, r)) return false;
    kl_trial_close(&first);
    if (strcmp(second.library.name, second.library.table->name) != 0)
        return kl_check_fails(r, "its name, %s, is another one after init", second.library.name);
    if (!kl_trial_pair(&second, &p)) return false;
    kl_trial_unpair(&second, &p);
    kl_trial_close(&second);
    return true;
}

void kl_check_cycles(const char *file, struct kl_check_result *r)
{
    struct kl_trial b, other;
    struct kl_trial_pair p;

    if (!give_back_unused(file, r) || !end_the_first(file, r)) return;
    for (int i = 0; i < 3; i++) {
        if (!kl_trial_open(&b, file, r)) return;
        if (!kl_trial_open(&other, file, r)) return;
        if (!kl_trial_pair(&b, &p)) return;
        kl_trial_unpair(&b, &p);
        kl_trial_close(&other);
        if (!kl_trial_pair(&b, &p)) return;
        kl_trial_unpair(&b, &p);
        kl_trial_close(&b);
    }
    kl_check_notes(r, "3 cycles of two contexts, either ends first; 2 without a use");
}

/* ---- 3: properties ---- */

static int int_at(const unsigned char *p, int at)
{
    int value = 0;

    if (at >= 0) memcpy(&value, p + at, sizeof value);
    return value;
}

static const char *name_at(const unsigned char *p)
{
    const char *name;

    memcpy(&name, p, sizeof name);
    return name;
}

static bool read_properties(struct kl_trial *b, int device, unsigned char p[ROOM])
{
    typedef int call(int, void *);
    const int bytes = b->library.adapter->layout.bytes;

    memset(p, 0, (size_t)bytes);
    memset(p + bytes, CANARY, ROOM - (size_t)bytes);
    kl_trial_note(b, "getProperties");
    if (((call *)b->library.table->properties)(device, p)) return kl_check_fails(b->result, "getProperties failed");
    kl_trial_note(b, "");
    for (int i = bytes; i < ROOM; i++)
        if (p[i] != CANARY) return kl_check_fails(b->result, "byte %d was written; the version has %d", i, bytes);
    return true;
}

static bool check_device(struct kl_trial *b, int device)
{
    const struct kl_net_abi_layout *at = &b->library.adapter->layout;
    unsigned char p[ROOM], q[ROOM];
    char name[KL_NET_PLUGIN_NAME + 1];

    if (!read_properties(b, device, p)) return false;
    if (!kl_plugin_is_text(name_at(p), KL_NET_PLUGIN_NAME))
        return kl_check_fails(b->result, "device %d has no name", device);
    snprintf(name, sizeof name, "%s", name_at(p));
    if (!read_properties(b, device, q)) return false;
    if (strcmp(name, name_at(p)) || strcmp(name, name_at(q)))
        return kl_check_fails(b->result, "the name of device %d changes", device);
    if (memcmp(p, q, (size_t)b->library.adapter->layout.bytes) != 0)
        return kl_check_fails(b->result, "the properties of device %d change from call to call", device);
    if (int_at(p, at->speed) <= 0)
        return kl_check_fails(b->result, "device %d has a speed of %d Mb/s", device, int_at(p, at->speed));
    if (at->max_recvs >= 0 && int_at(p, at->max_recvs) < 1)
        return kl_check_fails(b->result, "maxRecvs is %d", int_at(p, at->max_recvs));
    if (!(int_at(p, KL_NET_ABI_MEMORY) & KL_NET_ABI_HOST))
        return kl_check_fails(b->result, "ptrSupport has no host memory");
    return true;
}

void kl_check_properties(const char *file, struct kl_check_result *r)
{
    struct kl_trial b;

    if (!kl_trial_open(&b, file, r)) return;
    for (int i = 0; i < b.library.ndevices; i++)
        if (!check_device(&b, i)) return;
    kl_check_notes(r, "%d device%s, %s: %d Mb/s, %d receives at once", b.library.ndevices,
                   b.library.ndevices == 1 ? "" : "s", b.library.device[0].name, b.library.device[0].speed_mbps,
                   b.library.device[0].max_recvs);
    kl_trial_close(&b);
}

/* ---- 4 and 5: connecting ---- */

/* All connections at once: nothing is accepted before each has been begun. */
static bool connect_many(struct kl_trial *b)
{
    struct kl_trial_pair p[MANY];
    int missing;

    for (int i = 0; i < MANY; i++)
        if (!kl_trial_listen(b, &p[i]) || !kl_trial_connect_once(b, &p[i], p[i].handle)) return false;
    do {
        missing = 0;
        for (int i = MANY - 1; i >= 0; i--) { /* in another order than they were begun */
            if (!kl_trial_accept_once(b, &p[i]) || !kl_trial_connect_once(b, &p[i], p[i].handle)) return false;
            missing += !p[i].send || !p[i].recv;
        }
    } while (missing);
    for (int i = 0; i < MANY; i++) kl_trial_unpair(b, &p[i]);
    return true;
}

/* Each of some ranks, with a context of its own, connects to each other, all at once. */
static bool connect_all_to_all(const char *file, struct kl_check_result *r)
{
    static struct kl_trial b[RANKS];
    struct kl_trial_pair p[RANKS][RANKS];
    int missing;

    for (int i = 0; i < RANKS; i++)
        if (!kl_trial_open(&b[i], file, r)) return false;
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < RANKS; k++)
            if (!kl_trial_listen(&b[k], &p[i][k])) return false;
    do {
        missing = 0;
        for (int i = 0; i < RANKS; i++)
            for (int k = 0; k < RANKS; k++) { /* i sends, k receives */
                struct kl_trial_pair *q = &p[i][k];
                if (!kl_trial_connect_once(&b[i], q, q->handle) || !kl_trial_accept_once(&b[k], q)) return false;
                missing += !q->send || !q->recv;
            }
    } while (missing);
    for (int i = 0; i < RANKS; i++)
        for (int k = 0; k < RANKS; k++) {
            struct kl_trial_pair ours = {.send = p[i][k].send}, theirs = p[i][k];
            theirs.send = NULL;
            kl_trial_unpair(&b[i], &ours);
            kl_trial_unpair(&b[k], &theirs);
        }
    for (int i = 0; i < RANKS; i++) kl_trial_close(&b[i]);
    return true;
}

/* connect is polled before the peer accepts, then both in turn. */
static bool connect_one(struct kl_trial *b)
{
    struct kl_trial_pair p;

    if (!kl_trial_listen(b, &p)) return false;
    for (int i = 0; i < POLLS; i++)
        if (!kl_trial_connect_once(b, &p, p.handle)) return false;
    while (!p.send || !p.recv)
        if (!kl_trial_connect_once(b, &p, p.handle) || !kl_trial_accept_once(b, &p)) return false;
    kl_trial_unpair(b, &p);
    return true;
}

void kl_check_connecting(const char *file, struct kl_check_result *r)
{
    struct kl_trial_pace pace = {.calls = 0};
    struct kl_trial b;

    if (!kl_trial_open(&b, file, r)) return;
    for (int try = 0; try < KL_TRIAL_TRIES; try++) {
        b.connecting = (struct kl_call_times){.calls = 0};
        if (!connect_one(&b)) return;
        for (int i = 0; i < ROUNDS; i++)
            if (!connect_many(&b)) return;
        kl_trial_pace_add(&pace, &b.connecting);
    }
    kl_trial_close(&b);
    if (!kl_trial_pace_judge(&pace, r) || !connect_all_to_all(file, r)) return;
    kl_check_notes(r,
                   "%llu calls, the slowest %.2f ms, 99%% within %.3f ms; %d connections at once, %d ranks all to all",
                   (unsigned long long)pace.calls, (double)pace.most_ns / 1e6, (double)pace.p99_ns / 1e6, MANY, RANKS);
}

static bool check_canary(struct kl_trial *b, const unsigned char *behind)
{
    for (int i = 0; i < KL_TRIAL_HANDLE; i++)
        if (behind[i] != CANARY) return kl_check_fails(b->result, "byte %d behind the handle was written", i);
    return true;
}

void kl_check_handle(const char *file, struct kl_check_result *r)
{
    unsigned char room[2 * KL_TRIAL_HANDLE], *copy = malloc(2 * KL_TRIAL_HANDLE);
    struct kl_trial b;
    struct kl_trial_pair p = {.listener = NULL};

    if (!copy || !kl_trial_open(&b, file, r)) {
        free(copy);
        return;
    }
    memset(room, CANARY, sizeof room);
    memset(copy, CANARY, 2 * KL_TRIAL_HANDLE);
    kl_trial_note(&b, "listen");
    if (b.library.adapter->listen(&b.library, 0, room, &p.listener)) kl_check_fails(r, "listen failed");
    bool good = r->verdict == KL_CHECK_OK && check_canary(&b, room + KL_TRIAL_HANDLE);
    memcpy(copy, room, KL_TRIAL_HANDLE);
    memset(room, 0, sizeof room);
    int polls = 0;
    for (; good && !p.send && polls < CONNECTS && b.connecting.sum_ns < CONNECT_MS * UINT64_C(1000000); polls++)
        good = kl_trial_connect_once(&b, &p, copy);
    while (good && (!p.send || !p.recv)) good = kl_trial_connect_once(&b, &p, copy) && kl_trial_accept_once(&b, &p);
    if (good && check_canary(&b, copy + KL_TRIAL_HANDLE))
        kl_check_notes(r, "128 bytes, copied; connected after %d calls%s", polls,
                       p.send ? "" : ", and not before accept");
    if (good) kl_trial_unpair(&b, &p);
    if (good) kl_trial_close(&b);
    free(copy);
}

/* ---- 11: closing ---- */

void kl_check_closing(const char *file, struct kl_check_result *r)
{
    static char from[1 << 16], to[1 << 16];
    struct kl_trial_request s, q;
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_open(&b, file, r)) return;
    for (int order = 0; order < 6; order++) {
        if (!kl_trial_pair(&b, &p)) return;
        if (!kl_trial_irecv(&b, &p, to, sizeof to, 0, &q)) return;
        if (order >= 3 && !kl_trial_isend(&b, &p, from, sizeof from, 0, &s)) return;
        void **const ends[] = {&p.send, &p.recv, &p.listener};
        for (int i = 0; i < 3; i++) { /* in one of three orders */
            void **e = ends[(order + i) % 3];
            struct kl_trial_pair one = {.listener = NULL};
            if (e == &p.send) one.send = *e;
            if (e == &p.recv) one.recv = *e;
            if (e == &p.listener) one.listener = *e;
            kl_trial_unpair(&b, &one);
            *e = NULL;
        }
    }
    kl_check_notes(r, "6 orders, with one and two requests outstanding");
    kl_trial_close(&b);
}

/* ---- 15 and 16: changes and remains ---- */

/* The handlers of all signals. */
static void read_handlers(struct sigaction handler[NSIG])
{
    for (int i = 1; i < NSIG; i++)
        if (sigaction(i, NULL, &handler[i])) handler[i].sa_handler = SIG_DFL;
}

static int changed_handler(const struct sigaction before[NSIG], const struct sigaction after[NSIG])
{
    for (int i = 1; i < NSIG; i++)
        if (before[i].sa_handler != after[i].sa_handler) return i;
    return 0;
}

static int entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

static bool use(const char *file, struct kl_check_result *r)
{
    static char from[4096], to[4096];
    struct kl_trial b;
    struct kl_trial_pair p;

    if (!kl_trial_open(&b, file, r)) return false;
    if (!kl_trial_pair(&b, &p) || !kl_trial_move(&b, &p, from, to, sizeof from)) return false;
    kl_trial_unpair(&b, &p);
    kl_trial_close(&b);
    return true;
}

/* A child that ends at once, as programs have: the connection of this process goes on. */
static bool use_after_fork(const char *file, struct kl_check_result *r)
{
    static char from[4096], to[4096];
    struct kl_trial_pair p;
    struct kl_trial b;

    if (!kl_trial_open(&b, file, r) || !kl_trial_pair(&b, &p)) return false;
    for (unsigned i = 0; i < 3; i++) {
        const pid_t child = fork();
        if (!child) _exit(0);
        if (child > 0) waitpid(child, NULL, 0);
        kl_trial_fill(from, sizeof from, i);
        if (!kl_trial_move(&b, &p, from, to, sizeof from)) return false;
        if (!kl_trial_is_filled(to, sizeof to, i)) return kl_check_fails(r, "after a fork other data came");
    }
    kl_trial_unpair(&b, &p);
    kl_trial_close(&b);
    return true;
}

void kl_check_environment(const char *file, struct kl_check_result *r)
{
    int before = 0, after = 0;
    char *had[4096];

    for (; environ[before] && before < 4096; before++) had[before] = strdup(environ[before]);
    if (!use(file, r)) return;
    for (; environ[after] && after < 4096; after++)
        if (after >= before || !had[after] || strcmp(environ[after], had[after])) {
            kl_check_fails(r, "it has set or changed %.*s", (int)strcspn(environ[after], "="), environ[after]);
            return;
        }
    if (after != before) kl_check_fails(r, "%d variables have become %d", before, after);
    if (r->verdict == KL_CHECK_OK && use_after_fork(file, r))
        kl_check_notes(r, "%d variables, unchanged; 3 forks", before);
}

void kl_check_remains(const char *file, struct kl_check_result *r)
{
    const int fds = entries("/proc/self/fd"), threads = entries("/proc/self/task");
    static struct sigaction before[NSIG], after[NSIG];

    read_handlers(before);
    if (!use(file, r)) return;
    read_handlers(after);
    const int signal = changed_handler(before, after);
    if (signal) kl_check_fails(r, "the handler of signal %d (%s) has changed", signal, strsignal(signal));
    const uint64_t deadline = kl_deadline_in_ms(ENDING_MS); /* of threads that are ending */
    while (entries("/proc/self/task") > threads && !kl_deadline_passed(deadline)) usleep(5000);
    const int fds_now = entries("/proc/self/fd"), threads_now = entries("/proc/self/task");
    if (threads_now > threads) kl_check_fails(r, "%d threads remain", threads_now - threads);
    if (fds_now > fds) kl_check_fails(r, "%d descriptors remain", fds_now - fds);
    kl_check_notes(r, "no thread, signal handler or descriptor remains");
}
