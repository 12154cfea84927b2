// SPDX-License-Identifier: Apache-2.0
/**
 * work.hpp - a communicator as several threads share it, and the operations under way on it.
 *
 * `Link` owns the communicator, its streams and pending work; works keep it, so that they outlive the backend. `KoloWork` is over when its event
 * is: whoever looks first settles it, which brings staged results back, keeps the failure, and completes the future.
 */
#pragma once

#include "flight.hpp"

#include <ATen/ThreadLocalState.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace kolo
{

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class KoloWork;

/** Functions of the user, called before a group is aborted. Any thread. */
class AbortHooks
{
  public:
    void set(int64_t id, std::function<void()> hook)
    {
        std::lock_guard hold(guard_);
        all_[id] = std::move(hook);
    }

    bool remove(int64_t id)
    {
        std::lock_guard hold(guard_);
        return all_.erase(id) > 0;
    }

    void run()
    {
        std::map<int64_t, std::function<void()>> hooks; // they may take the interpreter's lock
        {
            std::lock_guard hold(guard_);
            hooks = all_;
        }
        for (auto &[id, hook] : hooks) {
            try {
                hook();
            } catch (const std::exception &e) {
                TORCH_WARN("kolo: abort hook ", id, " failed: ", e.what());
            }
        }
    }

  private:
    std::mutex guard_;
    std::map<int64_t, std::function<void()>> all_;
};

struct Link {
    std::string group;
    int rank = 0;
    int global_rank = 0;
    ncclComm_t comm = nullptr;
    koloStream_t queue = nullptr;  // operations that somebody waits for later
    koloStream_t direct = nullptr; // operations that are over when their call returns
    const pid_t process = getpid();

    std::mutex issue;             // one call at a time; abort does not take it
    milliseconds timeout_set{-1}; // of the last koloSetTimeout
    std::atomic<bool> aborted{false};
    std::atomic<bool> ended{false};
    std::atomic<bool> dumped{false}; // the flight record, after the group's first failure
    std::shared_ptr<AbortHooks> hooks = std::make_shared<AbortHooks>();
    std::atomic<bool> hooks_called{false};

    Link() = default;
    Link(const Link &) = delete;
    ~Link()
    {
        if (process != getpid()) return; // all of it is the parent's
        for (auto e : events_) koloEventDestroy(e);
        for (auto s : spare_streams_) koloStreamRelease(s); // perhaps called by the last function on one of them
        if (queue) koloStreamRelease(queue);
        if (direct) koloStreamRelease(direct);
    }

    koloEvent_t take_event();
    void give_event(koloEvent_t e)
    {
        std::lock_guard hold(guard_);
        events_.push_back(e);
    }

    koloStream_t take_stream();
    void give_stream(koloStream_t s)
    {
        std::lock_guard hold(guard_);
        spare_streams_.push_back(s);
    }

    void add_pending(c10::intrusive_ptr<KoloWork> work);
    bool is_idle();
    /** Drop those that were settled, from the oldest on. */
    void forget_settled();
    /** Settle the oldest ones, as far as they are over. */
    void settle_oldest();
    /** Settle all that are over, or, with `all`, every one: pending ones fail if the group was aborted. */
    void settle_pending(bool all);

    std::string last_error() const
    {
        const char *text = ncclGetLastError(comm);
        return text ? text : "";
    }

    /** Whether the communicator failed because a rank timed out. */
    bool stood_still() const
    {
        return last_error().find("nothing moved for") != std::string::npos;
    }

    [[noreturn]] void fail(const char *op, uint64_t seq, ncclResult_t r) const
    {
        std::rethrow_exception(failure(op, seq, r));
    }

    std::exception_ptr failure(const char *op, uint64_t seq, ncclResult_t r) const;

    /** When an operation has failed, called without locks. The group's first failure calls the hooks, and writes the flight record, where one is kept. */
    void after_failure();

    void call_hooks()
    {
        if (!hooks_called.exchange(true)) hooks->run();
    }

  private:
    void dump_flight_record();

    std::mutex guard_;
    std::vector<koloEvent_t> events_;
    std::vector<koloStream_t> spare_streams_;
    std::deque<c10::intrusive_ptr<KoloWork>> pending_;
};

/** An operation as it was called. */
struct Call {
    c10d::OpType type;
    const char *name;  // "all_reduce"
    const char *title; // "kolo:all_reduce", as profilers show it
    milliseconds timeout;
    bool async;
    bool message = false;
    int peer = -1; // of a message; -1: any
};

/** A work that any thread may look at while another one ends it. */
class SharedWork : public c10d::Work
{
  public:
    using c10d::Work::Work;

    bool isSuccess() const override
    {
        std::lock_guard hold(mutex_);
        return completed_ && !exception_;
    }

    std::exception_ptr exception() const override
    {
        std::lock_guard hold(mutex_);
        return exception_;
    }

    void synchronize() override
    {
        wait(kNoTimeout);
    }
};

class KoloWork : public SharedWork
{
  public:
    KoloWork(std::shared_ptr<Link> link, const Call &call, uint64_t seq, const std::optional<Tensors> &inputs,
             Tensors outputs)
        : SharedWork(link->rank, call.type, call.title, inputs), link_(std::move(link)), name_(call.name), seq_(seq),
          outputs_(std::move(outputs)), tls_()
    {
        if (inputs) inputs_ = *inputs;
    }

    ~KoloWork() override
    {
        if (probe_) {
            probe_->leave();
            end_records(records_, !parts.empty() && parts_are_over()); // of a message that nobody has waited for
        }
        if (event_) link_->give_event(event_);
    }

    Staging staging;
    std::vector<c10::intrusive_ptr<c10d::Work>> parts; // of other backends: over when these are, too

    /** The event behind all work queued so far. Without one it is over when its parts are. */
    ncclResult_t mark(koloStream_t stream)
    {
        event_ = link_->take_event();
        return koloEventRecord(event_, stream);
    }

    bool isCompleted() override
    {
        if (is_settled()) return true;
        const ncclResult_t r = query();
        if (r == ncclInProgress) return false;
        settle(r);
        return true;
    }

    Tensors result() override
    {
        return outputs_;
    }

    uint64_t getSequencenumber() const override
    {
        return seq_;
    }

    int sourceRank() const override
    {
        if (parts.size() == 1) return parts.front()->sourceRank();
        TORCH_CHECK(false, "kolo: ", name_, ": only a receive from any source has a source rank");
    }

    bool wait(milliseconds timeout = kNoTimeout) override
    {
        if (!is_settled())
            settle(timeout <= kNoTimeout ? wait_for_ever() : wait_until(Clock::now() + timeout, timeout));
        if (auto e = exception()) std::rethrow_exception(e);
        return true;
    }

    void abort() override
    {
        TORCH_CHECK(false, "kolo: ", name_, ": a single operation cannot be aborted: abort the process group");
    }

    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        std::unique_lock hold(settling_);
        if (!future_) {
            future_ = c10::make_intrusive<at::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
            if (is_settled())
                complete_future();
            else
                watch();
        }
        return future_;
    }

    bool is_settled() const
    {
        std::lock_guard hold(mutex_);
        return completed_;
    }

    /** The operation is over, with `r`. Once; others return when that is done. */
    void settle(ncclResult_t r)
    {
        std::unique_lock hold(settling_);
        if (is_settled()) return;
        std::exception_ptr e = link_->aborted || r != ncclSuccess ? link_->failure(name_, seq_, r) : failure_of_parts();
        if (!e) e = bring_back();
        end_records(records_, !e);
        records_.clear();
        finish(e);
        inputs_.clear();
        auto future = future_;
        hold.unlock();
        link_->forget_settled();
        if (e) link_->after_failure();
        if (future) complete_future();
    }

    /** The operation has these records, which it ends. */
    void follow(std::vector<FlightRecorder::Id> ids)
    {
        if (ids.empty()) return;
        std::lock_guard hold(settling_);
        if (is_settled()) return end_records(ids, isSuccess());
        records_ = std::move(ids);
        probe_ = std::make_shared<Probe>();
        probe_->work = this;
        for (auto id : records_) FlightRecorder::get().follow(id, [probe = probe_] { return probe->is_over(); });
    }

    void settle_if_over()
    {
        const ncclResult_t r = query();
        if (r != ncclInProgress) settle(r);
    }

  private:
    /** By it a dump of the flight record sees an operation that may end meanwhile. */
    struct Probe {
        std::mutex guard;
        KoloWork *work;

        bool is_over()
        {
            std::lock_guard hold(guard);
            return work && (work->is_settled() || work->query() != ncclInProgress);
        }
        void leave()
        {
            std::lock_guard hold(guard);
            work = nullptr;
        }
    };

    static void end_records(const std::vector<FlightRecorder::Id> &ids, bool completed)
    {
        for (auto id : ids) FlightRecorder::get().finish(id, completed);
    }

    bool parts_are_over()
    {
        for (auto &p : parts)
            if (!p->isCompleted()) return false;
        return true;
    }

    ncclResult_t query()
    {
        const ncclResult_t r = event_ ? koloEventQuery(event_) : ncclSuccess;
        return r == ncclSuccess && !link_->aborted && !parts_are_over() ? ncclInProgress : r;
    }

    std::exception_ptr failure_of_parts()
    {
        try {
            for (auto &p : parts) p->wait();
            return nullptr;
        } catch (...) {
            return std::current_exception();
        }
    }

    std::exception_ptr bring_back()
    {
        try {
            staging.bring_back();
            staging = {};
            return nullptr;
        } catch (...) {
            return std::current_exception();
        }
    }

    ncclResult_t wait_for_ever()
    {
        return event_ ? koloEventSynchronize(event_) : ncclSuccess; // settle waits for the parts
    }

    ncclResult_t wait_until(Clock::time_point deadline, milliseconds timeout)
    {
        for (unsigned looks = 0;; looks++) {
            const ncclResult_t r = query();
            if (r != ncclInProgress || is_settled()) return r;
            if (Clock::now() >= deadline)
                C10_THROW_ERROR(DistBackendError, "kolo: " + std::string(name_) + " #" + std::to_string(seq_) +
                                                      " in group " + link_->group + ": wait() timed out after " +
                                                      std::to_string(timeout.count()) +
                                                      " ms; the operation goes on, within the group's timeout");
            if (looks < 100)
                std::this_thread::yield();
            else
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

    void complete_future()
    {
        at::ThreadLocalStateGuard as_the_caller(tls_);
        if (auto e = exception())
            future_->setErrorIfNeeded(e);
        else if (!future_->completed())
            future_->markCompleted(c10::IValue(outputs_));
    }

    struct Watch {
        c10::intrusive_ptr<KoloWork> work;
        std::shared_ptr<Link> link;
        koloStream_t stream;
    };

    /* Called by Kolo behind the operation. Callbacks of the future may block, and need futures of other operations: each watch has a stream. */
    static void watched(void *arg)
    {
        std::unique_ptr<Watch> w(static_cast<Watch *>(arg));
        try {
            w->work->settle(w->work->event_ ? koloEventQuery(w->work->event_) : ncclSuccess);
        } catch (const std::exception &e) {
            TORCH_WARN("kolo: a callback of ", w->work->name_, " failed: ", e.what());
        }
        w->work.reset();
        w->link->give_stream(w->stream);
    }

    void watch()
    {
        auto w = std::make_unique<Watch>(
            Watch{c10::intrusive_ptr<KoloWork>::unsafe_reclaim_from_nonowning(this), link_, link_->take_stream()});
        ncclResult_t r = event_ ? koloStreamWaitEvent(w->stream, event_, 0) : ncclSuccess;
        if (r == ncclSuccess) r = koloStreamLaunch(w->stream, watched, w.get());
        if (r != ncclSuccess) link_->fail(name_, seq_, r);
        w.release();
    }

    std::shared_ptr<Link> link_;
    const char *name_;
    const uint64_t seq_;
    koloEvent_t event_ = nullptr;
    Tensors inputs_, outputs_; // inputs until it is over
    std::mutex settling_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    at::ThreadLocalState tls_;
    std::vector<FlightRecorder::Id> records_; // until it is over
    std::shared_ptr<Probe> probe_;
};

// ---- Link ----

inline koloEvent_t Link::take_event()
{
    {
        std::lock_guard hold(guard_);
        if (!events_.empty()) {
            auto e = events_.back();
            events_.pop_back();
            return e;
        }
    }
    koloEvent_t e = nullptr;
    if (const ncclResult_t r = koloEventCreateWithFlags(&e, KOLO_EVENT_DISABLE_TIMING)) fail("event", 0, r);
    return e;
}

inline koloStream_t Link::take_stream()
{
    {
        std::lock_guard hold(guard_);
        if (!spare_streams_.empty()) {
            auto s = spare_streams_.back();
            spare_streams_.pop_back();
            return s;
        }
    }
    koloStream_t s = nullptr;
    if (const ncclResult_t r = koloStreamCreate(&s, KOLO_STREAM_DEFAULT)) fail("stream", 0, r);
    return s;
}

inline void Link::add_pending(c10::intrusive_ptr<KoloWork> work)
{
    settle_oldest();
    std::lock_guard hold(guard_);
    pending_.push_back(std::move(work));
}

inline void Link::forget_settled()
{
    std::vector<c10::intrusive_ptr<KoloWork>> over; // destroyed without the lock
    std::lock_guard hold(guard_);
    while (!pending_.empty() && pending_.front()->is_settled()) {
        over.push_back(std::move(pending_.front()));
        pending_.pop_front();
    }
}

inline void Link::settle_oldest()
{
    for (;;) {
        c10::intrusive_ptr<KoloWork> oldest;
        {
            std::lock_guard hold(guard_);
            if (pending_.empty()) return;
            oldest = pending_.front();
        }
        oldest->settle_if_over();
        if (!oldest->is_settled()) return;
        forget_settled();
    }
}

inline bool Link::is_idle()
{
    std::lock_guard hold(guard_);
    return pending_.empty() || pending_.back()->is_settled();
}

inline void Link::settle_pending(bool all)
{
    std::deque<c10::intrusive_ptr<KoloWork>> works;
    {
        std::lock_guard hold(guard_);
        works = pending_;
    }
    for (auto &w : works)
        if (all)
            w->settle(ncclSuccess);
        else
            w->settle_if_over();
    forget_settled();
}

inline std::exception_ptr Link::failure(const char *op, uint64_t seq, ncclResult_t r) const
{
    std::string where = "kolo: " + std::string(op);

    if (seq) where += " #" + std::to_string(seq);
    where += " in group " + group + ": ";
    try {
        if (!comm) C10_THROW_ERROR(DistBackendError, where + "the group is not connected yet: reconfigure it first");
        if (aborted) C10_THROW_ERROR(DistBackendError, where + "the group was aborted on this rank");
        if (ended) C10_THROW_ERROR(DistBackendError, where + "the group was shut down on this rank");
        const std::string text = where + (stood_still() ? "Timed out in " : "") + last_error();
        if (r == ncclInvalidArgument) C10_THROW_ERROR(ValueError, text);
        if (r == ncclInvalidUsage) TORCH_CHECK(false, text);
        C10_THROW_ERROR(DistBackendError, text);
    } catch (...) {
        return std::current_exception();
    }
}

inline void Link::after_failure()
{
    ncclResult_t state = ncclSuccess;
    if (!comm || aborted || ended || ncclCommGetAsyncError(comm, &state) != ncclSuccess) return;
    if (state == ncclSuccess || state == ncclInProgress) return; // the call was wrong, not the group
    call_hooks();
    dump_flight_record();
}

inline void Link::dump_flight_record()
{
    auto &recorder = FlightRecorder::get();
    if (!recorder.enabled()) return;
    if (!c10d::getCvarBool({"TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"}, true) || dumped.exchange(true))
        return;
    try {
        c10d::DebugInfoWriter::getWriter(global_rank).write(recorder.dump(true, true, false));
    } catch (const std::exception &e) {
        TORCH_WARN("kolo: group ", group, ": the flight record was not written: ", e.what());
    }
}

} // namespace kolo
