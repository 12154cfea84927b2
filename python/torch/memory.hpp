// SPDX-License-Identifier: Apache-2.0
/**
 * memory.hpp - tensors in memory that the other processes of the host can map, where large collectives move data once.
 */
#pragma once

#include "tensors.hpp"

#include <memory>
#include <string>

namespace kolo
{

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

inline std::shared_ptr<c10::Allocator> shared_allocator()
{
    static auto one = std::make_shared<SharedAllocator>();
    return one;
}

inline at::Tensor allocate(int64_t size, at::TensorOptions options)
{
    const auto bytes = (size_t)(size * (int64_t)options.dtype().itemsize());
    void *p = nullptr;

    if (!size) return at::empty({0}, options);
    if (ncclMemAlloc(&p, bytes) != ncclSuccess)
        C10_THROW_ERROR(OutOfMemoryError, std::string("kolo: ") + ncclGetLastError(nullptr));
    return at::from_blob(
        p, {size}, [](void *q) { ncclMemFree(q); }, options);
}

} // namespace kolo
