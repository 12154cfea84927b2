// SPDX-License-Identifier: Apache-2.0
/**
 * kolo_backend.cc - PyTorch's process group backend "kolo": c10d::Backend on a Kolo communicator.
 *
 * Every collective becomes calls of kolo.h, issued in order under one lock. Synchronous ones run inside the call, on an inline stream; others are
 * queued, and a KoloWork stands for them (work.hpp). Tensors that Kolo cannot use where they lie are staged (tensors.hpp). Messages with tags are
 * another backend's (tagged.hpp, or gloo), made with the group: a receive may be started before its sender has anything to say.
 *
 * Threads: any, also callbacks of futures. abort() may be called while others wait. A forked child does nothing with its parent's groups.
 */
#include "tagged.hpp"
#include "work.hpp"

#include <ATen/record_function.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/utils/pybind.h>
#include <pybind11/chrono.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace kolo
{

using c10::intrusive_ptr;
using c10d::Backend;
using c10d::OpType;
using c10d::ReduceOp;
using c10d::Store;
using WorkPtr = intrusive_ptr<c10d::Work>;
using Options = Backend::Options;

/** Makes the backend for messages: of a store, a rank, a size and a timeout. Ranks need not call it at the same time. */
using MessagesFactory = std::function<intrusive_ptr<Backend>(const intrusive_ptr<Store> &, int, int, milliseconds)>;

/** How a backend behaves, beside c10d's options. */
struct Manner {
    bool ordered_messages = false; // messages on the communicator itself, in the group's order; tags are ignored
    bool tagged_messages = false;  // messages over Kolo's own layer, by source and tag
    bool run_inline = false;       // asynchronous operations, too, run inside their call
    bool as_nccl = false;          // named "nccl", and refuses the calls that PyTorch's backend for NCCL refuses
    MessagesFactory make_messages;
};

// ---- issuing ----

/** Calls on a communicator under its lock. Operators made for them live until the end of it. */
struct Scope {
    ncclComm_t comm;
    koloStream_t stream;
    std::vector<ncclRedOp_t> made;

    Scope(ncclComm_t c, koloStream_t s) : comm(c), stream(s)
    {
    }
    Scope(const Scope &) = delete;
    ~Scope()
    {
        for (auto op : made) ncclRedOpDestroy(op, comm);
    }
};

using Issue = std::function<ncclResult_t(Scope &)>;

/** All of `calls`, which return results, as one group. */
template <class Calls> ncclResult_t grouped(Calls calls)
{
    ncclResult_t r = ncclGroupStart();
    if (r != ncclSuccess) return r;
    const ncclResult_t failed = calls();
    r = ncclGroupEnd();
    return failed != ncclSuccess ? failed : r;
}

/** A reduction's operator, made for the communicator when it is issued. */
struct Operator {
    ncclRedOp_t op = ncclSum;
    ncclDataType_t type;
    at::Tensor factor; // of PREMUL_SUM: one element of `type`

    Operator(const char *name, const ReduceOp &reduce, const at::Tensor &t) : type(*arithmetic_type(t.scalar_type()))
    {
        if (reduce.op_ == ReduceOp::PREMUL_SUM)
            factor = factor_of(name, reduce, t);
        else
            op = plain_operator(name, reduce.op_, t.scalar_type());
    }

    ncclResult_t get(Scope &scope, ncclRedOp_t *out) const
    {
        *out = op;
        if (!factor.defined()) return ncclSuccess;
        const ncclResult_t r =
            ncclRedOpCreatePreMulSum(out, factor.data_ptr(), type, ncclScalarHostImmediate, scope.comm);
        if (r == ncclSuccess) scope.made.push_back(*out);
        return r;
    }

  private:
    static at::Tensor factor_of(const char *name, const ReduceOp &reduce, const at::Tensor &t)
    {
        auto *given = dynamic_cast<c10d::PreMulSumSupplement *>(reduce.supplement_.get());
        if (!given) bad_value(name, "ReduceOp.PREMUL_SUM has no factor");
        if (t.scalar_type() == at::kBool) bad_type(name, "ReduceOp.AVG and PREMUL_SUM have no meaning for dtype Bool");
        auto value = given->tensor_factor.defined() ? given->tensor_factor.cpu().reshape({})
                                                    : at::scalar_tensor(given->double_factor, at::kDouble);
        return value.to(t.scalar_type()).contiguous();
    }
};

using Records = std::vector<FlightRecorder::Id>; // of an operation; empty where none are kept

/** Calls between startCoalescing and endCoalescing, of the thread that began it. */
struct Batch {
    std::thread::id owner;
    std::vector<Issue> issues;
    Tensors inputs, outputs;
    Staging staging;
    std::vector<WorkPtr> parts;
    Records records;
    milliseconds timeout{0};
};

// ---- creation ----

[[noreturn]] static void report_missing(const intrusive_ptr<Store> &store, int size, const std::string &group,
                                        milliseconds timeout)
{
    std::string missing;
    for (int r = 0; r < size; r++)
        if (!store->check({"kolo/here/" + std::to_string(r)})) missing += " " + std::to_string(r);
    C10_THROW_ERROR(DistBackendError, "kolo: group " + group + ": not all ranks came within " +
                                          std::to_string(timeout.count()) + " ms; missing:" + missing);
}

/** Wait until all ranks are here: Kolo's rendezvous then takes milliseconds, whoever was late. */
static void meet(const intrusive_ptr<Store> &store, int rank, int size, const std::string &group, milliseconds timeout)
{
    store->set("kolo/here/" + std::to_string(rank), std::vector<uint8_t>{1});
    if (store->add("kolo/arrived", 1) == size) store->set("kolo/all", std::vector<uint8_t>{1});
    try {
        store->wait({"kolo/all"}, timeout);
    } catch (const std::exception &) {
        report_missing(store, size, group, timeout);
    }
}

static ncclUniqueId exchange_id(const intrusive_ptr<Store> &store, int rank, const Link &link)
{
    ncclUniqueId id;
    if (rank == 0) {
        if (const ncclResult_t r = ncclGetUniqueId(&id)) link.fail("rendezvous", 0, r);
        auto *bytes = reinterpret_cast<const uint8_t *>(&id);
        store->set("kolo/id", std::vector<uint8_t>(bytes, bytes + sizeof id));
        return id;
    }
    const auto bytes = store->get("kolo/id");
    TORCH_CHECK(bytes.size() == sizeof id, "kolo: group ", link.group, ": the store's kolo/id has ", bytes.size(),
                " bytes, not ", sizeof id);
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<uint8_t *>(&id));
    return id;
}

/** torchrun's local rank names the device. Without one, or beyond the devices, the rank gets the next free one. */
static void choose_device()
{
    const char *local = std::getenv("LOCAL_RANK");
    int count = 0;

    if (!local || koloGetDeviceCount(&count) != ncclSuccess) return;
    const int device = std::atoi(local);
    if (device >= 0 && device < count) koloSetDevice(device);
}

static void make_streams(Link &link)
{
    int device = 0;
    ncclResult_t r = ncclCommCuDevice(link.comm, &device);
    if (r == ncclSuccess) r = koloSetDevice(device);
    if (r == ncclSuccess) r = koloStreamCreate(&link.queue, KOLO_STREAM_DEFAULT);
    if (r == ncclSuccess) r = koloStreamCreate(&link.direct, KOLO_STREAM_INLINE);
    if (r != ncclSuccess) link.fail("streams", 0, r);
}

static std::shared_ptr<Link> link_around(ncclComm_t comm, int rank, const std::string &group)
{
    auto link = std::make_shared<Link>();
    link->rank = rank;
    link->group = group;
    link->comm = comm;
    make_streams(*link);
    return link;
}

static std::shared_ptr<Link> connect(const intrusive_ptr<Store> &store, int rank, int size, const Options &options)
{
    auto link = std::make_shared<Link>();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    link->rank = rank;
    link->group = options.group_name;
    meet(store, rank, size, link->group, options.timeout);
    const ncclUniqueId id = exchange_id(store, rank, *link);
    choose_device();
    config.commName = link->group.c_str();
    if (const ncclResult_t r = ncclCommInitRankConfig(&link->comm, size, id, rank, &config)) link->fail("init", 0, r);
    make_streams(*link);
    return link;
}

#ifdef C10D_BACKEND_HAS_RECONFIGURE
/** Of a group that has its first members when it is reconfigured. */
static std::shared_ptr<Link> unconnected(int rank, const Options &options)
{
    auto link = std::make_shared<Link>();

    link->rank = rank;
    link->group = options.group_name;
    return link;
}

/** "kolo:RANK:NUMBER": the rank is the one of the process in its first group; handles sort by it. */
static std::string make_handle(uint64_t global_rank)
{
    std::random_device random;
    char text[64];

    std::snprintf(text, sizeof text, "kolo:%08llu:%08x%08x", (unsigned long long)global_rank, random(), random());
    return text;
}
#endif

// ---- memory that other processes can map ----

class SharedAllocator final : public c10::Allocator
{
  public:
    c10::DataPtr allocate(size_t bytes) override
    {
        void *p = nullptr;
        TORCH_CHECK(ncclMemAlloc(&p, bytes) == ncclSuccess, ncclGetLastError(nullptr));
        return {p, p, &release, at::Device(at::kCPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override
    {
        return &release;
    }
    void copy_data(void *to, const void *from, size_t bytes) const override
    {
        default_copy_data(to, from, bytes);
    }

  private:
    static void release(void *p)
    {
        ncclMemFree(p);
    }
};

static std::shared_ptr<c10::Allocator> shared_allocator()
{
    static auto one = std::make_shared<SharedAllocator>();
    return one;
}

// ---- the backend ----

class KoloBackend final : public Backend
{
  public:
    KoloBackend(std::shared_ptr<Link> link, intrusive_ptr<Store> store, int rank, int size,
                intrusive_ptr<Options> options, Manner manner)
        : Backend(rank, size), link_(std::move(link)), store_(std::move(store)), options_(std::move(options)),
          manner_(std::move(manner))
    {
        init();
        link_->global_rank = (int)recorded_group().ranks[(size_t)rank];
        if (link_->comm) begin_messages();
    }

    ~KoloBackend() override
    {
        if (getpid() != link_->process) {
            (void)messages_.release(); // its threads are the parent's: it would wait for them for ever
            return;
        }
        try {
            leave();
        } catch (const std::exception &e) {
            TORCH_WARN("kolo: group ", link_->group, ": ", e.what());
        }
    }

    static intrusive_ptr<Backend> create(const intrusive_ptr<Store> &store, int rank, int size,
                                         intrusive_ptr<Options> options, Manner manner)
    {
#ifdef C10D_BACKEND_HAS_RECONFIGURE
        auto link = options->enable_reconfigure ? unconnected(rank, *options) : connect(store, rank, size, *options);
#else
        auto link = connect(store, rank, size, *options);
#endif
        return c10::make_intrusive<KoloBackend>(std::move(link), store, rank, size, std::move(options),
                                                std::move(manner));
    }

    // ---- about it ----

    const std::string getBackendName() const override
    {
        return manner_.as_nccl ? "nccl" : "kolo";
    }
    intrusive_ptr<Options> getBackendOptions() override
    {
        return options_;
    }
    bool supportsSplitting() const override
    {
        return true;
    }
    bool supportsCoalescing() const override
    {
        return true;
    }
    bool supportsShrinking() const override
    {
        return true;
    }
    void setTimeout(milliseconds timeout) override
    {
        options_->timeout = timeout;
    }
    void setSequenceNumberForGroup() override
    {
    }
    uint64_t getSequenceNumberForGroup() override
    {
        return seq_;
    }
    bool supportsTensorAlloc(c10::DeviceIndex) override
    {
        return true;
    }
    std::shared_ptr<c10::Allocator> getMemAllocator() override
    {
        return shared_allocator();
    }
    at::Tensor allocateTensor(long size, at::TensorOptions options) override;
    c10d::ErrorType getError() override;
    std::unordered_map<std::string, uint64_t> getMemoryStats() override;
    void flight_record(const std::string &file);
    int64_t handle() const
    {
        return reinterpret_cast<int64_t>(link_->comm);
    }

    // ---- its end ----

    void abort() override;
    void shutdown() override;
    void suspend() override;
    void resume() override;
#ifdef C10D_BACKEND_HAS_HOOKS
    void registerAbortHook(int64_t id, c10d::AbortHook hook) override;
    void unregisterAbortHook(int64_t id) override;
#endif
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    bool supportsReconfigure() const override;
    c10d::ReconfigureHandle get_reconfigure_handle() const override;
    WorkPtr reconfigure(const c10d::ReconfigureOptions &opts) override;
#endif

    // ---- other groups ----

    intrusive_ptr<Backend> split(const intrusive_ptr<Store> &store, const std::vector<int> &ranks,
                                 const intrusive_ptr<Options> &opts) override;
    intrusive_ptr<Backend> merge(const intrusive_ptr<Store> &store, const intrusive_ptr<Options> &opts, const int &rank,
                                 const int &size) override;
    intrusive_ptr<Backend> shrink(const std::vector<int64_t> &excluded, int flags,
                                  const intrusive_ptr<Options> &opts) override;

    // ---- collectives ----

    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override;
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
    WorkPtr allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
    WorkPtr allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override;
    WorkPtr allgather(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
    WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts) override;
    WorkPtr allgather_coalesced(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::AllgatherOptions &opts) override;
    WorkPtr gather(TensorLists &outputs, Tensors &inputs, const c10d::GatherOptions &opts) override;
#ifdef C10D_BACKEND_HAS_HOOKS
    WorkPtr gather_single(at::Tensor &output, at::Tensor &input, const c10d::GatherOptions &opts) override;
#endif
    WorkPtr scatter(Tensors &outputs, TensorLists &inputs, const c10d::ScatterOptions &opts) override;
    WorkPtr reduce_scatter(Tensors &outputs, TensorLists &inputs, const c10d::ReduceScatterOptions &opts) override;
    WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::ReduceScatterOptions &opts) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::ReduceScatterOptions &opts) override;
    WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &out_splits,
                          std::vector<int64_t> &in_splits, const c10d::AllToAllOptions &opts) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts) override;
    WorkPtr barrier(const c10d::BarrierOptions &opts) override;
    void monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks) override;
    void startCoalescing() override;
    WorkPtr endCoalescing() override;

    // ---- messages ----

    WorkPtr send(Tensors &tensors, int peer, int tag) override;
    WorkPtr recv(Tensors &tensors, int peer, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;

  private:
    template <class Opts> Call call_of(OpType type, const char *name, const char *title, const Opts &opts) const
    {
        if constexpr (requires { opts.reduceOp; })
            if (manner_.as_nccl) check_operator_of_nccl(name, opts.reduceOp);
        return {type, name, title, opts.timeout > kNoTimeout ? opts.timeout : options_->timeout, opts.asyncOp};
    }

    // Of one call; all that it needs beyond its return is taken out of these.
    template <class F>
    WorkPtr submit(const Call &call, const Tensors &inputs, const Tensors &outputs, Staging &staging, F issue);
    template <class F> bool run_now(const Call &call, uint64_t seq, Staging &staging, F &issue, const Records &records);
    template <class F>
    intrusive_ptr<KoloWork> enqueue(const Call &call, uint64_t seq, const Tensors &inputs, const Tensors &outputs,
                                    Staging &staging, F &issue);
    template <class F>
    WorkPtr run_or_enqueue(const Call &call, uint64_t seq, const Tensors &inputs, const Tensors &outputs,
                           Staging &staging, F &issue, const Records &records);
    void put_into_batch(Batch &batch, const Call &call, const Tensors &inputs, const Tensors &outputs, Staging &staging,
                        Issue issue, const Records &records);
    Records record(const Call &call, uint64_t seq, const Tensors &inputs, const Tensors &outputs);
    RecordedGroup recorded_group() const;
    WorkPtr finished(const Call &call, uint64_t seq, const Tensors &outputs);
    void be_patient(milliseconds timeout);
    void check_alive(const Call &call) const;
    Batch *own_batch();

    template <class Start> WorkPtr message(const Call &call, const Tensors &tensors, Staging &staging, Start start);
    WorkPtr ordered_message(const Call &call, const Tensors &tensors, Staging &staging, const at::Tensor &t, int peer);
    void begin_messages();
    void make_messages();
    Backend &messages();
    void check_peer(const char *op, int peer) const;

    void leave();
    void quit_messages(bool by_abort);
    intrusive_ptr<Backend> child(ncclComm_t comm, const intrusive_ptr<Store> &store, int rank, int size,
                                 const intrusive_ptr<Options> &opts);
    intrusive_ptr<Options> options_for_child(const intrusive_ptr<Options> &opts) const;

    std::shared_ptr<Link> link_;
    intrusive_ptr<Store> store_;
    intrusive_ptr<Options> options_;
    const Manner manner_;
    std::atomic<uint64_t> seq_{0};
    std::atomic<uint64_t> message_seq_{0}; // of the flight record
    const size_t number_ = counted_++;     // among the groups of this process
    inline static std::atomic<size_t> counted_{0};
    std::atomic<bool> left_{false};
    int shrunk_ = 0;

    std::mutex batch_guard_;
    std::unique_ptr<Batch> batch_;
    std::atomic<bool> batching_{false};

#ifdef C10D_BACKEND_HAS_RECONFIGURE
    void become(std::shared_ptr<Link> link, const intrusive_ptr<Store> &store, int rank, int size,
                const std::vector<uint64_t> &global_ranks);

    const intrusive_ptr<Store> first_store_ = store_;
    const c10d::ReconfigureHandle handle_ = make_handle(recorded_group().ranks[(size_t)rank_]);
    std::set<int64_t> numbers_used_;
#endif

    intrusive_ptr<TaggedBackend> tagged_;
    std::mutex messages_guard_;
    intrusive_ptr<Backend> messages_;
    std::atomic<uint64_t> monitored_{0}; // barriers so far
};

// ---- issuing, of the backend ----

void KoloBackend::check_alive(const Call &call) const
{
    if (!link_->comm || link_->aborted || link_->ended) link_->fail(call.name, 0, ncclInvalidUsage);
}

/** Under the lock: how long operations from now on may stand still. */
void KoloBackend::be_patient(milliseconds timeout)
{
    constexpr milliseconds longest = std::chrono::hours(24 * 365);

    if (timeout == link_->timeout_set) return;
    if (koloSetTimeout(link_->comm, (unsigned long long)std::min(timeout, longest).count()) == ncclSuccess)
        link_->timeout_set = timeout;
}

Batch *KoloBackend::own_batch()
{
    if (!batching_) return nullptr;
    std::lock_guard hold(batch_guard_);
    return batch_ && batch_->owner == std::this_thread::get_id() ? batch_.get() : nullptr;
}

template <class F>
WorkPtr KoloBackend::submit(const Call &call, const Tensors &inputs, const Tensors &outputs, Staging &staging, F issue)
{
    check_alive(call);
    if (manner_.as_nccl) {
        check_tensors_of_nccl(call.name, inputs, !call.message);
        check_tensors_of_nccl(call.name, outputs, !call.message);
    }
    const uint64_t seq = call.message ? 0 : ++seq_;
    const Records records = record(call, seq, inputs, outputs);
    if (auto *batch = own_batch()) {
        put_into_batch(*batch, call, inputs, outputs, staging, std::move(issue), records);
        return finished(call, seq, outputs);
    }
    try {
        return run_or_enqueue(call, seq, inputs, outputs, staging, issue, records);
    } catch (...) {
        for (auto id : records) FlightRecorder::get().finish(id, false);
        link_->after_failure();
        throw;
    }
}

template <class F>
WorkPtr KoloBackend::run_or_enqueue(const Call &call, uint64_t seq, const Tensors &inputs, const Tensors &outputs,
                                    Staging &staging, F &issue, const Records &records)
{
    const bool profiled = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE).has_value();
    if (manner_.run_inline || (!call.async && !profiled)) {
        if (run_now(call, seq, staging, issue, records)) {
            for (auto id : records) FlightRecorder::get().finish(id, true);
            return call.async ? finished(call, seq, outputs) : nullptr;
        }
    }
    auto work = enqueue(call, seq, inputs, outputs, staging, issue);
    work->follow(records);
    if (!call.async) work->wait();
    return work;
}

// ---- the flight record ----

RecordedGroup KoloBackend::recorded_group() const
{
    auto ranks = options_->global_ranks_in_group;
    if (ranks.size() != (size_t)size_) {
        ranks.resize((size_t)size_);
        std::iota(ranks.begin(), ranks.end(), 0);
    }
    return {number_, getGroupUid().empty() ? link_->group : getGroupUid(), getGroupDesc(), std::move(ranks)};
}

/** The name by which PyTorch's analyser of flight records knows an operation. */
static std::string recorded_name(const Call &call, const Tensors &parts, int rank)
{
    static const std::map<std::string, std::string> others = {
        {"all_reduce_coalesced", "allreduce_coalesced"},
        {"all_gather_coalesced", "ALLGATHER_coalesced"},
    };
    const std::string name = std::string(call.title).substr(std::strlen("kolo:"));
    const std::string me = std::to_string(rank), peer = std::to_string(call.peer);

    if (call.message) return call.type == OpType::SEND ? "send " + me + "->" + peer : "recv " + me + "<-" + peer;
    const bool unequal =
        std::any_of(parts.begin(), parts.end(), [&](auto &t) { return t.sizes() != parts[0].sizes(); });
    if (unequal && (call.type == OpType::ALLGATHER || call.type == OpType::REDUCE_SCATTER)) return name + "_v";
    const auto found = others.find(name);
    return found == others.end() ? name : found->second;
}

/** Takes the interpreter's lock for the stack trace: call it without others. */
Records KoloBackend::record(const Call &call, uint64_t seq, const Tensors &inputs, const Tensors &outputs)
{
    auto &recorder = FlightRecorder::get();
    if (!recorder.enabled()) return {};
    Recorded r;
    r.is_message = call.message;
    r.message = call.message ? ++message_seq_ : message_seq_.load();
    r.collective = call.message ? seq_.load() : seq;
    r.timeout = call.timeout;
    r.flat_inputs = call.type == OpType::REDUCE_SCATTER || call.type == OpType::ALLTOALL;
    r.flat_outputs = call.type == OpType::ALLGATHER || call.type == OpType::ALLTOALL;
    r.name = recorded_name(call, r.flat_inputs ? inputs : outputs, rank_);
    r.inputs = inputs;
    r.outputs = outputs;
    return {recorder.record(recorded_group(), r)};
}

/** False: others are under way, and this one has to queue behind them. */
template <class F>
bool KoloBackend::run_now(const Call &call, uint64_t seq, Staging &staging, F &issue, const Records &records)
{
    {
        std::lock_guard hold(link_->issue);
        if (!link_->is_idle()) return false;
        for (auto id : records) FlightRecorder::get().start(id);
        be_patient(call.timeout);
        Scope scope(link_->comm, link_->direct);
        ncclResult_t r = issue(scope);
        if (r == ncclSuccess) r = koloStreamSynchronize(link_->direct);
        if (r != ncclSuccess) link_->fail(call.name, seq, r);
    }
    staging.bring_back();
    return true;
}

template <class F>
intrusive_ptr<KoloWork> KoloBackend::enqueue(const Call &call, uint64_t seq, const Tensors &inputs,
                                             const Tensors &outputs, Staging &staging, F &issue)
{
    auto work = c10::make_intrusive<KoloWork>(link_, call, seq, inputs, outputs);
    {
        std::lock_guard hold(link_->issue);
        be_patient(call.timeout);
        Scope scope(link_->comm, link_->queue);
        ncclResult_t r = issue(scope);
        if (r == ncclSuccess) r = work->mark(link_->queue);
        if (r != ncclSuccess) link_->fail(call.name, seq, r);
        work->staging = std::move(staging);
    }
    link_->add_pending(work);
    return work;
}

void KoloBackend::put_into_batch(Batch &batch, const Call &call, const Tensors &inputs, const Tensors &outputs,
                                 Staging &staging, Issue issue, const Records &records)
{
    batch.records.insert(batch.records.end(), records.begin(), records.end());
    batch.issues.push_back(std::move(issue));
    batch.inputs.insert(batch.inputs.end(), inputs.begin(), inputs.end());
    batch.outputs.insert(batch.outputs.end(), outputs.begin(), outputs.end());
    for (auto &t : staging.kept) batch.staging.kept.push_back(t);
    for (auto &b : staging.back) batch.staging.back.push_back(b);
    batch.timeout = std::max(batch.timeout, call.timeout);
}

WorkPtr KoloBackend::finished(const Call &call, uint64_t seq, const Tensors &outputs)
{
    auto work = c10::make_intrusive<KoloWork>(link_, call, seq, std::nullopt, outputs);
    work->settle(ncclSuccess);
    return work;
}

void KoloBackend::startCoalescing()
{
    std::lock_guard hold(batch_guard_);
    batch_ = std::make_unique<Batch>(); // one that was never ended is forgotten: nothing of it was issued
    batch_->owner = std::this_thread::get_id();
    batching_ = true;
}

WorkPtr KoloBackend::endCoalescing()
{
    std::unique_ptr<Batch> batch;
    {
        std::lock_guard hold(batch_guard_);
        TORCH_CHECK(batch_ && batch_->owner == std::this_thread::get_id(),
                    "kolo: endCoalescing without startCoalescing in this thread");
        batch = std::move(batch_);
        batching_ = false;
    }
    Call call{OpType::COALESCED, "coalesced", "kolo:coalesced", options_->timeout, true};
    call.timeout = batch->timeout > kNoTimeout ? batch->timeout : call.timeout;
    auto issue = [&](Scope &s) {
        if (batch->issues.empty()) return ncclSuccess;
        return grouped([&] {
            for (auto &one : batch->issues)
                if (const ncclResult_t r = one(s)) return r;
            return ncclSuccess;
        });
    };
    check_alive(call);
    auto work = enqueue(call, seq_, batch->inputs, batch->outputs, batch->staging, issue);
    work->parts = std::move(batch->parts);
    work->follow(std::move(batch->records));
    return work;
}

// ---- collectives ----

WorkPtr KoloBackend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
    const Call call = call_of(OpType::BROADCAST, "broadcast", "kolo:broadcast", opts);
    const auto &t = single(call.name, tensors);
    const int root = (int)opts.rootRank;
    Staging staging;

    check_root(call.name, opts.rootRank, size_);
    const auto buffer = staging.updatable(t);
    const Unit unit = unit_of(t);
    return submit(call, tensors, tensors, staging, [=](Scope &s) {
        void *p = buffer.data_ptr();
        return ncclBroadcast(p, p, (size_t)buffer.numel() * unit.count, unit.type, root, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    if (tensors.size() == 1 && tensors[0].layout() == at::kSparse) return allreduce_sparse(tensors, opts);
    const Call call = call_of(OpType::ALLREDUCE, "all_reduce", "kolo:all_reduce", opts);
    Staging staging;

    const auto buffer = reducible(call.name, staging.updatable(single(call.name, tensors)), opts.reduceOp);
    const Operator op(call.name, opts.reduceOp, buffer);
    return submit(call, tensors, tensors, staging, [=](Scope &s) {
        ncclRedOp_t o;
        if (const ncclResult_t r = op.get(s, &o)) return r;
        void *p = buffer.data_ptr();
        return ncclAllReduce(p, p, (size_t)buffer.numel(), op.type, o, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    const Call call{OpType::_ALLREDUCE_SPARSE, "all_reduce_sparse", "kolo:all_reduce_sparse", options_->timeout, true};

    check_alive(call);
    if (size_ == 1) return finished(call, ++seq_, tensors);
    return messages().allreduce(tensors, opts);
}

WorkPtr KoloBackend::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts)
{
    const Call call = call_of(OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", "kolo:all_reduce_coalesced", opts);
    Staging staging;
    Tensors buffers;
    std::vector<Operator> ops;

    if (tensors.empty()) bad_value(call.name, "requires non-empty tensor list");
    check_tensors(call.name, tensors);
    for (auto &t : tensors) {
        buffers.push_back(reducible(call.name, staging.updatable(t), opts.reduceOp));
        ops.emplace_back(call.name, opts.reduceOp, buffers.back());
    }
    return submit(call, tensors, tensors, staging, [=](Scope &s) {
        return grouped([&] {
            for (size_t i = 0; i < buffers.size(); i++) {
                ncclRedOp_t o;
                if (const ncclResult_t r = ops[i].get(s, &o)) return r;
                void *p = buffers[i].data_ptr();
                if (const ncclResult_t r =
                        ncclAllReduce(p, p, (size_t)buffers[i].numel(), ops[i].type, o, s.comm, s.stream))
                    return r;
            }
            return ncclSuccess;
        });
    });
}

WorkPtr KoloBackend::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
    const Call call = call_of(OpType::REDUCE, "reduce", "kolo:reduce", opts);
    const int root = (int)opts.rootRank;
    Staging staging;

    const auto &t = single(call.name, tensors);
    check_root(call.name, opts.rootRank, size_);
    const auto buffer = reducible(call.name, rank_ == root ? staging.updatable(t) : staging.readable(t), opts.reduceOp);
    const Operator op(call.name, opts.reduceOp, buffer);
    return submit(call, tensors, tensors, staging, [=](Scope &s) {
        ncclRedOp_t o;
        if (const ncclResult_t r = op.get(s, &o)) return r;
        void *p = buffer.data_ptr();
        return ncclReduce(p, p, (size_t)buffer.numel(), op.type, o, root, s.comm, s.stream);
    });
}

/** `input` as a buffer apart from `output`, unless it is where its part of the result belongs. */
static at::Tensor apart(Staging &staging, const at::Tensor &input, const at::Tensor &output, int64_t own)
{
    const auto in = staging.readable(input);
    auto *place = static_cast<const char *>(output.const_data_ptr()) + own * (int64_t)output.element_size();
    return overlap(in, output) && in.const_data_ptr() != place ? staging.keep(in.clone()) : in;
}

WorkPtr KoloBackend::_allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts)
{
    const Call call = call_of(OpType::_ALLGATHER_BASE, "all_gather_into_tensor", "kolo:_all_gather_base", opts);
    Staging staging;

    check_tensor(call.name, input, 0);
    check_tensor(call.name, output, 0);
    check_type(call.name, output.scalar_type(), input, 0);
    if (input.numel() * size_ != output.numel())
        bad_value(call.name, "output tensor size must be equal to world_size times input tensor size");
    const auto to = staging.writable(output);
    const auto from = apart(staging, input, to, rank_ * input.numel());
    const Unit unit = unit_of(input);
    return submit(call, {input}, {output}, staging, [=](Scope &s) {
        return ncclAllGather(from.const_data_ptr(), to.data_ptr(), (size_t)from.numel() * unit.count, unit.type, s.comm,
                             s.stream);
    });
}

struct Counts {
    std::vector<size_t> of, at; // elements, and the sum of those before
    bool equal = true;

    void add(size_t n)
    {
        equal = equal && (of.empty() || of.front() == n);
        at.push_back(of.empty() ? 0 : at.back() + of.back());
        of.push_back(n);
    }
};

static Counts counts_of(const Tensors &list, size_t units)
{
    Counts c;
    for (auto &t : list) c.add((size_t)t.numel() * units);
    return c;
}

WorkPtr KoloBackend::allgather(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    const Call call = call_of(OpType::ALLGATHER, "all_gather", "kolo:all_gather", opts);
    Staging staging;

    const auto &input = single(call.name, inputs);
    if (outputs.size() != 1) bad_value(call.name, "requires input/output tensor lists to have the same length");
    const auto &list = outputs[0];
    if (list.size() != (size_t)size_)
        bad_value(call.name, "invalid output tensor list at index 0 (expected length " + std::to_string(size_) +
                                 ", got " + std::to_string(list.size()) + ")");
    check_tensors(call.name, list);
    for (size_t i = 0; i < list.size(); i++) check_type(call.name, input.scalar_type(), list[i], i);
    check_like(call.name, input, {list[rank_]});
    const Unit unit = unit_of(input);
    const Counts counts = counts_of(list, unit.count);
    const auto to = staging.writable(list);
    const auto from = apart(staging, input, to, (int64_t)(counts.at[rank_] / unit.count));
    return submit(call, inputs, list, staging, [=](Scope &s) {
        if (counts.equal)
            return ncclAllGather(from.const_data_ptr(), to.data_ptr(), counts.of[0], unit.type, s.comm, s.stream);
        return koloAllGatherV(from.const_data_ptr(), (size_t)from.numel() * unit.count, to.data_ptr(), counts.of.data(),
                              counts.at.data(), unit.type, s.comm, s.stream);
    });
}

/** Several gatherings as one: rows that go into rows. */
struct Rows {
    Tensors from, to;
    std::vector<Unit> units;
};

static ncclResult_t gather_rows(const Rows &rows, Scope &s)
{
    return grouped([&] {
        for (size_t i = 0; i < rows.from.size(); i++)
            if (const ncclResult_t r = ncclAllGather(rows.from[i].const_data_ptr(), rows.to[i].data_ptr(),
                                                     (size_t)rows.from[i].numel() * rows.units[i].count,
                                                     rows.units[i].type, s.comm, s.stream))
                return r;
        return ncclSuccess;
    });
}

WorkPtr KoloBackend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                     const c10d::AllgatherOptions &opts)
{
    const Call call =
        call_of(OpType::COALESCED, "all_gather_into_tensor_coalesced", "kolo:all_gather_into_tensor_coalesced", opts);
    Staging staging;
    Rows rows;

    if (outputs.size() != inputs.size())
        bad_value(call.name, "requires input/output tensor lists to have the same length");
    check_tensors(call.name, outputs);
    check_tensors(call.name, inputs);
    for (size_t i = 0; i < inputs.size(); i++) {
        check_type(call.name, outputs[i].scalar_type(), inputs[i], i);
        if (inputs[i].numel() * size_ != outputs[i].numel())
            bad_value(call.name, "output tensor size must be equal to world_size times input tensor size");
        rows.to.push_back(staging.writable(outputs[i]));
        rows.from.push_back(apart(staging, inputs[i], rows.to.back(), rank_ * inputs[i].numel()));
        rows.units.push_back(unit_of(inputs[i]));
    }
    return submit(call, inputs, outputs, staging, [=](Scope &s) { return gather_rows(rows, s); });
}

WorkPtr KoloBackend::allgather_coalesced(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    const Call call = call_of(OpType::ALLGATHER_COALESCED, "all_gather_coalesced", "kolo:all_gather_coalesced", opts);
    Staging staging;
    Tensors flat;
    Rows rows;

    if (inputs.empty()) bad_value(call.name, "requires non-empty input tensor list");
    if (outputs.size() != (size_t)size_) bad_value(call.name, "output lists should be equal to world size");
    check_tensors(call.name, inputs);
    for (size_t i = 0; i < inputs.size(); i++) {
        Tensors of_ranks;
        for (auto &list : outputs) {
            if (list.size() != inputs.size())
                bad_value(call.name, "requires input/output tensor lists to have the same length");
            check_like(call.name, inputs[i], {list[i]});
            of_ranks.push_back(list[i]);
            flat.push_back(list[i]);
        }
        rows.to.push_back(staging.writable(of_ranks));
        rows.from.push_back(apart(staging, inputs[i], rows.to.back(), rank_ * inputs[i].numel()));
        rows.units.push_back(unit_of(inputs[i]));
    }
    return submit(call, inputs, flat, staging, [=](Scope &s) { return gather_rows(rows, s); });
}

WorkPtr KoloBackend::gather(TensorLists &outputs, Tensors &inputs, const c10d::GatherOptions &opts)
{
    const Call call = call_of(OpType::GATHER, "gather", "kolo:gather", opts);
    const int root = (int)opts.rootRank;
    Staging staging;

    const auto &input = single(call.name, inputs);
    check_root(call.name, opts.rootRank, size_);
    const Unit unit = unit_of(input);
    at::Tensor to;
    Tensors list;
    if (rank_ == root) {
        if (outputs.size() != 1 || outputs[0].size() != (size_t)size_)
            bad_value(call.name, "requires a single-element output list containing a list with " +
                                     std::to_string(size_) + " tensors");
        list = outputs[0];
        check_like(call.name, input, list);
        to = staging.writable(list);
    } else if (!outputs.empty()) {
        bad_value(call.name, "requires empty output on non-root");
    }
    const auto from = to.defined() ? apart(staging, input, to, rank_ * input.numel()) : staging.readable(input);
    return submit(call, inputs, list, staging, [=](Scope &s) {
        return ncclGather(from.const_data_ptr(), to.defined() ? to.data_ptr() : nullptr,
                          (size_t)from.numel() * unit.count, unit.type, root, s.comm, s.stream);
    });
}

#ifdef C10D_BACKEND_HAS_HOOKS
/** Off the root `output` is anything. */
WorkPtr KoloBackend::gather_single(at::Tensor &output, at::Tensor &input, const c10d::GatherOptions &opts)
{
    const Call call = call_of(OpType::GATHER, "gather_single", "kolo:gather_single", opts);
    const int root = (int)opts.rootRank;
    Staging staging;
    at::Tensor to;

    check_root(call.name, opts.rootRank, size_);
    check_tensor(call.name, input, 0);
    const Unit unit = unit_of(input);
    if (rank_ == root) {
        check_tensor(call.name, output, 0);
        check_type(call.name, output.scalar_type(), input, 0);
        if (input.numel() * size_ != output.numel())
            bad_value(call.name, "output tensor size must be equal to world_size times input tensor size");
        to = staging.writable(output);
    }
    const auto from = to.defined() ? apart(staging, input, to, rank_ * input.numel()) : staging.readable(input);
    return submit(call, {input}, to.defined() ? Tensors{output} : Tensors{}, staging, [=](Scope &s) {
        return ncclGather(from.const_data_ptr(), to.defined() ? to.data_ptr() : nullptr,
                          (size_t)from.numel() * unit.count, unit.type, root, s.comm, s.stream);
    });
}
#endif

WorkPtr KoloBackend::scatter(Tensors &outputs, TensorLists &inputs, const c10d::ScatterOptions &opts)
{
    const Call call = call_of(OpType::SCATTER, "scatter", "kolo:scatter", opts);
    const int root = (int)opts.rootRank;
    Staging staging;

    const auto &output = single(call.name, outputs);
    check_root(call.name, opts.rootRank, size_);
    const Unit unit = unit_of(output);
    at::Tensor from;
    if (rank_ == root) {
        if (inputs.size() != 1 || inputs[0].size() != (size_t)size_)
            bad_value(call.name, "requires a single-element input list containing a list with " +
                                     std::to_string(size_) + " tensors");
        check_like(call.name, output, inputs[0]);
        from = staging.readable(inputs[0]);
    } else if (!inputs.empty()) {
        bad_value(call.name, "requires empty input on non-root");
    }
    const auto to = staging.writable(output);
    if (from.defined() && overlap(from, to)) from = staging.keep(from.clone());
    return submit(call, rank_ == root ? inputs[0] : Tensors{}, outputs, staging, [=](Scope &s) {
        return ncclScatter(from.defined() ? from.const_data_ptr() : nullptr, to.data_ptr(),
                           (size_t)to.numel() * unit.count, unit.type, root, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input, const c10d::ReduceScatterOptions &opts)
{
    const Call call = call_of(OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", "kolo:_reduce_scatter_base", opts);
    Staging staging;

    check_tensor(call.name, input, 0);
    check_tensor(call.name, output, 0);
    check_type(call.name, output.scalar_type(), input, 0);
    if (output.numel() * size_ != input.numel())
        bad_value(call.name, "input tensor must be the same size as output size times world size");
    const auto to = reducible(call.name, staging.writable(output), opts.reduceOp);
    auto from = reducible(call.name, staging.readable(input), opts.reduceOp);
    if (overlap(from, to)) from = staging.keep(from.clone());
    const Operator op(call.name, opts.reduceOp, to);
    return submit(call, {input}, {output}, staging, [=](Scope &s) {
        ncclRedOp_t o;
        if (const ncclResult_t r = op.get(s, &o)) return r;
        return ncclReduceScatter(from.const_data_ptr(), to.data_ptr(), (size_t)to.numel(), op.type, o, s.comm,
                                 s.stream);
    });
}

WorkPtr KoloBackend::reduce_scatter(Tensors &outputs, TensorLists &inputs, const c10d::ReduceScatterOptions &opts)
{
    const Call call = call_of(OpType::REDUCE_SCATTER, "reduce_scatter", "kolo:reduce_scatter", opts);
    Staging staging;

    const auto &output = single(call.name, outputs);
    if (inputs.size() != 1) bad_value(call.name, "requires input/output tensor lists to have the same length");
    if (inputs[0].size() != (size_t)size_) bad_value(call.name, "invalid input tensor list size, must be world size");
    check_tensors(call.name, inputs[0]);
    for (size_t i = 0; i < inputs[0].size(); i++) check_type(call.name, output.scalar_type(), inputs[0][i], i);
    check_like(call.name, output, {inputs[0][rank_]});
    const Counts counts = counts_of(inputs[0], output.is_complex() ? 2 : 1);
    const auto to = reducible(call.name, staging.writable(output), opts.reduceOp);
    auto from = reducible(call.name, staging.readable(inputs[0]), opts.reduceOp);
    if (overlap(from, to)) from = staging.keep(from.clone());
    const Operator op(call.name, opts.reduceOp, to);
    return submit(call, inputs[0], outputs, staging, [=](Scope &s) {
        ncclRedOp_t o;
        if (const ncclResult_t r = op.get(s, &o)) return r;
        if (counts.equal)
            return ncclReduceScatter(from.const_data_ptr(), to.data_ptr(), counts.of[0], op.type, o, s.comm, s.stream);
        return koloReduceScatterV(from.const_data_ptr(), to.data_ptr(), counts.of.data(), op.type, o, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                     const c10d::ReduceScatterOptions &opts)
{
    const Call call = call_of(OpType::REDUCE_SCATTER_TENSOR_COALESCED, "reduce_scatter_tensor_coalesced",
                              "kolo:reduce_scatter_tensor_coalesced", opts);
    Staging staging;
    Tensors from, to;
    std::vector<Operator> ops;

    if (outputs.size() != inputs.size())
        bad_value(call.name, "requires input/output tensor lists to have the same length");
    check_tensors(call.name, outputs);
    check_tensors(call.name, inputs);
    for (size_t i = 0; i < inputs.size(); i++) {
        check_type(call.name, outputs[i].scalar_type(), inputs[i], i);
        if (outputs[i].numel() * size_ != inputs[i].numel())
            bad_value(call.name, "input tensor must be the same size as output size times world size");
        to.push_back(reducible(call.name, staging.writable(outputs[i]), opts.reduceOp));
        from.push_back(reducible(call.name, staging.readable(inputs[i]), opts.reduceOp));
        if (overlap(from[i], to[i])) from[i] = staging.keep(from[i].clone());
        ops.emplace_back(call.name, opts.reduceOp, to[i]);
    }
    return submit(call, inputs, outputs, staging, [=](Scope &s) {
        return grouped([&] {
            for (size_t i = 0; i < from.size(); i++) {
                ncclRedOp_t o;
                if (const ncclResult_t r = ops[i].get(s, &o)) return r;
                if (const ncclResult_t r = ncclReduceScatter(from[i].const_data_ptr(), to[i].data_ptr(),
                                                             (size_t)to[i].numel(), ops[i].type, o, s.comm, s.stream))
                    return r;
            }
            return ncclSuccess;
        });
    });
}

/** Rows of dimension 0 for each rank, as counts of units. */
static Counts counts_of_splits(const char *op, const at::Tensor &t, const std::vector<int64_t> &splits, int size,
                               size_t units)
{
    const int64_t rows = t.dim() ? t.size(0) : 0;
    const int64_t row = rows ? t.numel() / rows : 0;
    Counts c;
    int64_t sum = 0;

    if (splits.size() != (size_t)size) bad_value(op, "Number of tensor splits not equal to group size");
    for (auto n : splits) {
        if (n < 0) bad_value(op, "split sizes cannot be negative");
        c.add((size_t)(n * row) * units);
        sum += n;
    }
    if (sum != rows) bad_value(op, "Split sizes doesn't match total dim 0 size");
    return c;
}

static std::vector<int64_t> equal_splits(const char *op, const at::Tensor &t, int size)
{
    const int64_t rows = t.dim() ? t.size(0) : 0;

    if (rows % size) bad_value(op, "Tensor's dim 0 does not divide equally across group size");
    return std::vector<int64_t>((size_t)size, rows / size);
}

WorkPtr KoloBackend::alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &out_splits,
                                   std::vector<int64_t> &in_splits, const c10d::AllToAllOptions &opts)
{
    const Call call = call_of(OpType::ALLTOALL_BASE, "all_to_all_single", "kolo:all_to_all", opts);
    const bool equal = out_splits.empty() && in_splits.empty();
    Staging staging;

    check_tensor(call.name, input, 0);
    check_tensor(call.name, output, 0);
    check_type(call.name, output.scalar_type(), input, 0);
    const Unit unit = unit_of(input);
    const Counts in = counts_of_splits(
        call.name, input, in_splits.empty() ? equal_splits(call.name, input, size_) : in_splits, size_, unit.count);
    const Counts out = counts_of_splits(
        call.name, output, out_splits.empty() ? equal_splits(call.name, output, size_) : out_splits, size_, unit.count);
    if (equal && input.numel() != output.numel()) bad_value(call.name, "input and output have to be of the same size");
    const auto to = staging.writable(output);
    auto from = staging.readable(input);
    if (overlap(from, to)) from = staging.keep(from.clone());
    return submit(call, {input}, {output}, staging, [=](Scope &s) {
        if (equal) return ncclAlltoAll(from.const_data_ptr(), to.data_ptr(), in.of[0], unit.type, s.comm, s.stream);
        return koloAllToAllV(from.const_data_ptr(), in.of.data(), in.at.data(), to.data_ptr(), out.of.data(),
                             out.at.data(), unit.type, s.comm, s.stream);
    });
}

WorkPtr KoloBackend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts)
{
    const Call call = call_of(OpType::ALLTOALL, "all_to_all", "kolo:all_to_all", opts);
    Staging staging;
    Tensors from, to;

    if (inputs.size() != (size_t)size_) bad_value(call.name, "invalid input tensor list size, must be world size");
    if (outputs.size() != (size_t)size_) bad_value(call.name, "invalid output tensor list size, must be world size");
    check_tensors(call.name, inputs);
    check_tensors(call.name, outputs);
    for (int i = 0; i < size_; i++) {
        check_type(call.name, inputs[0].scalar_type(), inputs[i], i);
        check_type(call.name, inputs[0].scalar_type(), outputs[i], i);
        from.push_back(staging.readable(inputs[i]));
        to.push_back(staging.writable(outputs[i]));
    }
    check_like(call.name, inputs[rank_], {outputs[rank_]});
    for (auto &f : from)
        for (auto &t : to)
            if (overlap(f, t)) f = staging.keep(f.clone());
    const Unit unit = unit_of(inputs[0]);
    return submit(call, inputs, outputs, staging, [=](Scope &s) {
        return grouped([&] {
            for (size_t i = 0; i < from.size(); i++) {
                const int peer = (int)i;
                ncclResult_t r = ncclSuccess;
                if (from[i].numel())
                    r = ncclSend(from[i].const_data_ptr(), (size_t)from[i].numel() * unit.count, unit.type, peer,
                                 s.comm, s.stream);
                if (r == ncclSuccess && to[i].numel())
                    r = ncclRecv(to[i].data_ptr(), (size_t)to[i].numel() * unit.count, unit.type, peer, s.comm,
                                 s.stream);
                if (r != ncclSuccess) return r;
            }
            return ncclSuccess;
        });
    });
}

WorkPtr KoloBackend::barrier(const c10d::BarrierOptions &opts)
{
    const Call call = call_of(OpType::BARRIER, "barrier", "kolo:barrier", opts);
    Staging staging;

    return submit(call, {}, {}, staging, [](Scope &s) { return koloBarrier(s.comm, s.stream); });
}

/** A barrier through the store, which works also when other ranks have failed: rank 0 names the missing ranks. */
struct MonitoredBarrier {
    const intrusive_ptr<Store> &store;
    const int rank, size;
    const uint64_t number;
    const milliseconds timeout;
    const Clock::time_point end = Clock::now() + timeout;

    std::string key(uint64_t n, const std::string &name) const
    {
        return "monitored/" + std::to_string(n) + "/" + name;
    }

    bool await(const std::string &name) const
    {
        const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
        try {
            if (left.count() <= 0) return store->check({key(number, name)});
            store->wait({key(number, name)}, left);
            return true;
        } catch (const std::exception &) {
            return false;
        }
    }

    void collect(bool wait_all_ranks) const
    {
        std::string missing;
        for (int r = 1; r < size; r++) {
            if (await(std::to_string(r))) continue;
            missing += (missing.empty() ? "" : ", ") + std::to_string(r);
            if (!wait_all_ranks) break;
        }
        if (missing.empty()) return;
        const std::string ms = std::to_string(timeout.count()) + " ms";
        const std::string text = "[Rank 0]: Rank" + std::string(wait_all_ranks ? "s " : " ") + missing +
                                 " failed to pass monitoredBarrier in " + ms;
        store->set(key(number, "go"), text);
        TORCH_CHECK(false, text, timeout.count() ? "" : "; Rank 0 timed out in monitoredBarrier after " + ms);
    }

    void follow() const
    {
        store->set(key(number, std::to_string(rank)), std::string("here"));
        const std::string prefix = "Rank " + std::to_string(rank) + " successfully reached monitoredBarrier, but " +
                                   "received errors while waiting for send/recv from rank 0: ";
        TORCH_CHECK(await("go"), prefix, "nothing came within ", timeout.count(), " ms. Please check rank 0");
        const auto verdict = store->get(key(number, "go"));
        TORCH_CHECK(verdict.size() == 2, prefix, std::string(verdict.begin(), verdict.end()));
        store->deleteKey(key(number, std::to_string(rank)));
    }

    void run(bool wait_all_ranks) const
    {
        if (rank) return follow();
        collect(wait_all_ranks);
        store->set(key(number, "go"), std::string("go"));
        if (number > 1) store->deleteKey(key(number - 1, "go")); // all have passed that one
    }
};

void KoloBackend::monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks)
{
    const auto timeout = opts.timeout == c10d::kUnsetTimeout ? options_->timeout : opts.timeout;

    TORCH_CHECK(!manner_.as_nccl, "kolo: monitored_barrier: ProcessGroupNCCL does not support monitoredBarrier");
    check_alive({OpType::BARRIER, "monitored_barrier", nullptr, timeout, false});
    MonitoredBarrier{store_, rank_, size_, ++monitored_, timeout}.run(wait_all_ranks);
}

// ---- messages ----

void KoloBackend::begin_messages()
{
    if (manner_.tagged_messages) tagged_ = c10::make_intrusive<TaggedBackend>(link_, options_, rank_, size_);
    if (!manner_.tagged_messages && !manner_.ordered_messages) make_messages();
}

void KoloBackend::make_messages()
{
    std::lock_guard hold(messages_guard_);
    if (!messages_ && manner_.make_messages && size_ > 1)
        messages_ = manner_.make_messages(c10::make_intrusive<c10d::PrefixStore>("messages/", store_), rank_, size_,
                                          options_->timeout);
}

/** gloo: where Kolo carries messages itself, only sums of sparse tensors need it. */
Backend &KoloBackend::messages()
{
    if (manner_.tagged_messages) make_messages();
    TORCH_CHECK(!manner_.as_nccl, "kolo: group ", link_->group, ": sparse tensors are not supported in place of NCCL");
    TORCH_CHECK(messages_, "kolo: group ", link_->group, " of ", size_, " was made without a backend for messages");
    return *messages_;
}

void KoloBackend::check_peer(const char *op, int peer) const
{
    if (peer < 0 || peer >= size_ || peer == rank_)
        bad_value(op, "rank " + std::to_string(peer) + " is not another rank of the group, which has 0 to " +
                          std::to_string(size_ - 1));
}

/** `start` hands a ready buffer to the backend for messages. */
template <class Start>
WorkPtr KoloBackend::message(const Call &call, const Tensors &tensors, Staging &staging, Start start)
{
    check_alive(call);
    const Records records = record(call, 0, call.type == OpType::SEND ? tensors : Tensors(),
                                   call.type == OpType::SEND ? Tensors() : tensors);
    auto started = start(tagged_ ? *tagged_ : messages());
    if (auto *batch = own_batch()) {
        put_into_batch(
            *batch, call, tensors, tensors, staging, [](Scope &) { return ncclSuccess; }, records);
        batch->issues.pop_back();
        batch->parts.push_back(started);
        return started;
    }
    auto work = c10::make_intrusive<KoloWork>(link_, call, 0, tensors, tensors);
    work->staging = std::move(staging);
    work->parts.push_back(std::move(started));
    work->follow(records);
    return work;
}

static ncclResult_t issue_message(Scope &s, bool sends, const at::Tensor &t, int peer)
{
    const Unit unit = unit_of(t);
    const size_t count = (size_t)t.numel() * unit.count;

    if (!count) return ncclSuccess;
    return sends ? ncclSend(t.const_data_ptr(), count, unit.type, peer, s.comm, s.stream)
                 : ncclRecv(t.data_ptr(), count, unit.type, peer, s.comm, s.stream);
}

WorkPtr KoloBackend::ordered_message(const Call &call, const Tensors &tensors, Staging &staging, const at::Tensor &t,
                                     int peer)
{
    const bool sends = call.type == OpType::SEND;

    return submit(call, tensors, tensors, staging, [=](Scope &s) { return issue_message(s, sends, t, peer); });
}

WorkPtr KoloBackend::send(Tensors &tensors, int peer, int tag)
{
    const Call call{OpType::SEND, "send", "kolo:send", options_->timeout, true, true, peer};
    Staging staging;

    check_peer(call.name, peer);
    const auto t = staging.readable(single(call.name, tensors));
    if (manner_.ordered_messages) return ordered_message(call, tensors, staging, t, peer);
    return message(call, tensors, staging, [&](Backend &b) {
        Tensors one{t};
        return b.send(one, peer, tag);
    });
}

WorkPtr KoloBackend::recv(Tensors &tensors, int peer, int tag)
{
    const Call call{OpType::RECV, "recv", "kolo:recv", options_->timeout, true, true, peer};
    Staging staging;

    check_peer(call.name, peer);
    const auto t = staging.writable(single(call.name, tensors));
    if (manner_.ordered_messages) return ordered_message(call, tensors, staging, t, peer);
    return message(call, tensors, staging, [&](Backend &b) {
        Tensors one{t};
        return b.recv(one, peer, tag);
    });
}

WorkPtr KoloBackend::recvAnysource(Tensors &tensors, int tag)
{
    const Call call{OpType::RECVANYSOURCE, "recv_any_source", "kolo:recvAnySource", options_->timeout, true, true};
    Staging staging;

    TORCH_CHECK(!manner_.as_nccl, "kolo: recv: ProcessGroupNCCL does not support recvAnysource");
    TORCH_CHECK(!manner_.ordered_messages,
                "kolo: recv: a receive from any source needs messages with tags: KOLO_TORCH_MESSAGES=tagged, not kolo");
    const auto t = staging.writable(single(call.name, tensors));
    return message(call, tensors, staging, [&](Backend &b) {
        Tensors one{t};
        return b.recvAnysource(one, tag);
    });
}

// ---- about it ----

static at::Tensor allocate(int64_t size, at::TensorOptions options)
{
    const auto bytes = (size_t)(size * (int64_t)options.dtype().itemsize());
    void *p = nullptr;

    if (!size) return at::empty({0}, options);
    if (ncclMemAlloc(&p, bytes) != ncclSuccess)
        C10_THROW_ERROR(OutOfMemoryError, std::string("kolo: ") + ncclGetLastError(nullptr));
    return at::from_blob(
        p, {size}, [](void *q) { ncclMemFree(q); }, options);
}

at::Tensor KoloBackend::allocateTensor(long size, at::TensorOptions options)
{
    return allocate(size, options);
}

c10d::ErrorType KoloBackend::getError()
{
    ncclResult_t state = ncclSuccess;

    if (link_->aborted) return c10d::ErrorType::COMM_ERROR;
    if (!link_->comm || link_->ended || ncclCommGetAsyncError(link_->comm, &state) != ncclSuccess)
        return c10d::ErrorType::SUCCESS;
    if (state == ncclSuccess || state == ncclInProgress) return c10d::ErrorType::SUCCESS;
    if (link_->stood_still()) return c10d::ErrorType::TIMEOUT;
    return state == ncclRemoteError ? c10d::ErrorType::REMOTE_ERROR : c10d::ErrorType::COMM_ERROR;
}

std::unordered_map<std::string, uint64_t> KoloBackend::getMemoryStats()
{
    static const std::pair<const char *, ncclCommMemStat_t> kinds[] = {
        {"suspend", ncclStatGpuMemSuspend},
        {"suspended", ncclStatGpuMemSuspended},
        {"persist", ncclStatGpuMemPersist},
        {"total", ncclStatGpuMemTotal},
    };
    std::unordered_map<std::string, uint64_t> stats;
    std::lock_guard hold(link_->issue);

    for (auto &[name, kind] : kinds)
        if (const ncclResult_t r = ncclCommMemStats(link_->comm, kind, &stats[name])) link_->fail("memory_stats", 0, r);
    return stats;
}

void KoloBackend::flight_record(const std::string &file)
{
    const ncclResult_t r = koloFlightRecorder(link_->comm, file.empty() ? nullptr : file.c_str());
    if (r != ncclSuccess) link_->fail("flight_record", 0, r);
}

// ---- its end ----

void KoloBackend::quit_messages(bool by_abort)
{
    if (!messages_) return;
    if (by_abort)
        messages_->abort();
    else
        messages_->shutdown();
}

void KoloBackend::abort()
{
    if (getpid() != link_->process || !link_->comm || left_.exchange(true)) return;
    link_->call_hooks();
    link_->settle_pending(false);
    link_->aborted = true;
    ncclCommAbort(link_->comm);
    link_->settle_pending(true);
    quit_messages(true);
}

void KoloBackend::shutdown()
{
    if (getpid() != link_->process || !link_->comm || left_.exchange(true)) return;
    const ncclResult_t r = koloStreamSynchronize(link_->queue);
    link_->settle_pending(r == ncclSuccess);
    link_->settle_pending(false);
    {
        std::lock_guard hold(link_->issue);
        link_->ended = true;
    }
    ncclCommDestroy(link_->comm);
    quit_messages(false);
}

/** The destructor's end: without waiting for peers. */
void KoloBackend::leave()
{
    if (getpid() != link_->process || !link_->comm || left_) return;
    link_->settle_pending(false);
    if (link_->is_idle())
        shutdown();
    else
        abort();
}

void KoloBackend::suspend()
{
    std::lock_guard hold(link_->issue);
    if (const ncclResult_t r = ncclCommSuspend(link_->comm, NCCL_SUSPEND_MEM)) link_->fail("suspend", 0, r);
}

void KoloBackend::resume()
{
    std::lock_guard hold(link_->issue);
    if (const ncclResult_t r = ncclCommResume(link_->comm)) link_->fail("resume", 0, r);
}

// ---- other groups ----

intrusive_ptr<Options> KoloBackend::options_for_child(const intrusive_ptr<Options> &opts) const
{
    auto own = c10::make_intrusive<Options>(opts ? *opts : *options_); // the caller's may be getBackendOptions() itself
    if (own->group_name.empty()) own->group_name = link_->group;
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    own->enable_reconfigure = false; // it has its members
#endif
    return own;
}

intrusive_ptr<Backend> KoloBackend::child(ncclComm_t comm, const intrusive_ptr<Store> &store, int rank, int size,
                                          const intrusive_ptr<Options> &opts)
{
    auto own = options_for_child(opts);
    return c10::make_intrusive<KoloBackend>(link_around(comm, rank, own->group_name), store, rank, size, own, manner_);
}

intrusive_ptr<Backend> KoloBackend::split(const intrusive_ptr<Store> &store, const std::vector<int> &ranks,
                                          const intrusive_ptr<Options> &opts)
{
    const auto me = std::find(ranks.begin(), ranks.end(), rank_);
    const bool member = me != ranks.end();
    const int place = (int)(me - ranks.begin());
    ncclComm_t comm = nullptr;
    {
        std::lock_guard hold(link_->issue);
        // Lists of one call do not overlap, so the lowest rank tells them apart.
        const int color = member ? *std::min_element(ranks.begin(), ranks.end()) : NCCL_SPLIT_NOCOLOR;
        if (const ncclResult_t r = ncclCommSplit(link_->comm, color, place, &comm, nullptr)) link_->fail("split", 0, r);
    }
    return member ? child(comm, store, place, (int)ranks.size(), opts) : nullptr;
}

intrusive_ptr<Backend> KoloBackend::merge(const intrusive_ptr<Store> &store, const intrusive_ptr<Options> &opts,
                                          const int &rank, const int &size)
{
    return create(store, rank, size, options_for_child(opts), manner_);
}

intrusive_ptr<Backend> KoloBackend::shrink(const std::vector<int64_t> &excluded, int flags,
                                           const intrusive_ptr<Options> &opts)
{
    const std::set<int64_t> gone(excluded.begin(), excluded.end());
    std::vector<int> list(gone.begin(), gone.end());
    ncclComm_t comm = nullptr;

    if (gone.count(rank_))
        bad_value("shrink", "rank " + std::to_string(rank_) + " is one of those to exclude: it takes no part");
    const int place = rank_ - (int)std::distance(gone.begin(), gone.lower_bound(rank_));
    {
        std::lock_guard hold(link_->issue);
        const ncclResult_t r = ncclCommShrink(link_->comm, list.data(), (int)list.size(), &comm, nullptr, flags);
        if (r != ncclSuccess) link_->fail("shrink", 0, r);
    }
    auto store = c10::make_intrusive<c10d::PrefixStore>("shrink" + std::to_string(shrunk_++) + "/", store_);
    return child(comm, store, place, size_ - (int)gone.size(), opts);
}

// ---- hooks and other members, since PyTorch 2.14 ----

#ifdef C10D_BACKEND_HAS_HOOKS
/** Called once: when the group fails, or before abort(). */
void KoloBackend::registerAbortHook(int64_t id, c10d::AbortHook hook)
{
    link_->hooks->set(id, std::move(hook));
}

void KoloBackend::unregisterAbortHook(int64_t id)
{
    if (!link_->hooks->remove(id)) bad_value("unregister_abort_hook", "there is no hook " + std::to_string(id));
}
#endif

#ifdef C10D_BACKEND_HAS_RECONFIGURE
bool KoloBackend::supportsReconfigure() const
{
    return options_->enable_reconfigure;
}

c10d::ReconfigureHandle KoloBackend::get_reconfigure_handle() const
{
    TORCH_CHECK(options_->enable_reconfigure, "kolo: group ", link_->group,
                " cannot be reconfigured: it was made without enable_reconfigure");
    return handle_;
}

static uint64_t global_rank_of(const c10d::ReconfigureHandle &handle)
{
    unsigned long long rank = 0;

    if (std::sscanf(handle.c_str(), "kolo:%llu:", &rank) != 1)
        bad_value("reconfigure", "\"" + handle + "\" is no handle of a group of kolo");
    return rank;
}

/** By position in a list; a set is sorted. */
static std::vector<std::string> members_of(const c10d::ReconfigureOptions &opts)
{
    if (auto *list = std::get_if<std::vector<c10d::ReconfigureHandle>>(&opts.handles)) return *list;
    const auto &set = std::get<std::unordered_set<c10d::ReconfigureHandle>>(opts.handles);
    std::vector<std::string> sorted(set.begin(), set.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
}

/** Members that meet under a number that was used would find the answers of others there. */
static void claim(const intrusive_ptr<Store> &store, int rank, const std::string &handle, int64_t number)
{
    if (rank) return;
    const std::vector<uint8_t> mine(handle.begin(), handle.end());
    TORCH_CHECK(store->compareSet("claimed", {}, mine) == mine, "kolo: reconfigure: the uuid ", number,
                " was already used");
}

/** The group gets other members. Nothing of it is under way on this rank. On failure all stays as it was. */
WorkPtr KoloBackend::reconfigure(const c10d::ReconfigureOptions &opts)
{
    const Call call{OpType::UNKNOWN, "reconfigure", "kolo:reconfigure", options_->timeout, true};
    const std::string own = get_reconfigure_handle();
    const auto members = members_of(opts);
    const auto me = std::find(members.begin(), members.end(), own);
    auto options = c10::make_intrusive<Options>(*options_);

    if (me == members.end()) bad_value(call.name, "this rank's handle " + own + " is not among the handles");
    TORCH_CHECK(!numbers_used_.count(opts.uuid), "kolo: reconfigure: the uuid ", opts.uuid, " was already used");
    options->global_ranks_in_group.clear();
    for (auto &m : members) options->global_ranks_in_group.push_back(global_rank_of(m));
    options->timeout = opts.timeout.value_or(options_->timeout);
    const int rank = (int)(me - members.begin()), size = (int)members.size();
    intrusive_ptr<Store> store =
        c10::make_intrusive<c10d::PrefixStore>("reconfigure/" + std::to_string(opts.uuid), first_store_);
    claim(store, rank, own, opts.uuid);
    numbers_used_.insert(opts.uuid);
    auto link = connect(store, rank, size, *options);
    become(std::move(link), store, rank, size, options->global_ranks_in_group);
    return finished(call, 0, {});
}

void KoloBackend::become(std::shared_ptr<Link> link, const intrusive_ptr<Store> &store, int rank, int size,
                         const std::vector<uint64_t> &global_ranks)
{
    const auto old = link_;
    if (old->comm && !left_) {
        old->settle_pending(false);
        old->aborted = true;
        ncclCommAbort(old->comm); // members that are gone would keep a destroy waiting
        old->settle_pending(true);
        quit_messages(true);
    }
    link->hooks = old->hooks;
    link->global_rank = old->global_rank;
    tagged_.reset();
    messages_.reset();
    link_ = std::move(link);
    store_ = store;
    rank_ = rank;
    size_ = size;
    options_->global_ranks_in_group = global_ranks;
    seq_ = 0;
    monitored_ = 0;
    left_ = false;
    begin_messages();
}
#endif

// ---- Python ----

namespace py = pybind11;

/** A Python function, callable and destroyable without the interpreter's lock. */
static MessagesFactory factory_of(py::object function)
{
    if (function.is_none()) return nullptr;
    std::shared_ptr<py::object> held(new py::object(std::move(function)), [](py::object *f) {
        py::gil_scoped_acquire lock;
        delete f;
    });
    return [held](const intrusive_ptr<Store> &store, int rank, int size, milliseconds timeout) {
        py::gil_scoped_acquire lock;
        return (*held)(store, rank, size, timeout).cast<intrusive_ptr<Backend>>();
    };
}

static intrusive_ptr<Backend> create_from_python(const intrusive_ptr<Store> &store, int rank, int size,
                                                 milliseconds timeout, const std::string &group,
                                                 const std::vector<uint64_t> &global_ranks, bool ordered_messages,
                                                 bool tagged_messages, bool run_inline, bool as_nccl,
                                                 bool enable_reconfigure, py::object make_messages)
{
    auto options = c10::make_intrusive<Options>(as_nccl ? "nccl" : "kolo", timeout);
    Manner manner{ordered_messages, tagged_messages, run_inline, as_nccl, factory_of(std::move(make_messages))};

    options->group_name = group;
    options->global_ranks_in_group = global_ranks;
#ifdef C10D_BACKEND_HAS_RECONFIGURE
    options->enable_reconfigure = enable_reconfigure;
#else
    (void)enable_reconfigure;
#endif
    py::gil_scoped_release unlocked;
    return KoloBackend::create(store, rank, size, std::move(options), std::move(manner));
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    using namespace pybind11::literals;

    py::class_<KoloBackend, Backend, intrusive_ptr<KoloBackend>>(m, "KoloBackend")
        .def("flight_record", &KoloBackend::flight_record, "file"_a, py::call_guard<py::gil_scoped_release>())
        .def("get_error", &KoloBackend::getError, py::call_guard<py::gil_scoped_release>())
        .def_property_readonly("options", &KoloBackend::getBackendOptions)
        // Methods of ProcessGroupNCCL that torch.distributed calls. Groups need none of the first three.
        .def("_group_start", [](KoloBackend &) {})
        .def("_group_end", [](KoloBackend &) {})
        .def(
            "perform_nocolor_split", [](KoloBackend &, at::Device) {}, "device"_a)
        .def("_set_default_timeout", &KoloBackend::setTimeout, "timeout"_a)
        .def_property_readonly("comm", &KoloBackend::handle);
    m.def(
        "dump_fr_trace",
        [](bool collectives, bool stack_traces, bool only_active) {
            std::string dump;
            {
                py::gil_scoped_release unlocked;
                dump = FlightRecorder::get().dump(collectives, stack_traces, only_active);
            }
            return py::bytes(dump);
        },
        "collectives"_a, "stack_traces"_a, "only_active"_a);
    m.def(
        "reset_fr_trace", [] { FlightRecorder::get().reset(); }, py::call_guard<py::gil_scoped_release>());
    m.def(
        "allocate", [](int64_t bytes) { return allocate(bytes, at::TensorOptions(at::kByte)); }, "bytes"_a);
    m.def("create", &create_from_python, "store"_a, "rank"_a, "size"_a, "timeout"_a, "group"_a, "global_ranks"_a,
          "ordered_messages"_a, "tagged_messages"_a, "run_inline"_a, "as_nccl"_a, "enable_reconfigure"_a,
          "make_messages"_a);
}

} // namespace kolo
