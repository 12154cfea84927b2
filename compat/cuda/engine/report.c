/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/engine/grid.h"
#include "compat/cuda/engine/worker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 4096 };

static void tell(const char *text, int length)
{
    if (length > TEXT - 1) length = TEXT - 1;
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0) return;
}

/* The name, which the compiler gave as `... [with auto F = NAME]` or `... [F = &NAME]`. */
static const char *kernel_name(const struct kl_worker *w, char *room, size_t bytes)
{
    const char *name = kl_grid_launch(w->grid)->kernel->name, *start = name ? strstr(name, "F = ") : NULL;
    size_t n;

    if (!name) return "without a name";
    if (!start) return name;
    start += 4 + (start[4] == '&');
    n = strlen(start);
    if (n && start[n - 1] == ']') n--;
    (void)snprintf(room, bytes, "%.*s", (int)n, start);
    return room;
}

void kl_report(const struct kl_worker *w, const char *what, ...)
{
    struct kl_engine_dim t = __koloThreadIdx;
    char text[TEXT], name[TEXT / 4], thread[64];
    va_list args;
    int n;

    if (kl_grid_failed(w->grid)) return;
    if (w->whole)
        (void)snprintf(thread, sizeof thread, "one of its threads");
    else
        (void)snprintf(thread, sizeof thread, "thread (%u, %u, %u)", t.x, t.y, t.z);
    n = snprintf(text, sizeof text, "kolo: kernel %s, block (%u, %u, %u), %s: ", kernel_name(w, name, sizeof name),
                 w->block.x, w->block.y, w->block.z, thread);
    if (n > TEXT / 2) n = TEXT / 2;
    va_start(args, what);
    n += vsnprintf(text + n, sizeof text - (size_t)n - 1, what, args);
    va_end(args);
    if (n > TEXT - 2) n = TEXT - 2;
    text[n++] = '\n';
    tell(text, n);
}

static bool same_place(const struct kl_fibre *a, const struct kl_fibre *b)
{
    return a->wait == b->wait && a->line == b->line && a->file == b->file && a->mask == b->mask &&
           a->barrier == b->barrier;
}

static int describe(char *text, size_t bytes, const struct kl_fibre *f, unsigned count)
{
    const char *file = f->file ? f->file : "unknown place";

    if (f->barrier >= KL_TILE_BARRIERS && f->wait == KL_WAIT_BARRIER)
        return snprintf(text, bytes, "  %u at %s:%d, at the barrier of a tile, thread (%u, %u, %u) the first\n", count,
                        file, f->line, f->index.x, f->index.y, f->index.z);
    if (f->wait == KL_WAIT_WARP)
        return snprintf(text, bytes, "  %u at %s:%d, for the lanes of mask 0x%08x, thread (%u, %u, %u) the first\n",
                        count, file, f->line, f->mask, f->index.x, f->index.y, f->index.z);
    return snprintf(text, bytes, "  %u at %s:%d, at barrier %u of the %s, thread (%u, %u, %u) the first\n", count, file,
                    f->line, f->barrier % KL_GRID_BARRIER, f->barrier == KL_GRID_BARRIER ? "grid" : "block", f->index.x,
                    f->index.y, f->index.z);
}

void kl_report_deadlock(const struct kl_worker *w)
{
    char text[TEXT], name[TEXT / 4];
    int n;

    if (kl_grid_failed(w->grid)) return;
    if (w->whole) {
        kl_report(w, "it waits for other threads in a loop over these: compile it with kolo-nvcc --barriers=fibres");
        return;
    }
    n = snprintf(text, sizeof text,
                 "kolo: kernel %s, block (%u, %u, %u): all %u threads that have not returned wait for each other:\n",
                 kernel_name(w, name, sizeof name), w->block.x, w->block.y, w->block.z, w->live);
    for (uint32_t i = 0; i < w->begun && n < TEXT - 256; i++) {
        const struct kl_fibre *f = &w->fibre[i];
        unsigned count = 0;
        bool told = f->wait == KL_WAIT_NOTHING;

        for (uint32_t k = 0; k < i && !told; k++) told = same_place(&w->fibre[k], f);
        if (told) continue;
        for (uint32_t k = i; k < w->begun; k++) count += same_place(&w->fibre[k], f);
        n += describe(text + n, sizeof text - (size_t)n, f, count);
    }
    tell(text, n);
}

void kl_report_assertion(const struct kl_worker *w, const char *expression, const char *file, unsigned line,
                         const char *function)
{
    struct kl_engine_dim t = __koloThreadIdx;
    char text[TEXT];

    if (!kl_grid_failed(w->grid))
        tell(text,
             snprintf(text, sizeof text, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                      file, line, function, w->block.x, w->block.y, w->block.z, t.x, t.y, t.z, expression));
}
