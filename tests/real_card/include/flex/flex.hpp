// Stand-in for IBM's runtime "flex": device memory is host memory, a stream runs at once, a device program is the
// name of a folder whose OpSpecs a Python interpreter (spyre_standin) carries out. Implemented in src/.
#pragma once
#include <spyrecode-host-functions/sendataconvert/sen_host_ops.h>
#include <util/sendefs/sendefs.h>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace flex {
inline constexpr size_t STICK = 128;  // bytes: memory is padded to whole sticks
inline constexpr uint64_t SEGMENT_SIZE_BITS = 34, SEGMENT_SIZE = 1ull << SEGMENT_SIZE_BITS, PROG_SEGMENT = 7,
                          PROG_OFFSET_BASE = PROG_SEGMENT << SEGMENT_SIZE_BITS;
inline uint64_t dmvaToSegmentId(uint64_t d) { return d >> SEGMENT_SIZE_BITS; }

namespace aiupti { struct AIUpti_ActivityCB { char name[128]; }; }

enum class PlacementPolicy { Bind, Interleave };
enum class MemoryType { Tensor, Program };
enum class RuntimeStreamPriority { NORMAL, HIGH };

struct AllocationDirective {
  AllocationDirective(PlacementPolicy, std::vector<int>, std::optional<int>, MemoryType t) : type(t) {}
  MemoryType type;
};
struct LogicalAddress {
  LogicalAddress(uint64_t r = 0, uint64_t o = 0) : region_id(r), offset(o) {}
  uint64_t region_id, offset;  // offset: a host pointer
};
struct Chunk {
  Chunk(LogicalAddress a, size_t s, int d = 0) : addr(a), size(s), domain_id(d) {}
  LogicalAddress addr;
  size_t size;
  int domain_id;
};
class CompositeAddress {
 public:
  CompositeAddress() = default;
  explicit CompositeAddress(const Chunk& c) : chunks_{c} {}
  CompositeAddress(const Chunk& c, std::shared_ptr<void> own) : chunks_{c}, own_(std::move(own)) {}
  const std::vector<Chunk>& chunks() const { return chunks_; }
  size_t total_size() const { size_t n = 0; for (auto& c : chunks_) n += c.size; return n; }
  void* host() const { return reinterpret_cast<void*>(chunks_.at(0).addr.offset); }
 private:
  std::vector<Chunk> chunks_;
  std::shared_ptr<void> own_;
};
std::ostream& operator<<(std::ostream&, const CompositeAddress&);

class FlexAllocator {
 public:
  CompositeAddress allocate(size_t nbytes, const AllocationDirective&);
  uint64_t compositeAddressToDmva(const CompositeAddress& a) const { return reinterpret_cast<uint64_t>(a.host()); }
  void registerMemoryPressureCallback(std::function<void(std::unique_lock<std::mutex>&)> f) { pressure_ = std::move(f); }
 private:
  std::function<void(std::unique_lock<std::mutex>&)> pressure_;
};

struct DmaParams {
  void* host; size_t size; bool to_device; const CompositeAddress* dev; std::shared_ptr<data_conversion_info> dci;
  bool pipeline_barrier = true; std::function<void(void*)> callback;
};
struct ComputeParams {
  const CompositeAddress* program; std::vector<const CompositeAddress*> tensors; std::string name; uint64_t bootstrap;
  bool pipeline_barrier = true;
};
struct HostCallbackParams { std::function<void(void*)> callback; void* data; bool pipeline_barrier; };
DmaParams* createDmaParams(void* host, size_t size, bool to_device, const CompositeAddress* dev,
                           std::shared_ptr<data_conversion_info> dci = nullptr);
void destroyDmaParams(DmaParams*);
ComputeParams* createComputeParams(const CompositeAddress*, std::vector<const CompositeAddress*>, std::string, uint64_t = 0);
void destroyComputeParams(ComputeParams*);
HostCallbackParams* createHostCallbackParams(std::function<void(void*)>, void*, bool);
void destroyHostCallbackParams(HostCallbackParams*);

class RuntimeStream {
 public:
  bool query() { return true; }
  void synchronize() {}
  bool needsShutdown() const { return false; }
  void launchOperationH2D(DmaParams*);
  void launchOperationD2H(DmaParams*);
  void launchOperationCompute(ComputeParams*);
  void launchOperationHostCallback(HostCallbackParams* p) { p->callback(p->data); }
  void fillAsync(const CompositeAddress* dst, double value, DataFormats f, bool use_dmai);
};
class RuntimeContext {
 public:
  RuntimeContext() : alloc_(std::make_shared<FlexAllocator>()) {}
  std::shared_ptr<FlexAllocator> getAllocator() { return alloc_; }
  RuntimeStream* getDefaultStream() { return &default_; }
  RuntimeStream* createStream(RuntimeStreamPriority) { streams_.push_back(std::make_unique<RuntimeStream>()); return streams_.back().get(); }
  bool hasStreamError() const { return false; }
 private:
  std::shared_ptr<FlexAllocator> alloc_;
  RuntimeStream default_;
  std::vector<std::unique_ptr<RuntimeStream>> streams_;
};
std::string initializeRuntime(std::shared_ptr<RuntimeContext>*, int device);
std::shared_ptr<RuntimeContext> getFlexRuntimeContext();
size_t getNumDevices();
}  // namespace flex
