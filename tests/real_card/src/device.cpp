// The card as a device: a file that one process holds, memory, streams. See include/flex/flex.hpp.
#include <fcntl.h>
#include <sys/file.h>

#include <cstdlib>
#include <cstring>
#include <flex/flex.hpp>
#include <stdexcept>

namespace flex {
static std::shared_ptr<RuntimeContext> context;

size_t getNumDevices() {
  const char* world = std::getenv("AIU_WORLD_SIZE");
  return world ? std::max(1, std::atoi(world)) : 1;
}

// The card belongs to one process. SPYRE_STANDIN_DEVICE (a file) stands for /dev/vfio/N: it stays open and locked to the
// end of the process, and children inherit it, as they do a VFIO group.
static void take_device() {
  const char* path = std::getenv("SPYRE_STANDIN_DEVICE");
  if (!path) return;
  int fd = ::open(path, O_RDWR | O_CREAT, 0600);
  if (fd < 0 || ::flock(fd, LOCK_EX | LOCK_NB) != 0)
    throw std::runtime_error(std::string("RAS::VFIO::DeviceOpenFail: open ") + path + ": Device or resource busy");
}
std::string initializeRuntime(std::shared_ptr<RuntimeContext>* out, int device) {
  if (!context) {
    take_device();
    context = std::make_shared<RuntimeContext>();
  }
  *out = context;
  return "stand-in runtime on device " + std::to_string(device);
}
std::shared_ptr<RuntimeContext> getFlexRuntimeContext() {
  if (!context) throw std::runtime_error("ContextNotCreated: the flex runtime context has not been created");
  return context;
}
std::ostream& operator<<(std::ostream& out, const CompositeAddress& address) {
  out << "CompositeAddress(";
  for (auto& chunk : address.chunks()) out << std::hex << chunk.addr.offset << std::dec << "+" << chunk.size << " ";
  return out << ")";
}

// What fresh device memory holds: SPYRE_STANDIN_FILL, to show code that trusts its padding.
static int fresh_byte() {
  static const int value = [] {
    const char* text = std::getenv("SPYRE_STANDIN_FILL");
    return text ? static_cast<int>(std::strtol(text, nullptr, 0)) : 0;
  }();
  return value;
}
CompositeAddress FlexAllocator::allocate(size_t bytes, const AllocationDirective&) {
  size_t size = (bytes + STICK - 1) / STICK * STICK;
  void* memory = nullptr;
  if (posix_memalign(&memory, STICK, size ? size : STICK)) throw std::bad_alloc();
  std::memset(memory, fresh_byte(), size);
  Chunk chunk(LogicalAddress(0, reinterpret_cast<uint64_t>(memory)), size);
  return CompositeAddress(chunk, std::shared_ptr<void>(memory, std::free));
}

DmaParams* createDmaParams(void* host, size_t size, bool to_device, const CompositeAddress* address,
                           std::shared_ptr<data_conversion_info> conversion) {
  auto* made = new DmaParams();
  made->host = host;
  made->size = size;
  made->to_device = to_device;
  made->dev = address;
  made->dci = std::move(conversion);
  return made;
}
void destroyDmaParams(DmaParams* params) { delete params; }
ComputeParams* createComputeParams(const CompositeAddress* program, std::vector<const CompositeAddress*> tensors,
                                   std::string name, uint64_t bootstrap) {
  auto* made = new ComputeParams();
  made->program = program;
  made->tensors = std::move(tensors);
  made->name = std::move(name);
  made->bootstrap = bootstrap;
  return made;
}
void destroyComputeParams(ComputeParams* params) { delete params; }
HostCallbackParams* createHostCallbackParams(std::function<void(void*)> callback, void* data, bool barrier) {
  return new HostCallbackParams{std::move(callback), data, barrier};
}
void destroyHostCallbackParams(HostCallbackParams* params) { delete params; }
}  // namespace flex
