/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_size_limit.h"
#include "base/log.h"

#include "base/log_config.h"
#include "base/param_report.h"
#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINE_BYTES = 2304 }; /* well below PIPE_BUF, so that lines of several writers of a pipe stay whole */

/* Everything needed to print. Constant once published; never freed, because another thread may be printing. */
struct output {
    const struct output *earlier; /* keeps all of them reachable */
    struct kl_log_config config;
    int fd;
    char path[PATH_MAX]; /* "": standard output */
    char host[256];      /* up to the first dot */
    struct timespec start;
};

static const struct output silence = {.fd = STDOUT_FILENO, .host = "?"};

_Atomic uint32_t kl_log_word = KL_LOG_UNREAD;
static const struct output *_Atomic current = &silence; /* release store when complete, acquire load to print */
static _Thread_local int shown_device = -1;

static void find_host(char *host, size_t bytes)
{
    if (gethostname(host, bytes - 1)) snprintf(host, bytes, "unknown");
    host[bytes - 1] = 0;
    host[strcspn(host, ".")] = 0;
}

static void expand_path(struct kl_text *path, const char *pattern, const char *host)
{
    for (const char *at = pattern; *at; at++) {
        char next = *at == '%' ? at[1] : 0;

        at += next == 'h' || next == 'p' || next == '%';
        if (next == 'h')
            kl_text_add(path, "%s", host);
        else if (next == 'p')
            kl_text_add(path, "%d", (int)getpid());
        else
            kl_text_add(path, "%c", *at);
    }
}

/* The path stays empty when standard output is meant. */
static void name_file(struct output *out)
{
    struct kl_text path = kl_text_in(out->path, sizeof out->path);

    if (out->config.level > KL_LOG_VERSION) expand_path(&path, out->config.file, out->host);
}

/* Appending keeps lines whole when several processes were given one name. If a file cannot be opened, lines go to
 * standard output. Reading NCCL_DEBUG* again must not empty the file that is in use. */
static void open_file(struct output *out, const struct output *before)
{
    bool same = !strcmp(out->path, before->path);
    int fd = -1;

    if (out->path[0] && !same) fd = open(out->path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    out->fd = same ? before->fd : fd >= 0 ? fd : STDOUT_FILENO;
}

static void publish(const struct output *out)
{
    uint32_t level = (uint32_t)out->config.level;

    kl_store_release(&current, out); /* pairs with the load in kl_log */
    kl_store_relaxed(&kl_log_word, level << KL_LOG_LEVEL_SHIFT | out->config.subsys);
}

static bool is_same(const struct output *a, const struct output *b)
{
    return !memcmp(&a->config, &b->config, sizeof a->config) && !strcmp(a->path, b->path);
}

/* Nothing in here may log: the log is not ready. */
static void read_config(void)
{
    const struct output *before = kl_load_acquire(&current);
    struct output *out = calloc(1, sizeof *out);

    if (out) {
        kl_param_load_from(&kl_log_param_set, &out->config, kl_settings_process());
        find_host(out->host, sizeof out->host);
        name_file(out);
    }
    if (!out || is_same(out, before)) {
        free(out);
        publish(before);
        return;
    }
    out->earlier = before;
    clock_gettime(CLOCK_MONOTONIC, &out->start);
    open_file(out, before);
    publish(out);
}

static void report_config(void)
{
    struct kl_log_config config;

    kl_param_report_files(kl_settings_process());
    kl_param_load(&kl_log_param_set, &config);
}

static void read_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, read_config);
}

uint32_t kl_log_first_use(void)
{
    int saved = errno;

    read_once();
    report_config();
    errno = saved;
    return kl_load_relaxed(&kl_log_word);
}

void kl_log_reset(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    read_once(); /* so that the child does not read the configuration itself */
    pthread_mutex_lock(&lock);
    read_config();
    pthread_mutex_unlock(&lock);
    report_config();
}

void kl_log_set_device(int device)
{
    shown_device = device;
}

/* Replace %1f ... %9f, which strftime does not know, by that many digits of the second, and '_' by a blank. */
static void prepare_format(struct kl_text *t, const char *format, long ns)
{
    for (; *format; format++) {
        int digits = format[0] == '%' ? format[1] - '0' : 0;

        if (digits >= 1 && digits <= 9 && format[2] == 'f') {
            char all[16];
            snprintf(all, sizeof all, "%09ld", ns);
            kl_text_add(t, "%.*s", digits, all);
            format += 2;
        } else if (format[0] == '%' && format[1]) {
            kl_text_add(t, "%.2s", format++);
        } else {
            kl_text_add(t, "%c", *format == '_' ? ' ' : *format);
        }
    }
}

static void add_time(struct kl_text *line, const char *format)
{
    char prepared[512], text[512];
    struct kl_text t = kl_text_in(prepared, sizeof prepared);
    struct timespec now;
    struct tm local;

    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    prepare_format(&t, format, now.tv_nsec);
    if (!strftime(text, sizeof text, prepared, &local)) strftime(text, sizeof text, "[%F %T] ", &local);
    kl_text_add(line, "%s", text);
}

/* The path below src/, or the last folder and the name: the rest of the path depends on the build. */
static const char *short_file(const char *file)
{
    const char *slash = strrchr(file, '/'), *below = NULL;

    for (const char *at = file; (at = strstr(at, "src/")); at += 4)
        if (at == file || at[-1] == '/') below = at + 4;
    if (below) return below;
    while (slash && slash > file && slash[-1] != '/') slash--;
    return slash ? slash : file;
}

static double ms_since(const struct timespec *start)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) * 1e3 + (double)(now.tv_nsec - start->tv_nsec) / 1e6;
}

/* Everything before the text. */
static void begin_line(struct kl_text *t, const struct output *out, enum kl_log_level level, unsigned subsys,
                       const char *file, int line)
{
    if (level == KL_LOG_WARN) kl_text_add(t, "\n");
    if (out->config.timestamp_levels & UINT32_C(1) << level) add_time(t, out->config.timestamp_format);
    if (level == KL_LOG_VERSION) return;

    kl_text_add(t, "%s:%d:%d ", out->host, (int)getpid(), (int)gettid());
    if (level == KL_LOG_TRACE && subsys == KL_CALL) { /* lines that programs read */
        kl_text_add(t, "NCCL CALL ");
        return;
    }
    if (shown_device >= 0) kl_text_add(t, "[%d] ", shown_device);
    if (level == KL_LOG_TRACE) kl_text_add(t, "%f ", ms_since(&out->start));
    const bool placed = level == KL_LOG_WARN || level == KL_LOG_ATTN || level == KL_LOG_TRACE;
    if (placed) kl_text_add(t, "%s:%d ", short_file(file), line);
    kl_text_add(t, "NCCL %s ", placed ? kl_log_level_name[level] : "INFO");
}

/* Replace control characters, wherever the text came from: a line stays one line, and a terminal stays usable. */
static void replace_control_characters(char *text)
{
    for (; *text; text++)
        if (iscntrl((unsigned char)*text) && *text != '\t') *text = '?';
}

static void write_line(int fd, const char *bytes, size_t nbytes)
{
    struct kl_file_size_limit_guard guard;

    kl_file_size_limit_begin(&guard);
    while (write(fd, bytes, nbytes) < 0 && errno == EINTR) continue;
    kl_file_size_limit_end(&guard);
}

static void raise_level(void)
{
    uint32_t word = kl_load_relaxed(&kl_log_word);
    uint32_t raised = KL_LOG_INFO << KL_LOG_LEVEL_SHIFT | (word & ((1u << KL_LOG_LEVEL_SHIFT) - 1));

    if (word >> KL_LOG_LEVEL_SHIFT < KL_LOG_INFO) kl_cas_acq_rel(&kl_log_word, &word, raised);
}

/* Prints to the destination that NCCL_DEBUG_FILE names. */
static const struct output *print(enum kl_log_level level, unsigned subsys, const char *file, int line, const char *fmt,
                                  va_list args)
{
    char bytes[LINE_BYTES];
    struct kl_text t = kl_text_in(bytes, sizeof bytes);

    read_once(); /* acquires the data that kl_log_on's relaxed load announced */
    const struct output *out = kl_load_acquire(&current);

    begin_line(&t, out, level, subsys, file, line);
    size_t prefix = t.length;
    kl_text_vadd(&t, fmt, args);
    replace_control_characters(bytes + prefix);
    bytes[t.length++] = '\n'; /* takes the place of the final zero */
    write_line(out->fd, bytes, t.length);
    return out;
}

void kl_log(enum kl_log_level level, unsigned subsys, const char *file, int line, const char *fmt, ...)
{
    int saved = errno;
    va_list args;

    if (!kl_log_on(level, subsys)) return;
    va_start(args, fmt);
    const struct output *out = print(level, subsys, file, line, fmt, args);
    va_end(args);
    if (level == KL_LOG_WARN && out->config.warn_enables_info) raise_level();
    errno = saved;
}

void kl_log_asked(const char *fmt, ...)
{
    int saved = errno;
    va_list args;

    va_start(args, fmt);
    print(KL_LOG_INFO, KL_LOG_ALL, __FILE__, __LINE__, fmt, args);
    va_end(args);
    errno = saved;
}
