/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/collectives/row.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 1 << 18 };

static const char *const names[ROW_OPS] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                           "reduce",     "alltoall",   "sendrecv"};

const char *row_name(enum row_op op)
{
    return names[op];
}

static bool in_pieces(enum row_op op)
{
    return op == ROW_ALL_GATHER || op == ROW_REDUCE_SCATTER || op == ROW_ALLTOALL;
}

static void cut(struct row *row)
{
    size_t n = in_pieces(row->op) ? (size_t)row->nranks : 1, all = row->asked / sizeof(float);

    row->count = all / n ? all / n : 1;
    row->bytes = row->count * n * sizeof(float);
    row->in = row->op == ROW_ALL_GATHER ? row->count : row->count * n;
    row->out = row->op == ROW_REDUCE_SCATTER ? row->count : row->count * n;
}

bool row_parse(struct row *row, const char *text, int nranks)
{
    const char *colon = strchr(text, ':');
    char *end;

    if (!colon) return false;
    *row = (struct row){.op = ROW_OPS, .nranks = nranks, .asked = strtoull(colon + 1, &end, 10)};
    for (int op = 0; op < ROW_OPS; op++)
        if (!strncmp(names[op], text, (size_t)(colon - text)) && !names[op][colon - text]) row->op = (enum row_op)op;
    if (row->op == ROW_OPS || *end || end == colon + 1) return false;
    cut(row);
    return true;
}

float *row_input(const struct row *row, int rank, float *send, float *recv)
{
    if (row->op != ROW_BROADCAST) return send;
    return rank ? NULL : recv;
}

static float value(int rank, size_t i, unsigned version)
{
    uint32_t mixed = ((uint32_t)i + version * 5 + 1) * 2654435761u + (uint32_t)rank * 0x9e3779b1u;

    return (float)(int32_t)(mixed >> 26);
}

void row_fill(const struct row *row, int rank, unsigned version, float *input)
{
    if (!input) return;
    for (size_t i = 0; i < row->in; i++) input[i] = value(rank, i, version);
}

void row_spoil(const struct row *row, int rank, float *recv)
{
    if (row->op == ROW_BROADCAST && !rank) return;
    memset(recv, 0xff, row->out * sizeof *recv);
}

static float sum_of_all(const struct row *row, size_t i, unsigned version)
{
    float sum = 0;

    for (int r = 0; r < row->nranks; r++) sum += value(r, i, version);
    return sum;
}

static float wanted(const struct row *row, int rank, size_t i, unsigned version)
{
    size_t from = i / row->count, place = i % row->count, mine = (size_t)rank * row->count;

    switch (row->op) {
    case ROW_ALL_REDUCE:
    case ROW_REDUCE:
        return sum_of_all(row, i, version);
    case ROW_REDUCE_SCATTER:
        return sum_of_all(row, mine + i, version);
    case ROW_ALL_GATHER:
        return value((int)from, place, version);
    case ROW_ALLTOALL:
        return value((int)from, mine + place, version);
    case ROW_SENDRECV:
        return value((rank + row->nranks - 1) % row->nranks, i, version);
    default:
        return value(0, i, version);
    }
}

size_t row_wrong(const struct row *row, int rank, unsigned version, const float *recv)
{
    size_t wrong = 0, step = row->out > LOOKED_AT ? row->out / LOOKED_AT | 1 : 1;

    if (row->op == ROW_REDUCE && rank) return 0;
    for (size_t i = 0; i < row->out; i += step) wrong += recv[i] != wanted(row, rank, i, version);
    wrong += recv[row->out - 1] != wanted(row, rank, row->out - 1, version);
    return wrong;
}
