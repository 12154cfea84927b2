// SPDX-License-Identifier: Apache-2.0
/**
 * flight.hpp - the last operations of all groups of this process, dumped in the format of PyTorch's flight recorder.
 *
 * TORCH_FR_BUFFER_SIZE (or TORCH_NCCL_TRACE_BUFFER_SIZE) is the number of operations that are kept. Unset or 0: nothing is recorded. An operation
 * is recorded before it is issued. Its state is that of the operation at the time of the dump. Threads: any; record() and dump() take the lock of
 * Python's interpreter for stack traces, so the caller holds no lock that a thread with the interpreter's lock may wait for.
 */
#pragma once

#include "tensors.hpp"

#include <c10/util/thread_name.h>
#include <torch/csrc/distributed/c10d/FlightRecorder.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace kolo
{

/** A group, as records name it. */
struct RecordedGroup {
    size_t number; // among the groups of this process
    std::string name, description;
    std::vector<uint64_t> ranks; // global ones
};

/** An operation, as it is called. */
struct Recorded {
    std::string name;                     // as PyTorch's analyser knows it: "all_reduce", "send 0->1"
    uint64_t collective = 0, message = 0; // numbers in the group; 0 before the first
    bool is_message = false;
    std::chrono::milliseconds timeout{0};
    Tensors inputs, outputs;
    bool flat_inputs = false, flat_outputs = false; // lists that count as one tensor
};

class FlightRecorder
{
  public:
    using Id = uint64_t;

    /** The process's. It is never destroyed: its stack traces belong to Python. */
    static FlightRecorder &get()
    {
        static auto *one = new FlightRecorder();
        return *one;
    }

    bool enabled() const
    {
        return capacity_ > 0;
    }

    Id record(const RecordedGroup &group, const Recorded &operation)
    {
        Entry e;
        e.group = group.number;
        e.group_name = {group.name, group.description};
        e.operation = operation;
        e.inputs = describe(operation.inputs, operation.flat_inputs);
        e.outputs = describe(operation.outputs, operation.flat_outputs);
        e.operation.inputs.clear(); // a record keeps no tensor alive
        e.operation.outputs.clear();
        e.traceback = torch::CapturedTraceback::gather(true, true, cpp_stack_);
        e.created = c10::getTime();
        e.thread = c10::str(std::this_thread::get_id());
        e.thread_name = c10::getThreadName();
        std::lock_guard hold(guard_);
        e.id = next_++;
        groups_.emplace(e.group_name, group.ranks);
        if (!operation.is_message) status_[group.number].enqueued = (int64_t)operation.collective;
        const Id id = e.id;
        place(id) = std::move(e);
        return id;
    }

    /** `is_over` answers, without blocking, whether the operation is over. It is called by dump(), until finish(). */
    void follow(Id id, std::function<bool()> is_over)
    {
        with(id, [&](Entry &e) { e.is_over = std::move(is_over); });
    }

    void start(Id id)
    {
        with(id, [](Entry &e) { e.started = c10::getTime(); });
    }

    /** The operation was given up, or, with `completed`, is done. Readers take a retired one for done, so the others are not retired. */
    void finish(Id id, bool completed)
    {
        std::function<bool()> gone; // destroyed without the lock
        with(id, [&](Entry &e) {
            e.retired = completed;
            std::swap(gone, e.is_over);
            if (completed) complete(e);
        });
    }

    /** Forget all operations. */
    void reset()
    {
        std::vector<Entry> gone; // destroyed without the lock
        std::lock_guard hold(guard_);
        std::swap(gone, entries_);
        first_ = next_;
    }

    /** A pickled dictionary, as torch._C._distributed_c10d._dump_fr_trace returns. */
    std::string dump(bool collectives, bool stack_traces, bool only_active)
    {
        auto entries = collectives ? current_entries() : std::vector<Entry>();
        auto all = c10d::new_dict();
        {
            std::lock_guard hold(guard_);
            all.insert(c10d::pg_config_key, groups());
            all.insert(c10d::pg_status_key, status());
        }
        all.insert(c10d::version_key, c10d::version_val);
        all.insert(c10d::comm_lib_version_key, library_version());
        if (collectives) all.insert(c10d::entries_key, list(entries, stack_traces, only_active));
        return c10d::pickle_str(all);
    }

  private:
    struct Description {
        std::vector<std::vector<int64_t>> sizes;
        std::vector<std::string> types;
    };

    struct Entry {
        Id id = 0;
        size_t group = 0;
        std::tuple<std::string, std::string> group_name;
        Recorded operation;
        Description inputs, outputs;
        std::shared_ptr<torch::CapturedTraceback> traceback;
        c10::time_t created = 0;
        std::optional<c10::time_t> started, completed; // when this was noticed
        std::string thread, thread_name;
        std::function<bool()> is_over;
        bool retired = false;
    };

    struct Status {
        int64_t enqueued = -1, started = -1, completed = -1; // the last collective
    };

    FlightRecorder()
        : capacity_((size_t)std::max(0, c10d::getCvarInt({"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 0))),
          cpp_stack_(c10d::getCvarBool({"TORCH_FR_CPP_STACK", "TORCH_NCCL_TRACE_CPP_STACK"}, false))
    {
    }

    static Description describe(const Tensors &tensors, bool flat)
    {
        Description d;
        for (auto &t : tensors) {
            d.sizes.push_back(t.sizes().vec());
            d.types.emplace_back(c10::toString(t.scalar_type()));
        }
        if (flat && !tensors.empty()) flatten(tensors, d);
        return d;
    }

    /** The list as one tensor: with a dimension more, or, where its parts differ, with one dimension. */
    static void flatten(const Tensors &tensors, Description &d)
    {
        std::vector<int64_t> one{(int64_t)d.sizes.size()};
        one.insert(one.end(), d.sizes[0].begin(), d.sizes[0].end());
        if (std::adjacent_find(d.sizes.begin(), d.sizes.end(), std::not_equal_to<>()) != d.sizes.end()) {
            one.assign(1, 0);
            for (auto &t : tensors) one[0] += t.numel();
        }
        d.sizes = {one};
        d.types.resize(1);
    }

    Entry &place(Id id) // under the lock
    {
        const size_t at = id % capacity_;
        if (entries_.size() <= at) entries_.resize(at + 1);
        return entries_[at];
    }

    template <class F> void with(Id id, F change)
    {
        std::lock_guard hold(guard_);
        if (id < first_) return;
        Entry &e = place(id);
        if (e.id == id) change(e); // else it was overwritten
    }

    void complete(Entry &e) // under the lock
    {
        if (e.completed) return;
        e.completed = c10::getTime();
        if (!e.started) e.started = e.completed;
        auto &s = status_[e.group];
        if (!e.operation.is_message) s.completed = std::max(s.completed, (int64_t)e.operation.collective);
        s.started = std::max(s.started, s.completed);
    }

    /** Oldest first. Operations that are over, and that nobody has waited for yet, become completed. */
    std::vector<Entry> current_entries()
    {
        auto found = copy();
        for (auto &e : found)
            if (e.is_over && !e.completed && e.is_over()) with(e.id, [this](Entry &at) { complete(at); });
        return copy();
    }

    std::vector<Entry> copy()
    {
        std::lock_guard hold(guard_);
        std::vector<Entry> all;
        const Id oldest = std::max(first_, next_ > capacity_ ? next_ - capacity_ : 0);
        for (Id id = oldest; id < next_; id++) all.push_back(place(id));
        return all;
    }

    c10::Dict<c10::IValue, c10::IValue> groups() const
    {
        auto all = c10d::new_dict();
        for (auto &[name, ranks] : groups_) {
            auto one = c10d::new_dict();
            one.insert("name", std::get<0>(name));
            one.insert("desc", std::get<1>(name));
            one.insert("ranks", c10::str("[", c10::Join(", ", ranks), "]"));
            all.insert(std::get<0>(name), one);
        }
        return all;
    }

    c10::Dict<c10::IValue, c10::IValue> status() const
    {
        auto all = c10d::new_dict();
        for (auto &[number, s] : status_) {
            auto one = c10d::new_dict();
            one.insert("last_enqueued_collective", s.enqueued);
            one.insert("last_started_collective", s.started);
            one.insert("last_completed_collective", s.completed);
            all.insert(std::to_string(number), one);
        }
        return all;
    }

    static std::string library_version()
    {
        int code = 0;
        ncclGetVersion(&code);
        return c10::str(code / 10000, ".", code / 100 % 100, ".", code % 100, " (Kolo)");
    }

    static c10::List<c10::IValue> sizes_of(const Description &d)
    {
        auto all = c10d::new_list();
        for (auto &sizes : d.sizes) {
            auto one = c10d::new_list();
            for (auto n : sizes) one.push_back(n);
            all.push_back(one);
        }
        return all;
    }

    static c10::IValue moment(const std::optional<c10::time_t> &t)
    {
        return t ? c10::IValue((int64_t)*t) : c10::IValue();
    }

    static c10::Dict<c10::IValue, c10::IValue> dictionary(const Entry &e)
    {
        auto d = c10d::new_dict();
        d.insert(c10d::record_id_key, (int64_t)e.id);
        d.insert(c10d::pg_id_key, (int64_t)e.group);
        d.insert(c10d::pg_name_key, e.group_name);
        d.insert(c10d::thread_id_key, e.thread);
        d.insert(c10d::thread_name_key, e.thread_name);
        d.insert(c10d::collective_seq_id_key, (int64_t)e.operation.collective);
        d.insert(c10d::p2p_seq_id_key, (int64_t)e.operation.message);
        d.insert(c10d::op_id_key, (int64_t)(e.operation.collective + e.operation.message));
        d.insert(c10d::profiling_name_key,
                 "nccl:" + e.operation.name); // the analyser knows the names of some libraries only
        d.insert(c10d::time_created_key, (int64_t)e.created);
        if (e.completed && e.started)
            d.insert(c10d::duration_key, (double)(*e.completed - *e.started) / 1e6); // until it was noticed
        d.insert(c10d::input_sizes_key, sizes_of(e.inputs));
        d.insert(c10d::input_dtypes_key, e.inputs.types);
        d.insert(c10d::output_sizes_key, sizes_of(e.outputs));
        d.insert(c10d::output_dtypes_key, e.outputs.types);
        d.insert(c10d::state_key, e.completed ? c10d::completed_state
                                  : e.started ? c10d::started_state
                                              : c10d::scheduled_state);
        d.insert(c10d::time_discovered_started_key, moment(e.started));
        d.insert(c10d::time_discovered_completed_key, moment(e.completed));
        d.insert(c10d::retired_key, e.retired);
        d.insert(c10d::timeout_key, (int64_t)e.operation.timeout.count());
        d.insert(c10d::is_p2p_key, e.operation.is_message);
        return d;
    }

    static c10::List<c10::IValue> list(const std::vector<Entry> &entries, bool stack_traces, bool only_active)
    {
        auto all = c10d::new_list();
        std::vector<const Entry *> wanted;
        std::vector<torch::CapturedTraceback *> stacks;
        for (auto &e : entries)
            if (!only_active || !e.completed) wanted.push_back(&e), stacks.push_back(e.traceback.get());
        const auto symbols = stack_traces ? torch::symbolize(stacks) : torch::SymbolizedTracebacks();
        for (size_t i = 0; i < wanted.size(); i++) {
            auto d = dictionary(*wanted[i]);
            if (stack_traces) d.insert(c10d::frames_key, frames(symbols, i));
            all.push_back(d);
        }
        return all;
    }

    static c10::List<c10::IValue> frames(const torch::SymbolizedTracebacks &symbols, size_t i)
    {
        auto all = c10d::new_list();
        for (auto at : symbols.tracebacks.at(i)) {
            const auto &f = symbols.all_frames.at(at);
            auto d = c10d::new_dict();
            d.insert(c10d::name_key, f.funcname);
            d.insert(c10d::filename_key, f.filename);
            d.insert(c10d::line_key, (int64_t)f.lineno);
            all.push_back(d);
        }
        return all;
    }

    const size_t capacity_;
    const bool cpp_stack_;
    std::mutex guard_;
    std::vector<Entry> entries_; // at id modulo capacity
    Id next_ = 0, first_ = 0;    // those before first_ were forgotten
    std::map<std::tuple<std::string, std::string>, std::vector<uint64_t>> groups_;
    std::map<size_t, Status> status_;
};

} // namespace kolo
