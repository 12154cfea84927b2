/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/launch.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/affinity.h"
#include "os/chaos.h"
#include "tools/kolo/cmd.h"
#include "tools/kolo/endings.h"
#include "tools/kolo/fabric.h"
#include "tools/kolo/jobid.h"
#include "tools/kolo/lines.h"
#include "tools/kolo/netns.h"
#include "tools/kolo/rankenv.h"
#include "tools/kolo/spawn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WATCH_MS = 100, POLL_MAX_MS = 60000, PER_RANK = 2, NETNS_PORT = 29500 };
enum { CHUNK = 65536, PIPE_CHUNKS = 16 }; /* together more than a pipe holds */

/* One of a rank's two outputs, which is passed on. */
struct output {
    int fd; /* -1: closed */
    struct kl_lines lines;
};

struct process {
    pid_t pid; /* 0: not started */
    char prefix[24];
    struct output output[PER_RANK]; /* stdout, stderr */
};

struct launcher {
    const struct kl_launch *job;
    struct process *process;
    struct pollfd *polled; /* the signals, then the outputs of each rank */
    struct kl_endings endings;
    struct kl_netns netns;
    struct kl_janitor janitor;
    sigset_t inherited_mask;
    int signals;         /* signalfd */
    int asked;           /* the signal that asked the launcher to end; 0: none */
    int null;            /* /dev/null */
    uint64_t deadline;   /* of the whole job */
    uint64_t next_watch; /* time of the next call of is_stuck */
    char id[KL_JOBID_TEXT];
    int domain_hosts; /* of each NVLink domain */
    char hostname[64], master_addr[32];
    int master_port;
};

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
enum { NPASSED_ON = sizeof passed_on / sizeof passed_on[0] };

static int complain(const struct launcher *l, const char *what, const char *why)
{
    fprintf(l->job->err, "%s: %s: %s\n", l->job->who, what, why);
    return -1;
}

/* ---- before the ranks ---- */

/* Descriptors 0 to 2 must be taken, or a pipe of ours would get one of them. */
static int open_null(struct launcher *l)
{
    do l->null = open("/dev/null", O_RDWR);
    while (l->null >= 0 && l->null <= 2);
    if (l->null < 0) return complain(l, "/dev/null", strerror(errno));
    fcntl(l->null, F_SETFD, FD_CLOEXEC);
    return 0;
}

static int catch_signals(struct launcher *l)
{
    sigset_t caught;

    sigemptyset(&caught);
    sigaddset(&caught, SIGCHLD);
    for (int i = 0; i < NPASSED_ON; i++) sigaddset(&caught, passed_on[i]);
    sigprocmask(SIG_BLOCK, &caught, &l->inherited_mask);
    signal(SIGPIPE, SIG_IGN);
    l->signals = signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    return l->signals < 0 ? complain(l, "signalfd", strerror(errno)) : 0;
}

enum { FIRST_PORT = 20000, NPORTS = 12000 }; /* below those that the kernel gives to connections by itself */

static int is_free_port(int port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_ANY)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int is_free = s >= 0 && !bind(s, (struct sockaddr *)&at, sizeof at);

    if (s >= 0) close(s);
    return is_free;
}

/* A port that is free now; as with torchrun, another job may take it before rank 0 binds it. */
static int free_port(void)
{
    unsigned first = 0;

    if (getrandom(&first, sizeof first, 0) < 0) first = (unsigned)getpid();
    for (unsigned i = 0; i < NPORTS; i++) {
        int port = FIRST_PORT + (int)((first % NPORTS + i) % NPORTS);
        if (is_free_port(port)) return port;
    }
    return NETNS_PORT;
}

static int find_domains(struct launcher *l)
{
    const struct kl_launch *job = l->job;
    char why[512];

    if (!kl_fabric_find(job->topo_file, job->nhosts, job->netns, &l->domain_hosts, why, sizeof why)) return 0;
    return complain(l, job->netns ? "--netns" : "--hosts", why);
}

static int make_network(struct launcher *l)
{
    char why[256];

    snprintf(l->master_addr, sizeof l->master_addr, "127.0.0.1");
    l->master_port = NETNS_PORT;
    if (!l->job->netns) {
        l->master_port = free_port();
        return 0;
    }
    if (kl_netns_open(&l->netns, l->job->nhosts, l->job->link_rate, why, sizeof why))
        return complain(l, "--netns", why);
    kl_netns_address(0, l->master_addr, sizeof l->master_addr);
    return 0;
}

static int make_id(struct launcher *l)
{
    ncclUniqueId id;

    if (!l->job->make_id) return 0;
    if (l->job->make_id(&id)) return complain(l, "making the job's id", kl_error_text());
    kl_jobid_print(&id, l->id);
    return 0;
}

static int allocate(struct launcher *l)
{
    int n = l->job->nranks;

    l->process = calloc((size_t)n, sizeof *l->process);
    l->polled = calloc(1 + PER_RANK * (size_t)n, sizeof *l->polled);
    for (int r = 0; l->process && r < n; r++)
        for (int i = 0; i < PER_RANK; i++) l->process[r].output[i].fd = -1;
    if (kl_endings_init(&l->endings, n, l->job->grace_ms) || !l->process || !l->polled)
        return complain(l, "starting ranks", "out of memory");
    l->endings.verdict = l->job->verdict;
    return 0;
}

static int prepare(struct launcher *l)
{
    kl_chaos_spare(); /* the launcher ends hanging ranks, so it must not hang itself */
    if (allocate(l)) return -1;
    gethostname(l->hostname, sizeof l->hostname - 1);
    if (find_domains(l) || open_null(l) || catch_signals(l) || make_network(l) || make_id(l)) return -1;
    int err = kl_janitor_start(&l->janitor);
    if (err == ENOENT && access(KL_SPAWN_SELF, F_OK))
        return complain(l, "starting processes",
                        "there is no " KL_SPAWN_SELF " here: mount /proc (mount -t proc proc /proc)");
    return err ? complain(l, "starting the process that cleans up", strerror(err)) : 0;
}

/* ---- starting ranks ---- */

static char **environment_of(const struct launcher *l, int rank, int host)
{
    int local_size = l->job->nranks / l->job->nhosts;
    char host_id[96];
    struct kl_rank_env r = {
        .rank = rank,
        .size = l->job->nranks,
        .local_rank = rank % local_size,
        .local_size = local_size,
        .comm_id = l->job->make_id ? l->id : NULL,
        .master_addr = l->master_addr,
        .master_port = l->master_port,
        .host_id = l->job->nhosts > 1 ? host_id : NULL,
        .topo_file = l->job->topo_file,
        .host_devices = l->job->host_devices,
        .mnnvl = l->domain_hosts > 1 ? 1 + host / l->domain_hosts : 0,
        .link_mbps = (int)(l->job->link_rate / 1000000),
    };

    snprintf(host_id, sizeof host_id, "%s-%d", l->hostname, host);
    return kl_rank_environ(environ, &r);
}

/* Our end does not block; theirs does, as programs expect. */
static int open_output(struct output *o, const char *prefix, int *theirs)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC)) return errno;
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *o = (struct output){.fd = fds[0], .lines = {.prefix = prefix}};
    *theirs = fds[1];
    return 0;
}

/* The CPUs of a rank: an equal, contiguous share of this process's; if there are fewer than ranks, one in turn, or none. */
static bool share_of(const struct kl_cpuset *all, const struct kl_launch *job, int rank, struct kl_cpuset *share)
{
    int ncpus = kl_cpuset_count(all), each = ncpus / job->nranks, i = 0;

    *share = (struct kl_cpuset){{0}};
    for (int cpu = -1; (cpu = kl_cpuset_next(all, cpu + 1)) >= 0; i++)
        if (each ? i / each == rank : job->bound && i == rank % ncpus) kl_cpuset_add(share, cpu);
    return kl_cpuset_count(share) > 0;
}

/* Ranks that spin on one core while another is idle cost thousands of times more: a rank inherits the CPUs of the thread that
 * starts it, and this is that thread. */
static int spawn_bound(const struct launcher *l, int rank, const struct kl_spawn *what, pid_t *pid)
{
    struct kl_cpuset all, share;

    if (l->job->unbound || kl_affinity_get(&all) || !share_of(&all, l->job, rank, &share) ||
        kl_affinity_pin(&share, NULL))
        return kl_spawn_rank(what, pid);
    int err = kl_spawn_rank(what, pid);
    kl_affinity_pin(&all, NULL);
    return err;
}

static int start_rank(struct launcher *l, int rank)
{
    struct process *p = &l->process[rank];
    int host = rank / (l->job->nranks / l->job->nhosts);
    struct kl_spawn what = {
        .path = l->job->path, .argv = l->job->argv, .mask = l->inherited_mask, .out = -1, .err = -1};

    if (l->job->tag) snprintf(p->prefix, sizeof p->prefix, "[%d] ", rank);
    what.in = rank || isatty(0) ? l->null : 0;
    what.ns = l->job->netns ? l->netns.fd[host] : -1;
    what.kept = l->job->kept_fd;
    char **env = environment_of(l, rank, host);
    what.env = env;
    int err = env ? 0 : ENOMEM;
    if (!err) err = open_output(&p->output[0], p->prefix, &what.out);
    if (!err) err = open_output(&p->output[1], p->prefix, &what.err);
    if (!err) err = spawn_bound(l, rank, &what, &p->pid);
    if (!err) kl_janitor_watch(&l->janitor, p->pid);
    if (what.out >= 0) close(what.out);
    if (what.err >= 0) close(what.err);
    kl_rank_environ_free(env);
    return err;
}

static int start_ranks(struct launcher *l)
{
    for (int r = 0; r < l->job->nranks; r++) {
        int err = start_rank(l, r);
        if (!err) continue;
        fprintf(l->job->err, "%s: starting rank %d of %d: %s\n", l->job->who, r, l->job->nranks, strerror(err));
        return -1;
    }
    return 0;
}

/* ---- while they run ---- */

static void signal_ranks(const struct launcher *l, int signal)
{
    for (int r = 0; r < l->job->nranks; r++)
        if (l->process[r].pid && !l->endings.rank[r].ended) kill(-l->process[r].pid, signal);
}

static void close_output(struct output *o, FILE *to)
{
    if (o->fd < 0) return;
    kl_lines_end(&o->lines, to);
    close(o->fd);
    o->fd = -1;
}

/* Pass on available output; bounded, because other ranks wait while one writes faster than we read. If our stream cannot be
 * written any more, close the ranks' pipes: they get the error that they would get without us. */
static void pass_output(struct output *o, FILE *to, int chunks)
{
    static char chunk[CHUNK];

    while (o->fd >= 0 && chunks--) {
        ssize_t n = read(o->fd, chunk, sizeof chunk);

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0 || kl_lines_feed(&o->lines, chunk, (size_t)n, to) || ferror(to)) close_output(o, to);
    }
}

static void pass_outputs(struct launcher *l)
{
    for (int r = 0; r < l->job->nranks; r++) {
        pass_output(&l->process[r].output[0], l->job->out, 1);
        pass_output(&l->process[r].output[1], l->job->err, 1);
    }
}

static void announce_death(const struct launcher *l, int rank)
{
    char how[160];

    kl_endings_describe(&l->endings, rank, l->job->who, how, sizeof how);
    if (l->endings.nrunning)
        fprintf(l->job->err, "%s: %s; the others have %g s to end\n", l->job->who, how,
                (double)l->endings.grace_ms / 1000);
}

/* Ended ranks stay unreaped to the end, so that their process groups keep their numbers. */
static void note_endings(struct launcher *l)
{
    for (int r = 0; r < l->job->nranks; r++) {
        siginfo_t info = {.si_pid = 0};

        if (l->endings.rank[r].ended || !l->process[r].pid) continue;
        if (waitid(P_PID, (id_t)l->process[r].pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid) continue;
        bool exited = info.si_code == CLD_EXITED;
        bool first =
            kl_endings_ended(&l->endings, r, exited ? info.si_status : 0, exited ? 0 : info.si_status, kl_now_ns());
        if (first) announce_death(l, r);
    }
}

static void pass_signal(struct launcher *l, int signal)
{
    signal_ranks(l, signal);
    if (signal == SIGTSTP) raise(SIGSTOP); /* ours was caught */
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) {
        l->asked = signal;
        kl_endings_asked(&l->endings, signal, kl_now_ns());
    }
}

static void take_signals(struct launcher *l)
{
    struct signalfd_siginfo info;

    while (read(l->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            note_endings(l);
        else
            pass_signal(l, (int)info.ssi_signo);
    }
}

static void look_at_the_clock(struct launcher *l)
{
    if (kl_deadline_passed(l->deadline)) {
        fprintf(l->job->err, "%s: not finished after %g s\n", l->job->who, (double)l->job->timeout_ms / 1000);
        l->deadline = KL_NO_DEADLINE;
        kl_endings_time_is_up(&l->endings, kl_now_ns());
    }
    if (kl_deadline_passed(l->next_watch)) {
        bool stuck = l->job->is_stuck(l->job->context);

        l->next_watch = stuck ? KL_NO_DEADLINE : kl_deadline_in_ms(WATCH_MS);
        if (stuck) kl_endings_time_is_up(&l->endings, kl_now_ns());
    }
    int signal = kl_endings_due(&l->endings, kl_now_ns());
    if (signal) {
        signal_ranks(l, signal);
        if (signal != SIGKILL) signal_ranks(l, SIGCONT); /* a stopped rank would not see it */
    }
}

static void wait_for_something(struct launcher *l)
{
    struct pollfd *p = l->polled;
    uint64_t next = l->endings.due_ns;

    if (l->deadline < next) next = l->deadline;
    if (l->next_watch < next) next = l->next_watch;
    *p++ = (struct pollfd){.fd = l->signals, .events = POLLIN};
    for (int r = 0; r < l->job->nranks; r++)
        for (int i = 0; i < PER_RANK; i++) *p++ = (struct pollfd){.fd = l->process[r].output[i].fd, .events = POLLIN};
    poll(l->polled, (nfds_t)(p - l->polled), kl_deadline_left_ms(next, POLL_MAX_MS));
}

static void attend(struct launcher *l)
{
    l->deadline = l->job->timeout_ms ? kl_deadline_in_ms(l->job->timeout_ms) : KL_NO_DEADLINE;
    l->next_watch = l->job->is_stuck ? kl_deadline_in_ms(WATCH_MS) : KL_NO_DEADLINE;
    while (l->endings.nrunning) {
        wait_for_something(l);
        pass_outputs(l);
        take_signals(l);
        look_at_the_clock(l);
    }
}

/* ---- after the ranks ---- */

/* Ranks are zombies here, or run when not all could be started: their groups are theirs in either case. */
static void sweep(struct launcher *l)
{
    for (int r = 0; l->process && r < l->job->nranks; r++) {
        struct process *p = &l->process[r];

        if (p->pid) kill(-p->pid, SIGKILL);
        pass_output(&p->output[0], l->job->out, PIPE_CHUNKS);
        pass_output(&p->output[1], l->job->err, PIPE_CHUNKS);
        close_output(&p->output[0], l->job->out);
        close_output(&p->output[1], l->job->err);
        while (p->pid && waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    kl_janitor_dismiss(&l->janitor);
}

static void report(const struct launcher *l)
{
    char how[160];

    if (!kl_endings_worth_telling(&l->endings)) return;
    for (int r = 0; r < l->job->nranks; r++) {
        kl_endings_describe(&l->endings, r, l->job->who, how, sizeof how);
        fprintf(l->job->err, "%s: %s\n", l->job->who, how);
    }
}

/* A signal that came after the last rank's end has no receiver left, and must not end the launcher, which has an exit code
 * to return. Nor must one that comes twice (timeout(1) signals its child, then its group), however late. */
static void drop_signals(const struct launcher *l)
{
    struct signalfd_siginfo info;

    if (l->asked) signal(l->asked, SIG_IGN);
    while (l->signals >= 0 && read(l->signals, &info, sizeof info) == sizeof info) continue;
}

static void release(struct launcher *l)
{
    drop_signals(l);
    kl_netns_close(&l->netns);
    kl_endings_fini(&l->endings);
    if (l->signals >= 0) close(l->signals);
    if (l->null >= 0) close(l->null);
    free(l->polled);
    free(l->process);
    sigprocmask(SIG_SETMASK, &l->inherited_mask, NULL);
}

int kl_launch(const struct kl_launch *job)
{
    struct launcher l = {.job = job, .signals = -1, .null = -1, .janitor.fd = -1};
    int code = EXIT_PROBLEM;

    sigprocmask(SIG_BLOCK, NULL, &l.inherited_mask);
    if (!prepare(&l) && !start_ranks(&l)) {
        attend(&l);
        code = kl_endings_code(&l.endings);
        sweep(&l);
        report(&l);
    } else {
        sweep(&l);
    }
    release(&l);
    return code;
}
