// Transfers between host and card: carries out the conversion that the front end describes, element by element.
#include <cstring>
#include <flex/flex.hpp>
#include <stdexcept>
#include <vector>

#include <standin/numbers.h>

namespace flex {
using F = DataFormats;
using Index = int64_t;

template <typename T>
static T& at(const void* base, Index i) { return static_cast<T*>(const_cast<void*>(base))[i]; }

static double load(const void* base, Index i, F format) {
  switch (format) {
    case F::SEN169_FP16: return standin::from_dl16(at<uint16_t>(base, i));
    case F::IEEE_FP16: return standin::from_half(at<uint16_t>(base, i));
    case F::BFLOAT16: return standin::from_bfloat(at<uint16_t>(base, i));
    case F::IEEE_FP32: return at<float>(base, i);
    case F::IEEE_INT64: return static_cast<double>(at<int64_t>(base, i));
    case F::IEEE_INT32: return at<int32_t>(base, i);
    case F::SENUINT32: return at<uint32_t>(base, i);
    case F::SENINT16: return at<int16_t>(base, i);
    case F::SENINT8: return at<int8_t>(base, i);
    case F::BOOL: return at<uint8_t>(base, i);
    default: throw std::runtime_error("stand-in card: no conversion from " + EnumsConversion::dataFormatsToString(format));
  }
}
static void store(void* base, Index i, F format, double value) {
  switch (format) {
    case F::SEN169_FP16: at<uint16_t>(base, i) = standin::to_dl16(static_cast<float>(value)); break;
    case F::IEEE_FP16: at<uint16_t>(base, i) = standin::to_half(static_cast<float>(value)); break;
    case F::BFLOAT16: at<uint16_t>(base, i) = standin::to_bfloat(static_cast<float>(value)); break;
    case F::IEEE_FP32: at<float>(base, i) = static_cast<float>(value); break;
    case F::IEEE_INT64: at<int64_t>(base, i) = static_cast<int64_t>(value); break;
    case F::IEEE_INT32: at<int32_t>(base, i) = static_cast<int32_t>(static_cast<int64_t>(value)); break;
    case F::SENUINT32: at<uint32_t>(base, i) = static_cast<uint32_t>(static_cast<int64_t>(value)); break;
    case F::SENINT16: at<int16_t>(base, i) = static_cast<int16_t>(value); break;
    case F::SENINT8: at<int8_t>(base, i) = static_cast<int8_t>(value); break;
    case F::BOOL: at<uint8_t>(base, i) = value != 0; break;
    default: throw std::runtime_error("stand-in card: no conversion to " + EnumsConversion::dataFormatsToString(format));
  }
}
static size_t width(F format) {
  switch (format) {
    case F::IEEE_FP32: case F::IEEE_INT32: case F::SENUINT32: return 4;
    case F::IEEE_INT64: return 8;
    case F::SENINT8: case F::BOOL: case F::SEN143_FP8: case F::SEN152_FP8: return 1;
    default: return 2;
  }
}

// One element from here to there. Formats of 16 bits go through a table of all their codes.
class Mover {
 public:
  Mover(F from, F to) : from_(from), to_(to), width_(width(from)), raw_(from == to && from != F::SENUINT32) {
    if (raw_ || width(from) != 2 || width(to) != 2 || from == F::SENINT16 || to == F::SENINT16) return;
    table_.resize(1 << 16);
    std::vector<uint16_t> codes(1 << 16);
    for (int code = 0; code < 1 << 16; ++code) codes[code] = static_cast<uint16_t>(code);
    for (int code = 0; code < 1 << 16; ++code) store(table_.data(), code, to, load(codes.data(), code, from));
  }
  void operator()(const void* from, Index a, void* to, Index b) const {
    if (raw_) std::memcpy(static_cast<char*>(to) + b * width_, static_cast<const char*>(from) + a * width_, width_);
    else if (!table_.empty()) at<uint16_t>(to, b) = table_[at<uint16_t>(from, a)];
    else if (from_ == F::IEEE_INT64 && to_ == F::IEEE_INT32) at<int32_t>(to, b) = static_cast<int32_t>(at<int64_t>(from, a));
    else store(to, b, to_, load(from, a, from_));
  }

 private:
  F from_, to_;
  size_t width_;
  bool raw_;
  std::vector<uint16_t> table_;
};
static const Mover& mover(F from, F to) {
  static std::vector<std::pair<std::pair<F, F>, std::unique_ptr<Mover>>> made;
  static std::mutex guard;
  std::lock_guard<std::mutex> held(guard);
  for (auto& [key, known] : made)
    if (key == std::make_pair(from, to)) return *known;
  made.emplace_back(std::make_pair(from, to), std::make_unique<Mover>(from, to));
  return *made.back().second;
}

static void carry_out(const data_conversion_stride_info& info, const Mover& move, const void* from, void* to) {
  for (auto n : info.size_)
    if (n <= 0) return;
  size_t rank = info.size_.size();
  std::vector<Index> index(rank, 0);
  for (size_t k = 0; k < rank || rank == 0;) {
    Index a = info.offset_src_, b = info.offset_dst_;
    for (size_t d = 1; d < rank; ++d) {
      a += index[d] * info.stride_src_[d];
      b += index[d] * info.stride_dst_[d];
    }
    if (rank == 0) return move(from, a, to, b);
    for (Index j = 0; j < info.size_[0]; ++j, a += info.stride_src_[0], b += info.stride_dst_[0]) move(from, a, to, b);
    for (k = 1; k < rank; ++k) {
      if (++index[k] < info.size_[k]) break;
      index[k] = 0;
    }
  }
}
static void convert(const data_conversion_info& what, const void* from, void* to) {
  const Mover& move = mover(what.dataformat_src_, what.dataformat_dst_);
  for (auto& info : what.dcsi_) carry_out(info, move, from, to);
}

void RuntimeStream::launchOperationH2D(DmaParams* p) {
  if (p->dci) convert(*p->dci, p->host, p->dev->host());
  else std::memcpy(p->dev->host(), p->host, p->size);
  if (p->callback) p->callback(nullptr);
}
void RuntimeStream::launchOperationD2H(DmaParams* p) {
  if (p->dci) convert(*p->dci, p->dev->host(), p->host);
  else std::memcpy(p->host, p->dev->host(), p->size);
  if (p->callback) p->callback(nullptr);
}
void RuntimeStream::fillAsync(const CompositeAddress* where, double value, F format, bool) {
  Index count = static_cast<Index>(where->total_size() / width(format));
  for (Index i = 0; i < count; ++i) store(where->host(), i, format, value);
}
}  // namespace flex
