/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gloo NP STORE [OPTION ...] ROW ...: gloo over TCP on the loopback interface, which is all it has within a host, measured by measure.h.
 * STORE is an empty folder.
 */
#include "bench/collectives/measure.h"
#include "bench/collectives/start.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace
{
using Unbound = std::unique_ptr<gloo::transport::UnboundBuffer>;

struct Rank {
    std::shared_ptr<gloo::rendezvous::Context> context;
    uint32_t tag = 0;
    std::map<std::pair<float *, size_t>, Unbound>
        unbound; // made once for each buffer and size, as a careful caller would
    std::map<size_t, std::pair<std::vector<float>, std::unique_ptr<gloo::ReduceScatterHalvingDoubling<float>>>> scatter;
};

void sum(void *c, const void *a, const void *b, size_t n)
{
    gloo::sum<float>(c, a, b, n);
}

gloo::transport::UnboundBuffer *unbound(Rank *rank, float *data, size_t count)
{
    Unbound &buffer = rank->unbound[{data, count}];
    if (!buffer) buffer = rank->context->createUnboundBuffer(data, count * sizeof(float));
    return buffer.get();
}

// It is bound to a buffer, and works in it: only checked data are copied in and out.
void reduce_scatter(Rank *rank, const struct row *row, const float *send, float *recv, bool counts)
{
    auto &s = rank->scatter[row->in];
    if (!s.second) {
        s.first.resize(row->in);
        s.second.reset(new gloo::ReduceScatterHalvingDoubling<float>(
            rank->context, {s.first.data()}, static_cast<int>(row->in),
            std::vector<int>(static_cast<size_t>(row->nranks), static_cast<int>(row->count))));
    }
    if (counts) std::memcpy(s.first.data(), send, row->in * sizeof(float));
    s.second->run();
    if (counts) std::memcpy(recv, s.first.data(), row->count * sizeof(float));
}

template <typename Options, typename Call>
void reduce(Rank *rank, const struct row *row, float *send, float *recv, Options &&options, Call call)
{
    options.setInput(send, row->count);
    options.setOutput(recv, row->count);
    options.setReduceFunction(sum);
    options.setTag(++rank->tag);
    call(options);
}

template <typename Options, typename Call>
void gather(Rank *rank, const struct row *row, float *send, float *recv, Options &&options, Call call)
{
    options.setInput(send, row->in);
    options.setOutput(recv, row->out);
    options.setTag(++rank->tag);
    call(options);
}

void broadcast(Rank *rank, const struct row *row, float *recv)
{
    gloo::BroadcastOptions options(rank->context);
    options.setOutput(recv, row->count);
    options.setRoot(0);
    options.setTag(++rank->tag);
    gloo::broadcast(options);
}

void sendrecv(Rank *rank, const struct row *row, float *send, float *recv)
{
    int me = rank->context->rank, n = row->nranks;
    uint32_t tag = ++rank->tag;
    auto *from = unbound(rank, recv, row->count), *to = unbound(rank, send, row->count);

    from->recv((me + n - 1) % n, tag);
    to->send((me + 1) % n, tag);
    to->waitSend();
    from->waitRecv();
}

void issue(void *state, const struct row *row, float *send, float *recv, bool counts)
{
    Rank *rank = static_cast<Rank *>(state);

    switch (row->op) {
    case ROW_ALL_REDUCE:
        return reduce(rank, row, send, recv, gloo::AllreduceOptions(rank->context),
                      [](gloo::AllreduceOptions &o) { gloo::allreduce(o); });
    case ROW_REDUCE: {
        gloo::ReduceOptions options(rank->context);
        options.setRoot(0);
        return reduce(rank, row, send, recv, options, [](gloo::ReduceOptions &o) { gloo::reduce(o); });
    }
    case ROW_ALL_GATHER:
        return gather(rank, row, send, recv, gloo::AllgatherOptions(rank->context),
                      [](gloo::AllgatherOptions &o) { gloo::allgather(o); });
    case ROW_ALLTOALL:
        return gather(rank, row, send, recv, gloo::AlltoallOptions(rank->context),
                      [](gloo::AlltoallOptions &o) { gloo::alltoall(o); });
    case ROW_REDUCE_SCATTER:
        return reduce_scatter(rank, row, send, recv, counts);
    case ROW_BROADCAST:
        return broadcast(rank, row, recv);
    default:
        return sendrecv(rank, row, send, recv);
    }
}

struct Job {
    struct measure_options options;
    const char *store;
};

void run_rank(struct area_end *end, void *context)
{
    Job *job = static_cast<Job *>(context);
    Rank rank;
    gloo::transport::tcp::attr address;
    address.hostname = "127.0.0.1";
    auto store = std::make_shared<gloo::rendezvous::FileStore>(job->store);
    auto device = gloo::transport::tcp::CreateDevice(address);
    rank.context = std::make_shared<gloo::rendezvous::Context>(end->rank, end->nranks);
    measure_pin(&job->options, end->rank);
    rank.context->connectFullMesh(*store, device);

    struct peer peer = {};
    peer.state = &rank;
    peer.issue = issue;
    measure(&job->options, end, &peer);
    area_barrier(end);
}
} // namespace

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    Job job = {measure_parse(argc - 2, argv + 2), argv[2]};
    return start_processes(std::atoi(argv[1]), run_rank, &job);
}
