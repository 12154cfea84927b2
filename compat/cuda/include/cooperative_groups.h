/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cooperative_groups.h - groups of threads that wait for each other and exchange values: grids, blocks, tiles of up to 32 lanes.
 *
 * coalesced_threads() is the calling thread alone: whether others are at the same place nobody knows, and it is always a right answer.
 */
#ifndef KOLO_CUDA_COOPERATIVE_GROUPS_H
#define KOLO_CUDA_COOPERATIVE_GROUPS_H

#include "cuda_runtime.h"

#if !defined(__KOLO_NVCC__)
#error "cooperative_groups.h is for what kolo-nvcc compiles"
#endif

#pragma GCC system_header

namespace cooperative_groups
{

/** Threads of a block. */
class thread_block
{
  public:
    static constexpr unsigned _max_size = 1024;

    void sync(KOLO_CUDA_HERE) const
    {
        ::__syncthreads(file, line);
    }
    unsigned thread_rank() const
    {
        return __kolo::thread_rank();
    }
    unsigned size() const
    {
        return blockDim.x * blockDim.y * blockDim.z;
    }
    unsigned num_threads() const
    {
        return size();
    }
    dim3 group_index() const
    {
        return dim3(blockIdx.x, blockIdx.y, blockIdx.z);
    }
    dim3 thread_index() const
    {
        return dim3(threadIdx.x, threadIdx.y, threadIdx.z);
    }
    dim3 group_dim() const
    {
        return blockDim;
    }
    dim3 dim_threads() const
    {
        return blockDim;
    }
};

/** All threads of a cooperative launch. */
class grid_group
{
  public:
    bool is_valid() const
    {
        return __koloCooperative();
    }
    void sync(KOLO_CUDA_HERE) const
    {
        __koloGridBarrier(file, line);
    }
    unsigned long long block_rank() const
    {
        return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    unsigned long long num_blocks() const
    {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    unsigned long long thread_rank() const
    {
        return block_rank() * thread_block().size() + __kolo::thread_rank();
    }
    unsigned long long size() const
    {
        return num_blocks() * thread_block().size();
    }
    unsigned long long num_threads() const
    {
        return size();
    }
    dim3 group_dim() const
    {
        return gridDim;
    }
    dim3 dim_blocks() const
    {
        return gridDim;
    }
    dim3 block_index() const
    {
        return dim3(blockIdx.x, blockIdx.y, blockIdx.z);
    }
};

/** Neighbouring lanes, a power of two of them. */
class tile_base
{
  protected:
    unsigned width_;

    unsigned first() const
    {
        return __kolo::lane() & ~(width_ - 1);
    }
    unsigned mask() const
    {
        return (width_ == 32 ? 0xffffffffu : (1u << width_) - 1) << first();
    }

  public:
    explicit tile_base(unsigned width) : width_(width)
    {
    }
    void sync(KOLO_CUDA_HERE) const
    {
        ::__syncwarp(mask(), file, line);
    }
    unsigned thread_rank() const
    {
        return __kolo::lane() & (width_ - 1);
    }
    unsigned size() const
    {
        unsigned threads = thread_block().size() - (__kolo::thread_rank() & ~(width_ - 1));

        return threads < width_ ? threads : width_;
    }
    unsigned num_threads() const
    {
        return size();
    }
    unsigned meta_group_rank() const
    {
        return __kolo::thread_rank() / width_;
    }
    unsigned meta_group_size() const
    {
        return (thread_block().size() + width_ - 1) / width_;
    }
    template <class T> T shfl(T value, int source, KOLO_CUDA_HERE) const
    {
        return ::__shfl_sync(mask(), value, source, (int)width_, file, line);
    }
    template <class T> T shfl_up(T value, unsigned delta, KOLO_CUDA_HERE) const
    {
        return ::__shfl_up_sync(mask(), value, delta, (int)width_, file, line);
    }
    template <class T> T shfl_down(T value, unsigned delta, KOLO_CUDA_HERE) const
    {
        return ::__shfl_down_sync(mask(), value, delta, (int)width_, file, line);
    }
    template <class T> T shfl_xor(T value, unsigned other, KOLO_CUDA_HERE) const
    {
        return ::__shfl_xor_sync(mask(), value, (int)other, (int)width_, file, line);
    }
    int any(int predicate, KOLO_CUDA_HERE) const
    {
        return ::__any_sync(mask(), predicate, file, line);
    }
    int all(int predicate, KOLO_CUDA_HERE) const
    {
        return ::__all_sync(mask(), predicate, file, line);
    }
    unsigned ballot(int predicate, KOLO_CUDA_HERE) const
    {
        return ::__ballot_sync(mask(), predicate, file, line) >> first();
    }
    template <class T> unsigned match_any(T value, KOLO_CUDA_HERE) const
    {
        return ::__match_any_sync(mask(), value, file, line) >> first();
    }
    template <class T> unsigned match_all(T value, int &all, KOLO_CUDA_HERE) const
    {
        return ::__match_all_sync(mask(), value, &all, file, line) >> first();
    }
};

template <unsigned Size, class Parent = thread_block> class thread_block_tile : public tile_base
{
    static_assert(Size && Size <= 32 && !(Size & (Size - 1)), "tiles have 1, 2, 4, 8, 16 or 32 threads");

  public:
    thread_block_tile() : tile_base(Size)
    {
    }
    template <class Other> thread_block_tile(const thread_block_tile<Size, Other> &) : tile_base(Size)
    {
    }
};

/** The lanes that are known to be here: this one. */
class coalesced_group
{
  public:
    void sync() const
    {
    }
    unsigned thread_rank() const
    {
        return 0;
    }
    unsigned size() const
    {
        return 1;
    }
    unsigned num_threads() const
    {
        return 1;
    }
    unsigned meta_group_rank() const
    {
        return 0;
    }
    unsigned meta_group_size() const
    {
        return 1;
    }
    template <class T> T shfl(T value, int) const
    {
        return value;
    }
    template <class T> T shfl_up(T value, unsigned) const
    {
        return value;
    }
    template <class T> T shfl_down(T value, unsigned) const
    {
        return value;
    }
    int any(int predicate) const
    {
        return predicate != 0;
    }
    int all(int predicate) const
    {
        return predicate != 0;
    }
    unsigned ballot(int predicate) const
    {
        return predicate != 0;
    }
    template <class T> unsigned match_any(T) const
    {
        return 1;
    }
};

/** Any of these. */
class thread_group
{
    enum { BLOCK, TILE, ALONE } kind_;
    unsigned width_;

  public:
    thread_group(const thread_block &) : kind_(BLOCK), width_(0)
    {
    }
    thread_group(const coalesced_group &) : kind_(ALONE), width_(1)
    {
    }
    template <unsigned Size, class Parent>
    thread_group(const thread_block_tile<Size, Parent> &) : kind_(TILE), width_(Size)
    {
    }
    explicit thread_group(unsigned width) : kind_(TILE), width_(width)
    {
    }
    void sync(KOLO_CUDA_HERE) const
    {
        if (kind_ == BLOCK) ::__syncthreads(file, line);
        if (kind_ == TILE) tile_base(width_).sync(file, line);
    }
    unsigned size() const
    {
        return kind_ == BLOCK ? thread_block().size() : kind_ == TILE ? tile_base(width_).size() : 1;
    }
    unsigned num_threads() const
    {
        return size();
    }
    unsigned thread_rank() const
    {
        return kind_ == BLOCK ? __kolo::thread_rank() : kind_ == TILE ? tile_base(width_).thread_rank() : 0;
    }
};

inline thread_block this_thread_block()
{
    return thread_block();
}

inline grid_group this_grid()
{
    return grid_group();
}

inline coalesced_group coalesced_threads()
{
    return coalesced_group();
}

template <unsigned Size, class Parent> inline thread_block_tile<Size, Parent> tiled_partition(const Parent &)
{
    return thread_block_tile<Size, Parent>();
}

/** Of a size that is known when it runs: 1 to 32, a power of two. */
inline thread_group tiled_partition(const thread_group &, unsigned width)
{
    return thread_group(width);
}

template <class Group> inline void sync(const Group &group, KOLO_CUDA_HERE)
{
    (void)file;
    (void)line;
    group.sync();
}

template <class Group> inline auto thread_rank(const Group &group)
{
    return group.thread_rank();
}

template <class Group> inline auto group_size(const Group &group)
{
    return group.size();
}

} // namespace cooperative_groups

#include "cooperative_groups/reduce.h"

#endif
