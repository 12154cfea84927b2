// SPDX-License-Identifier: Apache-2.0
/**
 * backend.hpp - the class of a process group on Kolo; its functions stand in files by subject, which kolo_backend.cc includes.
 *
 * Threads: any, also callbacks of futures. abort() may be called while others wait. A forked child does nothing with its parent's groups.
 */
#pragma once

#include "memory.hpp"
#include "rendezvous.hpp"
#include "tagged.hpp"

#include <set>

namespace kolo
{

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

    intrusive_ptr<KoloWork> work_of_messages(const Call &call, Batch &batch);
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

} // namespace kolo
