/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/net_bench.h"
#include "tools/kolo/plugin/raw_net.h"
#include "tools/kolo/plugin/trial.h"

#include "base/clock.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_DEPTH = 1 << (KL_NET_BENCH_DEPTHS - 1), REG_TIMES = 20, MOST_BUFFER = 64 << 20 };

const char *const kl_net_bench_call_name[KL_NET_BENCH_CALLS] = {"listen", "connect", "accept", "regMr", "deregMr",
                                                                "isend",  "irecv",   "test",   "close"};
const size_t kl_net_bench_reg_bytes[KL_NET_BENCH_REGS] = {4 << 10, 64 << 10, 1 << 20, 16 << 20};

/* A connection in one direction, and its outstanding messages, in their order. */
struct lane {
    void *conn, *listener;
    bool sends;
    struct kl_net_handle handle; /* a plugin may keep its state in it while it connects */
    char *data;
    void *mr;
    size_t slots; /* of the size that is measured, in `data` */
    uint64_t posted, done;
    void *request[MOST_DEPTH];
};

struct side {
    const struct kl_net *net;
    struct kl_net_bench_side *out;
    const struct kl_perf_config *config;
    int number, peer, tag;
    uint64_t begun; /* of the call under way */
    uint64_t in_calls_ns;
    uint64_t outstanding;
    struct lane lane[2 * KL_NET_BENCH_CONNS]; /* those that send, then those that receive */
};

/* In rounds of the outstanding messages. */
static uint64_t messages_of(const struct kl_perf_config *config, int depth)
{
    return (uint64_t)config->iterations << depth;
}

/* ---- calls ---- */

static void begin(struct side *s, enum kl_net_bench_call call)
{
    snprintf(s->out->result.call, sizeof s->out->result.call, "%s", kl_net_bench_call_name[call]);
    s->begun = kl_now_ns();
}

static bool end(struct side *s, enum kl_net_bench_call call, ncclResult_t rc)
{
    const uint64_t ns = kl_now_ns() - s->begun;

    s->in_calls_ns += ns;
    kl_call_times_add(&s->out->call[call], ns);
    s->out->result.call[0] = 0;
    if (!rc || rc == ncclInProgress) return true;
    return kl_check_fails(&s->out->result, "%s returned %d (%s)%s%s", kl_net_bench_call_name[call], (int)rc,
                          kl_result_text(rc), s->net == &kl_net_raw ? "" : ": ",
                          s->net == &kl_net_raw ? "" : kl_error_text());
}

static void advance(struct side *s)
{
    kl_store_relaxed(&s->out->progress, kl_load_relaxed(&s->out->progress) + 1);
}

/* Wait until the other side is here as well. */
static bool meet(struct side *s)
{
    char byte = 'm';

    snprintf(s->out->result.call, sizeof s->out->result.call, "none, it waits for the other side");
    if (write(s->peer, &byte, 1) != 1 || read(s->peer, &byte, 1) != 1)
        return kl_check_fails(&s->out->result, "the other side has ended");
    s->out->result.call[0] = 0;
    return true;
}

/* ---- connections ---- */

static struct kl_net_end end_of(const struct side *s, const struct lane *l)
{
    const uint32_t id = (uint32_t)((l - s->lane) % KL_NET_BENCH_CONNS);

    return (struct kl_net_end){
        .rank = s->number, .peer = 1 - s->number, .id = id, .deadline = kl_deadline_in_ms(60000)};
}

static bool listen_on(struct side *s, struct lane *l)
{
    const struct kl_net_end me = end_of(s, l);

    begin(s, KL_NET_BENCH_LISTEN);
    const ncclResult_t rc = s->net->listen(0, &me, &l->handle, &l->listener);
    return end(s, KL_NET_BENCH_LISTEN, rc) &&
           (l->listener || kl_check_fails(&s->out->result, "listen gave no listener"));
}

static bool exchange_handles(struct side *s)
{
    struct lane *sends = s->lane, *receives = s->lane + KL_NET_BENCH_CONNS;

    for (int i = 0; i < KL_NET_BENCH_CONNS; i++) {
        if (!listen_on(s, &receives[i])) return false;
        if (write(s->peer, &receives[i].handle, KL_NET_HANDLE) != KL_NET_HANDLE)
            return kl_check_fails(&s->out->result, "the other side has ended");
    }
    for (int i = 0; i < KL_NET_BENCH_CONNS; i++)
        for (size_t got = 0; got < KL_NET_HANDLE;) {
            const ssize_t n = read(s->peer, sends[i].handle.bytes + got, KL_NET_HANDLE - got);
            if (n <= 0) return kl_check_fails(&s->out->result, "the other side has ended");
            got += (size_t)n;
        }
    return true;
}

static bool connect_once(struct side *s, struct lane *l, const struct kl_net_end *me, bool *there)
{
    const enum kl_net_bench_call call = l->sends ? KL_NET_BENCH_CONNECT : KL_NET_BENCH_ACCEPT;

    begin(s, call);
    const ncclResult_t rc =
        l->sends ? s->net->connect(0, me, &l->handle, &l->conn) : s->net->accept(l->listener, me, &l->conn);
    if (!end(s, call, rc)) return false;
    *there = !rc;
    if (*there) advance(s);
    return true;
}

static bool connect_all(struct side *s)
{
    struct kl_net_end me[2 * KL_NET_BENCH_CONNS];
    bool there[2 * KL_NET_BENCH_CONNS] = {false};
    const uint64_t begun = kl_now_ns();
    int missing;

    if (!exchange_handles(s)) return false;
    for (int i = 0; i < 2 * KL_NET_BENCH_CONNS; i++) me[i] = end_of(s, &s->lane[i]);
    do {
        missing = 0;
        for (int i = 0; i < 2 * KL_NET_BENCH_CONNS; i++) {
            if (!there[i] && !connect_once(s, &s->lane[i], &me[i], &there[i])) return false;
            missing += !there[i];
        }
    } while (missing);
    s->out->connecting_s = (double)(kl_now_ns() - begun) / 1e9;
    return meet(s);
}

static void close_all(struct side *s)
{
    for (int i = 0; i < 2 * KL_NET_BENCH_CONNS; i++) {
        struct lane *l = &s->lane[i];
        if (l->mr) {
            begin(s, KL_NET_BENCH_DEREG_MR);
            end(s, KL_NET_BENCH_DEREG_MR, s->net->dereg_mr(l->conn, l->mr));
        }
        begin(s, KL_NET_BENCH_CLOSE);
        (l->sends ? s->net->close_send : s->net->close_recv)(l->conn);
        end(s, KL_NET_BENCH_CLOSE, ncclSuccess);
        s->net->close_listen(l->listener);
        free(l->data);
    }
}

/* ---- memory ---- */

static bool reg(struct side *s, struct lane *l, void *data, size_t bytes, void **mr)
{
    begin(s, KL_NET_BENCH_REG_MR);
    const ncclResult_t rc = s->net->reg_mr(l->conn, data, bytes, KL_NET_HOST, mr);
    return end(s, KL_NET_BENCH_REG_MR, rc);
}

static bool dereg(struct side *s, struct lane *l, void *mr)
{
    begin(s, KL_NET_BENCH_DEREG_MR);
    return end(s, KL_NET_BENCH_DEREG_MR, s->net->dereg_mr(l->conn, mr));
}

static bool make_buffers(struct side *s)
{
    const size_t most = s->config->max_bytes, all = most * MOST_DEPTH;
    const size_t bytes = all < MOST_BUFFER ? all : most > MOST_BUFFER ? most : MOST_BUFFER;

    for (int i = 0; i < 2 * KL_NET_BENCH_CONNS; i++) {
        struct lane *l = &s->lane[i];
        l->data = calloc(1, bytes);
        if (!l->data) return kl_check_fails(&s->out->result, "no memory for buffers of %zu bytes", bytes);
        if (!reg(s, l, l->data, bytes, &l->mr)) return false;
        s->out->registered += bytes;
    }
    return true;
}

static bool measure_registration(struct side *s)
{
    struct lane *l = &s->lane[0];
    char *data = calloc(1, kl_net_bench_reg_bytes[KL_NET_BENCH_REGS - 1]);
    bool good = data || kl_check_fails(&s->out->result, "no memory for a buffer");

    for (int i = 0; good && i < KL_NET_BENCH_REGS; i++)
        for (int k = 0; good && k < REG_TIMES; k++) {
            void *mr = NULL;
            good = reg(s, l, data, kl_net_bench_reg_bytes[i], &mr);
            kl_call_times_add(&s->out->reg[i], kl_now_ns() - s->begun);
            good = good && dereg(s, l, mr);
        }
    free(data);
    return good;
}

/* ---- messages ---- */

static bool post(struct side *s, struct lane *l, size_t bytes)
{
    char *data = l->data + (l->posted % l->slots) * bytes;
    void **request = &l->request[l->posted % MOST_DEPTH];
    const struct kl_net_recv part = {.data = data, .bytes = bytes, .tag = 0, .mr = l->mr};
    const enum kl_net_bench_call call = l->sends ? KL_NET_BENCH_ISEND : KL_NET_BENCH_IRECV;

    *request = NULL;
    begin(s, call);
    const ncclResult_t rc =
        l->sends ? s->net->isend(l->conn, data, bytes, 0, l->mr, request) : s->net->irecv(l->conn, 1, &part, request);
    if (!end(s, call, rc)) return false;
    if (!*request) s->out->none[call]++;
    if (!*request) return true;
    l->posted++;
    if (++s->outstanding > (uint64_t)s->out->most_outstanding) s->out->most_outstanding = (int)s->outstanding;
    return true;
}

static bool test(struct side *s, struct lane *l, size_t bytes)
{
    size_t size = bytes;
    bool done = false;

    begin(s, KL_NET_BENCH_TEST);
    const ncclResult_t rc = s->net->test(l->request[l->done % MOST_DEPTH], &done, &size);
    if (!end(s, KL_NET_BENCH_TEST, rc)) return false;
    if (!done) return true;
    if (!l->sends && size != bytes)
        return kl_check_fails(&s->out->result, "a message of %zu bytes came as %zu", bytes, size);
    l->done++;
    s->outstanding--;
    s->out->messages++;
    s->out->bytes += bytes;
    advance(s);
    return true;
}

/* `count` messages on each of `n` lanes, at most `depth` outstanding on each. */
static bool move(struct side *s, struct lane *const *lane, int n, size_t bytes, uint64_t count, uint64_t depth)
{
    int left = n;

    for (int i = 0; i < n; i++) lane[i]->posted = lane[i]->done = 0;
    while (left) {
        left = 0;
        for (int i = 0; i < n; i++) {
            struct lane *l = lane[i];
            const uint64_t before = l->posted;
            do {
                if (l->posted == count || l->posted - l->done == depth) break;
                if (!post(s, l, bytes)) return false;
            } while (l->posted > before && l->posted - before < depth);
            if (l->done < l->posted && !test(s, l, bytes)) return false;
            left += l->done < count;
        }
    }
    return true;
}

/* ---- the sweep ---- */

/* The lanes of this side: the first process sends, and with two ways both send and receive. */
static int pick(struct side *s, int conns, int ways, struct lane *picked[2 * KL_NET_BENCH_CONNS])
{
    int n = 0;

    for (int i = 0; i < conns; i++) {
        if (ways == 2 || s->number == 0) picked[n++] = &s->lane[i];
        if (ways == 2 || s->number == 1) picked[n++] = &s->lane[KL_NET_BENCH_CONNS + i];
    }
    return n;
}

/* One message of each size, looked at. */
static bool verify(struct side *s, size_t bytes)
{
    struct lane *lanes[2 * KL_NET_BENCH_CONNS];
    const int n = pick(s, 1, 2, lanes);

    kl_trial_fill(s->lane[0].data, bytes, (unsigned)s->number);
    if (!move(s, lanes, n, bytes, 1, 1)) return false;
    if (kl_trial_is_filled(s->lane[KL_NET_BENCH_CONNS].data, bytes, 1 - (unsigned)s->number)) return true;
    return kl_check_fails(&s->out->result, "a message of %zu bytes came with other contents", bytes);
}

static bool measure_point(struct side *s, struct kl_net_bench_size *z, int conns, int ways, int depth)
{
    struct lane *lanes[2 * KL_NET_BENCH_CONNS];
    const int n = pick(s, 1 << conns, ways, lanes);
    const uint64_t warm = (uint64_t)s->config->warmups << depth;

    if (!move(s, lanes, n, z->bytes, warm, 1u << depth) || !meet(s)) return false;
    const uint64_t begun = kl_now_ns();
    if (!move(s, lanes, n, z->bytes, messages_of(s->config, depth), 1u << depth)) return false;
    z->seconds[conns][ways - 1][depth] = (double)(kl_now_ns() - begun) / 1e9;
    return true;
}

static bool measure_size(struct side *s, uint64_t bytes)
{
    struct kl_net_bench_size *z = &s->out->size[s->out->nsizes++];

    z->bytes = bytes;
    for (int i = 0; i < 2 * KL_NET_BENCH_CONNS; i++) {
        const size_t room = s->config->max_bytes * MOST_DEPTH;
        const size_t all = room < MOST_BUFFER ? room : MOST_BUFFER;
        s->lane[i].slots = all / bytes > MOST_DEPTH ? MOST_DEPTH : all / bytes ? all / bytes : 1;
    }
    if (!verify(s, bytes)) return false;
    for (int c = 0; c < KL_NET_BENCH_CONN_STEPS; c++)
        for (int ways = 1; ways <= 2; ways++)
            for (int d = 0; d < KL_NET_BENCH_DEPTHS; d++)
                if (!measure_point(s, z, c, ways, d)) return false;
    return true;
}

/* ---- use of the machine ---- */

static double cpu_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int count_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* A counter of system calls of this process and of threads that it will start; -1: there is none here. */
static int count_syscalls(struct kl_net_bench_side *out)
{
    static const char *const files[] = {"/sys/kernel/tracing/events/raw_syscalls/sys_enter/id",
                                        "/sys/kernel/debug/tracing/events/raw_syscalls/sys_enter/id"};
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof attr, .inherit = 1};
    unsigned long long id = 0;

    for (int i = 0; i < 2 && !id; i++) {
        FILE *f = fopen(files[i], "re");
        char text[32] = "";
        if (!f) continue;
        if (fgets(text, sizeof text, f)) id = strtoull(text, NULL, 10);
        fclose(f);
    }
    if (!id) {
        snprintf(out->syscalls_why, sizeof out->syscalls_why, "%s: %s", files[0], strerror(errno));
        return -1;
    }
    attr.config = id;
    const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
    if (fd < 0) snprintf(out->syscalls_why, sizeof out->syscalls_why, "perf_event_open: %s", strerror(errno));
    return fd;
}

static int64_t read_syscalls(int fd)
{
    uint64_t n = 0;

    return fd >= 0 && read(fd, &n, sizeof n) == (ssize_t)sizeof n ? (int64_t)n : -1;
}

/* The CPU time of the calling thread is divided by the time in calls; the CPU time of other threads is the plugin's. */
static bool sweep(struct side *s)
{
    const double thread = cpu_s(CLOCK_THREAD_CPUTIME_ID), process = cpu_s(CLOCK_PROCESS_CPUTIME_ID);
    const uint64_t begun = kl_now_ns();
    bool good = true;

    s->in_calls_ns = s->out->bytes = s->out->messages = 0;
    for (uint64_t b = s->config->min_bytes; good && b && s->out->nsizes < KL_NET_BENCH_SIZES;
         b = kl_perf_next_size(s->config, b))
        good = measure_size(s, b);
    const double own = cpu_s(CLOCK_THREAD_CPUTIME_ID) - thread, all = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - process;
    const double share = (double)s->in_calls_ns / (double)(kl_now_ns() - begun);
    s->out->plugin_cpu_s = own * share + (all > own ? all - own : 0);
    s->out->caller_cpu_s = own * (1 - share);
    return good;
}

/* ---- the whole ---- */

static void describe(struct side *s, const char *file)
{
    struct kl_net_bench_side *out = s->out;

    snprintf(out->name, sizeof out->name, "%s", file ? kl_raw_net_library()->name : s->net->name);
    if (file) {
        snprintf(out->library, sizeof out->library, "%.*s", KL_NET_BENCH_TEXT - 1, kl_raw_net_library()->file);
        out->version = kl_raw_net_library()->adapter->version;
    }
    out->ndevices = s->net->devices();
    for (int i = 0; i < out->ndevices && i < KL_NET_BENCH_DEVICES; i++) {
        struct kl_net_properties p;
        struct kl_net_bench_device *d = &out->device[i];
        if (s->net->properties(i, &p)) continue;
        snprintf(d->name, sizeof d->name, "%s", p.name);
        snprintf(d->pci_path, sizeof d->pci_path, "%s", p.pci_path ? p.pci_path : "");
        d->speed_mbps = p.speed_mbps;
        d->max_recvs = p.max_recvs;
        d->memory = p.memory;
    }
}

static bool fits(struct side *s)
{
    struct kl_net_properties p;

    if (s->net->properties(0, &p)) return kl_check_fails(&s->out->result, "%s", kl_error_text());
    if (s->config->max_bytes <= p.max_bytes) return true;
    return kl_check_fails(&s->out->result, "a message has at most %zu bytes; give -e", p.max_bytes);
}

static bool open_net(struct side *s, const char *file)
{
    snprintf(s->out->result.call, sizeof s->out->result.call, "init");
    if (file) {
        s->net = &kl_net_raw;
        if (kl_raw_net_open(file)) return true;
        return kl_check_fails(&s->out->result, "it is not usable; `kolo plugin check %s` says why", file);
    }
    s->net = &kl_net_socket;
    return !s->net->init() || kl_check_fails(&s->out->result, "%s", kl_error_text());
}

void kl_net_bench_side_run(const struct kl_perf_config *config, const char *file, int number, int peer,
                           struct kl_net_bench_side *out)
{
    struct side *s = calloc(1, sizeof *s);
    const int threads = count_threads();

    if (!s) {
        kl_check_fails(&out->result, "no memory");
        return;
    }
    *s = (struct side){.out = out, .config = config, .number = number, .peer = peer};
    for (int i = 0; i < KL_NET_BENCH_CONNS; i++) s->lane[i].sends = true;
    const int counter = count_syscalls(out);
    if (open_net(s, file)) {
        describe(s, file);
        const bool good = fits(s) && connect_all(s) && make_buffers(s) && measure_registration(s);
        const int64_t before = read_syscalls(counter);
        if (good && sweep(s)) meet(s);
        const int64_t after = read_syscalls(counter);
        out->syscalls = before < 0 || after < 0 ? -1 : after - before;
        out->threads = count_threads() - threads;
        if (out->result.verdict == KL_CHECK_OK) {
            close_all(s);
            if (file) kl_raw_net_close();
        }
    }
    if (counter >= 0) close(counter);
    free(s);
}
