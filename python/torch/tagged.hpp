// SPDX-License-Identifier: Apache-2.0
/**
 * tagged.hpp - messages with tags over Kolo's own layer (koloMessageSend): a backend that has send, recv and recvAnysource.
 *
 * A work keeps its tensor, and its request for as long as it lives; a request that nobody keeps any more is parked with its tensor until it is over.
 */
#pragma once

#include "work.hpp"

#include <list>

namespace kolo
{

/** Requests without a work, and their memory. */
class Parked
{
  public:
    void add(koloRequest_t request, at::Tensor tensor)
    {
        std::lock_guard hold(guard_);
        list_.emplace_back(request, std::move(tensor));
    }

    /** Drop those that are over, also because their communicator has ended. */
    void sweep()
    {
        std::lock_guard hold(guard_);
        list_.remove_if([](const auto &one) {
            if (koloRequestTest(one.first, nullptr) == ncclInProgress) return false;
            koloRequestFree(one.first);
            return true;
        });
    }

  private:
    std::mutex guard_;
    std::list<std::pair<koloRequest_t, at::Tensor>> list_;
};

class TaggedWork final : public SharedWork
{
  public:
    TaggedWork(std::shared_ptr<Link> link, std::shared_ptr<Parked> parked, c10d::OpType type, const char *name,
               at::Tensor tensor, koloRequest_t request, milliseconds timeout)
        : SharedWork(link->rank, type), link_(std::move(link)), parked_(std::move(parked)), name_(name),
          tensor_(std::move(tensor)), request_(request), timeout_(timeout)
    {
    }

    ~TaggedWork() override
    {
        if (getpid() != link_->process) return;
        if (koloRequestTest(request_, nullptr) == ncclInProgress)
            parked_->add(request_, tensor_);
        else
            koloRequestFree(request_);
    }

    bool isCompleted() override
    {
        return look(koloRequestTest(request_, &status()));
    }

    bool wait(milliseconds timeout = kNoTimeout) override
    {
        const milliseconds limit = timeout > kNoTimeout ? timeout : timeout_;
        const auto ms = (unsigned long long)std::max<int64_t>(1, limit.count());

        if (!look(koloRequestWait(request_, ms, &status())))
            C10_THROW_ERROR(DistBackendError,
                            "kolo: " + std::string(name_) + " in group " + link_->group + ": Timed out: " +
                                (name_[0] == 's' ? "nobody has taken the message" : "no message has come") +
                                " within " + std::to_string(ms) + " ms");
        if (auto e = exception()) std::rethrow_exception(e);
        return true;
    }

    std::vector<at::Tensor> result() override
    {
        return {tensor_};
    }

    int sourceRank() const override
    {
        std::lock_guard hold(mutex_);
        return source_;
    }

  private:
    /** Of this thread: a result that `look` takes over. */
    static koloMessageStatus_t &status()
    {
        static thread_local koloMessageStatus_t one;
        return one;
    }

    /** Is it over? The first look that says so settles it. */
    bool look(ncclResult_t r)
    {
        if (r == ncclInProgress) return false;
        const auto failure = r == ncclSuccess ? nullptr : link_->failure(name_, 0, r);
        std::lock_guard hold(mutex_);
        if (completed_) return true;
        if (!failure) source_ = status().source;
        exception_ = failure;
        completed_ = true;
        return true;
    }

    std::shared_ptr<Link> link_;
    std::shared_ptr<Parked> parked_;
    const char *name_;
    at::Tensor tensor_;
    koloRequest_t request_;
    const milliseconds timeout_; // the group's timeout
    int source_ = -1;
};

/** The communicator is the owner's, which ends it. Any thread sends and receives, also beside a collective that waits. */
class TaggedBackend final : public c10d::Backend
{
  public:
    TaggedBackend(std::shared_ptr<Link> link, c10::intrusive_ptr<Options> options, int rank, int size)
        : Backend(rank, size), link_(std::move(link)), options_(std::move(options))
    {
    }

    const std::string getBackendName() const override
    {
        return "kolo-messages";
    }

    c10::intrusive_ptr<c10d::Work> send(Tensors &tensors, int peer, int tag) override
    {
        const at::Tensor &t = tensors.front();
        koloRequest_t request = nullptr;

        return follow(c10d::OpType::SEND, "send", t, request,
                      koloMessageSend(t.const_data_ptr(), t.nbytes(), peer, tag, link_->comm, &request));
    }

    c10::intrusive_ptr<c10d::Work> recv(Tensors &tensors, int peer, int tag) override
    {
        return receive(c10d::OpType::RECV, "recv", tensors.front(), peer, tag);
    }

    c10::intrusive_ptr<c10d::Work> recvAnysource(Tensors &tensors, int tag) override
    {
        return receive(c10d::OpType::RECVANYSOURCE, "recv_any_source", tensors.front(), KOLO_ANY, tag);
    }

  private:
    c10::intrusive_ptr<c10d::Work> receive(c10d::OpType type, const char *name, const at::Tensor &t, int peer, int tag)
    {
        koloRequest_t request = nullptr;

        return follow(type, name, t, request,
                      koloMessageRecv(t.data_ptr(), t.nbytes(), peer, tag, link_->comm, &request));
    }

    c10::intrusive_ptr<c10d::Work> follow(c10d::OpType type, const char *name, const at::Tensor &t,
                                          const koloRequest_t &request, ncclResult_t r)
    {
        if (r != ncclSuccess) link_->fail(name, 0, r);
        parked_->sweep();
        return c10::make_intrusive<TaggedWork>(link_, parked_, type, name, t, request, options_->timeout);
    }

    std::shared_ptr<Link> link_;
    c10::intrusive_ptr<Options> options_;
    std::shared_ptr<Parked> parked_ = std::make_shared<Parked>();
};

} // namespace kolo
