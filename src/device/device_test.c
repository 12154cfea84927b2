/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device_test.c - tests for every kind of device in the table.
 */
#include "device/device.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "tests/hang.h"
#include "tests/holdings.h"
#include "tests/kolo_test.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef const struct kl_device_kind *kind_t;

static const char own_path[] = "/proc/self/exe";

enum { BYTES = 3 * 4096 + 100, PATTERN = 0x5a, THREADS = 4 };

static void ok(ncclResult_t rc)
{
    if (rc) fail_msg("%s: %s", ncclGetErrorString(rc), kl_error_text());
}

static void invalid(ncclResult_t rc)
{
    assert_int_equal(rc, ncclInvalidArgument);
    assert_true(*kl_error_text());
    assert_null(strchr(kl_error_text(), '\n'));
}

static uint64_t soon(void)
{
    return kl_deadline_in_ms(kolo_test_hang_ms());
}

/* No call leaves a descriptor open. The event loop ends a moment after the last export. */
static void await_fds(int n)
{
    while (count_fds() != n) sched_yield();
}

static unsigned char *allocate(kind_t kind, enum kl_memory_kind of, size_t bytes)
{
    void *p;

    ok(kind->alloc(0, of, bytes, &p));
    assert_non_null(p);
    return p;
}

static ncclResult_t import(kind_t kind, const struct kl_range_export_handle *handle, struct kl_import **i, void **p)
{
    ncclResult_t rc;

    *i = NULL;
    uint64_t deadline = soon();
    while ((rc = kind->import(handle, deadline, i, p)) == ncclInProgress) sched_yield();
    return rc;
}

/* ---- devices ---- */

static void there_are_devices_and_one_is_current(kind_t kind)
{
    struct kl_device_hints hints = {.setting = 3, .file_gpus = 5}, none = {.setting = 0};

    assert_true(kind->count(&none) > 0);
    assert_true(kind->count(&hints) > 0);
    kind->select(1);
    assert_int_equal(kind->current(), 1);
    assert_int_equal(kind->chosen(true), 1);
    kind->adopt(0); /* an explicit choice stays */
    assert_int_equal(kind->current(), 1);
    kind->select(0);
}

static void *look_at_an_unchosen_thread(void *arg)
{
    kind_t kind = arg;
    intptr_t bad = kind->chosen(false) != -1;

    kind->adopt(2);
    bad |= kind->chosen(true) != -1 || kind->chosen(false) != 2 || kind->current() != 2;
    return (void *)bad;
}

static void each_thread_has_a_device_of_its_own(kind_t kind)
{
    pthread_t thread;
    void *bad;

    kind->select(1);
    assert_int_equal(pthread_create(&thread, NULL, look_at_an_unchosen_thread, (void *)(uintptr_t)kind), 0);
    assert_int_equal(pthread_join(thread, &bad), 0);
    assert_null(bad);
    assert_int_equal(kind->current(), 1);
    kind->select(0);
}

static void every_device_has_one_of_the_nodes(kind_t kind)
{
    static const int nodes[] = {0, 2, 3};

    for (int d = 0; d < 8; d++) {
        int n = kind->node(d, 8, nodes, 3);
        assert_true(n == 0 || n == 2 || n == 3);
        assert_int_equal(kind->node(d, 8, nodes, 1), 0);
    }
}

/* ---- streams and events ---- */

struct gate {
    _Atomic uint32_t open, passed;
};

static enum kl_progress pass_gate(struct kl_stream *stream, struct kl_work *work)
{
    struct gate *g = work->owner;

    (void)stream;
    if (!kl_load_acquire(&g->open)) return KL_STALLED;
    kl_store_release(&g->passed, 1);
    return KL_DONE;
}

static void push_gate(kind_t kind, struct kl_stream *s, struct gate *g)
{
    struct kl_work work = {.progress = pass_gate, .owner = g};

    *g = (struct gate){.open = 0};
    kl_device_push(kind, s, &work);
}

static void a_stream_runs_in_order(kind_t kind)
{
    struct kl_stream *s;
    struct gate gate;
    int from[2] = {1, 2}, to = 0;

    ok(kind->stream_create(KOLO_STREAM_DEFAULT, &s));
    push_gate(kind, s, &gate);
    ok(kind->copy_on(s, &to, &from[0], sizeof to));
    ok(kind->copy_on(s, &to, &from[1], sizeof to));
    assert_int_equal(kind->stream_query(s), ncclInProgress);
    kl_store_release(&gate.open, 1);
    ok(kl_device_synchronize(kind, s));
    assert_int_equal(gate.passed, 1);
    assert_int_equal(to, 2);
    ok(kind->stream_query(s));
    ok(kind->stream_destroy(s));
}

/* Two ways to call the same function: by the row, and directly as operations do. */
static void the_direct_call_equals_the_row(kind_t kind)
{
    struct kl_stream *s, *a, *b;
    struct gate gate = {.open = 1};
    struct kl_work work = {.progress = pass_gate, .owner = &gate};

    ok(kind->stream_create(KOLO_STREAM_DEFAULT, &s));
    ok(kind->stream_of(kl_user_stream_handle(s), 0, &a));
    ok(kl_user_stream_of(kl_user_stream_handle(s), 0, &b));
    assert_ptr_equal(a, b);
    uint64_t ticket = kind->stream_push(s, &work);
    assert_int_equal(kl_device_push(kind, s, &work), ticket + 1);
    ok(kind->stream_synchronize(s));
    ok(kind->stream_destroy(s));
}

static void what_is_no_stream_is_an_error(kind_t kind)
{
    struct kl_stream *s, *again;
    int no_stream;

    invalid(kind->stream_of((cudaStream_t)(void *)&no_stream, 0, &s));
    invalid(kind->stream_create(0x80, &s));
    ok(kind->stream_of(NULL, 0, &s));
    ok(kind->stream_of(NULL, 0, &again));
    assert_ptr_equal(s, again);
    ok(kind->stream_of(NULL, 1, &again));
    assert_ptr_not_equal(s, again);
    ok(kind->stream_create(0, &s));
    ok(kind->stream_destroy(s));
    invalid(kind->stream_of(kl_user_stream_handle(s), 0, &again));
}

static void an_event_is_done_when_what_is_before_it_is(kind_t kind)
{
    struct kl_stream *s;
    struct kl_event *e;
    struct gate before, after;

    ok(kind->stream_create(KOLO_STREAM_DEFAULT, &s));
    ok(kind->event_create(KOLO_EVENT_DEFAULT, &e));
    ok(kind->event_query(e)); /* never recorded */
    push_gate(kind, s, &before);
    kind->event_record(e, s);
    push_gate(kind, s, &after);
    assert_int_equal(kind->event_query(e), ncclInProgress);
    kl_store_release(&before.open, 1);
    ok(kind->event_synchronize(e));
    assert_int_equal(kl_load_acquire(&before.passed), 1);
    assert_int_equal(kind->stream_query(s), ncclInProgress);
    kl_store_release(&after.open, 1);
    ok(kind->stream_destroy(s));
    kind->event_destroy(e);
}

/* ---- memory ---- */

static void a_pointer_says_what_it_is(kind_t kind)
{
    static const enum kl_memory_kind kinds[] = {KL_MEMORY_PRIVATE, KL_MEMORY_SHAREABLE};
    void *heap = malloc(100);
    struct kl_memory m;
    const void *const foreign[] = {heap, &m, NULL, (void *)(uintptr_t)-1};

    for (int k = 0; k < 2; k++) {
        unsigned char *p;
        ok(kind->alloc(1, kinds[k], BYTES, (void **)&p));
        assert_int_equal((uintptr_t)p % 4096, 0);
        memset(p, PATTERN, BYTES);
        kind->lookup(p + BYTES - 1, &m);
        assert_int_equal(m.kind, kinds[k]);
        assert_int_equal(m.device, 1);
        assert_ptr_equal(m.base, p);
        assert_int_equal(m.bytes, BYTES);
        ok(kind->free(p));
        kind->lookup(p, &m);
        assert_int_equal(m.kind, KL_MEMORY_FOREIGN);
    }
    FOR_EACH_CASE(p, foreign)
    {
        kind->lookup(*p, &m);
        assert_int_equal(m.kind, KL_MEMORY_FOREIGN);
        assert_int_equal(m.device, -1);
        assert_int_equal(m.bytes, 0);
    }
    free(heap);
}

static void freeing_wrongly_is_an_error(kind_t kind)
{
    static const enum kl_memory_kind kinds[] = {KL_MEMORY_PRIVATE, KL_MEMORY_SHAREABLE};
    void *heap = malloc(100);

    for (int k = 0; k < 2; k++) {
        unsigned char *p = allocate(kind, kinds[k], BYTES);
        invalid(kind->free(p + 4096));
        ok(kind->free(p));
        invalid(kind->free(p));
    }
    invalid(kind->free(heap));
    ok(kind->free(NULL));
    free(heap);
}

static void nothing_and_too_much(kind_t kind)
{
    static const size_t huge[] = {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2 + 1, (size_t)1 << 60, (size_t)1 << 46};
    static const enum kl_memory_kind kinds[] = {KL_MEMORY_PRIVATE, KL_MEMORY_SHAREABLE};
    int value = 0;

    for (int k = 0; k < 2; k++) {
        void *p = &value;
        FOR_EACH_CASE(bytes, huge)
        {
            invalid(kind->alloc(0, kinds[k], *bytes, &p));
            assert_ptr_equal(p, &value); /* untouched on failure */
        }
        ok(kind->alloc(0, kinds[k], 0, &p));
        assert_null(p);
    }
    ok(kind->copy(NULL, NULL, 0));
    ok(kind->copy_on(NULL, NULL, NULL, 0));
}

static void a_copy_is_the_same(kind_t kind)
{
    enum { LARGE = (5 << 20) + 77 }; /* several pieces of work */
    unsigned char *a = allocate(kind, KL_MEMORY_PRIVATE, LARGE), *b = allocate(kind, KL_MEMORY_SHAREABLE, LARGE);
    struct kl_stream *s;

    for (size_t i = 0; i < LARGE; i++) a[i] = (unsigned char)(i % 251);
    ok(kind->copy(b, a, BYTES));
    assert_memory_equal(b, a, BYTES);
    ok(kind->stream_create(KOLO_STREAM_DEFAULT, &s));
    ok(kind->copy_on(s, b, a, LARGE - 1));
    ok(kind->stream_synchronize(s));
    assert_memory_equal(b, a, LARGE - 1);
    assert_int_equal(b[LARGE - 1], 0);
    ok(kind->stream_destroy(s));
    ok(kind->free(a));
    ok(kind->free(b));
}

/* ---- pins ---- */

static void a_pin_counts_and_keeps(kind_t kind)
{
    static const enum kl_memory_kind kinds[] = {KL_MEMORY_PRIVATE, KL_MEMORY_SHAREABLE};
    uint64_t pin, again, other;
    struct kl_memory m;

    for (int k = 0; k < 2; k++) {
        unsigned char *p = allocate(kind, kinds[k], BYTES);
        memset(p, PATTERN, BYTES);
        ok(kind->pin(p + 10, 100, &pin));
        ok(kind->pin(p + 10, 100, &again));
        ok(kind->pin(p + 10, 99, &other));
        assert_true(pin == again);
        assert_true(pin != other);
        ok(kind->unpin(other));
        invalid(kind->unpin(other));
        ok(kind->unpin(pin));
        ok(kind->free(p));
        invalid(kind->free(p)); /* also while pinned */
        invalid(kind->pin(p, 1, &other));
        kind->lookup(p, &m);
        assert_int_equal(m.kind, KL_MEMORY_FOREIGN);
        assert_int_equal(p[10], PATTERN);
        ok(kind->unpin(again));
        invalid(kind->unpin(again));
    }
}

static void what_can_be_pinned(kind_t kind)
{
    unsigned char *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    char heap[100];
    uint64_t pin;

    ok(kind->pin(p, BYTES, &pin));
    ok(kind->unpin(pin));
    ok(kind->pin(heap, sizeof heap, &pin));
    ok(kind->unpin(pin));
    invalid(kind->pin(p, 0, &pin));
    invalid(kind->pin(p, BYTES + 1, &pin));
    invalid(kind->pin(p + 1, BYTES, &pin));
    invalid(kind->pin(p - 1, 2, &pin)); /* begins before it */
    invalid(kind->pin(p, SIZE_MAX, &pin));
    invalid(kind->unpin(0));
    ok(kind->free(p));
}

/* ---- exports, in one process ---- */

static void only_shareable_memory_is_exported(kind_t kind)
{
    unsigned char *private = allocate(kind, KL_MEMORY_PRIVATE, BYTES), *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    int local = 0;
    struct kl_range_export_handle handle;

    invalid(kind->export_range(private, BYTES, &handle));
    invalid(kind->export_range(&local, sizeof local, &handle));
    invalid(kind->export_range(NULL, 1, &handle));
    invalid(kind->export_range(p, 0, &handle));
    invalid(kind->export_range(p, BYTES + 1, &handle));
    ok(kind->free(private));
    ok(kind->free(p));
    invalid(kind->export_range(p, 1, &handle));
}

static void a_process_imports_its_own_range_as_it_is(kind_t kind)
{
    unsigned char *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    struct kl_range_export_handle handle;
    struct kl_import *i, *j;
    void *q;

    ok(kind->export_range(p + 100, 200, &handle));
    ok(import(kind, &handle, &i, &q));
    assert_ptr_equal(q, p + 100);
    ok(import(kind, &handle, &j, &q));
    kind->unimport(j);
    ok(kind->unexport(&handle));
    ok(kind->free(p));
    p[100] = PATTERN; /* the import keeps it alive */
    kind->unimport(i);
    kind->unimport(NULL);
}

static void exports_end(kind_t kind)
{
    unsigned char *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    struct kl_range_export_handle one, two;
    struct kl_import *i;
    void *q;

    ok(kind->export_range(p, BYTES, &one));
    ok(kind->export_range(p, BYTES, &two));
    ok(kind->unexport(&one));
    invalid(kind->unexport(&one));
    assert_int_equal(import(kind, &one, &i, &q), ncclRemoteError);
    assert_null(i);
    ok(import(kind, &two, &i, &q)); /* the two are independent */
    kind->unimport(i);
    ok(kind->free(p));
    assert_int_equal(p[0], 0); /* an export keeps it alive */
    ok(kind->unexport(&two));
}

static void a_handle_may_come_from_anywhere(kind_t kind)
{
    unsigned char *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    struct kl_range_export_handle handle, forged;
    struct kl_import *i;
    void *q;

    ok(kind->export_range(p, BYTES, &handle));
    forged = handle;
    forged.bytes = 1 << 20; /* beyond the end */
    assert_int_not_equal(import(kind, &forged, &i, &q), ncclSuccess);
    forged.bytes = 0;
    assert_int_equal(import(kind, &forged, &i, &q), ncclRemoteError);
    forged.bytes = 2;
    forged.offset = UINT64_MAX; /* the end overflows */
    assert_int_equal(import(kind, &forged, &i, &q), ncclRemoteError);
    forged = handle;
    forged.handle[0] ^= 1;
    assert_int_equal(import(kind, &forged, &i, &q), ncclRemoteError);
    memset(&forged, 0xff, sizeof forged);
    assert_int_equal(import(kind, &forged, &i, &q), ncclRemoteError);
    assert_null(i);
    invalid(kind->unexport(&forged));
    ok(kind->unexport(&handle));
    ok(kind->free(p));
}

/* ---- other processes ---- */

static void write_all(int fd, const void *data, size_t bytes)
{
    if (write(fd, data, bytes) != (ssize_t)bytes) abort();
}

static bool read_all(int fd, void *data, size_t bytes)
{
    return read(fd, data, bytes) == (ssize_t)bytes; /* pipes keep small messages whole */
}

/* The importer: find the pattern, map it twice, leave an answer behind it. 0: success. */
static int import_and_answer(kind_t kind, const struct kl_range_export_handle *handle)
{
    struct kl_import *i, *j;
    unsigned char *p, *q;
    int fds = count_fds();

    if (import(kind, handle, &i, (void **)&p) || import(kind, handle, &j, (void **)&q)) return 1;
    if (p != q || p[0] != PATTERN || p[handle->bytes - 1] != PATTERN) return 2;
    kind->unimport(j);
    p[0] = PATTERN + 1;
    kind->unimport(i);
    return count_fds() == fds ? 0 : 3; /* a map needs no descriptor */
}

static int status_of(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_child_imports_what_was_exported_after_it_was_born(kind_t kind)
{
    int pipes[2];
    struct kl_range_export_handle handle;

    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (!child) {
        close(pipes[1]);
        _exit(read_all(pipes[0], &handle, sizeof handle) ? import_and_answer(kind, &handle) : 9);
    }
    unsigned char *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    memset(p, PATTERN, BYTES);
    ok(kind->export_range(p + 5, BYTES - 5, &handle));
    write_all(pipes[1], &handle, sizeof handle);
    assert_int_equal(status_of(child), 0);
    assert_int_equal(p[5], PATTERN + 1);
    assert_int_equal(p[4], PATTERN);
    ok(kind->unexport(&handle));
    ok(kind->free(p));
    close(pipes[0]);
    close(pipes[1]);
}

/* It has the memory already, and its bookkeeping is its own. */
static void a_child_inherits_existing_memory(kind_t kind)
{
    unsigned char *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    struct kl_range_export_handle handle;

    memset(p, PATTERN, BYTES);
    ok(kind->export_range(p, BYTES, &handle));
    pid_t child = fork();
    if (!child) {
        int rc = import_and_answer(kind, &handle);
        if (!rc && (kind->unexport(&handle) || kind->free(p) || kind->free(p) != ncclInvalidArgument)) rc = 4;
        _exit(rc);
    }
    assert_int_equal(status_of(child), 0);
    assert_int_equal(p[0], PATTERN + 1);
    ok(kind->unexport(&handle)); /* the child's allocation table was a copy */
    ok(kind->free(p));
}

struct program {
    pid_t pid;
    int to, from; /* pipes to its standard input, and from its standard output */
};

/* Run this test's program again in another `role`, with the index of a kind. */
static struct program start(const char *role, size_t kind)
{
    int in[2], out[2];
    char number[8];
    struct program p;

    snprintf(number, sizeof number, "%zu", kind);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    p.pid = fork();
    if (!p.pid) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        for (int fd = STDERR_FILENO + 1; fd < 256; fd++) close(fd);
        execl(own_path, "device_test", role, number, (char *)NULL);
        _exit(9);
    }
    close(in[0]);
    close(out[1]);
    p.to = in[1];
    p.from = out[0];
    return p;
}

static int end(struct program *p)
{
    close(p->to);
    close(p->from);
    return status_of(p->pid);
}

static size_t number_of(kind_t kind)
{
    size_t i = 0;

    while (kl_device_kinds[i] != kind) i++;
    return i;
}

static void *import_in_a_thread(void *arg)
{
    const struct kl_range_export_handle *handle = arg;
    struct kl_import *i;
    unsigned char *p;

    for (int round = 0; round < 20; round++) {
        if (import(&kl_host_devices, handle, &i, (void **)&p) || p[1] != PATTERN) return arg;
        kl_host_devices.unimport(i);
    }
    return NULL;
}

static int be_importer(kind_t kind)
{
    struct kl_range_export_handle handle;
    pthread_t thread[THREADS];
    int bad = 0;

    if (!read_all(STDIN_FILENO, &handle, sizeof handle)) return 9;
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&thread[t], NULL, import_in_a_thread, &handle)) return 9;
    for (int t = 0; t < THREADS; t++) {
        void *failed;
        pthread_join(thread[t], &failed);
        bad |= failed != NULL;
    }
    return bad ? 5 : import_and_answer(kind, &handle);
}

static void another_program_imports(kind_t kind)
{
    unsigned char *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    struct kl_range_export_handle handle;

    memset(p, PATTERN, BYTES);
    ok(kind->export_range(p + 4097, 4096, &handle));
    struct program importer = start("import", number_of(kind));
    write_all(importer.to, &handle, sizeof handle);
    assert_int_equal(end(&importer), 0);
    assert_int_equal(p[4097], PATTERN + 1);
    ok(kind->unexport(&handle));
    ok(kind->free(p));
}

/* Export, report it, and wait to be killed. */
static int be_exporter(kind_t kind)
{
    unsigned char *p = allocate(kind, KL_MEMORY_SHAREABLE, BYTES);
    struct kl_range_export_handle handle;
    char nothing;

    memset(p, PATTERN, BYTES);
    ok(kind->export_range(p, BYTES, &handle));
    write_all(STDOUT_FILENO, &handle, sizeof handle);
    return read(STDIN_FILENO, &nothing, 1) ? 9 : 0;
}

static void what_is_imported_outlives_its_exporter(kind_t kind)
{
    struct program exporter = start("export", number_of(kind));
    struct kl_range_export_handle handle;
    struct kl_import *i, *j, *late;
    unsigned char *p, *q;

    assert_true(read_all(exporter.from, &handle, sizeof handle));
    ok(import(kind, &handle, &i, (void **)&p));
    kill(exporter.pid, SIGKILL);
    assert_true(WIFSIGNALED(end(&exporter)));
    p[1] = p[0] + 1;
    ok(import(kind, &handle, &j, (void **)&q)); /* shares the existing map */
    assert_int_equal(q[1], PATTERN + 1);
    kind->unimport(i);
    assert_int_equal(q[BYTES - 1], PATTERN);
    kind->unimport(j);
    assert_int_equal(import(kind, &handle, &late, (void **)&q), ncclRemoteError);
    assert_null(late);
}

/* ---- many threads ---- */

static void *allocate_and_ask(void *arg)
{
    kind_t kind = arg;

    for (int round = 0; round < 200; round++) {
        unsigned char *p[4];
        struct kl_memory m;
        uint64_t pin;
        for (int i = 0; i < 4; i++) {
            if (kind->alloc(i, i % 2 ? KL_MEMORY_SHAREABLE : KL_MEMORY_PRIVATE, 1000 + BYTES * (size_t)i,
                            (void **)&p[i]))
                return arg;
            p[i][0] = (unsigned char)round;
        }
        for (int i = 0; i < 4; i++) {
            kind->lookup(p[i] + 500, &m);
            if (m.device != i || m.base != p[i]) return arg;
            if (kind->pin(p[i], 10, &pin) || kind->free(p[i]) || p[i][0] != (unsigned char)round || kind->unpin(pin))
                return arg;
        }
    }
    return NULL;
}

static void *export_and_import(void *arg)
{
    kind_t kind = arg;

    for (int round = 0; round < 50; round++) {
        struct kl_range_export_handle handle;
        struct kl_import *i;
        void *p, *q;
        if (kind->alloc(0, KL_MEMORY_SHAREABLE, BYTES, &p) || kind->export_range(p, BYTES, &handle)) return arg;
        if (import(kind, &handle, &i, &q) || p != q || kind->free(p) || kind->unexport(&handle)) return arg;
        kind->unimport(i);
    }
    return NULL;
}

/* The sanitizers' allocators, unlike the C library's, may stay locked in a child of a multi-threaded process. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { CHILDREN = 0 };
#else
enum { CHILDREN = 20 };
#endif

static void many_threads_at_once(kind_t kind)
{
    pthread_t thread[2 * THREADS];
    void *bad;

    for (int t = 0; t < 2 * THREADS; t++)
        assert_int_equal(
            pthread_create(&thread[t], NULL, t % 2 ? allocate_and_ask : export_and_import, (void *)(uintptr_t)kind), 0);
    for (int t = 0; t < CHILDREN; t++) { /* children find every lock free */
        pid_t child = fork();
        if (!child) _exit(allocate_and_ask((void *)(uintptr_t)kind) != NULL);
        assert_int_equal(status_of(child), 0);
    }
    for (int t = 0; t < 2 * THREADS; t++) {
        pthread_join(thread[t], &bad);
        assert_null(bad);
    }
}

/* ---- all kinds ---- */

static const struct {
    const char *name;
    void (*show)(kind_t kind);
} behaviours[] = {
#define BEHAVIOUR(name)                                                                                                \
    {                                                                                                                  \
#name, name                                                                                                    \
    }
    BEHAVIOUR(there_are_devices_and_one_is_current),
    BEHAVIOUR(each_thread_has_a_device_of_its_own),
    BEHAVIOUR(every_device_has_one_of_the_nodes),
    BEHAVIOUR(a_stream_runs_in_order),
    BEHAVIOUR(the_direct_call_equals_the_row),
    BEHAVIOUR(what_is_no_stream_is_an_error),
    BEHAVIOUR(an_event_is_done_when_what_is_before_it_is),
    BEHAVIOUR(a_pointer_says_what_it_is),
    BEHAVIOUR(freeing_wrongly_is_an_error),
    BEHAVIOUR(nothing_and_too_much),
    BEHAVIOUR(a_copy_is_the_same),
    BEHAVIOUR(a_pin_counts_and_keeps),
    BEHAVIOUR(what_can_be_pinned),
    BEHAVIOUR(only_shareable_memory_is_exported),
    BEHAVIOUR(a_process_imports_its_own_range_as_it_is),
    BEHAVIOUR(exports_end),
    BEHAVIOUR(a_handle_may_come_from_anywhere),
    BEHAVIOUR(a_child_imports_what_was_exported_after_it_was_born),
    BEHAVIOUR(a_child_inherits_existing_memory),
    BEHAVIOUR(another_program_imports),
    BEHAVIOUR(what_is_imported_outlives_its_exporter),
    BEHAVIOUR(many_threads_at_once),
#undef BEHAVIOUR
};

static void every_kind_conforms(void **state)
{
    int fds = count_fds();

    (void)state;
    for (size_t k = 0; kl_device_kinds[k]; k++) {
        if (!kl_device_kinds[k]->stream_create) continue; /* CUDA's own: tests/gpu_test.c */
        FOR_EACH_CASE(b, behaviours)
        {
            print_message("%s: %s\n", kl_device_kinds[k]->name, b->name);
            b->show(kl_device_kinds[k]);
            await_fds(fds);
        }
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_conforms)};

    if (argc == 3) {
        kind_t kind = kl_device_kinds[atoi(argv[2])];
        return !strcmp(argv[1], "import") ? be_importer(kind) : be_exporter(kind);
    }
    kl_error_quiet(1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
